"""The body of a responses request, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from infernix.server.body_model import Body, IdleField, Items, any_object, any_text, never, only, tag_by
from infernix.server.constraint_fields import (
    NamedSchema,
    StructuredOutputs,
    ToolConstraintsField,
    refused_constraint_fields,
)
from infernix.server.responses.item_fields import ItemField
from infernix.server.responses.tool_fields import ToolChoiceField, ToolField

RAW_PATHS = (
    ("text", "format", "schema"),
    ("tools", "*", "parameters"),
    ("tools", "*", "tools", "*", "parameters"),
)

_INCLUDABLE = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
)
"""What may be included of items that never come here."""


def _includes_nothing(value: object) -> bool:
    return isinstance(value, list) and all(entry in _INCLUDABLE for entry in value)


INCLUDE = IdleField(
    _includes_nothing,
    "log probabilities are not given, and reasoning is given as plain text, not encrypted",
    {"type": "array", "items": {"enum": list(_INCLUDABLE)}},
)

_CONVERSATION = never("conversations are not kept: use previous_response_id")

IDLE_FIELDS: dict[str, IdleField] = {
    **refused_constraint_fields("text.format with type json_schema"),
    "user": any_text(),
    "safety_identifier": any_text(),
    "prompt_cache_key": any_text(),
    "prompt_cache_options": any_object(),
    "prompt_cache_retention": any_text(),
    "service_tier": only("auto", "default", reason="there is one service tier: auto or default"),
    "truncation": only("disabled", reason="what is too long is refused, never cut: only disabled"),
    "background": only(False, reason="answers are not made in the background"),
    "top_logprobs": only(0, reason="log probabilities are not given"),
    "include": INCLUDE,
    "conversation": _CONVERSATION,
    "prompt": never("prompts are not kept: use instructions and input"),
    "max_tool_calls": never("it counts calls of hosted tools, which are not offered"),
    "context_management": never("contexts are not compacted"),
    "moderation": never("answers are not moderated"),
    "access_programs": never("there are no access programs"),
    "background_options": never("answers are not made in the background"),
    "image": never("there are no images"),
    "messages": never("not known here: use input"),
    "response_format": never("not known here: use text.format"),
    "max_tokens": never("not known here: use max_output_tokens"),
    "max_completion_tokens": never("not known here: use max_output_tokens"),
    "reasoning_effort": never("not known here: use reasoning.effort"),
    "stop": never("this protocol has no stop strings"),
    "n": only(1, reason="a response is one answer"),
}
"""Fields that clients send and that ask for nothing; with any other value they are refused."""

COUNT_IDLE_FIELDS: dict[str, IdleField] = {
    **refused_constraint_fields("text.format with type json_schema"),
    "truncation": IDLE_FIELDS["truncation"],
    "conversation": _CONVERSATION,
    "personality": never("the model has no personalities"),
}
"""The same for counting tokens."""


class TextFormat(Body):
    """A free text."""

    type: Literal["text"]


class JsonObjectFormat(Body):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(NamedSchema):
    """JSON that a schema accepts."""

    type: Literal["json_schema"]


_FORMAT_TAGS = {"text": "<text>", "json_object": "<json_object>", "json_schema": "<json_schema>"}


FormatField = Annotated[
    Annotated[TextFormat, Tag("<text>")]
    | Annotated[JsonObjectFormat, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    Discriminator(
        tag_by("type", _FORMAT_TAGS),
        custom_error_type="format",
        custom_error_message="a format has a type: text, json_object or json_schema",
    ),
]


class TextOptions(Body):
    """How the answer's text looks."""

    format: FormatField | None = None
    verbosity: Literal["medium"] | None = None


class ReasoningOptions(Body):
    """Whether the model thinks. What it thinks is given as it is: there are no summaries."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: None = None
    generate_summary: None = None
    context: Literal["auto"] | None = None
    mode: Literal["standard"] | None = None


class StreamOptions(Body):
    """Obfuscation, which pads events, is off."""

    include_obfuscation: Literal[False] | None = None


def _shape(value: object) -> str:
    return "<items>" if isinstance(value, list) else "<text>"


InputField = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[ItemField], Tag("<items>")],
    Discriminator(_shape),
]
Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
TokenCount = Annotated[int, Field(ge=0, le=2**31 - 1)]
ResponseId = Annotated[str, Field(max_length=256)]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]], Field(max_length=16)
]


class PromptBody(Body):
    """What the model gets to see, and the form of its answer."""

    input: InputField | None = None
    instructions: str | None = None
    previous_response_id: ResponseId | None = None
    reasoning: ReasoningOptions | None = None
    enable_thinking: bool | None = None

    text: TextOptions | None = None
    structured_outputs: StructuredOutputs | None = None

    tools: Items[ToolField] | None = None
    tool_choice: ToolChoiceField | None = None
    parallel_tool_calls: bool | None = None
    tool_constraints: ToolConstraintsField = None


class CountBody(PromptBody):
    """`POST /v1/responses/input_tokens`."""

    model: str | None = None


class ResponsesBody(PromptBody):
    """`POST /v1/responses`."""

    model: str
    max_output_tokens: TokenCount | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    metadata: Metadata | None = None

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: TokenCount | None = None
    min_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    thinking_budget: TokenCount | None = None
