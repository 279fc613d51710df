"""Conversations: what a caller passes in for a model to answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infernix.tools import ToolCall, ToolDefinition

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is one of ROLES.

    An assistant's turn may have `reasoning`, and `tool_calls` after its content. A tool's turn is the result of one
    call: its content is the result's text, `name` and `tool_call_id` say of which, where the caller wants that.
    """

    role: str
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation to be answered.

    messages         Message objects, or mappings in the form of OpenAI's chat messages
    tools            what the model may call; the model sees all of them, whatever the choice among them is
    thinking         True or False switches the model's thinking where its template has a switch; None: its default
    continue_final   the last message is the assistant's and goes on; otherwise a new turn begins
    """

    messages: Sequence[Message | Mapping[str, object]]
    tools: tuple[ToolDefinition, ...] = ()
    thinking: bool | None = None
    continue_final: bool = False
