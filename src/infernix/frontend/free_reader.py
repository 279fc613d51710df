"""An answer without a grammar in which tools may be called: read tolerantly, and nothing of it is ever lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from infernix.frontend.framing import TOOL_CLOSE, TOOL_OPEN, Framing
from infernix.frontend.free_calls import FreeCall, read_free_call
from infernix.frontend.pieces import appended, split_at
from infernix.frontend.reading import ContentPiece, ReadingEvent, shallow_copy
from infernix.frontend.tools.contract import ToolContract, ToolPolicy
from infernix.results import OutputBranch, ToolDiagnostics, ToolFallback
from infernix.tools import ToolCall, ToolCallDelta

_OPENER, _CLOSER = TOOL_OPEN.encode(), TOOL_CLOSE.encode()


class FreeReader:
    """Text is content; what stands between the marks of a call is held back until it can be judged as a whole.

    If it is a call of a declared tool, it is published as one; otherwise it is content, marks included. White space
    behind a call is not published unless other content follows it. The marks are tokens where the vocabulary has them,
    and their text otherwise. `spelled` are control tokens that count as text.
    """

    def __init__(self, policy: ToolPolicy, framing: Framing, spelled: Mapping[int, bytes]) -> None:
        self._tools: Mapping[str, ToolContract] = {tool.name: tool for tool in policy.tools}
        self._framing = framing
        self._spelled = spelled
        self._region: tuple[bytes, ...] | None = None
        self._held = b""
        self._is_after_call = False
        self._space = b""
        self._has_content = False
        self._num_suppressed = 0
        self.calls: tuple[ToolCall, ...] = ()
        self.diagnostics = ToolDiagnostics()

    @property
    def branch(self) -> OutputBranch:
        """What was published so far."""
        if self.calls:
            return OutputBranch.TOOLS
        return OutputBranch.CONTENT if self._has_content else OutputBranch.UNDECIDED

    def copy(self) -> Self:
        """An equal reader of its own."""
        return shallow_copy(self)

    def text(self, data: bytes) -> list[ReadingEvent]:
        """Feeds bytes."""
        events: list[ReadingEvent] = []
        while True:
            is_in_region = self._region is not None
            mark = _CLOSER if is_in_region else _OPENER
            has_token = (self._framing.tool_close if is_in_region else self._framing.tool_open) is not None
            if has_token:
                self._take(data, events)
                return events
            before, self._held, found = split_at(self._held + data, mark)
            self._take(before, events)
            if not found:
                return events
            data, self._held = self._held, b""
            if is_in_region:
                self._judge(events, closer=_CLOSER)
            else:
                self._open()

    def control(self, token: int) -> list[ReadingEvent]:
        """Feeds a control token."""
        events: list[ReadingEvent] = []
        if token == self._framing.tool_open:
            if self._region is not None:
                self._judge(events, closer=b"")
            self._open()
        elif token == self._framing.tool_close and self._region is not None:
            self._judge(events, closer=_CLOSER)
        else:
            held, self._held = self._held, b""
            self._take(held + self._spelled.get(token, b""), events)
        return events

    def finish(self, *, is_complete: bool) -> list[ReadingEvent]:
        """The end. A call that is complete but for its closing mark counts, unless a limit cut it."""
        events: list[ReadingEvent] = []
        held, self._held = self._held, b""
        self._take(held, events)
        if self._region is not None:
            if is_complete:
                self._judge(events, closer=b"", failure=ToolFallback.TRUNCATED_TAIL)
            else:
                self._give_up(events, b"", ToolFallback.TRUNCATED_TAIL)
        return events

    def suppress_held(self) -> None:
        """What is held back was published before: it may become part of a call, but not content once more."""
        self._num_suppressed = len(self._held)
        if self._region is not None:
            self._num_suppressed += len(_OPENER) + sum(map(len, self._region))

    def _open(self) -> None:
        self._region = ()
        self.diagnostics = replace(self.diagnostics, marker_seen=True)

    def _take(self, data: bytes, events: list[ReadingEvent]) -> None:
        if not data:
            return
        if self._region is not None:
            self._region = appended(self._region, data)
        elif self._is_after_call and not data.strip():
            self._space = self._space + data
        else:
            if self._is_after_call:
                data = self._space + data
                self._is_after_call = False
                self._note(ToolFallback.TRAILING_CONTENT)
            num_dropped = min(self._num_suppressed, len(data))
            self._num_suppressed -= num_dropped
            self._has_content = True
            if num_dropped < len(data):
                events.append(ContentPiece(data[num_dropped:]))

    def _judge(self, events: list[ReadingEvent], *, closer: bytes, failure: ToolFallback | None = None) -> None:
        assert self._region is not None
        text = b"".join(self._region).decode("utf-8", errors="replace")
        found = read_free_call(text, self._tools, self._framing.tool_style, is_closed=bool(closer))
        if isinstance(found, ToolFallback):
            self._give_up(events, closer, failure or found)
            return
        self._region = None
        self._num_suppressed = 0
        self._is_after_call, self._space = True, b""
        events.append(ToolCallDelta(len(self.calls), found.name, ""))
        events.append(ToolCallDelta(len(self.calls), None, found.arguments_json))
        self.calls = (*self.calls, ToolCall(found.name, found.arguments_json))
        self._count(found, was_recovered=found.was_recovered or not closer)

    def _give_up(self, events: list[ReadingEvent], closer: bytes, reason: ToolFallback) -> None:
        assert self._region is not None
        data = _OPENER + b"".join(self._region) + closer
        self._region = None
        self._note(reason)
        self._take(data, events)

    def _note(self, reason: ToolFallback) -> None:
        if self.diagnostics.fallback is None:
            self.diagnostics = replace(self.diagnostics, fallback=reason)

    def _count(self, call: FreeCall, *, was_recovered: bool) -> None:
        seen = self.diagnostics
        self.diagnostics = replace(
            seen,
            num_calls=len(self.calls),
            num_empty_arguments_omitted=seen.num_empty_arguments_omitted + call.num_empty,
            num_mismatched_arguments=seen.num_mismatched_arguments + call.num_mismatched,
            num_duplicates_repaired=seen.num_duplicates_repaired + call.num_repaired,
            was_recovered=seen.was_recovered or was_recovered,
        )
