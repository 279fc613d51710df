"""The check of message lists: what OpenAI's clients send is understood, everything else is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from infernix.errors import InvalidPrompt
from infernix.frontend.messages import checked_messages
from infernix.messages import Message
from infernix.tools import ToolCall

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"b": 1.50, "a": 2}'}}


def test_a_conversation_with_tools() -> None:
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "result"},
        {"role": "assistant", "content": "c", "tool_calls": None},
    ]
    assert checked_messages(messages) == [
        Message("system", "s"),
        Message("user", "u"),
        Message("assistant", reasoning="r", tool_calls=(ToolCall("f", '{"b": 1.50, "a": 2}'),)),
        Message("tool", "result", tool_call_id="call_1"),
        Message("assistant", "c"),
    ]


@pytest.mark.parametrize(
    "call",
    [
        {"name": "f", "arguments": {"b": 1, "a": "é"}},
        {"function": {"name": "f", "arguments": {"b": 1, "a": "é"}}},
        ToolCall("f", '{"b": 1, "a": "é"}'),
    ],
)
def test_forms_of_a_call(call: Any) -> None:
    (message,) = checked_messages([{"role": "assistant", "tool_calls": [call]}])
    assert message.tool_calls == (ToolCall("f", '{"b": 1, "a": "é"}'),)


def test_messages_pass_as_they_are() -> None:
    messages = [Message("user", "a"), Message("assistant", "b", reasoning="c", tool_calls=(ToolCall("f", "{}"),))]
    assert checked_messages(messages) == messages


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"role": "user", "content": "a", "tool_calls": []}, r"messages\[0\]\.tool_calls: unknown field"),
        ({"role": "tool", "content": "a", "reasoning": "b"}, r"messages\[0\]\.reasoning: unknown field"),
        ({"role": "assistant"}, r"messages\[0\]\.content: missing"),
        ({"role": "assistant", "content": None}, r"messages\[0\]\.content: expected a string, got NoneType"),
        ({"role": "tool", "content": [1]}, r"messages\[0\]\.content: expected a string, got list"),
        ({"role": "assistant", "tool_calls": "x"}, r"messages\[0\]\.tool_calls: expected a list, got str"),
        ({"role": "assistant", "tool_calls": [1]}, r"tool_calls\[0\]: expected an object with name and arguments"),
        ({"role": "assistant", "tool_calls": [{"function": 1}]}, r"tool_calls\[0\]\.function: expected an object"),
        ({"role": "assistant", "tool_calls": [{"name": "f", "args": {}}]}, r"tool_calls\[0\]\.args: unknown field"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "x": 1}}]},
            r"tool_calls\[0\]\.function\.x: unknown field",
        ),
        ({"role": "assistant", "tool_calls": [{"arguments": {}}]}, r"tool_calls\[0\]\.name: expected a string"),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[]"}]},
            r"tool_calls\[0\]\.arguments: expected a JSON object",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[" * 100000}]},
            r"tool_calls\[0\]\.arguments: nested too deeply",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": '{"a": NaN}'}]},
            r"tool_calls\[0\]\.arguments: not usable JSON: NaN is not JSON",
        ),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"a": {1}}}]},
            r"tool_calls\[0\]\.arguments: cannot be written as JSON",
        ),
    ],
)
def test_malformed(message: Any, complaint: str) -> None:
    with pytest.raises(InvalidPrompt, match=complaint):
        checked_messages([message])
