"""The bodies of Messages requests, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from infernix.server.body_model import Body, IdleField, Items, any_object, any_text, never, only, tag_by
from infernix.server.constraint_fields import StructuredOutputs, ToolConstraintsField, refused_constraint_fields
from infernix.server.messages.block_fields import MessageField, RawObjectField, TextContent
from infernix.server.messages.tool_fields import DeclaredTool, ToolChoiceField

RAW_PATHS = (
    ("output_config", "format", "schema"),
    ("tools", "*", "input_schema"),
    ("tools", "*", "input_examples", "*"),
    ("messages", "*", "content", "*", "input"),
)

MIN_THINKING_BUDGET = 1024

COUNT_IDLE_FIELDS: dict[str, IdleField] = {
    **refused_constraint_fields("output_config.format with type json_schema"),
    "response_format": never("not known here: use output_config.format"),
    "output_format": never("an old form: use output_config.format"),
    "cache_control": any_object(),
    "speed": only("standard", reason="there is one speed: standard"),
    "context_management": never("the context is not edited here"),
    "mcp_servers": IdleField(lambda value: value == [], "no tools are run here", {"type": "array", "maxItems": 0}),
    "user_profile_id": any_text(),
}
"""Fields that clients send with a count and that ask for nothing; with any other value they are refused."""

IDLE_FIELDS: dict[str, IdleField] = {
    **COUNT_IDLE_FIELDS,
    "metadata": any_object(),
    "service_tier": only("auto", "standard_only", reason="there is one service tier: auto or standard_only"),
    "container": never("no code is run here"),
    "inference_geo": never("the region cannot be chosen"),
    "diagnostics": never("no diagnostics are given"),
    "stop": never("not known here: use stop_sequences"),
    # By this code Anthropic's own client knows that it must send the whole conversation instead.
    "thread": never("conversations are not kept here", "thread_unsupported_request"),
}
"""The same for a request for an answer."""


class JsonFormat(Body):
    """JSON that a schema accepts."""

    type: Literal["json_schema"]
    schema_: RawObjectField = Field(alias="schema")


def _checked_format(value: object) -> object:
    if isinstance(value, dict) and value.get("type") != "json_schema":
        raise PydanticCustomError(
            "output_format", 'a format is of type json_schema; {"type": "object"} is the schema of any JSON object'
        )
    return value


class OutputConfig(Body):
    """The answer's form. `high` is the effort of an answer that asks for none."""

    format: Annotated[JsonFormat, BeforeValidator(_checked_format)] | None = None
    effort: Literal["high"] | None = None


class ThinkingEnabled(Body):
    """Thinking, at most so many tokens of it. It is given as it is: no summary is made, and it cannot be left out."""

    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=MIN_THINKING_BUDGET, le=2**31 - 1)]
    display: None = None


class ThinkingAdaptive(Body):
    """Thinking, as much as the model likes."""

    type: Literal["adaptive"]
    display: None = None


class ThinkingDisabled(Body):
    """No thinking."""

    type: Literal["disabled"]


_THINKING_TAGS = {"enabled": "<enabled>", "adaptive": "<adaptive>", "disabled": "<disabled>"}


ThinkingField = Annotated[
    Annotated[ThinkingEnabled, Tag("<enabled>")]
    | Annotated[ThinkingAdaptive, Tag("<adaptive>")]
    | Annotated[ThinkingDisabled, Tag("<disabled>")],
    Discriminator(
        tag_by("type", _THINKING_TAGS),
        custom_error_type="thinking",
        custom_error_message="thinking is of type enabled, adaptive or disabled",
    ),
]


class CountBody(Body):
    """`POST /v1/messages/count_tokens`. What does not change the prompt is checked for its form only."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[Items[MessageField], Field(min_length=1)]
    system: TextContent | None = None
    tools: Items[DeclaredTool] | None = None
    tool_choice: ToolChoiceField | None = None
    tool_constraints: ToolConstraintsField = None
    thinking: ThinkingField | None = None
    output_config: OutputConfig | None = None
    structured_outputs: StructuredOutputs | None = None


class MessagesBody(CountBody):
    """`POST /v1/messages`."""

    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    stream: bool | None = None
    stop_sequences: Items[str] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
