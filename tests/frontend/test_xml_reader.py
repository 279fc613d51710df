"""Constrained calls in the XML way of writing, each answer cut into tokens in many ways."""

from __future__ import annotations

import json
from random import Random

import pytest

from infernix.errors import InternalError
from infernix.frontend.framing import Framing
from infernix.frontend.pieces import appended
from infernix.frontend.reading import ReadingEvent
from infernix.frontend.tool_reader import ToolReader
from infernix.frontend.values import normalized_value
from infernix.tools import ToolCall, ToolCallDelta
from support.chat_output import CHAT, XML, XML_AS_TEXT, answer_tokens, is_control, joined_calls, policy, tool, xml_call

WEATHER = tool("weather", strict=True, city="text", days="json", where="json")
NOTE = tool("note", text={"string"}, count={"integer"}, flag={"boolean"}, any=None)
CHINESE = tool("天气", strict=True, 城市="text", 日期="text")
EMPTY = tool("ping", strict=True)
TOOLS = policy(WEATHER, NOTE, CHINESE, EMPTY, required=True)
FRAMINGS = pytest.mark.parametrize("framing", [XML, XML_AS_TEXT], ids=["tokens", "text"])


def read(
    answer: str, framing: Framing = XML, rng: Random | None = None, *, is_complete: bool = True
) -> tuple[ToolReader, list[ReadingEvent]]:
    reader = ToolReader(TOOLS, framing, has_json_content=False)
    events: list[ReadingEvent] = []
    for token in answer_tokens(answer, framing, rng):
        events += reader.control(token) if is_control(token) else reader.text(CHAT.token_bytes[token])
    events += reader.finish(is_complete=is_complete)
    return reader, events


def deltas_of(events: list[ReadingEvent]) -> list[ToolCallDelta]:
    return [event for event in events if isinstance(event, ToolCallDelta)]


@FRAMINGS
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (xml_call("ping", {}), [ToolCall("ping", "{}")]),
        (xml_call("weather", {"city": "Paris"}), [ToolCall("weather", '{"city":"Paris"}')]),
        # Exactly one line break on each side is framing.
        (xml_call("weather", {"city": ""}), [ToolCall("weather", '{"city":""}')]),
        (xml_call("weather", {"city": "\n"}), [ToolCall("weather", '{"city":"\\n"}')]),
        (xml_call("weather", {"city": "\n a \n\n"}), [ToolCall("weather", '{"city":"\\n a \\n\\n"}')]),
        (xml_call("weather", {"city": '"\\\t\u2028'}), [ToolCall("weather", '{"city":"\\"\\\\\\t\u2028"}')]),
        # Whatever is no delimiter is text.
        (
            xml_call("weather", {"city": "</parameter>\n</parameter\n</tool_cal>\n</function>\n<parameter=x>"}),
            [ToolCall("weather", '{"city":"</parameter>\\n</parameter\\n</tool_cal>\\n</function>\\n<parameter=x>"}')],
        ),
        # JSON as it is written.
        (
            xml_call("weather", {"days": "-0", "where": '{"b": [1, 2.50], "a": "\\u0041"}'}),
            [ToolCall("weather", '{"days":-0,"where":{"b": [1, 2.50], "a": "\\u0041"}}')],
        ),
        (xml_call("天气", {"城市": "在", "日期": "今天"}), [ToolCall("天气", '{"城市":"在","日期":"今天"}')]),
        # Values by their declaration; what is left out leaves no comma.
        (
            xml_call("note", {"count": " 3 ", "text": "3", "flag": "True", "any": "[1]", "new": "x"}),
            [ToolCall("note", '{"count":3,"text":"3","flag":true,"any":[1],"new":"x"}')],
        ),
        (xml_call("note", {"count": " ", "text": ""}), [ToolCall("note", '{"text":""}')]),
        (xml_call("note", {"text": "a", "flag": ""}), [ToolCall("note", '{"text":"a"}')]),
        (
            f"{xml_call('ping', {})}\n{xml_call('ping', {})}\n{xml_call('weather', {'city': 'x'})}",
            [ToolCall("ping", "{}"), ToolCall("ping", "{}"), ToolCall("weather", '{"city":"x"}')],
        ),
    ],
)
def test_calls_are_read_however_they_are_cut(answer: str, expected: list[ToolCall], framing: Framing) -> None:
    rng = Random(answer)
    for _ in range(15):
        reader, events = read(answer, framing, rng)
        assert list(reader.calls) == expected
        assert joined_calls(deltas_of(events)) == dict(enumerate(expected))
        assert reader.diagnostics.num_calls == len(expected)


def test_random_values_come_back() -> None:
    """What is written by a plain writer is read back, for every way to cut it."""
    rng = Random(5)
    for _ in range(300):
        pieces = ["a", '"', "\\", "\n", "<", "</parameter>", "在", "😀", "\n</parameter", " ", "\r", "\t", "{", "1"]
        text = "".join(rng.choices(pieces, k=rng.randint(0, 8)))
        if "\n</parameter>" in f"{text}\n":
            continue
        values = {"text": text, "any": text, "count": text}
        names = rng.sample(list(values), k=rng.randint(0, 3))
        reader, events = read(xml_call("note", {name: values[name] for name in names}), XML, rng)
        hints = {"text": frozenset({"string"}), "any": None, "count": frozenset({"integer"})}
        written = {name: normalized_value(text, hints[name]).json for name in names}
        assert reader.calls[0].arguments() == {
            name: json.loads(value) for name, value in written.items() if value is not None
        }
        assert joined_calls(deltas_of(events))[0] == reader.calls[0]


def test_strings_are_published_while_they_come_and_other_values_when_they_are_whole() -> None:
    reader = ToolReader(TOOLS, XML, has_json_content=False)
    reader.control(XML.tool_open or 0)
    seen = []
    for data in (
        "\n<function=note>\n",
        "<parameter=text>\nab",
        "c\n</para",
        "meter>\n<parameter=count>\n1",
        "2\n</parameter>",
    ):
        seen.append("".join(event.arguments for event in deltas_of(reader.text(data.encode()))))
    assert seen == ["{", '"text":"ab', "c", '"', ',"count":12']


def test_a_character_is_published_whole() -> None:
    reader = ToolReader(TOOLS, XML, has_json_content=False)
    reader.control(XML.tool_open or 0)
    reader.text(b"\n<function=weather>\n<parameter=city>\n")
    assert reader.text(b"\xe5\x9c") == []
    assert reader.text(b"\xa8") == [ToolCallDelta(0, None, "在")]


@FRAMINGS
def test_a_cut_call_is_no_call_and_the_completed_ones_stay(framing: Framing) -> None:
    answer = f"{xml_call('ping', {})}\n{xml_call('note', {'text': 'abc', 'count': '12'})}"
    tokens = answer_tokens(answer, framing)
    first = len(answer_tokens(xml_call("ping", {}), framing))
    for num_tokens in range(1, len(tokens)):
        reader = ToolReader(TOOLS, framing, has_json_content=False)
        for token in tokens[:num_tokens]:
            if is_control(token):
                reader.control(token)
            else:
                reader.text(CHAT.token_bytes[token])
        assert reader.finish(is_complete=False) == []
        assert reader.calls == (() if num_tokens < first else (ToolCall("ping", "{}"),))


def test_mismatches_are_counted() -> None:
    reader, _ = read(xml_call("note", {"count": "x", "flag": "1", "any": "x", "text": "1"}))
    assert reader.diagnostics.num_mismatched_arguments == 2
    reader, _ = read(f"{xml_call('note', {'count': '', 'flag': ' '})}\n{xml_call('note', {'count': ''})}")
    assert reader.diagnostics.num_empty_arguments_omitted == 3


@pytest.mark.parametrize(
    "answer",
    [
        "no call",
        "<tool_call>",
        "<tool_call>\n<function=ping>\n</function>\n",
        "<tool_call><function=ping>\n</function>\n</tool_call>",
        "<tool_call>\n<function=other>\n</function>\n</tool_call>",
        "<tool_call>\n<function=ping>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\n<function=ping>\n</function>\n</tool_call>\n",
        "<tool_call>\n<function=ping>\n</function>\n</tool_call>x",
        "<tool_call>\n<function=ping>\n</function>\n</tool_call></tool_call>",
        "<tool_call><tool_call>",
        "<tool_call>\n<function=ping>\n</tool_call>",
        "<tool_call>\n<function=ping>\n</function>\nx</tool_call>",
        "<tool_call>\n<function=note>\n<parameter=a>\n1\n</parameter>x",
        f"{xml_call('weather', {'days': '01'})}",
        f"{xml_call('weather', {'days': ''})}",
        xml_call("note", {"a": "1"}).replace("</function>", "<parameter=a>\n2\n</parameter>\n</function>"),
        "",
    ],
)
@FRAMINGS
def test_what_the_grammar_cannot_have_taken_is_an_internal_error(answer: str, framing: Framing) -> None:
    with pytest.raises(InternalError):
        read(answer, framing)


def test_a_long_value_costs_linear_time_and_its_copies_share_it() -> None:
    reader = ToolReader(TOOLS, XML, has_json_content=False)
    reader.control(XML.tool_open or 0)
    reader.text(b"\n<function=note>\n<parameter=any>\n")
    for _ in range(20_000):
        reader = reader.copy()
        reader.text(b"0123456789")
    call = reader._call
    assert call is not None
    parts: tuple[str, ...] = vars(call)["_value"]
    assert sum(map(len, parts)) == 200_000
    assert len(parts) < 20
    assert appended(parts, "x") is not parts
