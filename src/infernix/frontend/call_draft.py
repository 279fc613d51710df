"""A tool call that is being read: what is published of it piece by piece, and the finished call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from infernix.errors import InternalError
from infernix.frontend.json_text import json_type
from infernix.frontend.pieces import appended
from infernix.frontend.reading import ReadingEvent
from infernix.tools import ToolCall, ToolCallDelta


def disagreement(what: str) -> InternalError:
    """The error for output that a grammar took and that cannot be read under the same contract."""
    return InternalError(f"the grammar took a tool call that cannot be read: {what}")


@dataclass(frozen=True, slots=True)
class CallDraft:
    """One call of an answer, the `index`-th from 0. Its arguments are the pieces that were published, joined."""

    index: int
    name: str = ""
    parts: tuple[str, ...] = ()

    def named(self, name: str, events: list[ReadingEvent]) -> CallDraft:
        """Publishes the name, with no arguments yet."""
        events.append(ToolCallDelta(self.index, name, ""))
        return replace(self, name=name)

    def extended(self, arguments: str, events: list[ReadingEvent]) -> CallDraft:
        """Publishes more of the arguments."""
        if not arguments:
            return self
        events.append(ToolCallDelta(self.index, None, arguments))
        return replace(self, parts=appended(self.parts, arguments))

    def finished(self) -> ToolCall:
        """The call. Raises InternalError if its arguments are no JSON object."""
        arguments = "".join(self.parts)
        if json_type(arguments) != "object":
            raise disagreement(f"the arguments of {self.name!r} are no JSON object")
        return ToolCall(self.name, arguments)
