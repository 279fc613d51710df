"""The body of a chat completion request, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from infernix.server.body_model import Body, IdleField, Items, any_object, any_text, never, only, tag_by
from infernix.server.chat.message_fields import MessageField
from infernix.server.chat.tool_fields import ToolChoiceField, ToolField
from infernix.server.constraint_fields import (
    NamedSchema,
    StructuredOutputs,
    ToolConstraintsField,
    refused_constraint_fields,
)

RAW_PATHS = (
    ("response_format", "json_schema", "schema"),
    ("tools", "*", "function", "parameters"),
)

MAX_STOP_STRINGS = 4
MAX_SAMPLES = 128

IDLE_FIELDS: dict[str, IdleField] = {
    **refused_constraint_fields("response_format with type json_schema"),
    "user": any_text(),
    "safety_identifier": any_text(),
    "metadata": any_object(),
    "prompt_cache_key": any_text(),
    "prompt_cache_options": any_object(),
    "prompt_cache_retention": any_text(),
    "store": only(False, reason="answers are not stored"),
    "service_tier": only("auto", "default", reason="there is one service tier: auto or default"),
    "verbosity": only("medium", reason="verbosity cannot be set: only medium"),
    "modalities": IdleField(lambda value: value == ["text"], "answers are text", {"const": ["text"]}),
    "logprobs": only(False, reason="log probabilities are not given"),
    "top_logprobs": only(0, reason="log probabilities are not given"),
    "logit_bias": IdleField(
        lambda value: value == {}, "tokens cannot be biased", {"type": "object", "maxProperties": 0}
    ),
    "repetition_penalty": only(1, 1.0, reason="not done here: use presence_penalty or frequency_penalty"),
    "audio": never("there is no audio"),
    "prediction": never("predicted outputs are not used"),
    "moderation": never("answers are not moderated"),
    "web_search_options": never("there is no web search"),
    "functions": never("an old form: use tools"),
    "function_call": never("an old form: use tool_choice"),
}
"""Fields that clients send and that ask for nothing; with any other value they are refused."""


class TextFormat(Body):
    """A free text."""

    type: Literal["text"]


class JsonObjectFormat(Body):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(Body):
    """JSON that a schema accepts."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


_FORMAT_TAGS = {"text": "<text>", "json_object": "<json_object>", "json_schema": "<json_schema>"}


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("<text>")]
    | Annotated[JsonObjectFormat, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    Discriminator(
        tag_by("type", _FORMAT_TAGS),
        custom_error_type="response_format",
        custom_error_message="a response format has a type: text, json_object or json_schema",
    ),
]


class StreamOptions(Body):
    """What else a stream holds; obfuscation, which pads events, is off."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class TemplateOptions(Body):
    """What the chat template takes."""

    enable_thinking: bool | None = None


def _shape(value: object) -> str:
    return "<parts>" if isinstance(value, list) else "<text>"


StopField = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[str], Field(max_length=MAX_STOP_STRINGS), Tag("<parts>")],
    Discriminator(_shape),
]
Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
TokenCount = Annotated[int, Field(ge=0, le=2**31 - 1)]


class ChatBody(Body):
    """`POST /v1/chat/completions`."""

    model: str
    messages: Annotated[Items[MessageField], Field(min_length=1)]
    max_completion_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None
    n: Annotated[int, Field(ge=1, le=MAX_SAMPLES)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stop: StopField | None = None

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: TokenCount | None = None
    min_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    ignore_eos: bool | None = None

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None

    tools: Items[ToolField] | None = None
    tool_choice: ToolChoiceField | None = None
    parallel_tool_calls: bool | None = None
    tool_constraints: ToolConstraintsField = None

    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    enable_thinking: bool | None = None
    thinking_budget: TokenCount | None = None
    chat_template_kwargs: TemplateOptions | None = None
