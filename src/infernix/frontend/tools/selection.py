"""From declared tools and a tool choice to what is enforced and how the answer is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from infernix.errors import (
    ConstraintError,
    ConstraintSource,
    ConstraintTooLarge,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidRegex,
    InvalidToolConstraint,
    UnsatisfiableJsonSchema,
    UnsupportedJsonSchema,
)
from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ToolContract, ToolPolicy
from infernix.frontend.tools.declarations import hinted_contracts
from infernix.frontend.tools.strict_schema import read_strict_schema
from infernix.options import ConstraintKind
from infernix.tools import ToolChoice, ToolDefinition, ToolEnforcement, ToolMode

_JSON_KINDS = frozenset({ConstraintKind.JSON_OBJECT, ConstraintKind.JSON_SCHEMA})


class _MessageError(Protocol):
    def __call__(self, message: str, /) -> ConstraintError: ...


_ERROR_OF_KIND: dict[ConstraintKind, _MessageError] = {
    ConstraintKind.GRAMMAR: InvalidGrammar,
    ConstraintKind.CHOICE: InvalidChoice,
    ConstraintKind.REGEX: InvalidRegex,
}


def select_tools(
    declared: Sequence[ToolDefinition], choice: ToolChoice, style: ToolStyle, content: ConstraintKind | None
) -> ToolPolicy | None:
    """The tools that may be called; None where tools have no part in the answer.

    That is so without any declared tool, and where none may be called and a content constraint owns the answer.
    `style` is how the model writes calls, `content` the kind of the request's content constraint. All declarations are
    rendered, whatever is selected here.

    Raises InvalidToolConstraint for tools or a choice that cannot be, the error of the content constraint's kind where
    it cannot stand beside tools, and for a strict tool's schema the error that it has as a response schema, with the
    tool's name and a pointer into the list of tools.
    """
    _check_names(declared)
    selected = _selected(declared, choice)
    if choice.mode is ToolMode.REQUIRED and not selected:
        raise InvalidToolConstraint("a tool call is required, but no tool may be called")
    if not selected:
        is_asked_for = bool(declared) or choice.mode is ToolMode.NONE
        if content is not None or not is_asked_for:
            return None
        return ToolPolicy((), required=False, parallel=choice.parallel, constrained=True)
    if content is not None and content not in _JSON_KINDS:
        raise _ERROR_OF_KIND[content](
            f"active tools can be combined with JSON output constraints, not with {content.value!r}"
        )
    tools = tuple(_contract(index, tool, style) for index, tool in selected)
    is_constrained = (
        choice.mode is ToolMode.REQUIRED
        or not choice.parallel
        or choice.allowed_names is not None
        or choice.enforcement is ToolEnforcement.BASIC
        or content is not None
        or any(tool.strict for tool in tools)
    )
    return ToolPolicy(
        tools,
        required=choice.mode is ToolMode.REQUIRED,
        parallel=choice.parallel,
        constrained=is_constrained,
    )


def _check_names(declared: Sequence[ToolDefinition]) -> None:
    counts = Counter(tool.name for tool in declared)
    for index, tool in enumerate(declared):
        if counts[tool.name] > 1:
            raise InvalidToolConstraint(f"the tool name {tool.name!r} comes twice", f"/{index}/name")


def _selected(declared: Sequence[ToolDefinition], choice: ToolChoice) -> list[tuple[int, ToolDefinition]]:
    """The tools that may be called, each with its place among the declared ones."""
    if choice.allowed_names is not None:
        names = {tool.name for tool in declared}
        for name in choice.allowed_names:
            if name not in names:
                raise InvalidToolConstraint(f"the tool {name[:40]!r} is allowed, but not declared")
    if choice.mode is ToolMode.NONE:
        return []
    allowed = None if choice.allowed_names is None else frozenset(choice.allowed_names)
    return [(index, tool) for index, tool in enumerate(declared) if allowed is None or tool.name in allowed]


def _contract(index: int, tool: ToolDefinition, style: ToolStyle) -> ToolContract:
    if tool.strict:
        try:
            schema = read_strict_schema(tool.parameters, style)
        except ConstraintError as error:
            raise tool_error(error, tool.name, index) from None
        return ToolContract(tool.name, True, schema.arguments, index, tool.parameters)
    try:
        arguments = hinted_contracts(tool.parameters, style)
    except (ValueError, InvalidJsonSchema, ConstraintTooLarge) as error:
        reason = error.message if isinstance(error, ConstraintError) else str(error)
        raise InvalidToolConstraint(f"tool {tool.name!r}: {reason}", f"/{index}/parameters") from None
    return ToolContract(tool.name, False, arguments, index)


def tool_error(error: ConstraintError, name: str, index: int) -> ConstraintError:
    """What is wrong with the arguments' schema of a tool, told of the tool; `index` is its place among all tools."""
    found = _tool_error(error, f"tool {name!r}: ", f"/{index}/parameters")
    found.source = ConstraintSource.TOOLS
    return found


def _tool_error(error: ConstraintError, prefix: str, place: str) -> ConstraintError:
    if isinstance(error, InvalidJsonSchema | UnsupportedJsonSchema | UnsatisfiableJsonSchema) and not error.location:
        reason = error.message.removesuffix(f" at {error.pointer or '/'}")
        return type(error)(prefix + reason, place + error.pointer)
    # With the place in the schema's text; the excerpt behind it would stand between this and the place of the schema.
    reason, _, _ = error.message.partition("\n")
    if isinstance(error, InvalidJsonSchema):
        return InvalidJsonSchema(prefix + reason, place)
    found = ConstraintTooLarge(f"{prefix}{reason} at {place}")
    found.pointer = place
    return found
