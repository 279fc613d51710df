"""What a chat template gets to see of a conversation, in the form that Hugging Face models' templates expect."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from infernix.errors import InvalidToolConstraint
from infernix.frontend.regions import Marks, map_strings
from infernix.frontend.template_json import parse_json
from infernix.messages import Message
from infernix.tools import ToolDefinition

# Templates often strip a content, which marks around it prevent: so it is also tried stripped.
_PREPARATIONS: tuple[Callable[[str], str], ...] = (
    str,
    str.strip,
    str.lstrip,
    str.rstrip,
    lambda text: text.strip("\n"),
    lambda text: text.lstrip("\n"),
    lambda text: text.rstrip("\n"),
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A checked conversation."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    thinking: bool | None = None
    continue_final: bool = False

    @property
    def has_tools(self) -> bool:
        """Whether tools are declared, or were called in an earlier turn."""
        return bool(self.tools) or any(turn.tool_calls or turn.role == "tool" for turn in self.messages)


def plain_values(conversation: Conversation) -> dict[str, Any]:
    """The template's variables. Raises InvalidToolConstraint where a tool's parameters are no JSON."""
    values: dict[str, Any] = {
        "messages": [_message_value(turn) for turn in conversation.messages],
        "add_generation_prompt": not conversation.continue_final,
    }
    if conversation.tools:
        values["tools"] = [_tool_value(tool, index) for index, tool in enumerate(conversation.tools)]
    if conversation.thinking is not None:
        values["enable_thinking"] = conversation.thinking
    return values


def marked_values(conversation: Conversation, marks: Marks) -> Iterator[dict[str, Any]]:
    """The same with what callers say secured, once for each way in which a template may have stripped it."""
    plain = plain_values(conversation)
    has_reasoning = any(turn.reasoning for turn in conversation.messages)
    for content, reasoning in product(_PREPARATIONS, _PREPARATIONS if has_reasoning else _PREPARATIONS[:1]):
        values = _changed(plain, marks.secure)
        for turn, said in zip(values["messages"], conversation.messages, strict=True):
            turn["content"] = marks.secure(content(said.content))
            if said.reasoning:
                turn["reasoning_content"] = marks.secure(reasoning(said.reasoning))
        if conversation.continue_final:
            # Marked in any case: its region is where the answer goes on. It may not be changed, stripped neither.
            values["messages"][-1]["content"] = marks.enclose(conversation.messages[-1].content)
        yield values


def meaningless_values(conversation: Conversation, marks: Marks) -> dict[str, Any]:
    """The same with random texts in place of what is said in messages, and of all else that is not harmless."""
    values = _changed(
        plain_values(conversation), lambda text: text if marks.is_harmless(text) else secrets.token_hex(8)
    )
    for turn in values["messages"]:
        for name in ("content", "reasoning_content"):
            if turn.get(name):
                turn[name] = secrets.token_hex(8)
    return values


def _changed(values: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The values with every string changed that stems from a caller, the names in its JSON included."""

    def changed_function(entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "function": {key: map_strings(value, change) for key, value in entry["function"].items()}}

    turns = []
    for turn in values["messages"]:
        texts = {key: change(value) for key, value in turn.items() if key not in ("role", "tool_calls")}
        calls = {"tool_calls": [changed_function(call) for call in turn["tool_calls"]]} if "tool_calls" in turn else {}
        turns.append({**turn, **texts, **calls})
    changed = {**values, "messages": turns}
    if "tools" in values:
        changed["tools"] = [changed_function(tool) for tool in values["tools"]]
    return changed


def _message_value(message: Message) -> dict[str, Any]:
    """What a message does not have is left out."""
    value: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        value["reasoning_content"] = message.reasoning
    if message.tool_calls:
        value["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": parse_json(call.arguments_json)}}
            for call in message.tool_calls
        ]
    for name in ("name", "tool_call_id"):
        if getattr(message, name) is not None:
            value[name] = getattr(message, name)
    return value


def _tool_value(tool: ToolDefinition, index: int) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    try:
        function["parameters"] = parse_json(tool.parameters)
    except (ValueError, RecursionError) as error:
        raise InvalidToolConstraint(f"the parameters of {tool.name!r} are no JSON: {error}", f"/{index}") from error
    return {"type": "function", "function": function}
