"""Cases from the field about tools, each with a model that wants what went wrong elsewhere."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from infernix.errors import InvalidToolConstraint, UnsupportedJsonSchema
from infernix.frontend.framing import Framing
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason
from infernix.tools import ToolCall, ToolCallDelta, ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import USER, at_content, call_text, chat_engine, converse, noise, strict_tool, wanting
from support.chat_output import (
    CHAT,
    EOS,
    JSON,
    JSON_AS_TEXT,
    TOOL_CLOSE,
    TOOL_OPEN,
    XML,
    answer_tokens,
)

STYLES = pytest.mark.parametrize("framing", [XML, JSON, JSON_AS_TEXT], ids=["xml", "json", "json as text"])
REQUIRED = ToolChoice(ToolMode.REQUIRED)


SUB = strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"})
WEATHER = strict_tool("weather", ("city",), city={"type": "string"})


@STYLES
def test_streamed_arguments_are_the_arguments(framing: Framing) -> None:
    """vllm#24509 counted every piece twice, vllm#34887 lost the first characters with the name."""
    call = call_text(framing, "sub", a=12, b=-3)
    engine = chat_engine(lambda _: [], framing)
    request: dict[str, Any] = {"thinking": at_content(framing), "tools": (SUB,), "tool_choice": REQUIRED}
    result = converse(wanting(call, framing), framing, engine=engine, **request)
    assert result.tool_calls[0].arguments() == {"a": 12, "b": -3}
    prompt = ChatPrompt(USER, (SUB,), at_content(framing))
    options = RequestOptions(tool_choice=REQUIRED, sampling=SamplingOptions.greedy())
    pieces = [delta for delta in engine.stream(prompt, options).deltas() if isinstance(delta, ToolCallDelta)]
    assert pieces[0] == ToolCallDelta(0, "sub", "")
    assert len(pieces) > 3
    assert all(piece.index == 0 and piece.name is None for piece in pieces[1:])
    assert "".join(piece.arguments for piece in pieces) == result.tool_calls[0].arguments_json


def test_a_format_leaves_the_tools_callable() -> None:
    """vllm#39929: beside a format no tool could be called."""
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    call, content = call_text(XML, "weather", city="Paris"), '{"answer": "sunny"}'
    request: dict[str, Any] = {
        "thinking": False,
        "tools": (WEATHER,),
        "constraint": OutputConstraint.json_schema(schema),
        "max_new_tokens": 80,
    }
    wish_call, wish_content = wanting(call), wanting(content)
    assert converse(wish_call, **request).tool_calls == (ToolCall("weather", '{"city":"Paris"}'),)
    assert converse(wish_content, **request).text == content
    for choice in (REQUIRED, ToolChoice.named("weather")):
        result = converse(wish_content, tool_choice=choice, **request)
        assert (result.text, TOOL_OPEN) == ("", result.token_ids[0])
    result = converse(wish_call, tool_choice=ToolChoice(ToolMode.NONE), **request)
    assert (result.tool_calls, TOOL_OPEN in result.token_ids) == ((), False)
    # The turn after the tool's result answers in the format.
    history = [
        *USER,
        {"role": "assistant", "content": "", "tool_calls": [{"name": "weather", "arguments": {"city": "Paris"}}]},
        {"role": "tool", "content": "sunny"},
    ]
    request.pop("thinking"), request.pop("tools")
    assert converse(wish_content, prompt=ChatPrompt(history, (WEATHER,), False), **request).text == content


@STYLES
@pytest.mark.parametrize("mode", [ToolMode.AUTO, ToolMode.REQUIRED])
def test_a_second_call_that_is_not_allowed_is_not_generated(framing: Framing, mode: ToolMode) -> None:
    """vllm#50502: calls beyond the first were generated and thrown away."""
    call = call_text(framing, "sub", a=1, b=2)
    request: dict[str, Any] = {"thinking": at_content(framing), "tools": (SUB,)}
    wants = wanting(f"{call}\n{call}", framing)
    result = converse(wants, framing, tool_choice=ToolChoice(mode, parallel=False), **request)
    assert (len(result.tool_calls), result.finish_reason) == (1, FinishReason.STOP_TOKEN)
    assert result.token_ids == (*answer_tokens(call, framing), EOS)
    assert len(converse(wants, framing, tool_choice=ToolChoice(mode), **request).tool_calls) == 2


@STYLES
def test_a_call_that_the_limit_cuts_is_none(framing: Framing) -> None:
    """vllm#58228: the client was told that a cut call is complete."""
    tool = strict_tool("write_file", ("path", "content"), path={"type": "string"}, content={"type": "string"})
    call = call_text(framing, "write_file", path="a", content="lololo\nlo")
    tokens = answer_tokens(f"{call}\n{call}", framing)
    request: dict[str, Any] = {"thinking": at_content(framing), "tools": (tool,), "tool_choice": REQUIRED}
    num_call = len(answer_tokens(call, framing))
    for limit in {12, 13, num_call - 1, num_call, num_call + 1, num_call + 9, len(tokens) - 1, len(tokens)}:
        result = converse(wanting(tokens), framing, max_new_tokens=limit, **request)
        num_bytes = sum(len(CHAT.token_bytes[token]) for token in tokens[:limit])
        assert result.finish_reason is FinishReason.OUTPUT_LIMIT
        assert len(result.tool_calls) == (num_bytes >= len(call)) + (limit == len(tokens))
        assert result.constraint is not None
        is_whole = num_bytes == len(call) or limit == len(tokens)
        assert (result.constraint.complete, result.constraint.terminated) == (is_whole, False)
        for done in result.tool_calls:
            assert done.arguments() == {"path": "a", "content": "lololo\nlo"}


@STYLES
def test_names_of_any_script_are_kept_apart(framing: Framing) -> None:
    """llama.cpp#28429: two Chinese names became one."""
    tool = strict_tool("天气", ("城市", "日期"), 城市={"type": "string"}, 日期={"type": "string"})
    call = call_text(framing, "天气", 城市="在", 日期="yes")
    request: dict[str, Any] = {"thinking": at_content(framing), "tools": (tool,)}
    result = converse(wanting(call, framing), framing, tool_choice=REQUIRED, **request)
    assert result.tool_calls[0].arguments() == {"城市": "在", "日期": "yes"}
    twice = call_text(framing, "天气", 城市="在").replace("城市", "日期")
    bent = converse(wanting(twice, framing), framing, tool_choice=REQUIRED, **request, max_new_tokens=60)
    for done in bent.tool_calls:
        assert set(done.arguments()) == {"城市", "日期"}


@STYLES
def test_a_tool_without_parameters_is_called_with_an_empty_object(framing: Framing) -> None:
    """llama.cpp#25923: such a tool made the whole request fail."""
    tools = (strict_tool("now"), SUB, ToolDefinition("any"))
    request: dict[str, Any] = {"thinking": at_content(framing), "tools": tools}
    for name, arguments in [("now", {}), ("sub", {"a": 1, "b": 2}), ("any", {})]:
        result = converse(
            wanting(call_text(framing, name, **arguments), framing), framing, tool_choice=REQUIRED, **request
        )
        assert [(call.name, call.arguments()) for call in result.tool_calls] == [(name, arguments)]
    # Whatever the model wants: nothing but {} for the one, and nothing undeclared for the other.
    wants = wanting(call_text(framing, "now", a=1), framing)
    assert converse(wants, framing, tool_choice=ToolChoice.named("now"), **request).tool_calls[0].arguments() == {}


def test_a_tool_that_cannot_be_enforced_is_named() -> None:
    odd = ToolDefinition.of(
        "odd",
        {
            "type": "object",
            "properties": {"a": {"type": "array", "uniqueItems": True}},
            "required": ["a"],
            "additionalProperties": False,
        },
        strict=True,
    )
    with pytest.raises(UnsupportedJsonSchema, match="tool 'odd': ") as caught:
        converse(wanting("ok"), tools=(SUB, odd))
    assert caught.value.pointer == "/1/parameters/properties/a/uniqueItems"
    with pytest.raises(InvalidToolConstraint, match="'sub' comes twice at /0/name"):
        converse(wanting("ok"), tools=(SUB, SUB))


@STYLES
def test_required_gives_calls_in_the_models_own_form(framing: Framing) -> None:
    """vllm#39056: `required` was read as JSON only, and the model's own form gave no calls and no error."""
    for seed in range(5):
        result = converse(
            noise(seed, {TOOL_CLOSE: 4.0, EOS: 4.0, ord("1"): 3.0}),
            framing,
            thinking=at_content(framing),
            tools=(SUB,),
            tool_choice=REQUIRED,
            sampling=SamplingOptions(temperature=1.0, seed=seed),
            max_new_tokens=800,
        )
        assert result.finish_reason is FinishReason.STOP_TOKEN
        assert result.tool_calls
        assert result.text == ""
        for call in result.tool_calls:
            jsonschema.validate(call.arguments(), json.loads(SUB.parameters))


@STYLES
@pytest.mark.parametrize("wish", ["weather", "text"])
def test_a_named_tool_is_the_one_that_is_called(framing: Framing, wish: str) -> None:
    """llama-server: a named choice was accepted and treated as auto."""
    wants = wanting(call_text(framing, "weather", city="lo") if wish == "weather" else "I will not.", framing)
    result = converse(
        wants,
        framing,
        thinking=at_content(framing),
        tools=(WEATHER, strict_tool("now")),
        tool_choice=ToolChoice.named("now"),
    )
    assert (result.text, result.tool_calls) == ("", (ToolCall("now", "{}"),))
    with pytest.raises(InvalidToolConstraint, match="'later' is allowed, but not declared"):
        converse(wants, framing, tools=(WEATHER,), tool_choice=ToolChoice.named("later"))
