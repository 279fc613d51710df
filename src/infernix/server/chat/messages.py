"""From the messages of a chat completion request to the engine's conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence

from infernix.messages import Message
from infernix.server.api_error import invalid
from infernix.server.chat.message_fields import (
    AssistantMessage,
    CustomCall,
    FunctionCall,
    MessageField,
    RefusalPart,
    TextPart,
    ToolMessage,
)
from infernix.tools import ToolCall

CUSTOM_ARGUMENT = "input"
"""The one argument of the function that a custom tool is to the model."""


def conversation(messages: Sequence[MessageField]) -> list[Message]:
    """The same messages, in their order. Raises ApiError for a result of a call that was not made."""
    turns: list[Message] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls or ():
                names[call.id] = _called(call)
            turns.append(_answer(message, f"messages[{index}]"))
        elif isinstance(message, ToolMessage):
            if message.tool_call_id not in names:
                raise invalid(
                    "no call with this id comes before its result", f"messages[{index}].tool_call_id", "invalid_value"
                )
            turns.append(
                Message(
                    "tool",
                    text_of(message.content),
                    name=names[message.tool_call_id],
                    tool_call_id=message.tool_call_id,
                )
            )
        else:
            role = "system" if message.role == "developer" else message.role
            turns.append(Message(role, text_of(message.content)))
    return turns


def text_of(content: str | Sequence[TextPart | RefusalPart] | None) -> str:
    """The text of a message's content; parts follow each other without anything between them."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text if isinstance(part, TextPart) else part.refusal for part in content)


def _called(call: FunctionCall | CustomCall) -> str:
    return call.function.name if isinstance(call, FunctionCall) else call.custom.name


def _answer(message: AssistantMessage, place: str) -> Message:
    if message.content is None and message.refusal is None and not message.tool_calls:
        raise invalid("an answer has content, a refusal or tool calls", f"{place}.content", "invalid_value")
    if message.reasoning is not None and message.reasoning_content not in (None, message.reasoning):
        raise invalid("reasoning and reasoning_content differ", f"{place}.reasoning", "invalid_value")
    return Message(
        "assistant",
        text_of(message.content) or (message.refusal or ""),
        reasoning=message.reasoning_content or message.reasoning or "",
        tool_calls=tuple(map(_tool_call, message.tool_calls or ())),
    )


def _tool_call(call: FunctionCall | CustomCall) -> ToolCall:
    if isinstance(call, FunctionCall):
        return ToolCall(call.function.name, call.function.arguments)
    return ToolCall(call.custom.name, json.dumps({CUSTOM_ARGUMENT: call.custom.input}, ensure_ascii=False))
