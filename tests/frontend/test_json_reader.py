"""Constrained calls in the JSON way of writing."""

from __future__ import annotations

import json
from random import Random

import pytest

from infernix.errors import InternalError
from infernix.frontend.framing import Framing
from infernix.frontend.reading import ReadingEvent
from infernix.frontend.tool_reader import ToolReader
from infernix.tools import ToolCall, ToolCallDelta
from support.chat_output import (
    CHAT,
    JSON,
    JSON_AS_TEXT,
    answer_tokens,
    is_control,
    joined_calls,
    json_call,
    policy,
    tool,
)

TOOLS = policy(tool("f"), tool('a"b\\'), tool("天气"), required=True)
FRAMINGS = pytest.mark.parametrize("framing", [JSON, JSON_AS_TEXT], ids=["tokens", "text"])


def read(answer: str, framing: Framing, rng: Random | None = None) -> tuple[ToolReader, list[ReadingEvent]]:
    reader = ToolReader(TOOLS, framing, has_json_content=False)
    events: list[ReadingEvent] = []
    for token in answer_tokens(answer, framing, rng):
        events += reader.control(token) if is_control(token) else reader.text(CHAT.token_bytes[token])
    events += reader.finish(is_complete=True)
    return reader, events


@FRAMINGS
@pytest.mark.parametrize(
    ("written_name", "name", "arguments"),
    [
        ("f", "f", "{}"),
        ("f", "f", '{"a": [{"}": "]"}], "b": "\\"}\\\\"}'),
        ("f", "f", '{ "a" :\n1.0, "text": "</tool_call><tool_call>\\n在"}'),
        ('a\\"b\\\\', 'a"b\\', '{"x":{}}'),
        ("天气", "天气", '{"城市": "在"}'),
        ("\\u5929\\u6c14", "天气", "{}"),
    ],
)
def test_arguments_are_taken_as_they_are_written(
    written_name: str, name: str, arguments: str, framing: Framing
) -> None:
    rng = Random(arguments)
    if framing is JSON and "tool_call" in arguments:
        arguments = arguments.replace("<", "\\u003c")  # the helper would make tokens of the marks
    answer = f"{json_call(written_name, arguments)}\n{json_call('f', '{}')}"
    for _ in range(15):
        reader, events = read(answer, framing, rng)
        assert reader.calls == (ToolCall(name, arguments), ToolCall("f", "{}"))
        deltas = [event for event in events if isinstance(event, ToolCallDelta)]
        assert joined_calls(deltas) == dict(enumerate(reader.calls))


def test_random_arguments_come_back() -> None:
    rng = Random(6)
    for _ in range(200):
        text = "".join(
            rng.choices(['"', "\\", "{", "}", "[", "]", "a", "在", "\n", "</tool_call>"], k=rng.randint(0, 8))
        )
        arguments = {"a": text, text: [{"b": text}, {}], "c": {"d": [[]]}}
        reader, _ = read(json_call("f", json.dumps(arguments, ensure_ascii=False)), JSON_AS_TEXT, rng)
        assert reader.calls[0].arguments() == arguments


@pytest.mark.parametrize(
    "answer",
    [
        '<tool_call>{"name": "f", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": f, "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "\\q", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": []}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {"a" 1}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {}} \n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {}}\n',
        '<tool_call>\n{"name": "f", "arguments": {',
    ],
)
@FRAMINGS
def test_what_the_grammar_cannot_have_taken_is_an_internal_error(answer: str, framing: Framing) -> None:
    with pytest.raises(InternalError):
        read(answer, framing)


def test_deep_arguments_are_no_problem() -> None:
    arguments = '{"a":' * 50_000 + "1" + "}" * 50_000
    reader = ToolReader(TOOLS, JSON_AS_TEXT, has_json_content=False)
    reader.text(json_call("f", arguments).encode())
    assert reader.calls == (ToolCall("f", arguments),)
