"""An answer that is content from its beginning to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from infernix.frontend.reading import ContentPiece, ReadingEvent, shallow_copy
from infernix.results import OutputBranch, ToolDiagnostics
from infernix.tools import ToolCall


class ContentReader:
    """Text is content byte for byte; of control tokens only those in `spelled` are, with the bytes given there."""

    calls: tuple[ToolCall, ...] = ()
    diagnostics: ToolDiagnostics | None = None

    def __init__(self, spelled: Mapping[int, bytes]) -> None:
        self._spelled = spelled
        self._has_content = False

    @property
    def branch(self) -> OutputBranch:
        """Content, as soon as there is some."""
        return OutputBranch.CONTENT if self._has_content else OutputBranch.UNDECIDED

    def copy(self) -> Self:
        """An equal reader of its own."""
        return shallow_copy(self)

    def text(self, data: bytes) -> list[ReadingEvent]:
        """Publishes the bytes."""
        if not data:
            return []
        self._has_content = True
        return [ContentPiece(data)]

    def control(self, token: int) -> list[ReadingEvent]:
        """Publishes the token's spelling where it counts as text."""
        return self.text(self._spelled.get(token, b""))

    def finish(self, *, is_complete: bool) -> list[ReadingEvent]:
        """Nothing is left over."""
        return []

    def suppress_held(self) -> None:
        """Nothing is held back."""
