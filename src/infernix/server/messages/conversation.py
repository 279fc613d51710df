"""From the system text and messages of a request to the engine's conversation."""

from __future__ import annotations

from collections.abc import Sequence

from infernix.messages import Message
from infernix.server.api_error import ApiError, invalid
from infernix.server.messages.block_fields import (
    AssistantBlock,
    AssistantMessage,
    MessageField,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from infernix.tools import ToolCall

ERROR_MARK = "Error: "
"""What a result begins with, for the model, that the client marks as an error."""


def conversation(system: str | Sequence[TextBlock] | None, messages: Sequence[MessageField]) -> list[Message]:
    """The same turns, in their order.

    Raises ApiError for blocks that no turn can have in their order, for a result of a call that was not made, and for a
    last message that cannot be continued.
    """
    turns = [] if system is None else [Message("system", text_of(system))]
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        place = f"messages[{index}].content"
        if isinstance(message, AssistantMessage):
            turns.append(_answer(message.content, place, names))
        elif isinstance(message, UserMessage):
            turns += _question(message, place, names)
        else:
            turns.append(Message("system", text_of(message.content)))
    _check_continued(messages[-1], turns[-1], f"messages[{len(messages) - 1}].content")
    return turns


def text_of(content: str | Sequence[TextBlock] | None) -> str:
    """The text of a content; blocks follow each other without anything between them."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block.text for block in content)


def _check_continued(message: MessageField, turn: Message, place: str) -> None:
    if not isinstance(message, AssistantMessage):
        return
    if turn.tool_calls:
        raise _misplaced("the results of its calls must follow: a message with calls cannot be continued", place)
    if not turn.content:
        raise _misplaced("the last message is continued, and here is no text to continue", place)


def _answer(content: str | Sequence[AssistantBlock], place: str, names: dict[str, str]) -> Message:
    """Thinking, text and calls, in this order, as an answer has them."""
    if isinstance(content, str):
        return Message("assistant", content)
    thinking: list[str] = []
    texts: list[str] = []
    calls: list[ToolCall] = []
    for index, block in enumerate(content):
        if isinstance(block, ThinkingBlock):
            if texts or calls:
                raise _misplaced("thinking comes before texts and calls", f"{place}[{index}]")
            thinking.append(block.thinking)
        elif isinstance(block, TextBlock):
            if calls:
                raise _misplaced("texts come before calls", f"{place}[{index}]")
            texts.append(block.text)
        else:
            calls.append(_call(block, f"{place}[{index}]", names))
    return Message("assistant", "".join(texts), reasoning="".join(thinking), tool_calls=tuple(calls))


def _call(block: ToolUseBlock, place: str, names: dict[str, str]) -> ToolCall:
    if block.id in names:
        raise _misplaced("an earlier call has this id", f"{place}.id")
    names[block.id] = block.name
    return ToolCall(block.name, block.input.text)


def _question(message: UserMessage, place: str, names: dict[str, str]) -> list[Message]:
    if isinstance(message.content, str):
        return [Message("user", message.content)]
    turns: list[Message] = []
    texts: list[str] = []
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            texts.append(block.text)
        elif texts:
            raise _misplaced("results of calls come before texts", f"{place}[{index}]")
        else:
            turns.append(_result(block, f"{place}[{index}]", names))
    return [*turns, Message("user", "".join(texts))] if texts else turns


def _result(block: ToolResultBlock, place: str, names: dict[str, str]) -> Message:
    if block.tool_use_id not in names:
        raise _misplaced("no call with this id comes before its result", f"{place}.tool_use_id")
    text = text_of(block.content)
    return Message(
        "tool",
        f"{ERROR_MARK}{text}" if block.is_error else text,
        name=names[block.tool_use_id],
        tool_call_id=block.tool_use_id,
    )


def _misplaced(message: str, place: str) -> ApiError:
    return invalid(message, place, "invalid_value")
