"""Calls without a grammar: taken where they can be read, content otherwise, and nothing is lost."""

from __future__ import annotations

from random import Random

import pytest

from infernix.frontend.framing import Framing
from infernix.frontend.free_reader import FreeReader
from infernix.frontend.reading import ContentPiece, ReadingEvent
from infernix.results import OutputBranch, ToolDiagnostics, ToolFallback
from infernix.tools import ToolCall, ToolCallDelta
from support.chat_output import (
    CHAT,
    JSON,
    JSON_AS_TEXT,
    MARKS,
    THINK_CLOSE,
    TURN_START,
    XML,
    XML_AS_TEXT,
    answer_tokens,
    is_control,
    joined_calls,
    json_call,
    policy,
    tool,
    xml_call,
)

TOOLS = policy(tool("f", a={"string"}, n={"integer"}), tool("g"), constrained=False)
F = ToolCall("f", '{"a":"x"}')
G = ToolCall("g", "{}")
CALL_F, CALL_G = xml_call("f", {"a": "x"}), xml_call("g", {})


def read(
    answer: str, framing: Framing = XML, rng: Random | None = None, *, is_complete: bool = True
) -> tuple[str, FreeReader]:
    """The content and the reader; calls and their pieces agree."""
    reader = FreeReader(TOOLS, framing, {token: CHAT.token_bytes[token] for token in framing.passing_ids})
    events: list[ReadingEvent] = []
    for token in answer_tokens(answer, framing, rng):
        events += reader.control(token) if is_control(token) else reader.text(CHAT.token_bytes[token])
    events += reader.finish(is_complete=is_complete)
    deltas = [event for event in events if isinstance(event, ToolCallDelta)]
    assert joined_calls(deltas) == dict(enumerate(reader.calls))
    return b"".join(event.data for event in events if isinstance(event, ContentPiece)).decode(), reader


@pytest.mark.parametrize("framing", [XML, XML_AS_TEXT], ids=["tokens", "text"])
@pytest.mark.parametrize(
    ("answer", "content", "calls", "fallback", "was_recovered"),
    [
        ("Hi.", "Hi.", [], None, False),
        (CALL_F, "", [F], None, False),
        (f"Hi.\n\n{CALL_F}\n{CALL_G}\n", "Hi.\n\n", [F, G], None, False),
        (f"{CALL_F}\n\nDone.", "\n\nDone.", [F], ToolFallback.TRAILING_CONTENT, False),
        # Other layouts, where the meaning is beyond doubt.
        ("<tool_call><function=g></function></tool_call>", "", [G], None, False),
        ("<tool_call>\n<function=f>\n<parameter=a>x</parameter>\n</tool_call>", "", [F], None, True),
        ('<tool_call>\n{"name": "f", "arguments": {"a":"x"}}\n</tool_call>', "", [F], None, True),
        ('<tool_call>\n{"arguments": "{\\"a\\":\\"x\\"}", "name": "f"}\n</tool_call>', "", [F], None, True),
        ("<tool_call>\n<function=g>\n</function>\n", "", [G], None, True),
        # An argument twice: the same value is one, another value is doubt.
        (CALL_F.replace("</function>", "<parameter=a>\nx\n</parameter>\n</function>"), "", [F], None, False),
    ],
)
def test_calls_that_can_be_read(
    answer: str,
    content: str,
    calls: list[ToolCall],
    fallback: ToolFallback | None,
    was_recovered: bool,
    framing: Framing,
) -> None:
    rng = Random(answer)
    for _ in range(10):
        found, reader = read(answer, framing, rng)
        assert (found, list(reader.calls)) == (content, calls)
        seen = reader.diagnostics
        assert (seen.fallback, seen.was_recovered) == (fallback, was_recovered)
        assert (seen.marker_seen, seen.num_calls) == ("<tool_call>" in answer, len(calls))


@pytest.mark.parametrize("framing", [XML, XML_AS_TEXT], ids=["tokens", "text"])
@pytest.mark.parametrize(
    ("answer", "fallback"),
    [
        ("<tool_call>\nnothing\n</tool_call>", ToolFallback.MALFORMED_STRUCTURE),
        ("<tool_call></tool_call>", ToolFallback.MALFORMED_STRUCTURE),
        ("<tool_call>\n<function=f>\nx</function>\n</tool_call>", ToolFallback.MALFORMED_STRUCTURE),
        ("<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>", ToolFallback.MALFORMED_STRUCTURE),
        (xml_call("h", {}), ToolFallback.UNDECLARED_TOOL),
        (xml_call(" ", {}), ToolFallback.INVALID_TOOL_NAME),
        (
            CALL_F.replace("</function>", "<parameter=a>\ny\n</parameter>\n</function>"),
            ToolFallback.DUPLICATE_PARAMETER,
        ),
        ("<tool_call>\n<function=f>\n<parameter=a>\nhalf", ToolFallback.TRUNCATED_TAIL),
        ("<tool_call>", ToolFallback.TRUNCATED_TAIL),
        ('<tool_call>{"name": "f"', ToolFallback.TRUNCATED_TAIL),
        (json_call("h", "{}"), ToolFallback.UNDECLARED_TOOL),
        ('<tool_call>{"name": 1}</tool_call>', ToolFallback.INVALID_TOOL_NAME),
        ('<tool_call>{"name": "f", "name": "g"}</tool_call>', ToolFallback.MALFORMED_STRUCTURE),
        (json_call("f", "[]"), ToolFallback.MALFORMED_STRUCTURE),
        (json_call("f", '{"a": 1, "\\u0061": 2}'), ToolFallback.DUPLICATE_PARAMETER),
    ],
)
def test_what_cannot_be_read_is_content(answer: str, fallback: ToolFallback, framing: Framing) -> None:
    rng = Random(answer)
    for _ in range(10):
        content, reader = read(f"A {answer}", framing, rng)
        assert (content, reader.calls, reader.branch) == (f"A {answer}", (), OutputBranch.CONTENT)
        assert reader.diagnostics == ToolDiagnostics(marker_seen=True, fallback=fallback)


@pytest.mark.parametrize("framing", [JSON, JSON_AS_TEXT], ids=["tokens", "text"])
def test_json_calls_keep_their_arguments_as_they_are_written(framing: Framing) -> None:
    arguments = '{"a" :1.0, "b":[ ]}'
    content, reader = read(f"Hi\n{json_call('f', arguments)}\n{json_call('g', '{}')}", framing)
    assert (content, reader.calls) == ("Hi\n", (ToolCall("f", arguments), G))
    assert not reader.diagnostics.was_recovered
    _, reader = read(json_call("f", '{"a": 1, "b": 2, "\\u0061": 1}'), framing)
    assert reader.calls[0].arguments_json == '{"a": 1, "b": 2}'
    assert reader.diagnostics.num_duplicates_repaired == 1


def test_values_are_normalised_as_they_are_under_a_grammar() -> None:
    _, reader = read(xml_call("f", {"n": " 3 ", "a": "3", "z": "true"}))
    assert reader.calls == (ToolCall("f", '{"n":3,"a":"3","z":true}'),)
    _, reader = read(f"{xml_call('f', {'n': ''})}\n{xml_call('f', {'n': 'x'})}")
    assert reader.calls == (ToolCall("f", "{}"), ToolCall("f", '{"n":"x"}'))
    assert reader.diagnostics.num_empty_arguments_omitted == 1
    assert reader.diagnostics.num_mismatched_arguments == 1


def test_a_value_may_spell_its_end_mark() -> None:
    _, reader = read(xml_call("f", {"a": "x</parameter> y\n</parameter>z"}))
    assert reader.calls == (ToolCall("f", '{"a":"x</parameter> y\\n</parameter>z"}'),)


def test_a_limit_makes_the_unfinished_call_content() -> None:
    """Even where only the closing mark is missing."""
    answer = "<tool_call>\n<function=g>\n</function>\n"
    content, reader = read(f"{CALL_F}\n{answer}", is_complete=False)
    assert (content, reader.calls) == (f"\n{answer}", (F,))
    assert reader.diagnostics.fallback is ToolFallback.TRUNCATED_TAIL


def test_an_opening_mark_inside_a_call_ends_it() -> None:
    content, reader = read(f"<tool_call>\nhm {CALL_G}")
    assert (content, reader.calls) == ("<tool_call>\nhm ", (G,))
    content, reader = read(f"<tool_call>\n<function=g>\n</function>\n{CALL_F}")
    assert (content, reader.calls) == ("", (G, F))


def test_control_tokens_are_text_only_where_they_are_meant_to_be() -> None:
    reader = FreeReader(TOOLS, XML, {})
    assert reader.control(TURN_START) == []
    assert reader.control(THINK_CLOSE) == []
    reader = FreeReader(TOOLS, XML, {TURN_START: b"<|im_start|>"})
    assert reader.control(TURN_START) == [ContentPiece(b"<|im_start|>")]


def test_nothing_is_lost() -> None:
    """Text, marks and calls of tools that are not declared, at random: all of it is content."""
    rng = Random(7)
    call, written = xml_call("h", {"a": "x"}), json_call("h", "{}")
    parts = [
        *MARKS[2:],
        call,
        written,
        "\n",
        " ",
        "a",
        "<tool",
        "<function=h>",
        "</parameter>",
        "<function=h></function>x",
    ]
    for _ in range(1000):
        answer = "".join(rng.choices(parts, k=rng.randint(0, 7)))
        for framing in (XML, XML_AS_TEXT):
            content, reader = read(answer, framing, rng, is_complete=rng.random() < 0.5)
            assert (content, reader.calls) == (answer, ())


def test_regions_cost_linear_time() -> None:
    values = "".join(f"<parameter=p{index}>\n</parameter> \n</parameter>\n" for index in range(20_000))
    _, reader = read_bytes(f"<tool_call>\n<function=f>\n{values}</function>\n</tool_call>".encode())
    assert len(reader.calls[0].arguments()) == 20_000


def read_bytes(data: bytes) -> tuple[list[ReadingEvent], FreeReader]:
    reader = FreeReader(TOOLS, XML_AS_TEXT, {})
    return reader.text(data) + reader.finish(is_complete=True), reader


def test_half_of_a_surrogate_pair_in_arguments_within_a_string_is_content() -> None:
    answer = '<tool_call>\n{"name": "f", "arguments": "{\\"a\\": \\"\\ud800\\"}"}\n</tool_call>'
    content, reader = read(answer, JSON)
    assert (content, reader.calls) == (answer, ())
    assert reader.diagnostics is not None
    assert reader.diagnostics.fallback is ToolFallback.MALFORMED_STRUCTURE
