"""The items of a responses request: what was said, called and thought before."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from infernix.server.body_model import Body, Items

ItemId = Annotated[str, Field(min_length=1, max_length=256)]
StatusField = Literal["in_progress", "completed", "incomplete"] | None
PhaseField = Literal["commentary", "final_answer"] | None
Nothing = Annotated[list[Any], Field(max_length=0)]


class InputText(Body):
    """A part of what the model is told. Where a cache breaks does not matter: every prefix is kept."""

    type: Literal["input_text"]
    text: str
    prompt_cache_breakpoint: dict[str, Any] | None = None


class OutputText(Body):
    """A part of an earlier answer."""

    type: Literal["output_text"]
    text: str
    annotations: Nothing | None = None
    logprobs: Nothing | None = None


class RefusalPart(Body):
    """What was said instead of an answer; for the model it is a text as any other."""

    type: Literal["refusal"]
    refusal: str


class ReasoningText(Body):
    """A part of what was thought."""

    type: Literal["reasoning_text"]
    text: str


class SummaryText(Body):
    """A part of a summary of what was thought."""

    type: Literal["summary_text"]
    text: str


def _shape(value: object) -> str:
    return "<parts>" if isinstance(value, list) else "<text>"


def _part_type(value: object) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    tags = {"input_text": "<input>", "output_text": "<output>", "refusal": "<refusal>"}
    return tags.get(kind) if isinstance(kind, str) else None


InputContent = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[InputText], Tag("<parts>")],
    Discriminator(_shape),
]
AnswerPart = Annotated[
    Annotated[InputText, Tag("<input>")]
    | Annotated[OutputText, Tag("<output>")]
    | Annotated[RefusalPart, Tag("<refusal>")],
    Discriminator(
        _part_type,
        custom_error_type="part",
        custom_error_message="a part of an answer has a type: output_text, input_text or refusal",
    ),
]
AnswerContent = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[AnswerPart], Tag("<parts>")],
    Discriminator(_shape),
]


class InputMessage(Body):
    """What the model is told or asked; `developer` is another word for `system`."""

    type: Literal["message"] | None = None
    role: Literal["system", "developer", "user"]
    content: InputContent
    id: ItemId | None = None
    status: StatusField = None
    phase: None = None


class AnswerMessage(Body):
    """An earlier answer. Where it is the last item, it is continued. Its phase says nothing to the model."""

    type: Literal["message"] | None = None
    role: Literal["assistant"]
    content: AnswerContent
    id: ItemId | None = None
    status: StatusField = None
    phase: PhaseField = None


class DirectCaller(Body):
    """The model itself."""

    type: Literal["direct"]


class FunctionCall(Body):
    """A call that was made: `arguments` is the text of a JSON object."""

    type: Literal["function_call"]
    call_id: ItemId
    name: str
    arguments: str
    namespace: str | None = None
    id: ItemId | None = None
    status: StatusField = None
    caller: DirectCaller | None = None
    async_: Literal[False] | None = Field(default=None, alias="async")


class FunctionCallOutput(Body):
    """The result of the call with this id."""

    type: Literal["function_call_output"]
    call_id: ItemId
    output: InputContent
    id: ItemId | None = None
    status: StatusField = None
    caller: DirectCaller | None = None
    name: str | None = None
    namespace: str | None = None


class Reasoning(Body):
    """What was thought before the answer or the calls that follow; the summary counts where there is no content."""

    type: Literal["reasoning"]
    summary: Items[SummaryText] | None = None
    content: Items[ReasoningText] | None = None
    id: ItemId | None = None
    status: StatusField = None
    encrypted_content: None = None


class ItemReference(Body):
    """An item of a stored response, by its id."""

    type: Literal["item_reference"] | None = None
    id: ItemId


_ITEM_TAGS = {
    "function_call": "<call>",
    "function_call_output": "<result>",
    "reasoning": "<reasoning>",
    "item_reference": "<reference>",
}


def _item_form(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind is None and "role" not in value:
        return "<reference>" if "id" in value else None
    if kind in (None, "message"):
        return "<answer>" if value.get("role") == "assistant" else "<message>"
    return _ITEM_TAGS.get(kind) if isinstance(kind, str) else None


Item = InputMessage | AnswerMessage | FunctionCall | FunctionCallOutput | Reasoning
"""An item that says what it says by itself."""

ItemField = Annotated[
    Annotated[InputMessage, Tag("<message>")]
    | Annotated[AnswerMessage, Tag("<answer>")]
    | Annotated[FunctionCall, Tag("<call>")]
    | Annotated[FunctionCallOutput, Tag("<result>")]
    | Annotated[Reasoning, Tag("<reasoning>")]
    | Annotated[ItemReference, Tag("<reference>")],
    Discriminator(
        _item_form,
        custom_error_type="item",
        custom_error_message="an item is a message with a role, or of type function_call, function_call_output, "
        "reasoning or item_reference",
    ),
]
