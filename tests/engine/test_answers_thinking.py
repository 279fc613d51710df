"""Thinking in whole requests: its budget, its forced end, and its border to the content."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.errors import InvalidOptions, InvalidPrompt, ThinkingBudgetCapacity
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, OutputBranch, ThinkingStatistics
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import FORCED_TEXT, USER, chat_engine, converse, wanting
from support.chat_output import CHAT, EOS, FORCED_END, JSON_AS_TEXT, THINK_CLOSE, TOOL_OPEN, text_tokens
from support.scripted_model import preferring

A = ord("a")
OK = text_tokens(b"ok")
OK_ONLY = OutputConstraint.choice(["ok"])
TOOL = ToolDefinition("f")
# What can follow the reasoning, by request.
REQUESTS: dict[str, dict[str, Any]] = {
    "free": {},
    "choice": {"constraint": OK_ONLY},
    "tools": {"tools": (TOOL,)},
    "no call": {"tools": (TOOL,), "tool_choice": ToolChoice(ToolMode.NONE)},
}
EVERY_REQUEST = pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)


# The budget


@EVERY_REQUEST
@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_used_up_budget_ends_the_reasoning(budget: int, request_of: dict[str, Any]) -> None:
    result = converse(wanting([A] * budget + [*FORCED_END, *OK]), thinking_budget=budget, **request_of)
    assert result.token_ids == (*[A] * budget, *FORCED_END, *OK, EOS)
    assert (result.reasoning, result.text) == ("a" * budget + FORCED_TEXT, "ok")
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.thinking == ThinkingStatistics(budget, budget, len(FORCED_END))
    assert result.constraint is None or (result.constraint.complete, result.constraint.terminated) == (True, True)


@EVERY_REQUEST
def test_a_close_in_time_is_the_models_own(request_of: dict[str, Any]) -> None:
    answer = [A, A, THINK_CLOSE, *text_tokens(b"\n\nok")]
    for budget in (None, 3, 100):
        result = converse(wanting(answer), thinking_budget=budget, **request_of)
        assert (result.token_ids, result.reasoning, result.text) == ((*answer, EOS), "aa", "ok")
        assert result.thinking == ThinkingStatistics(budget, 2, 0)
    # With the second token the budget is used up, and the model is not asked for a third.
    assert converse(wanting(answer), thinking_budget=2, **request_of).thinking == ThinkingStatistics(
        2, 2, len(FORCED_END)
    )


@EVERY_REQUEST
def test_the_outputs_limit_and_the_budget(request_of: dict[str, Any]) -> None:
    needed = 3 + len(FORCED_END) + 1
    wants = wanting([A] * 3 + [*FORCED_END, *OK])
    for limit in (1, 2, 3):
        result = converse(wants, thinking_budget=3, max_new_tokens=limit, **request_of)
        assert (result.reasoning, result.text, result.finish_reason) == ("a" * limit, "", FinishReason.OUTPUT_LIMIT)
        assert result.thinking == ThinkingStatistics(3, limit, 0)
        assert result.constraint is None or not result.constraint.complete
    result = converse(wants, thinking_budget=3, max_new_tokens=needed, **request_of)
    assert (result.num_generated_tokens, result.finish_reason) == (needed, FinishReason.OUTPUT_LIMIT)
    assert result.text == "ok"[: len(CHAT.token_bytes[OK[0]])]
    for limit in (4, needed - 1):
        with pytest.raises(ThinkingBudgetCapacity, match=f"at least {needed} are needed"):
            converse(wants, thinking_budget=3, max_new_tokens=limit, **request_of)


def test_the_context_is_a_limit_too() -> None:
    engine = chat_engine(lambda _: preferring(CHAT.num_tokens, {A: 1.0}), max_context=60)
    num_prompt = engine.generate(ChatPrompt(USER), RequestOptions(1)).num_prompt_tokens
    room = 60 - num_prompt + 1
    result = engine.generate(ChatPrompt(USER), RequestOptions(1000, thinking_budget=room))
    assert (result.reasoning, result.finish_reason) == ("a" * room, FinishReason.CONTEXT_CAPACITY)
    with pytest.raises(ThinkingBudgetCapacity):
        engine.generate(ChatPrompt(USER), RequestOptions(1000, thinking_budget=room - 1))


def test_the_forced_end_asks_neither_model_nor_chance() -> None:
    """What follows is what would follow if the model had written the same text itself, penalties included."""
    table = np.random.default_rng(4).standard_normal((200, CHAT.num_tokens)) * 2
    sampling = SamplingOptions(temperature=1.0, seed=9, presence_penalty=1.5, frequency_penalty=0.5)
    asked: list[int] = []

    def run(budget: int | None, written: Sequence[int]) -> tuple[int, ...]:
        asked.clear()
        prompt = ChatPrompt(USER)

        def script(so_far: tuple[int, ...]) -> ArrayLike:
            place = len(so_far) - num_prompt
            asked.append(place)
            return preferring(CHAT.num_tokens, {written[place]: 60.0}) if place < len(written) else table[place]

        engine = chat_engine(script)
        num_prompt = len(engine._loaded.template.render(_conversation()))
        options = RequestOptions(60, sampling=sampling, thinking_budget=budget, ignore_eos=True)
        return engine.generate(prompt, options).token_ids

    forced = run(4, [A] * 4)
    assert asked == [*range(4), *range(4 + len(FORCED_END), 60)]
    assert forced[: 4 + len(FORCED_END)] == (*[A] * 4, *FORCED_END)
    assert run(None, [*[A] * 4, *FORCED_END]) == forced
    assert asked == list(range(60))


def _conversation() -> Any:
    from infernix.frontend.messages import checked_messages
    from infernix.frontend.template_values import Conversation

    return Conversation(tuple(checked_messages(USER)))


def test_a_budget_of_nothing_costs_one_forward_pass_for_prompt_and_end_each() -> None:
    engine = chat_engine(lambda _: preferring(CHAT.num_tokens, {EOS: 1.0}))
    model: Any = engine._loaded.model
    result = engine.generate(ChatPrompt(USER), RequestOptions(thinking_budget=0))
    assert model.units == [result.num_prompt_tokens, len(FORCED_END)]
    assert result.token_ids == (*FORCED_END, EOS)


def test_stop_strings_are_looked_for_in_what_the_model_says_only() -> None:
    wants = wanting([A] * 2 + [*FORCED_END, *text_tokens(b"no Enough.")])
    result = converse(wants, thinking_budget=2, stop=("Enough",))
    assert (result.reasoning, result.text, result.finish_reason) == (
        f"aa{FORCED_TEXT}",
        "no ",
        FinishReason.STOP_STRING,
    )
    assert result.matched_stop_string == "Enough"


def test_cancelling_inside_the_reasoning() -> None:
    engine = chat_engine(lambda _: preferring(CHAT.num_tokens, {A: 1.0}))
    prompt = engine.prepare(ChatPrompt(USER))
    is_running, go_on = threading.Event(), threading.Event()

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        if len(so_far) == len(prompt.tokens) + 3:
            is_running.set()
            assert go_on.wait(60)
        return preferring(CHAT.num_tokens, {A: 1.0})

    model: Any = engine._loaded.model
    model.script = script
    with engine.submit(prompt, RequestOptions(constraint=OK_ONLY, thinking_budget=50)) as handle:
        assert is_running.wait(60)
        handle.cancel()
        go_on.set()
        result = handle.wait()
    assert (result.reasoning, result.text, result.finish_reason) == ("aaaa", "", FinishReason.CANCELLED)
    assert result.thinking == ThinkingStatistics(50, 4, 0)
    assert result.constraint is not None
    assert (result.constraint.complete, result.constraint.branch) == (False, OutputBranch.UNDECIDED)


def test_what_does_not_think_needs_no_budget() -> None:
    for framing, thinking in ((JSON_AS_TEXT, None), (None, False)):
        options = {"max_new_tokens": 50} if framing is None else {"framing": framing, "max_new_tokens": 5}
        result = converse(wanting(OK), thinking=thinking, thinking_budget=0, **options)
        assert (result.text, result.reasoning, result.thinking) == ("ok", "", None)
    # Even behind a closed reasoning a free model may open another, and its budget needs room.
    with pytest.raises(ThinkingBudgetCapacity):
        converse(wanting(OK), thinking=False, thinking_budget=0, max_new_tokens=5)


# Where there is nothing to switch or to bound


def test_a_wish_that_the_template_cannot_fulfil_is_refused() -> None:
    with pytest.raises(InvalidPrompt, match="does not begin an answer with thinking"):
        converse(wanting(OK), JSON_AS_TEXT, thinking=True)
    with pytest.raises(InvalidPrompt, match="thinking: expected true, false or nothing"):
        converse(wanting(OK), prompt=ChatPrompt(USER, thinking="off"))  # type: ignore[arg-type]
    with pytest.raises(InvalidPrompt, match="continue_final: expected true or false"):
        converse(wanting(OK), prompt=ChatPrompt(USER, continue_final=1))  # type: ignore[arg-type]


def test_a_text_to_continue_has_no_thinking_to_bound() -> None:
    for prompt in ("Hi", [A]):
        with pytest.raises(InvalidOptions, match="no thinking apart from the rest") as caught:
            converse(wanting(OK), prompt=prompt, thinking_budget=5)
        assert caught.value.field == "thinking_budget"


# The border


@pytest.mark.parametrize(
    ("written", "content"),
    [
        ([*text_tokens(b"\n\n"), *text_tokens(b" x")], " x"),
        ([ord("\n"), ord("\n"), ord("\n"), *text_tokens(b" x")], "\n x"),
        (text_tokens(b'\n\n{"a'), '{"a'),
        ([ord("\n"), ord("\n"), *text_tokens(b"\n\n")], "\n\n"),
    ],
)
def test_every_byte_behind_the_separator_is_content(written: list[int], content: str) -> None:
    constraint = OutputConstraint.choice([content])
    result = converse(wanting([A, ord("\n"), THINK_CLOSE, *written]), constraint=constraint)
    assert (result.reasoning, result.text) == ("a", content)
    assert result.token_ids == (A, ord("\n"), THINK_CLOSE, *written, EOS)


def test_the_separator_comes_where_the_model_wants_something_else() -> None:
    result = converse(wanting([A, THINK_CLOSE, ord("x")]), constraint=OutputConstraint.regex("x+"))
    assert (result.reasoning, result.text) == ("a", "x")
    assert b"".join(CHAT.token_bytes[token] for token in result.token_ids) == b"a</think>\n\nx<|im_end|>"


def test_a_free_answer_may_leave_the_separator_out_and_loses_its_white_space() -> None:
    result = converse(wanting([A, THINK_CLOSE, *text_tokens(b" \n\n ok \n")]))
    assert (result.reasoning, result.text) == ("a", "ok \n")


def test_marks_inside_the_reasoning_are_reasoning() -> None:
    """Their spelling by letters, and the tokens of calls."""
    written = [*text_tokens(b"</think>\n\n<tool_call>"), TOOL_OPEN, *text_tokens(b"\n\n")]
    answer = [*written, THINK_CLOSE, *text_tokens(b'\n\n{"a": 1}')]
    result = converse(wanting(answer), tools=(TOOL,), constraint=OutputConstraint.json_object())
    assert result.reasoning == "</think>\n\n<tool_call><tool_call>\n"
    assert (json.loads(result.text), result.tool_calls) == ({"a": 1}, ())


def test_a_model_without_marks_does_not_think() -> None:
    result = converse(wanting("<think>\nhm\n</think>\n\nok", JSON_AS_TEXT), JSON_AS_TEXT)
    assert (result.text, result.reasoning, result.thinking) == ("<think>\nhm\n</think>\n\nok", "", None)
