"""The messages of a request, and the content blocks they are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from infernix.server.body_model import Body, Items, RawJsonField, tag_by
from infernix.server.json_body import RawJson


def _checked_object(raw: RawJson) -> RawJson:
    if not raw.text.startswith("{"):
        raise PydanticCustomError("object_type", "expected an object")
    return raw


RawObjectField = Annotated[RawJsonField, AfterValidator(_checked_object), WithJsonSchema({"type": "object"})]
"""A JSON object, as the text that the client sent."""


class CacheControl(Body):
    """A wish to keep the prompt up to here. All prompts are kept as long as there is room, so it asks for nothing."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Body):
    """A text. There are no citations."""

    type: Literal["text"]
    text: str
    citations: Annotated[list[Any], Field(max_length=0)] | None = None
    cache_control: CacheControl | None = None


class ThinkingBlock(Body):
    """What the model thought in an earlier answer. The signature is taken as it is: nothing depends on it."""

    type: Literal["thinking"]
    thinking: str
    signature: str


CallId = Annotated[str, Field(min_length=1, max_length=256)]


class DirectCaller(Body):
    """The model itself made the call; nothing else does here."""

    type: Literal["direct"]


class ToolUseBlock(Body):
    """A call that was made in an earlier answer."""

    type: Literal["tool_use"]
    id: CallId
    name: str
    input: RawObjectField
    caller: DirectCaller | None = None
    toolset_name: None = None
    cache_control: CacheControl | None = None


def _shape(value: object) -> str:
    return "<blocks>" if isinstance(value, list) else "<text>"


def _type_of(value: object) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else None


def _checked_text_type(value: object) -> object:
    if isinstance(value, dict) and _type_of(value) != "text":
        raise PydanticCustomError("block_type", "only blocks of type text are read here; images and documents are not")
    return value


TextContent = Annotated[
    Annotated[str, Tag("<text>")]
    | Annotated[Items[Annotated[TextBlock, BeforeValidator(_checked_text_type)]], Tag("<blocks>")],
    Discriminator(_shape),
]


class ToolResultBlock(Body):
    """The result of the call with this id."""

    type: Literal["tool_result"]
    tool_use_id: CallId
    content: TextContent | None = None
    is_error: bool | None = None
    toolset_name: None = None
    cache_control: CacheControl | None = None


_USER_TAGS = {"text": "<text>", "tool_result": "<result>"}
_ASSISTANT_TAGS = {"text": "<text>", "thinking": "<thinking>", "tool_use": "<use>"}


def _user_block_type(value: object) -> str | None:
    return _USER_TAGS.get(_type_of(value) or "")


def _assistant_block_type(value: object) -> str | None:
    return _ASSISTANT_TAGS.get(_type_of(value) or "")


UserBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")] | Annotated[ToolResultBlock, Tag("<result>")],
    Discriminator(
        _user_block_type,
        custom_error_type="block_type",
        custom_error_message="a block of a user is of type text or tool_result; images and documents are not read here",
    ),
]
AssistantBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ThinkingBlock, Tag("<thinking>")]
    | Annotated[ToolUseBlock, Tag("<use>")],
    Discriminator(
        _assistant_block_type,
        custom_error_type="block_type",
        custom_error_message="a block of an assistant is of type text, thinking or tool_use",
    ),
]


class SystemMessage(Body):
    """What the model is told among the turns; whether it may stand there is the chat template's to say."""

    role: Literal["system"]
    content: TextContent


class UserMessage(Body):
    """Results of calls, and then what the user says."""

    role: Literal["user"]
    content: Annotated[
        Annotated[str, Tag("<text>")] | Annotated[Items[UserBlock], Field(min_length=1), Tag("<blocks>")],
        Discriminator(_shape),
    ]


class AssistantMessage(Body):
    """An earlier answer. Where it is the last message, the new answer goes on with it."""

    role: Literal["assistant"]
    content: Annotated[
        Annotated[str, Tag("<text>")] | Annotated[Items[AssistantBlock], Tag("<blocks>")], Discriminator(_shape)
    ]


_MESSAGE_TAGS = {"system": "<system>", "user": "<user>", "assistant": "<assistant>"}


MessageField = Annotated[
    Annotated[SystemMessage, Tag("<system>")]
    | Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")],
    Discriminator(
        tag_by("role", _MESSAGE_TAGS),
        custom_error_type="role",
        custom_error_message="a message has a role: user, assistant or system",
    ),
]
