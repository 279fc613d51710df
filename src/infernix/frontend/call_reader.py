"""Reading one constrained tool call: what the readers of both ways to write it have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from infernix.frontend.call_draft import CallDraft, disagreement
from infernix.frontend.reading import ReadingEvent, shallow_copy
from infernix.frontend.tools.contract import ToolContract
from infernix.results import ToolDiagnostics
from infernix.tools import ToolCall


class CallReader(ABC):
    """Reads one call from behind its opening mark, in the only form that a grammar lets it have.

    `closer` is the closing mark as text, or None where it is a token, told by `close`. What differs from the form is an
    InternalError. A copy is shallow: every attribute is a value.
    """

    def __init__(
        self, tools: Mapping[str, ToolContract], index: int, closer: bytes | None, diagnostics: ToolDiagnostics
    ) -> None:
        self._tools = tools
        self._closer = closer
        self._draft = CallDraft(index)
        # Bytes that were fed and do not say yet what they are.
        self._held = b""
        self.diagnostics = diagnostics
        self.call: ToolCall | None = None

    def copy(self) -> Self:
        """An equal reader of its own."""
        return shallow_copy(self)

    def text(self, data: bytes) -> tuple[list[ReadingEvent], bytes]:
        """What the bytes say, and those behind the end of the call."""
        events: list[ReadingEvent] = []
        self._held += data
        while self.call is None and self._advance(events):
            pass
        if self.call is None:
            return events, b""
        rest, self._held = self._held, b""
        return events, rest

    def close(self) -> None:
        """The closing token."""
        if self._closer is not None or self._held or not self._is_closable:
            raise disagreement(f"it closes in the middle, after {self._held[-40:]!r}")
        self.call = self._draft.finished()

    @property
    @abstractmethod
    def _is_closable(self) -> bool:
        """Whether nothing but the closing mark can come."""

    @abstractmethod
    def _advance(self, events: list[ReadingEvent]) -> bool:
        """Takes the next part out of the held bytes; False where they do not hold all of it, or no more is known."""

    def _take_closer(self) -> bool:
        if self._closer is None:
            if self._held:
                raise disagreement(f"{self._held[:40]!r} stands where the closing token has to")
            return False
        if not self._take(self._closer):
            return False
        self.call = self._draft.finished()
        return True

    def _take(self, literal: bytes) -> bool:
        """Takes exactly this text; False where it has not come whole."""
        if self._held.startswith(literal):
            self._held = self._held[len(literal) :]
            return True
        if not literal.startswith(self._held):
            raise disagreement(f"{self._held[:40]!r} stands where {literal!r} has to")
        return False

    def _take_up_to(self, delimiter: bytes) -> str | None:
        """Takes a name and the delimiter behind it; None where it has not come."""
        before, found, rest = self._held.partition(delimiter)
        if not found:
            return None
        self._held = rest
        try:
            return before.decode("utf-8")
        except UnicodeDecodeError:
            raise disagreement(f"the name {before[:40]!r} is no Unicode") from None

    def _contract(self, name: str) -> ToolContract:
        contract = self._tools.get(name)
        if contract is None:
            raise disagreement(f"there is no tool {name!r}")
        return contract
