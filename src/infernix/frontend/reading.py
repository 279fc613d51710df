"""What a reader of output says, and what a reader is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias, TypeVar

from infernix.results import OutputBranch, ToolDiagnostics
from infernix.tools import ToolCall, ToolCallDelta


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """Bytes of the reasoning, which may end inside a character."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ContentPiece:
    """Bytes of the content, which may end inside a character."""

    data: bytes


ReadingEvent: TypeAlias = ReasoningPiece | ContentPiece | ToolCallDelta

ReaderT = TypeVar("ReaderT")


def shallow_copy(reader: ReaderT) -> ReaderT:
    """An object with the same attributes; made for each token, and `copy.copy` takes the long way of pickling."""
    twin = object.__new__(type(reader))
    vars(twin).update(vars(reader))
    return twin


class BodyReader(Protocol):
    """Reads what follows the reasoning, text and control tokens in their order.

    A reader changes by being fed; a preview feeds a `copy`, and what both share never changes. Where a grammar
    guarantees the form, what cannot be read is an InternalError: grammar and reader disagree.
    """

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The completed calls."""
        ...

    @property
    def branch(self) -> OutputBranch:
        """What the answer has turned out to be."""
        ...

    @property
    def diagnostics(self) -> ToolDiagnostics | None:
        """What had to be said of the calls; None where none are read."""
        ...

    def copy(self) -> Self:
        """An equal reader of its own, in constant time."""
        ...

    def text(self, data: bytes) -> list[ReadingEvent]:
        """The bytes of a TEXT token, or several."""
        ...

    def control(self, token: int) -> list[ReadingEvent]:
        """A control token."""
        ...

    def finish(self, *, is_complete: bool) -> list[ReadingEvent]:
        """The end; `is_complete`: by an end-of-sequence token, so that nothing may be left unfinished."""
        ...

    def suppress_held(self) -> None:
        """Called when everything fed so far is known to the caller: none of it is to be published as content."""
        ...
