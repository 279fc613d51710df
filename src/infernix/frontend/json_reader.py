"""Reading a constrained tool call in the JSON way of writing.

    \\n{"name": "NAME", "arguments": {...}}\\n  and the closing mark

The arguments are published as they are written, while they come.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum, auto

from infernix.frontend.call_draft import disagreement
from infernix.frontend.call_reader import CallReader
from infernix.frontend.reading import ReadingEvent
from infernix.frontend.tools.contract import ToolContract
from infernix.frontend.utf8 import decode_piece
from infernix.results import ToolDiagnostics

_HEAD, _MIDDLE, _TAIL = b'\n{"name": ', b', "arguments": ', b"}\n"
_NAME = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STRUCTURE = re.compile(rb'[{}\[\]"]')
_IN_STRING = re.compile(rb'["\\]')


class _Part(Enum):
    """What comes next."""

    HEAD = auto()
    NAME = auto()
    MIDDLE = auto()
    ARGUMENTS = auto()
    TAIL = auto()
    CLOSER = auto()


class JsonCallReader(CallReader):
    """Reads one call; see the head of this file."""

    def __init__(
        self, tools: Mapping[str, ToolContract], index: int, closer: bytes | None, diagnostics: ToolDiagnostics
    ) -> None:
        super().__init__(tools, index, closer, diagnostics)
        self._part = _Part.HEAD
        self._character = b""
        # Place in the arguments: open brackets, whether a string is open, and whether its next character is escaped.
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False

    @property
    def _is_closable(self) -> bool:
        return self._part is _Part.CLOSER

    def _advance(self, events: list[ReadingEvent]) -> bool:
        match self._part:
            case _Part.HEAD:
                return self._next(_Part.NAME, is_taken=self._take(_HEAD))
            case _Part.NAME:
                return self._take_name(events)
            case _Part.MIDDLE:
                return self._next(_Part.ARGUMENTS, is_taken=self._take(_MIDDLE))
            case _Part.ARGUMENTS:
                return self._take_arguments(events)
            case _Part.TAIL:
                return self._next(_Part.CLOSER, is_taken=self._take(_TAIL))
            case _Part.CLOSER:
                return self._take_closer()

    def _next(self, part: _Part, *, is_taken: bool) -> bool:
        if is_taken:
            self._part = part
        return is_taken

    def _take_name(self, events: list[ReadingEvent]) -> bool:
        if self._held and not self._held.startswith(b'"'):
            raise disagreement(f"{self._held[:40]!r} stands where a name has to")
        written = _NAME.match(self._held)
        if written is None:
            return False
        try:
            name = json.loads(written.group())
        except ValueError:
            raise disagreement(f"the name {written.group()[:40]!r} is no JSON string") from None
        self._draft = self._draft.named(self._contract(name).name, events)
        self._held = self._held[written.end() :]
        self._part = _Part.MIDDLE
        return True

    def _take_arguments(self, events: list[ReadingEvent]) -> bool:
        if not self._held:
            return False
        if self._depth == 0 and not self._held.startswith(b"{"):
            raise disagreement(f"{self._held[:40]!r} stands where an object has to")
        end = self._scan(self._held)
        data, self._held = self._held[:end], self._held[end:]
        is_complete = self._depth == 0
        text, self._character = decode_piece(self._character, data)
        self._draft = self._draft.extended(text, events)
        return self._next(_Part.TAIL, is_taken=is_complete)

    def _scan(self, data: bytes) -> int:
        """Follows the brackets, from the place where the last bytes ended; the index behind the object, or the end."""
        at = 0
        while at < len(data):
            if self._is_escaped:
                self._is_escaped = False
                at += 1
                continue
            found = (_IN_STRING if self._is_in_string else _STRUCTURE).search(data, at)
            if found is None:
                break
            at = found.end()
            match found.group():
                case b'"':
                    self._is_in_string = not self._is_in_string
                case b"\\":
                    self._is_escaped = True
                case b"{" | b"[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth == 0:
                        return at
        return len(data)
