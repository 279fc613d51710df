"""Content, calls, or content and then calls: what a constrained answer with tools turns out to be."""

from __future__ import annotations

from random import Random

import pytest

from infernix.errors import InternalError
from infernix.frontend.framing import Framing
from infernix.frontend.reading import ContentPiece, ReadingEvent
from infernix.frontend.tool_reader import ToolReader
from infernix.results import OutputBranch
from infernix.tools import ToolCall
from support.chat_output import (
    CHAT,
    JSON,
    JSON_AS_TEXT,
    TOOL_OPEN,
    XML,
    XML_AS_TEXT,
    answer_tokens,
    is_control,
    json_call,
    policy,
    tool,
    xml_call,
)

F = tool("f")
AUTO, REQUIRED, SINGLE = policy(F), policy(F, required=True), policy(F, parallel=False)
FRAMINGS = pytest.mark.parametrize("framing", [XML, XML_AS_TEXT, JSON, JSON_AS_TEXT], ids=str)


def call(framing: Framing) -> str:
    return xml_call("f", {}) if framing in (XML, XML_AS_TEXT) else json_call("f", "{}")


def feed(reader: ToolReader, tokens: list[int]) -> list[ReadingEvent]:
    events: list[ReadingEvent] = []
    for token in tokens:
        events += reader.control(token) if is_control(token) else reader.text(CHAT.token_bytes[token])
    return events


def content_of(events: list[ReadingEvent]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, ContentPiece))


@FRAMINGS
@pytest.mark.parametrize("content", ["", "Hi.", "Hi.\n\n", "a <tool", "</tool_cal", "<<"])
@pytest.mark.parametrize("num_calls", [0, 1, 3])
def test_content_may_come_before_calls(framing: Framing, content: str, num_calls: int) -> None:
    answer = content + "\n".join([call(framing)] * num_calls)
    rng = Random(answer)
    for _ in range(10):
        reader = ToolReader(AUTO, framing, has_json_content=False)
        events = feed(reader, answer_tokens(answer, framing, rng))
        events += reader.finish(is_complete=True)
        assert content_of(events) == content.encode()
        assert reader.calls == (ToolCall("f", "{}"),) * num_calls
        expected = OutputBranch.CONTENT if content else OutputBranch.UNDECIDED
        assert reader.branch is (OutputBranch.TOOLS if num_calls else expected)
        assert reader.diagnostics.marker_seen == (num_calls > 0)


def test_the_mark_in_ordinary_letters_is_content_where_there_is_a_token() -> None:
    reader = ToolReader(AUTO, XML, has_json_content=False)
    data = xml_call("f", {}).encode()
    assert content_of(reader.text(data)) == data
    assert reader.finish(is_complete=True) == []
    assert (reader.calls, reader.branch) == ((), OutputBranch.CONTENT)


@pytest.mark.parametrize("framing", [XML_AS_TEXT, JSON_AS_TEXT], ids=str)
def test_the_mark_in_json_content_stays_where_it_is(framing: Framing) -> None:
    content = b'{"a": "<tool_call>"}'
    for begin in range(1, len(content)):
        reader = ToolReader(AUTO, framing, has_json_content=True)
        events = reader.text(content[:begin]) + reader.text(content[begin:])
        assert content_of(events) == content
        assert (reader.branch, reader.calls) == (OutputBranch.CONTENT, ())


@FRAMINGS
def test_the_first_token_decides_between_json_and_calls(framing: Framing) -> None:
    reader = ToolReader(AUTO, framing, has_json_content=True)
    assert reader.branch is OutputBranch.UNDECIDED
    tokens = answer_tokens(call(framing), framing)
    feed(reader, tokens[:1])
    assert reader.branch is OutputBranch.TOOLS
    feed(reader, tokens[1:])
    assert reader.calls == (ToolCall("f", "{}"),)


@FRAMINGS
def test_a_required_call_has_to_come(framing: Framing) -> None:
    reader = ToolReader(REQUIRED, framing, has_json_content=False)
    with pytest.raises(InternalError, match="required"):
        reader.copy().finish(is_complete=True)
    assert reader.finish(is_complete=False) == []
    with pytest.raises(InternalError):
        feed(ToolReader(REQUIRED, framing, has_json_content=False), answer_tokens("Hi" + call(framing), framing))


@FRAMINGS
def test_one_call_is_one_call(framing: Framing) -> None:
    reader = ToolReader(SINGLE, framing, has_json_content=False)
    feed(reader, answer_tokens(call(framing), framing))
    reader.copy().finish(is_complete=True)
    with pytest.raises(InternalError):
        feed(reader, answer_tokens("\n" + call(framing), framing))


@pytest.mark.parametrize("framing", [XML, JSON], ids=str)
def test_json_content_and_calls_do_not_mix(framing: Framing) -> None:
    reader = ToolReader(AUTO, framing, has_json_content=True)
    feed(reader, answer_tokens('{"a": 1}', framing))
    with pytest.raises(InternalError):
        reader.control(TOOL_OPEN)


def test_a_beginning_of_the_mark_is_held_and_becomes_content_at_the_end() -> None:
    reader = ToolReader(AUTO, XML_AS_TEXT, has_json_content=False)
    assert content_of(reader.text(b"a<tool_c")) == b"a"
    twin = reader.copy()
    assert content_of(twin.finish(is_complete=False)) == b"<tool_c"
    assert content_of(reader.text(b"x")) == b"<tool_cx"


def test_a_copy_goes_its_own_way() -> None:
    reader = ToolReader(AUTO, XML, has_json_content=False)
    tokens = answer_tokens(xml_call("f", {"a": "b"}), XML)
    feed(reader, tokens[:4])
    twin = reader.copy()
    feed(twin, tokens[4:])
    assert (len(twin.calls), len(reader.calls)) == (1, 0)
    feed(reader, tokens[4:])
    assert reader.calls == twin.calls
