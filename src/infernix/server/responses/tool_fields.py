"""The tools of a responses request, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from infernix.server.body_model import Body, Items, RawJsonField, schema_text

Callers = Annotated[Items[Literal["direct"]], Field(min_length=1)]


class FunctionTool(Body):
    """A function that the model may call. Only the model itself calls, at once, and results have no schema."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: RawJsonField | None = None
    strict: bool | None = None
    defer_loading: Literal[False] | None = None
    output_schema: None = None
    allowed_callers: Callers | None = None
    async_: Literal[False] | None = Field(default=None, alias="async")

    @property
    def schema_text(self) -> str | None:
        """The schema of the arguments as it was sent; None where there is none, which clients also write as null."""
        return schema_text(self.parameters)


def _check_function(value: object) -> object:
    if isinstance(value, dict) and value.get("type") != "function":
        raise PydanticCustomError("tool_type_not_supported", "a namespace holds tools of type function")
    return value


class NamespaceTool(Body):
    """Functions under a common name."""

    type: Literal["namespace"]
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    tools: Annotated[Items[Annotated[FunctionTool, BeforeValidator(_check_function)]], Field(min_length=1)]


_TOOL_TAGS = {"function": "<function>", "namespace": "<namespace>"}


def _tool_type(value: object) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    return _TOOL_TAGS.get(kind) if isinstance(kind, str) else None


ToolField = Annotated[
    Annotated[FunctionTool, Tag("<function>")] | Annotated[NamespaceTool, Tag("<namespace>")],
    Discriminator(
        _tool_type,
        custom_error_type="tool_type_not_supported",
        custom_error_message="a tool is of type function or namespace; hosted tools are not offered",
    ),
]


class FunctionChoice(Body):
    """A function by its name; as a choice: one call of it."""

    type: Literal["function"]
    name: str
    namespace: str | None = None


class AllowedChoice(Body):
    """Some of the tools, and whether one must be called."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Items[FunctionChoice]


_CHOICE_TAGS = {"function": "<function>", "allowed_tools": "<allowed>"}


def _choice_form(value: object) -> str | None:
    if isinstance(value, str):
        return "<word>"
    kind = value.get("type") if isinstance(value, dict) else None
    return _CHOICE_TAGS.get(kind) if isinstance(kind, str) else None


ToolChoiceField = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<word>")]
    | Annotated[FunctionChoice, Tag("<function>")]
    | Annotated[AllowedChoice, Tag("<allowed>")],
    Discriminator(
        _choice_form,
        custom_error_type="tool_choice",
        custom_error_message="a tool choice is auto, none, required, or of type function or allowed_tools",
    ),
]
