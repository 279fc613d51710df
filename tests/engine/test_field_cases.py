"""Cases from the field about thinking, ends and sampling, each with a model that wants what went wrong elsewhere."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema
import numpy as np
import pytest

from infernix.errors import NonFiniteLogits
from infernix.frontend.framing import Framing
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, OutputBranch
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import USER, call_text, chat_engine, converse, strict_tool, wanting
from support.chat_output import (
    CHAT,
    EOS,
    JSON,
    SECOND_EOS,
    THINK_CLOSE,
    TOOL_OPEN,
    XML,
    answer_tokens,
    text_tokens,
)
from support.scripted_model import preferring

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
OK_SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
REQUIRED = ToolChoice(ToolMode.REQUIRED)


SUB = strict_tool("sub", ("a", "b"), a={"type": "integer"}, b={"type": "integer"})


# Thinking and phases


@pytest.mark.parametrize("prompt", ["Give me a person as JSON:", "</think>\n\n", [ord("a"), THINK_CLOSE], [TOOL_OPEN]])
def test_a_raw_text_is_constrained_from_its_first_token(prompt: Any) -> None:
    """vllm#57726: a raw text waited for a thinking that never came, and was not constrained."""
    wants = wanting("Sure! Here is one: ")
    result = converse(wants, prompt=prompt, constraint=OutputConstraint.json_schema(PERSON), max_new_tokens=40)
    assert result.text.startswith("{")
    assert (result.reasoning, result.thinking) == ("", None)


def test_three_states_of_a_prompt() -> None:
    """The same wish after a prompt inside thinking, past it, and without any."""
    wants = wanting([THINK_CLOSE, *text_tokens(b'\n\n{"ok": true}')])
    constraint = OutputConstraint.json_schema(OK_SCHEMA)
    inside = converse(wants, thinking=True, constraint=constraint)
    assert (inside.token_ids[0], inside.text, inside.reasoning) == (THINK_CLOSE, '{"ok": true}', "")
    for request in ({"thinking": False}, {"prompt": "x"}):
        past = converse(wants, constraint=constraint, max_new_tokens=60, **request)
        assert THINK_CLOSE not in past.token_ids
        assert past.text.startswith("{")


@pytest.mark.parametrize("has_format", [True, False])
@pytest.mark.parametrize("thinking", [True, False])
def test_thinking_and_format_are_independent(thinking: bool, has_format: bool) -> None:
    """ollama#14645: with thinking off, the format was ignored."""
    answer = "no JSON"
    begin = [ord("h"), THINK_CLOSE, *text_tokens(b"\n\n")] if thinking else []
    result = converse(
        wanting([*begin, *text_tokens(answer.encode())]),
        thinking=thinking,
        constraint=OutputConstraint.json_schema(OK_SCHEMA) if has_format else None,
        max_new_tokens=60,
    )
    assert result.reasoning == ("h" if thinking else "")
    assert (result.text == answer) == (not has_format)
    assert result.text.startswith("{") == has_format


@pytest.mark.parametrize("request_of", [{"constraint": OutputConstraint.json_object()}, {"tool_choice": REQUIRED}])
def test_a_lone_close_is_legal_where_the_prompt_opened_the_thinking(request_of: dict[str, Any]) -> None:
    """MTPLX#186: the grammar wanted the opening too, and the model repeated itself to the limit."""
    call = call_text(XML, "sub", a=1, b=2)
    answer = "{}" if "constraint" in request_of else call
    tools = (SUB,) if "tool_choice" in request_of else ()
    wants = wanting([*text_tokens(b"hm\n"), THINK_CLOSE, *text_tokens(b"\n\n"), *answer_tokens(answer)])
    result = converse(wants, tools=tools, **request_of)
    assert (result.reasoning, result.finish_reason) == ("hm", FinishReason.STOP_TOKEN)
    assert len(result.tool_calls) == len(tools)


def test_grammar_and_reader_agree_about_the_phase() -> None:
    """vllm#50948: JSON was constrained and published as reasoning."""
    text = '{"ok": true}'
    constraint = OutputConstraint.json_schema(OK_SCHEMA)
    assert converse(wanting(text), thinking=False, constraint=constraint).text == text
    # Inside the thinking the same text is reasoning, and the answer is still to come.
    result = converse(wanting(text), constraint=constraint, max_new_tokens=len(answer_tokens(text)))
    assert (result.text, result.reasoning) == ("", text)
    assert result.constraint is not None
    assert (result.constraint.complete, result.constraint.branch) == (False, OutputBranch.UNDECIDED)


# White space, ends and sampling


@pytest.mark.parametrize("tools", [(), (ToolDefinition("any"),), (SUB,)], ids=["none", "loose", "strict"])
@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
def test_white_space_does_not_run_away(framing: Framing, tools: tuple[ToolDefinition, ...]) -> None:
    """omlx#2990: white space stayed legal for ever."""
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]} | {
        "additionalProperties": False
    }
    likes = preferring(CHAT.num_tokens, {ord(" "): 9.0, ord("\n"): 8.0, ord("t"): 1.0, EOS: 0.5, ord("}"): 0.4})
    result = converse(
        lambda _: lambda so_far: likes,
        framing,
        thinking=False,
        tools=tools,
        constraint=OutputConstraint.json_schema(schema),
        max_new_tokens=400,
    )
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert "a" in json.loads(result.text)
    assert " " * 32 in result.text
    assert " " * 33 not in result.text


def test_a_complete_answer_may_only_end() -> None:
    """vllm#53665: nothing could be sampled, and token 0 was; vllm#29632: everything was legal."""
    shouting = preferring(CHAT.num_tokens, {0: 90.0, ord("!"): 80.0, EOS: -90.0, SECOND_EOS: -95.0})
    for request in (
        {"constraint": OutputConstraint.json_schema({"type": "boolean"})},
        {"tools": (strict_tool("now"),), "tool_choice": ToolChoice.named("now")},
    ):
        result = converse(lambda _: lambda so_far: shouting, thinking=False, **request)
        assert (result.finish_reason, result.token_ids[-1]) == (FinishReason.STOP_TOKEN, EOS)
        assert result.text in ("true", "false", "")
        assert 0 not in result.token_ids


@pytest.mark.parametrize("eos", [EOS, SECOND_EOS])
def test_no_end_token_escapes(eos: int) -> None:
    """vllm#42403: an end token that the tokenizer did not know ended the JSON in its middle."""
    spaces = dict.fromkeys(b" \t\r\n", -40.0)
    likes = preferring(CHAT.num_tokens, {**spaces, eos: 90.0, THINK_CLOSE: 10.0, ord('"'): 5.0, ord("1"): 4.0})
    requests: list[dict[str, Any]] = [
        {"constraint": OutputConstraint.json_schema(PERSON)},
        {"tools": (SUB,), "tool_choice": REQUIRED},
        {"tools": (SUB,), "tool_choice": REQUIRED, "thinking": False},
    ]
    for request in requests:
        result = converse(lambda _: lambda so_far: likes, **request, max_new_tokens=200)
        assert result.finish_reason is FinishReason.STOP_TOKEN
        assert result.token_ids[-1] == eos
        assert not {EOS, SECOND_EOS} & set(result.token_ids[:-1])
        if "constraint" in request:
            jsonschema.validate(json.loads(result.text), PERSON)
        else:
            assert result.tool_calls


def test_the_mask_comes_before_the_best_twenty() -> None:
    """llama.cpp#12643: legal tokens beyond top-k were never seen."""
    letters = "ABCD"
    logits = np.linspace(9.0, 0.0, CHAT.num_tokens)
    ranked = [ord(letter) for letter in letters]
    engine = chat_engine(lambda _: logits)
    draws = Counter(
        engine.generate(
            ChatPrompt(USER, thinking=False),
            RequestOptions(
                1, OutputConstraint.choice([*letters]), SamplingOptions(temperature=1.0, top_k=20, seed=seed)
            ),
        ).text
        for seed in range(1500)
    )
    weights = np.exp(logits[ranked])
    assert set(draws) == set(letters)
    for letter, probability in zip(letters, weights / weights.sum(), strict=True):
        assert draws[letter] / 1500 == pytest.approx(probability, abs=0.05)


def test_broken_numbers_are_no_free_text() -> None:
    """MiniOneRec#50: where nothing could be sampled, free text followed."""
    broken = np.full(CHAT.num_tokens, np.nan)
    for request in ({"constraint": OutputConstraint.json_object()}, {"tools": (SUB,), "tool_choice": REQUIRED}):
        engine = chat_engine(
            lambda so_far: broken if so_far[-1] == ord("a") else preferring(CHAT.num_tokens, {97: 1.0})
        )
        options = RequestOptions(20, **{key: value for key, value in request.items() if key != "tools"})
        stream = engine.stream(ChatPrompt(USER, request.get("tools", ())), options)  # type: ignore[arg-type]
        with pytest.raises(NonFiniteLogits, match="after 1 new tokens"):
            list(stream.deltas())
