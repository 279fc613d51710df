"""The tools of a request, and the choice among them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Tag
from pydantic_core import PydanticCustomError

from infernix.server.body_model import Body, Items
from infernix.server.messages.block_fields import CacheControl, RawObjectField


class ToolField(Body):
    """A tool that the client runs."""

    type: Literal["custom"] | None = None
    name: str
    description: str | None = None
    input_schema: RawObjectField
    input_examples: Items[RawObjectField] | None = None
    strict: bool | None = None
    cache_control: CacheControl | None = None
    # Arguments are always streamed as they are generated.
    eager_input_streaming: bool | None = None
    defer_loading: Literal[False] | None = None
    allowed_callers: Items[Literal["direct"]] | None = None


def _checked_type(value: object) -> object:
    if isinstance(value, dict) and value.get("type") not in (None, "custom"):
        raise PydanticCustomError(
            "tool_type_not_supported", "a tool has no type, or is of type custom: no tools are run here"
        )
    return value


DeclaredTool = Annotated[ToolField, BeforeValidator(_checked_type)]


class AutoChoice(Body):
    """Text, or calls, or both."""

    type: Literal["auto"]
    disable_parallel_tool_use: bool | None = None


class NoneChoice(Body):
    """No calls."""

    type: Literal["none"]


class AnyChoice(Body):
    """Calls only."""

    type: Literal["any"]
    disable_parallel_tool_use: bool | None = None


class NamedChoice(Body):
    """Calls of this tool only."""

    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


_CHOICE_TAGS = {"auto": "<auto>", "none": "<none>", "any": "<any>", "tool": "<tool>"}


def _choice_type(value: object) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    return _CHOICE_TAGS.get(kind) if isinstance(kind, str) else None


ToolChoiceField = Annotated[
    Annotated[AutoChoice, Tag("<auto>")]
    | Annotated[NoneChoice, Tag("<none>")]
    | Annotated[AnyChoice, Tag("<any>")]
    | Annotated[NamedChoice, Tag("<tool>")],
    Discriminator(
        _choice_type,
        custom_error_type="tool_choice",
        custom_error_message="a tool choice is of type auto, none, any or tool",
    ),
]
