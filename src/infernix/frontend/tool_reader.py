"""An answer in which a grammar lets tools be called: content, calls, or content and then calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import Self

from infernix.errors import InternalError
from infernix.frontend.call_draft import disagreement
from infernix.frontend.call_reader import CallReader
from infernix.frontend.framing import TOOL_CLOSE, TOOL_OPEN, Framing, ToolStyle
from infernix.frontend.json_reader import JsonCallReader
from infernix.frontend.pieces import split_at
from infernix.frontend.reading import ContentPiece, ReadingEvent, shallow_copy
from infernix.frontend.tools.contract import ToolContract, ToolPolicy
from infernix.frontend.xml_reader import XmlCallReader
from infernix.results import OutputBranch, ToolDiagnostics
from infernix.tools import ToolCall

_OPENER, _CLOSER = TOOL_OPEN.encode(), TOOL_CLOSE.encode()


class _Place(Enum):
    """START: nothing was fed yet. OPENER: in the mark that opens a call, as text. AFTER: a call is complete."""

    START = auto()
    CONTENT = auto()
    OPENER = auto()
    CALL = auto()
    AFTER = auto()


class ToolReader:
    """Reads as the grammar was built: with `has_json_content`, the answer is either JSON or calls.

    A call opens with the token of its mark, or with the mark as text where the vocabulary has no such token. In the
    first case that text is content like any other. Otherwise the first time it comes opens a call, except in JSON
    content, which begins differently and holds it only as part of a string.
    """

    def __init__(self, policy: ToolPolicy, framing: Framing, *, has_json_content: bool) -> None:
        self._policy = policy
        self._framing = framing
        self._has_json_content = has_json_content
        self._tools: Mapping[str, ToolContract] = {tool.name: tool for tool in policy.tools}
        self._place = _Place.START
        self._held = b""
        self._num_suppressed = 0
        self._call: CallReader | None = None
        self.calls: tuple[ToolCall, ...] = ()
        self.diagnostics = ToolDiagnostics()

    @property
    def branch(self) -> OutputBranch:
        """Decided by the first byte or token; a call after content decides anew."""
        match self._place:
            case _Place.START:
                return OutputBranch.UNDECIDED
            case _Place.CONTENT:
                return OutputBranch.CONTENT
            case _:
                return OutputBranch.TOOLS

    def copy(self) -> Self:
        """An equal reader of its own."""
        twin = shallow_copy(self)
        twin._call = None if self._call is None else self._call.copy()
        return twin

    def text(self, data: bytes) -> list[ReadingEvent]:
        """Feeds bytes. Raises InternalError where no grammar of this policy lets them stand."""
        events: list[ReadingEvent] = []
        self._held += data
        while self._held and self._advance(events):
            pass
        return events

    def control(self, token: int) -> list[ReadingEvent]:
        """Feeds a control token. Raises InternalError for one that cannot stand here."""
        if token == self._framing.tool_open and self._may_open:
            self._held = b""
            self._begin_call()
            return []
        if token == self._framing.tool_close and self._call is not None:
            self._call.close()
            self._end_call(self._call)
            return []
        raise disagreement(f"control token {token} cannot stand there")

    def finish(self, *, is_complete: bool) -> list[ReadingEvent]:
        """The end: text that was held back is content; a call under way is none, and an error if nothing cut it."""
        if is_complete:
            if self._call is not None or self._place is _Place.OPENER or (self._place is _Place.AFTER and self._held):
                raise disagreement("the answer ended in the middle of it")
            if self._policy.required and not self.calls:
                raise InternalError("the answer ended without the tool call that is required")
        events: list[ReadingEvent] = []
        held, self._held = self._held, b""
        if self._place is _Place.CONTENT:
            self._publish(held, events)
        return events

    def suppress_held(self) -> None:
        """What is held back was published before: it may become part of a call, but not content once more."""
        self._num_suppressed = len(self._held)

    @property
    def _may_open(self) -> bool:
        match self._place:
            case _Place.START:
                return True
            case _Place.CONTENT:
                return not (self._has_json_content or self._policy.required)
            case _Place.AFTER:
                return self._held == b"\n"  # held only where another call is allowed
            case _:
                return False

    def _advance(self, events: list[ReadingEvent]) -> bool:
        """Takes the next part out of the held bytes; False where more has to come."""
        match self._place:
            case _Place.START:
                self._place = self._first_place()
                return True
            case _Place.CONTENT:
                return self._take_content(events)
            case _Place.OPENER:
                return self._take_opener(_OPENER)
            case _Place.CALL:
                assert self._call is not None
                data, self._held = self._held, b""
                found, self._held = self._call.text(data)
                events += found
                if self._call.call is None:
                    return False
                self._end_call(self._call)
                return True
            case _Place.AFTER:
                if not self._policy.parallel:
                    raise disagreement("something follows the only call")
                if self._framing.tool_open is None:
                    return self._take_opener(b"\n" + _OPENER)
                if self._held != b"\n":
                    raise disagreement(f"{self._held[:40]!r} follows a call")
                return False

    def _first_place(self) -> _Place:
        is_call = self._policy.required or (self._has_json_content and self._held.startswith(_OPENER[:1]))
        if not is_call:
            return _Place.CONTENT
        if self._framing.tool_open is not None:
            raise disagreement(f"{self._held[:40]!r} stands where the opening token has to")
        return _Place.OPENER

    def _take_content(self, events: list[ReadingEvent]) -> bool:
        if self._has_json_content or self._framing.tool_open is not None:
            data, self._held = self._held, b""
            self._publish(data, events)
            return False
        before, self._held, is_call = split_at(self._held, _OPENER)
        self._publish(before, events)
        if is_call:
            self._begin_call()
        return is_call

    def _publish(self, data: bytes, events: list[ReadingEvent]) -> None:
        num_dropped = min(self._num_suppressed, len(data))
        self._num_suppressed -= num_dropped
        if num_dropped < len(data):
            events.append(ContentPiece(data[num_dropped:]))

    def _take_opener(self, opener: bytes) -> bool:
        if self._held.startswith(opener):
            self._held = self._held[len(opener) :]
            self._begin_call()
            return True
        if not opener.startswith(self._held):
            raise disagreement(f"{self._held[:40]!r} stands where {opener!r} has to")
        return False

    def _begin_call(self) -> None:
        make_reader = XmlCallReader if self._framing.tool_style is ToolStyle.XML else JsonCallReader
        closer = _CLOSER if self._framing.tool_close is None else None
        self.diagnostics = replace(self.diagnostics, marker_seen=True)
        self._call = make_reader(self._tools, len(self.calls), closer, self.diagnostics)
        self._place = _Place.CALL

    def _end_call(self, reader: CallReader) -> None:
        assert reader.call is not None
        self.calls = (*self.calls, reader.call)
        self.diagnostics = replace(reader.diagnostics, num_calls=len(self.calls))
        self._call = None
        self._place = _Place.AFTER
