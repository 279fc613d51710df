"""Reading a constrained tool call in the XML way of writing.

    \\n<function=NAME>\\n  ( <parameter=KEY>\\n VALUE \\n</parameter>\\n )*  </function>\\n  and the closing mark

A value ends at the first `\\n</parameter>`, so it cannot hold that text. Exactly one line break on each side of it is
framing. A string is published as its JSON string while it comes, JSON as it is written; a value that is read as a whole
is published when it is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto

from infernix.frontend.call_draft import disagreement
from infernix.frontend.call_reader import CallReader
from infernix.frontend.pieces import appended, split_at
from infernix.frontend.reading import ReadingEvent
from infernix.frontend.tools.contract import ArgumentContract, ArgumentEncoding, ToolContract
from infernix.frontend.utf8 import decode_piece, decode_rest
from infernix.frontend.values import normalized_value, string_fragment
from infernix.results import ToolDiagnostics

_FUNCTION, _FUNCTION_END = b"\n<function=", b"</function>\n"
_PARAMETER, _PARAMETER_END = b"<parameter=", b"\n</parameter>"
_NAME_END = b">\n"


class _Part(Enum):
    """What comes next."""

    FUNCTION = auto()
    FUNCTION_NAME = auto()
    PARAMETER_OR_END = auto()
    PARAMETER_NAME = auto()
    VALUE = auto()
    AFTER_VALUE = auto()
    CLOSER = auto()


class XmlCallReader(CallReader):
    """Reads one call; see the head of this file."""

    def __init__(
        self, tools: Mapping[str, ToolContract], index: int, closer: bytes | None, diagnostics: ToolDiagnostics
    ) -> None:
        super().__init__(tools, index, closer, diagnostics)
        self._part = _Part.FUNCTION
        self._tool: ToolContract | None = None
        self._names: frozenset[str] = frozenset()
        self._argument: ArgumentContract | None = None
        self._has_arguments = False
        # Of the value under way: the start of a character, and the pieces where it is read as a whole.
        self._character = b""
        self._value: tuple[str, ...] = ()

    @property
    def _is_closable(self) -> bool:
        return self._part is _Part.CLOSER

    def _advance(self, events: list[ReadingEvent]) -> bool:
        match self._part:
            case _Part.FUNCTION:
                return self._next(_Part.FUNCTION_NAME, is_taken=self._take(_FUNCTION))
            case _Part.FUNCTION_NAME:
                return self._take_function_name(events)
            case _Part.PARAMETER_OR_END:
                return self._take_parameter_or_end(events)
            case _Part.PARAMETER_NAME:
                return self._take_parameter_name(events)
            case _Part.VALUE:
                return self._take_value(events)
            case _Part.AFTER_VALUE:
                return self._next(_Part.PARAMETER_OR_END, is_taken=self._take(b"\n"))
            case _Part.CLOSER:
                return self._take_closer()

    def _next(self, part: _Part, *, is_taken: bool) -> bool:
        if is_taken:
            self._part = part
        return is_taken

    def _take_function_name(self, events: list[ReadingEvent]) -> bool:
        name = self._take_up_to(_NAME_END)
        if name is None:
            return False
        self._tool = self._contract(name)
        self._draft = self._draft.named(name, events).extended("{", events)
        self._part = _Part.PARAMETER_OR_END
        return True

    def _take_parameter_or_end(self, events: list[ReadingEvent]) -> bool:
        if _PARAMETER.startswith(self._held[: len(_PARAMETER)]) and not _FUNCTION_END.startswith(self._held):
            return self._next(_Part.PARAMETER_NAME, is_taken=self._take(_PARAMETER))
        if not self._held or not self._take(_FUNCTION_END):
            return False
        self._draft = self._draft.extended("}", events)
        self._part = _Part.CLOSER
        return True

    def _take_parameter_name(self, events: list[ReadingEvent]) -> bool:
        name = self._take_up_to(_NAME_END)
        if name is None:
            return False
        tool = self._tool
        assert tool is not None
        if name in self._names:
            raise disagreement(f"the argument {name!r} of {tool.name!r} comes twice")
        self._names |= {name}
        argument = tool.arguments.get(name)
        if argument is None:
            if tool.strict:
                raise disagreement(f"{tool.name!r} has no argument {name!r}")
            argument = ArgumentContract(name, ArgumentEncoding.HINTED)
        self._argument = argument
        match _streamed(argument):
            case ArgumentEncoding.TEXT:
                self._begin_argument('"', events)
            case ArgumentEncoding.JSON:
                self._begin_argument("", events)
        self._part = _Part.VALUE
        return True

    def _begin_argument(self, value_begin: str, events: list[ReadingEvent]) -> None:
        assert self._argument is not None
        comma = "," if self._has_arguments else ""
        self._has_arguments = True
        self._draft = self._draft.extended(f'{comma}"{string_fragment(self._argument.name)}":{value_begin}', events)

    def _take_value(self, events: list[ReadingEvent]) -> bool:
        data, self._held, is_complete = split_at(self._held, _PARAMETER_END)
        text, self._character = decode_piece(self._character, data)
        if is_complete:
            text += decode_rest(self._character)
            self._character = b""
        assert self._argument is not None
        match _streamed(self._argument):
            case ArgumentEncoding.TEXT:
                end = '"' if is_complete else ""
                self._draft = self._draft.extended(string_fragment(text) + end, events)
            case ArgumentEncoding.JSON:
                self._draft = self._draft.extended(text, events)
            case ArgumentEncoding.HINTED:
                self._value = appended(self._value, text)
                if is_complete:
                    self._normalize(events)
        return self._next(_Part.AFTER_VALUE, is_taken=is_complete)

    def _normalize(self, events: list[ReadingEvent]) -> None:
        assert self._argument is not None
        value = normalized_value("".join(self._value), self._argument.hint)
        self._value = ()
        seen = self.diagnostics
        if value.json is None:
            self.diagnostics = replace(seen, num_empty_arguments_omitted=seen.num_empty_arguments_omitted + 1)
            return
        if value.is_mismatch:
            self.diagnostics = replace(seen, num_mismatched_arguments=seen.num_mismatched_arguments + 1)
        self._begin_argument(value.json, events)


def _streamed(argument: ArgumentContract) -> ArgumentEncoding:
    """How a value can be published while it comes: where a string is admitted, it is a string whatever it says."""
    if argument.encoding is ArgumentEncoding.HINTED and argument.hint is not None and "string" in argument.hint:
        return ArgumentEncoding.TEXT
    return argument.encoding
