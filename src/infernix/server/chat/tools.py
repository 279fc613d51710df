"""From the tools of a chat completion request, and the choice among them, to the engine's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from infernix.errors import InvalidToolConstraint
from infernix.server.api_error import ApiError, invalid
from infernix.server.chat.messages import CUSTOM_ARGUMENT
from infernix.server.chat.tool_fields import (
    AllowedChoice,
    AllowedTool,
    FunctionChoice,
    FunctionToolField,
    ToolChoiceField,
    ToolField,
)
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode

_CUSTOM_PARAMETERS = json.dumps(
    {
        "type": "object",
        "properties": {CUSTOM_ARGUMENT: {"type": "string"}},
        "required": [CUSTOM_ARGUMENT],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """The tools of a request; `places` has the path of each declaration, `custom_names` the tools that take a text and
    `function_names` the others.
    """

    definitions: tuple[ToolDefinition, ...] = ()
    places: tuple[str, ...] = ()
    custom_names: frozenset[str] = frozenset()
    function_names: frozenset[str] = frozenset()


def declared_tools(tools: Sequence[ToolField]) -> DeclaredTools:
    """The declarations in their order. A custom tool is a function with one string for the model."""
    definitions = [_definition(index, tool) for index, tool in enumerate(tools)]
    return DeclaredTools(
        tuple(definitions),
        tuple(f"tools/{index}/{tool.type}" for index, tool in enumerate(tools)),
        frozenset(tool.custom.name for tool in tools if not isinstance(tool, FunctionToolField)),
        frozenset(tool.function.name for tool in tools if isinstance(tool, FunctionToolField)),
    )


def _definition(index: int, tool: ToolField) -> ToolDefinition:
    try:
        if not isinstance(tool, FunctionToolField):
            return ToolDefinition(tool.custom.name, tool.custom.description or "", _CUSTOM_PARAMETERS, strict=True)
        function = tool.function
        schema = function.schema_text or "{}"
        return ToolDefinition(function.name, function.description or "", schema, function.strict or False)
    except InvalidToolConstraint as error:
        raise invalid(error.message, f"tools[{index}].{tool.type}", error.code) from error


def tool_choice(
    choice: ToolChoiceField | None,
    tools: DeclaredTools,
    *,
    parallel: bool,
    enforcement: ToolEnforcement,
) -> ToolChoice:
    """The engine's choice. Raises ApiError for a name that no tool of its type has."""
    if choice is None or isinstance(choice, str):
        mode = ToolMode.AUTO if choice is None else ToolMode(choice)
        return ToolChoice(mode, parallel=parallel, enforcement=enforcement)
    if isinstance(choice, AllowedChoice):
        return _allowed(choice, tools, parallel=parallel, enforcement=enforcement)
    is_custom = not isinstance(choice, FunctionChoice)
    name = choice.function.name if isinstance(choice, FunctionChoice) else choice.custom.name
    _check_declared(name, tools, is_custom=is_custom, place=f"tool_choice.{choice.type}.name")
    return ToolChoice(ToolMode.REQUIRED, (name,), parallel=False, enforcement=enforcement)


def _allowed(
    choice: AllowedChoice, tools: DeclaredTools, *, parallel: bool, enforcement: ToolEnforcement
) -> ToolChoice:
    inner = choice.allowed_tools
    if inner is not None and (choice.mode is not None or choice.tools is not None):
        raise invalid("the allowed tools are given twice", "tool_choice.allowed_tools", "invalid_value")
    mode, entries = (choice.mode, choice.tools) if inner is None else (inner.mode, inner.tools)
    place = "tool_choice" if inner is None else "tool_choice.allowed_tools"
    if mode is None or entries is None:
        raise invalid("a list of allowed tools has a mode and tools", place, "missing_required_parameter")
    names = []
    for index, entry in enumerate(entries):
        name = _entry_name(entry, f"{place}.tools[{index}]")
        _check_declared(name, tools, is_custom=entry.type == "custom", place=f"{place}.tools[{index}]")
        names.append(name)
    return ToolChoice(ToolMode(mode), tuple(names), parallel=parallel, enforcement=enforcement)


def _entry_name(entry: AllowedTool, place: str) -> str:
    below, other = (entry.function, entry.custom) if entry.type == "function" else (entry.custom, entry.function)
    if other is not None or (below is None) == (entry.name is None):
        raise invalid(f"expected one name, of a {entry.type}", place, "invalid_value")
    return entry.name if below is None else below.name  # type: ignore[return-value]


def _check_declared(name: str, tools: DeclaredTools, *, is_custom: bool, place: str) -> None:
    if name not in (tools.custom_names if is_custom else tools.function_names):
        kind = "custom tool" if is_custom else "function"
        raise _unknown_tool(f"no {kind} {name[:40]!r} is declared", place)


def _unknown_tool(message: str, place: str) -> ApiError:
    return invalid(message, place, InvalidToolConstraint.code)
