"""The tools of a chat completion request, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from infernix.server.body_model import Body, Items, RawJsonField, schema_text


class FunctionTool(Body):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: RawJsonField | None = None
    strict: bool | None = None

    @property
    def schema_text(self) -> str | None:
        """The schema of the arguments as it was sent; None where there is none, which clients also write as null."""
        return schema_text(self.parameters)


class CustomFormat(Body):
    """What a custom tool takes: a text of any kind."""

    type: Literal["text"]


class CustomTool(Body):
    """A tool that takes a text."""

    name: str
    description: str | None = None
    format: CustomFormat | None = None


class FunctionToolField(Body):
    """A tool with JSON arguments."""

    type: Literal["function"]
    function: FunctionTool


class CustomToolField(Body):
    """A tool with a text for its argument."""

    type: Literal["custom"]
    custom: CustomTool


def _tool_type(value: object) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    return {"function": "<function>", "custom": "<custom>"}.get(kind) if isinstance(kind, str) else None


ToolField = Annotated[
    Annotated[FunctionToolField, Tag("<function>")] | Annotated[CustomToolField, Tag("<custom>")],
    Discriminator(
        _tool_type,
        custom_error_type="tool_type_not_supported",
        custom_error_message="a tool is of type function or custom",
    ),
]


class Named(Body):
    """A tool's name."""

    name: str


class FunctionChoice(Body):
    """One call of this function."""

    type: Literal["function"]
    function: Named


class CustomChoice(Body):
    """One call of this custom tool."""

    type: Literal["custom"]
    custom: Named


class AllowedTool(Body):
    """A tool among those that may be called; the name stands below its type, or by itself."""

    type: Literal["function", "custom"]
    name: str | None = None
    function: Named | None = None
    custom: Named | None = None


class AllowedTools(Body):
    """The tools that may be called, and whether one must be."""

    mode: Literal["auto", "required"]
    tools: Items[AllowedTool]


class AllowedChoice(Body):
    """Some of the tools; the list stands below `allowed_tools`, or by itself."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools | None = None
    mode: Literal["auto", "required"] | None = None
    tools: Items[AllowedTool] | None = None


_CHOICE_TAGS = {"function": "<function>", "custom": "<custom>", "allowed_tools": "<allowed>"}


def _choice_form(value: object) -> str | None:
    if isinstance(value, str):
        return "<word>"
    kind = value.get("type") if isinstance(value, dict) else None
    return _CHOICE_TAGS.get(kind) if isinstance(kind, str) else None


ToolChoiceField = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<word>")]
    | Annotated[FunctionChoice, Tag("<function>")]
    | Annotated[CustomChoice, Tag("<custom>")]
    | Annotated[AllowedChoice, Tag("<allowed>")],
    Discriminator(
        _choice_form,
        custom_error_type="tool_choice",
        custom_error_message="a tool choice is auto, none, required, or of type function, custom or allowed_tools",
    ),
]
