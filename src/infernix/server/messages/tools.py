"""From the tools of a request, and the choice among them, to the engine's."""

from __future__ import annotations

import json
from collections.abc import Sequence

from infernix.errors import InvalidToolConstraint
from infernix.server.api_error import invalid
from infernix.server.messages.tool_fields import AutoChoice, NamedChoice, NoneChoice, ToolChoiceField, ToolField
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode


def declared_tools(tools: Sequence[ToolField]) -> tuple[ToolDefinition, ...]:
    """The declarations in their order. Raises ApiError."""
    return tuple(_definition(tool, index) for index, tool in enumerate(tools))


def _definition(tool: ToolField, index: int) -> ToolDefinition:
    parameters = _with_examples(tool, f"tools[{index}].input_examples")
    try:
        return ToolDefinition(tool.name, tool.description or "", parameters, tool.strict or False)
    except InvalidToolConstraint as error:
        raise invalid(error.message, f"tools[{index}]", error.code) from error


def _with_examples(tool: ToolField, place: str) -> str:
    """The schema's text; the examples become its annotation `examples`, where the model sees them."""
    schema = tool.input_schema.text
    if not tool.input_examples:
        return schema
    if "examples" in json.loads(schema):
        raise invalid("the schema has examples of its own", place, "invalid_value")
    examples = ", ".join(example.text for example in tool.input_examples)
    inner = schema.removesuffix("}").rstrip()
    comma = "" if inner == "{" else ", "
    return f'{inner}{comma}"examples": [{examples}]}}'


def tool_choice(
    choice: ToolChoiceField | None, tools: Sequence[ToolDefinition], enforcement: ToolEnforcement
) -> ToolChoice:
    """The engine's choice. A named tool may be called several times, unless parallel use is disabled.

    Raises ApiError for a name that no tool has.
    """
    if choice is None:
        return ToolChoice(enforcement=enforcement)
    if isinstance(choice, NoneChoice):
        return ToolChoice(ToolMode.NONE, enforcement=enforcement)
    parallel = not choice.disable_parallel_tool_use
    if isinstance(choice, AutoChoice):
        return ToolChoice(ToolMode.AUTO, parallel=parallel, enforcement=enforcement)
    if not isinstance(choice, NamedChoice):
        return ToolChoice(ToolMode.REQUIRED, parallel=parallel, enforcement=enforcement)
    if all(tool.name != choice.name for tool in tools):
        raise invalid(f"no tool {choice.name[:40]!r} is declared", "tool_choice.name", InvalidToolConstraint.code)
    return ToolChoice(ToolMode.REQUIRED, (choice.name,), parallel=parallel, enforcement=enforcement)
