"""The messages of a chat completion request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from infernix.server.body_model import Body, Items, tag_by


class TextPart(Body):
    """A part of a message."""

    type: Literal["text"]
    text: str


class RefusalPart(Body):
    """What an assistant said instead of an answer; for the model it is a text as any other."""

    type: Literal["refusal"]
    refusal: str


def _shape(value: object) -> str:
    return "<parts>" if isinstance(value, list) else "<text>"


def _part_type(value: object) -> str:
    is_refusal = isinstance(value, dict) and value.get("type") == "refusal"
    return "<refusal>" if is_refusal else "<text>"


Content = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[TextPart], Tag("<parts>")],
    Discriminator(_shape),
]
AssistantPart = Annotated[
    Annotated[TextPart, Tag("<text>")] | Annotated[RefusalPart, Tag("<refusal>")],
    Discriminator(_part_type),
]
AssistantContent = Annotated[
    Annotated[str, Tag("<text>")] | Annotated[Items[AssistantPart], Tag("<parts>")],
    Discriminator(_shape),
]
CallId = Annotated[str, Field(min_length=1, max_length=256)]


class SystemMessage(Body):
    """What the model is told before all else; `developer` is another word for it."""

    role: Literal["system", "developer"]
    content: Content
    name: None = None


class UserMessage(Body):
    """A question. The participants of a chat have no names here."""

    role: Literal["user"]
    content: Content
    name: None = None


class CalledFunction(Body):
    """A call that was made: `arguments` is the text of a JSON object, beside which clients keep what they parsed."""

    name: str
    arguments: str
    parsed_arguments: Any = None


class FunctionCall(Body):
    """A call of a function tool."""

    id: CallId
    type: Literal["function"]
    function: CalledFunction
    index: int | None = None


class CalledCustom(Body):
    """A call that was made with a text."""

    name: str
    input: str


class CustomCall(Body):
    """A call of a custom tool."""

    id: CallId
    type: Literal["custom"]
    custom: CalledCustom
    index: int | None = None


def _call_type(value: object) -> str:
    is_custom = isinstance(value, dict) and value.get("type") == "custom"
    return "<custom>" if is_custom else "<function>"


ToolCallField = Annotated[
    Annotated[FunctionCall, Tag("<function>")] | Annotated[CustomCall, Tag("<custom>")],
    Discriminator(_call_type),
]


class AssistantMessage(Body):
    """An earlier answer, as clients send it back, with what they parsed. As the last message it is continued."""

    role: Literal["assistant"]
    content: AssistantContent | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Items[ToolCallField] | None = None
    name: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    parsed: Any = None


class ToolMessage(Body):
    """The result of the call with this id."""

    role: Literal["tool"]
    content: Content
    tool_call_id: CallId


_MESSAGE_TAGS = {
    "system": "<system>",
    "developer": "<system>",
    "user": "<user>",
    "assistant": "<assistant>",
    "tool": "<tool>",
}


MessageField = Annotated[
    Annotated[SystemMessage, Tag("<system>")]
    | Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")]
    | Annotated[ToolMessage, Tag("<tool>")],
    Discriminator(
        tag_by("role", _MESSAGE_TAGS),
        custom_error_type="role",
        custom_error_message="a message has a role: system, developer, user, assistant or tool",
    ),
]
