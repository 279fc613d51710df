"""Tool calls in free output: what a model wrote without a grammar, taken where its meaning is beyond doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from infernix.frontend.framing import ToolStyle
from infernix.frontend.json_text import json_type, object_members
from infernix.frontend.tools.contract import ArgumentEncoding, ToolContract
from infernix.frontend.values import NormalizedValue, normalized_value, string_value
from infernix.results import ToolFallback
from infernix.tools import is_unicode

_FUNCTION = re.compile(r"\s*+<function=([^>]*+)>")
_PARAMETER = re.compile(r"\s*+<parameter=([^<>\r\n]++)>")
_FUNCTION_END = re.compile(r"\s*+</function>\s*+\Z")
_NOTHING = re.compile(r"\s*+\Z")
_PARAMETER_END = "</parameter>"
_AFTER_VALUE = re.compile(r"\s*+(?:<parameter=|</function>|\Z)")


@dataclass(frozen=True, slots=True)
class FreeCall:
    """A call that could be read; `was_recovered`: its form was not quite the model's own."""

    name: str
    arguments_json: str
    num_empty: int = 0
    num_mismatched: int = 0
    num_repaired: int = 0
    was_recovered: bool = False


def read_free_call(
    text: str, tools: Mapping[str, ToolContract], style: ToolStyle, *, is_closed: bool
) -> FreeCall | ToolFallback:
    """The call between two marks, or why there is none. Linear in the text.

    `is_closed`: the closing mark came. Of the two ends of an XML call, the function's and the mark, one may be missing.
    """
    looks_like_json = text.lstrip().startswith("{")
    found = _read_json(text, tools) if looks_like_json else _read_xml(text, tools, is_closed)
    if isinstance(found, FreeCall) and looks_like_json != (style is ToolStyle.JSON):
        return replace(found, was_recovered=True)
    return found


def _read_xml(text: str, tools: Mapping[str, ToolContract], is_closed: bool) -> FreeCall | ToolFallback:
    head = _FUNCTION.match(text)
    if head is None:
        return ToolFallback.MALFORMED_STRUCTURE
    tool = _tool(head[1].strip(), tools)
    if isinstance(tool, ToolFallback):
        return tool
    at = head.end()
    values: dict[str, NormalizedValue] = {}
    num_repaired = 0
    while parameter := _PARAMETER.match(text, at):
        name = parameter[1]
        end = _value_end(text, parameter.end())
        if end is None:
            return ToolFallback.MALFORMED_STRUCTURE
        value = _value(_without_framing(text[parameter.end() : end]), name, tool)
        if name in values:
            if values[name] != value:
                return ToolFallback.DUPLICATE_PARAMETER
            num_repaired += 1
        values[name] = value
        at = end + len(_PARAMETER_END)
    has_end = _FUNCTION_END.match(text, at) is not None
    if not has_end and not (is_closed and _NOTHING.match(text, at)):
        return ToolFallback.MALFORMED_STRUCTURE
    members = ",".join(f"{string_value(name)}:{value.json}" for name, value in values.items() if value.json is not None)
    return FreeCall(
        tool.name,
        f"{{{members}}}",
        num_empty=sum(value.json is None for value in values.values()),
        num_mismatched=sum(value.is_mismatch for value in values.values()),
        num_repaired=num_repaired,
        was_recovered=not has_end,
    )


def _read_json(text: str, tools: Mapping[str, ToolContract]) -> FreeCall | ToolFallback:
    members = object_members(text)
    if members is None:
        return ToolFallback.MALFORMED_STRUCTURE
    fields = {json.loads(name): value for name, value in members}
    if len(fields) < len(members):
        return ToolFallback.MALFORMED_STRUCTURE
    written_name = fields.get("name", "")
    if json_type(written_name) != "string":
        return ToolFallback.INVALID_TOOL_NAME
    tool = _tool(json.loads(written_name), tools)
    if isinstance(tool, ToolFallback):
        return tool
    arguments = fields.get("arguments", "{}")
    was_recovered = fields.keys() != {"name", "arguments"}
    if json_type(arguments) == "string":
        arguments, was_recovered = json.loads(arguments), True
    given = object_members(arguments)
    # A text within a text may spell half of a surrogate pair, which no UTF-8 can hold.
    if given is None or not is_unicode(arguments):
        return ToolFallback.MALFORMED_STRUCTURE
    values: dict[str, tuple[str, str]] = {}
    for name, value in given:
        if values.setdefault(json.loads(name), (name, value))[1] != value:
            return ToolFallback.DUPLICATE_PARAMETER
    num_repaired = len(given) - len(values)
    if num_repaired:
        arguments = "{" + ", ".join(f"{name}: {value}" for name, value in values.values()) + "}"
    return FreeCall(tool.name, arguments, num_repaired=num_repaired, was_recovered=was_recovered)


def _tool(name: str, tools: Mapping[str, ToolContract]) -> ToolContract | ToolFallback:
    if not name:
        return ToolFallback.INVALID_TOOL_NAME
    return tools.get(name, ToolFallback.UNDECLARED_TOOL)


def _value_end(text: str, start: int) -> int | None:
    """Where the value's end mark begins: the first after which a call can go on, since a value may spell the mark."""
    at = text.find(_PARAMETER_END, start)
    while at >= 0 and _AFTER_VALUE.match(text, at + len(_PARAMETER_END)) is None:
        at = text.find(_PARAMETER_END, at + 1)
    return at if at >= 0 else None


def _without_framing(value: str) -> str:
    return value.removeprefix("\n").removesuffix("\n")


def _value(text: str, name: str, tool: ToolContract) -> NormalizedValue:
    argument = tool.arguments.get(name)
    if argument is None:
        return normalized_value(text, None)
    if argument.encoding is ArgumentEncoding.TEXT:
        return NormalizedValue(string_value(text))
    return normalized_value(text, argument.hint)
