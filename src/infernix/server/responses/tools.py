"""From the tools of a responses request, and the choice among them, to the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infernix.errors import InvalidToolConstraint
from infernix.frontend.template_json import parse_json
from infernix.server.api_error import invalid
from infernix.server.responses.tool_fields import (
    AllowedChoice,
    FunctionChoice,
    FunctionTool,
    NamespaceTool,
    ToolChoiceField,
    ToolField,
)
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode


def engine_name(namespace: str | None, name: str) -> str:
    """What a function is called before the model: its namespace, a dot and its name."""
    return name if namespace is None else f"{namespace}.{name}"


@dataclass(frozen=True, slots=True)
class CallName:
    """A function as the client knows it."""

    name: str
    namespace: str | None = None

    def members(self) -> dict[str, str]:
        """The members of an item that name the function."""
        return {"name": self.name} if self.namespace is None else {"name": self.name, "namespace": self.namespace}


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """The functions of a request; `places` has the path of each declaration, `names` whom each of the engine's names
    stands for, and `engine_names` the way back.
    """

    definitions: tuple[ToolDefinition, ...] = ()
    places: tuple[str, ...] = ()
    names: Mapping[str, CallName] = field(default_factory=dict)
    engine_names: Mapping[CallName, str] = field(default_factory=dict)


def declared_tools(tools: Sequence[ToolField]) -> DeclaredTools:
    """The functions in their order. What is said of a namespace is said of each of its functions."""
    definitions: list[ToolDefinition] = []
    places: list[str] = []
    names: dict[str, CallName] = {}
    for index, tool in enumerate(tools):
        for inner, function in enumerate(_functions(tool)):
            namespace = tool if isinstance(tool, NamespaceTool) else None
            field_path = f"tools[{index}]" if namespace is None else f"tools[{index}].tools[{inner}]"
            definition = _definition(function, namespace, field_path)
            definitions.append(definition)
            places.append(f"tools/{index}" if namespace is None else f"tools/{index}/tools/{inner}")
            names[definition.name] = CallName(function.name, None if namespace is None else namespace.name)
    engine_names = {known: name for name, known in names.items()}
    return DeclaredTools(tuple(definitions), tuple(places), names, engine_names)


def _functions(tool: ToolField) -> Sequence[FunctionTool]:
    return tool.tools if isinstance(tool, NamespaceTool) else (tool,)


def _definition(function: FunctionTool, namespace: NamespaceTool | None, place: str) -> ToolDefinition:
    descriptions = (None if namespace is None else namespace.description, function.description)
    try:
        return ToolDefinition(
            engine_name(None if namespace is None else namespace.name, function.name),
            "\n\n".join(filter(None, descriptions)),
            function.schema_text or "{}",
            function.strict or False,
        )
    except InvalidToolConstraint as error:
        raise invalid(error.message, place, error.code) from error


def tool_choice(
    choice: ToolChoiceField | None, tools: DeclaredTools, *, parallel: bool, enforcement: ToolEnforcement
) -> ToolChoice:
    """The engine's choice. Raises ApiError for a function that is not declared."""
    if choice is None or isinstance(choice, str):
        mode = ToolMode.AUTO if choice is None else ToolMode(choice)
        return ToolChoice(mode, parallel=parallel, enforcement=enforcement)
    if isinstance(choice, AllowedChoice):
        names = tuple(
            _declared(entry, tools, f"tool_choice.tools[{index}]") for index, entry in enumerate(choice.tools)
        )
        return ToolChoice(ToolMode(choice.mode), names, parallel=parallel, enforcement=enforcement)
    name = _declared(choice, tools, "tool_choice.name")
    return ToolChoice(ToolMode.REQUIRED, (name,), parallel=False, enforcement=enforcement)


def _declared(choice: FunctionChoice, tools: DeclaredTools, place: str) -> str:
    name = tools.engine_names.get(CallName(choice.name, choice.namespace))
    if name is None:
        shown = engine_name(choice.namespace, choice.name)
        raise invalid(f"no function {shown[:80]!r} is declared", place, InvalidToolConstraint.code)
    return name


def echoed_tool(tool: ToolField) -> dict[str, Any]:
    """A declaration as the answer repeats it."""
    if isinstance(tool, NamespaceTool):
        return {
            "type": "namespace",
            "name": tool.name,
            "description": tool.description,
            "tools": list(map(_echoed_function, tool.tools)),
        }
    return _echoed_function(tool)


def _echoed_function(tool: FunctionTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": None if tool.schema_text is None else parse_json(tool.schema_text),
        "strict": tool.strict or False,
    }
