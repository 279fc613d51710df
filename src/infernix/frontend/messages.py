"""The check of a message list: every message becomes a `Message`, or the place that is wrong is named."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from infernix.errors import InvalidPrompt
from infernix.frontend.template_json import parse_json
from infernix.messages import ROLES, Message
from infernix.tools import ToolCall

# Field of a mapping -> field of a Message. Reasoning has two names among those who speak this form.
_TEXT_FIELDS = {
    "content": "content",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
    "name": "name",
    "tool_call_id": "tool_call_id",
}
_FIELDS_OF_ROLE = {
    "system": {"content"},
    "user": {"content"},
    "assistant": {"content", "reasoning", "reasoning_content", "tool_calls"},
    "tool": {"content", "name", "tool_call_id"},
}


def checked_messages(messages: object) -> list[Message]:
    """`messages` as Messages. Raises InvalidPrompt with the place of what is wrong, such as `messages[2].content`."""
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise InvalidPrompt(f"messages are a list, not {type(messages).__name__}")
    if not messages:
        raise InvalidPrompt("messages: the list is empty")
    return [_checked_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _checked_message(message: object, place: str) -> Message:
    if isinstance(message, Message):
        message = _as_mapping(message)
    if not isinstance(message, Mapping):
        raise InvalidPrompt(f"{place}: expected an object with role and content, got {type(message).__name__}")
    role = _role(message, place)
    for name in message:
        if name != "role" and name not in _FIELDS_OF_ROLE[role]:
            hint = "a message has role and content" if role in ("system", "user") else f"{role!r} messages have none"
            raise InvalidPrompt(f"{place}.{str(name)[:40]}: unknown field; {hint}")
    calls = _checked_calls(message.get("tool_calls"), f"{place}.tool_calls")
    if "content" not in message and not calls:
        raise InvalidPrompt(f"{place}.content: missing")
    texts: dict[str, str] = {}
    for name, field in _TEXT_FIELDS.items():
        value = message.get(name)
        # What has calls may have no content, and clients write null for what is not there.
        if value is None and (name not in message or name != "content" or calls):
            continue
        texts[field] = _checked_text(value, f"{place}.{name}")
    return Message(role, tool_calls=calls, **texts)


def _as_mapping(message: Message) -> dict[str, object]:
    fields: dict[str, object] = {"role": message.role, "content": message.content}
    for name in ("reasoning", "tool_calls", "name", "tool_call_id"):
        if getattr(message, name):
            fields[name] = getattr(message, name)
    return fields


def _role(message: Mapping[Any, object], place: str) -> str:
    if "role" not in message:
        raise InvalidPrompt(f"{place}.role: missing")
    role = _checked_text(message["role"], f"{place}.role")
    if role not in ROLES:
        raise InvalidPrompt(f"{place}.role: {role[:40]!r} is not one of {', '.join(ROLES)}")
    return role


def _checked_text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise InvalidPrompt(f"{place}: expected a string, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidPrompt(f"{place}: no Unicode: lone surrogate at character {error.start}") from error
    return value


def _checked_calls(value: object, place: str) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidPrompt(f"{place}: expected a list, got {type(value).__name__}")
    return tuple(_checked_call(call, f"{place}[{index}]") for index, call in enumerate(value))


def _checked_call(call: object, place: str) -> ToolCall:
    """A ToolCall, or a mapping with `name` and `arguments`, by itself or below `function`."""
    if isinstance(call, ToolCall):
        function: Mapping[Any, object] = {"name": call.name, "arguments": call.arguments_json}
    elif isinstance(call, Mapping):
        inner = call.get("function", call)
        if not isinstance(inner, Mapping):
            raise InvalidPrompt(f"{place}.function: expected an object, got {type(inner).__name__}")
        known = ("function", "id", "type") if "function" in call else ("name", "arguments", "id", "type")
        _refuse_unknown(call, known, place)
        if inner is not call:
            place = f"{place}.function"
            _refuse_unknown(inner, ("name", "arguments"), place)
        function = inner
    else:
        raise InvalidPrompt(f"{place}: expected an object with name and arguments, got {type(call).__name__}")
    name = _checked_text(function.get("name"), f"{place}.name")
    arguments = function.get("arguments", {})
    if isinstance(arguments, Mapping):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidPrompt(f"{place}.arguments: cannot be written as JSON: {error}") from error
    text = _checked_text(arguments, f"{place}.arguments")
    try:
        value = parse_json(text)
    except ValueError as error:
        raise InvalidPrompt(f"{place}.arguments: not usable JSON: {error}") from error
    except RecursionError as error:
        raise InvalidPrompt(f"{place}.arguments: nested too deeply") from error
    if not isinstance(value, dict):
        raise InvalidPrompt(f"{place}.arguments: expected a JSON object")
    return ToolCall(name, text)


def _refuse_unknown(mapping: Mapping[Any, object], known: Sequence[str], place: str) -> None:
    for name in mapping:
        if name not in known:
            raise InvalidPrompt(f"{place}.{str(name)[:40]}: unknown field")
