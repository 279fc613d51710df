"""Options beside constraints and tools: what is refused by name, and whose penalties apply."""

from __future__ import annotations

from typing import Any

import pytest

from infernix.errors import InvalidOptions, InvalidToolConstraint
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, SamplingOptions, SamplingParameters
from infernix.results import FinishReason, ToolFallback
from infernix.tools import ToolCall, ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.chat_engine import USER, chat_engine, converse, wanting
from support.chat_output import CHAT, EOS, JSON, TURN_START, XML, json_call, text_tokens, xml_call
from support.scripted_model import preferring

LOOSE: dict[str, Any] = {
    "stop": ("x",),
    "stop_token_ids": (5,),
    "raw_output": True,
    "publish_special_tokens": True,
    "ignore_eos": True,
}
TOOL = ToolDefinition("f", parameters='{"properties": {"a": {"type": "string"}}}')
STRICT = ToolDefinition("f", parameters='{"type": "object", "additionalProperties": false}', strict=True)
FREE = ToolChoice(enforcement=ToolEnforcement.AUTOMATIC)
CONSTRAINED: dict[str, dict[str, Any]] = {
    "grammar": {"constraint": OutputConstraint.grammar('root ::= "ok"')},
    "json_object": {"constraint": OutputConstraint.json_object()},
    "json_schema": {"constraint": OutputConstraint.json_schema({})},
    "choice": {"constraint": OutputConstraint.choice(["ok"])},
    "regex": {"constraint": OutputConstraint.regex("ok")},
    "tools": {"tools": (TOOL,)},
    "required": {"tools": (TOOL,), "tool_choice": ToolChoice(ToolMode.REQUIRED)},
    "none": {"tools": (TOOL,), "tool_choice": ToolChoice(ToolMode.NONE)},
    "single": {"tools": (TOOL,), "tool_choice": ToolChoice(parallel=False, enforcement=ToolEnforcement.AUTOMATIC)},
    "strict": {"tools": (STRICT,), "tool_choice": FREE},
    "union": {"tools": (TOOL,), "tool_choice": FREE, "constraint": OutputConstraint.json_object()},
}


@pytest.mark.parametrize("name", LOOSE)
@pytest.mark.parametrize("request_of", CONSTRAINED.values(), ids=CONSTRAINED)
@pytest.mark.parametrize("thinking", [True, False])
def test_an_option_that_would_break_a_promise_is_refused_by_name(
    name: str, request_of: dict[str, Any], thinking: bool
) -> None:
    with pytest.raises(InvalidOptions, match=f"{name}: cannot be combined with an output constraint") as caught:
        converse(wanting("ok"), thinking=thinking, **{name: LOOSE[name]}, **request_of)
    assert caught.value.field == name


@pytest.mark.parametrize("name", LOOSE)
def test_a_raw_text_with_a_constraint_refuses_them_too(name: str) -> None:
    with pytest.raises(InvalidOptions, match=name):
        converse(wanting("ok"), prompt="Hi", constraint=OutputConstraint.regex("ok"), **{name: LOOSE[name]})


@pytest.mark.parametrize(
    ("options", "content", "calls"),
    [
        ({}, "Hi", (ToolCall("f", "{}"),)),
        ({"stop": ("i",)}, "H", ()),
        ({"stop_token_ids": text_tokens(b"i")}, "H", ()),
        ({"raw_output": True}, f"Hi{xml_call('f', {})}", ()),
        ({"publish_special_tokens": True}, "Hi", (ToolCall("f", "{}"),)),
        ({"ignore_eos": True, "stop_token_ids": (TURN_START,)}, "Hi", (ToolCall("f", "{}"),)),
    ],
)
def test_free_tools_leave_every_option_open(options: dict[str, Any], content: str, calls: tuple[ToolCall, ...]) -> None:
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    then = TURN_START if "ignore_eos" in options else EOS
    wants = wanting(f"Hi{xml_call('f', {})}", then=then)
    result = converse(wants, thinking=False, tools=(TOOL,), tool_choice=FREE, **options)
    assert (result.text, result.tool_calls, result.constraint) == (content, calls, None)
    assert result.finish_reason in (FinishReason.STOP_TOKEN, FinishReason.STOP_STRING)


# The free route


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
def test_free_tools_are_read_tolerantly_and_told_about(framing: Any) -> None:
    call = xml_call("g", {}) if framing is XML else json_call("g", "{}")
    result = converse(wanting(call, framing), framing, thinking=False, tools=(TOOL,), tool_choice=FREE)
    assert (result.text, result.tool_calls) == (call, ())
    assert result.tool_diagnostics is not None
    assert result.tool_diagnostics.fallback is ToolFallback.UNDECLARED_TOOL


def test_diagnostics_are_there_where_calls_are_read() -> None:
    for request_of in ({}, {"prompt": "Hi"}, {"constraint": OutputConstraint.regex("ok")}):
        assert converse(wanting("ok"), thinking=None, **request_of).tool_diagnostics is None
    result = converse(wanting(xml_call("f", {"a": "b"})), thinking=False, tools=(TOOL,))
    assert result.tool_diagnostics is not None
    assert (result.tool_diagnostics.marker_seen, result.tool_diagnostics.num_calls) == (True, 1)


# A text to continue


def test_a_text_to_continue_has_no_tools() -> None:
    mark = "<tool_call>x"
    for choice in (ToolChoice(), ToolChoice(ToolMode.NONE), FREE):
        result = converse(wanting(mark), prompt="Hi", tool_choice=choice)
        assert (result.text, result.constraint, result.tool_diagnostics) == (mark, None, None)
        result = converse(wanting("ok"), prompt="Hi", tool_choice=choice, constraint=OutputConstraint.regex("ok"))
        assert (result.text, result.finish_reason) == ("ok", FinishReason.STOP_TOKEN)
    with pytest.raises(InvalidToolConstraint, match="no tool may be called"):
        converse(wanting("ok"), prompt="Hi", tool_choice=ToolChoice(ToolMode.REQUIRED))
    with pytest.raises(InvalidToolConstraint, match="not declared"):
        converse(wanting("ok"), prompt="Hi", tool_choice=ToolChoice.named("f"))


def test_what_is_no_tool_is_refused() -> None:
    for tools, message in [
        (({"name": "f"},), "expected a ToolDefinition, got dict at /0"),
        ("f", "not str"),
        (None, "not NoneType"),
    ]:
        with pytest.raises(InvalidToolConstraint, match=message):
            converse(wanting("ok"), prompt=ChatPrompt(USER, tools))  # type: ignore[arg-type]
    assert converse(wanting("ok"), prompt=ChatPrompt(USER, [TOOL], False)).text == "ok"  # type: ignore[arg-type]


# Penalties

WISHES = preferring(CHAT.num_tokens, {ord("a"): 2.0, ord("b"): 1.0, EOS: -5.0})
PENALTIES = {"presence_penalty": 1.5}
AB = OutputConstraint.regex("[ab]{2}")


@pytest.mark.parametrize(
    ("request_of", "registered", "asked", "text"),
    [
        ({}, {}, {}, "aa"),
        ({}, PENALTIES, {}, "ab"),
        ({}, PENALTIES, {"presence_penalty": 0.0}, "aa"),
        ({"tools": (TOOL,)}, PENALTIES, {}, "ab"),
        ({"constraint": AB}, PENALTIES, {}, "aa"),
        ({"constraint": AB}, {"frequency_penalty": 1.5}, {}, "aa"),
        ({"constraint": AB}, PENALTIES, PENALTIES, "ab"),
        ({"constraint": AB}, {}, {"frequency_penalty": 1.5}, "ab"),
        ({"constraint": AB, "tools": (TOOL,), "tool_choice": ToolChoice(ToolMode.NONE)}, PENALTIES, {}, "aa"),
    ],
)
def test_a_content_constraint_drops_the_models_own_penalties_only(
    request_of: dict[str, Any], registered: dict[str, float], asked: dict[str, float], text: str
) -> None:
    defaults = SamplingParameters(temperature=0.0, **registered)
    result = converse(
        lambda _: lambda so_far: WISHES,
        engine=chat_engine(lambda _: [], sampling_defaults=defaults),
        thinking=False,
        sampling=SamplingOptions(**asked),
        max_new_tokens=2,
        **request_of,
    )
    assert result.text == text


def test_reasoning_and_forced_tokens_count_for_penalties() -> None:
    """They are generated tokens like all others: the prompt is not counted, they are."""
    forced = converse(
        lambda _: lambda so_far: preferring(CHAT.num_tokens, {ord("E"): 2.0, ord("X"): 1.0}),
        sampling=SamplingOptions(temperature=0.0, presence_penalty=1.5),
        thinking_budget=0,
        constraint=OutputConstraint.regex("[EX]"),
    )
    assert forced.text == "X"  # the forced end spells an E
