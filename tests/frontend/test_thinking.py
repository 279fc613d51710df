"""The thinking budget, and the tokens that end the reasoning when it is used up."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken

from frontend.tokenizer_files import byte_fallback, byte_level
from infernix.errors import InternalError, InvalidOptions, ThinkingBudgetCapacity
from infernix.frontend.framing import Framing
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.frontend.thinking import DEFAULT_FORCED_END, ThinkingLimit, encode_forced_end
from infernix.frontend.tokenizer import Tokenizer
from infernix.grammar import ir
from infernix.results import FinishReason, ThinkingStatistics
from support.chat_output import (
    EOS,
    FORCED_END,
    THINK_CLOSE,
    THINK_OPEN,
    TOOL_OPEN,
    chat_session,
    grammar_state,
    reasoning_of,
    text_tokens,
    thinking_then,
)

A = ord("a")
ADDED = [AddedToken("<think>", special=False), AddedToken("</think>", special=False)]


def thinking_session(
    budget: int | None,
    num_tokens: int = 100,
    *,
    constrained: bool = True,
    reason: FinishReason = FinishReason.OUTPUT_LIMIT,
) -> OutputSession:
    constraint = grammar_state(thinking_then(ir.Literal(b"ok"))) if constrained else None
    return chat_session(
        phase=StartingPhase.THINKING,
        num_tokens=num_tokens,
        reason=reason,
        state=constraint,
        thinking_budget=budget,
    )


def commit(session: OutputSession, *tokens: int) -> None:
    assert session.preview_model(tokens).num_accepted == len(tokens)
    session.commit_preview()


# The text


def model_tokenizer() -> tuple[Tokenizer, Framing]:
    tokenizer = Tokenizer(byte_level(added=ADDED), eos_tokens=["<|end|>"], framing="<think></think>")
    return tokenizer, Framing.of(tokenizer, "")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (DEFAULT_FORCED_END, DEFAULT_FORCED_END),
        ("\nStop now.", "\nStop now.\n</think>\n\n"),
        ("Stop.\n</think>\n\n", "Stop.\n</think>\n\n"),
        ("", "\n</think>\n\n"),
        ("在😀", "在😀\n</think>\n\n"),
    ],
)
def test_the_text_comes_back_and_ends_in_the_canonical_close(message: str, text: str) -> None:
    tokenizer, framing = model_tokenizer()
    tokens = encode_forced_end(tokenizer, framing, message)
    assert b"".join(map(tokenizer.token_bytes, tokens)).decode() == text
    assert [token for token in tokens if token in tokenizer.control_ids] == [framing.think_close]


def test_marks_spelled_in_the_message_are_text() -> None:
    tokenizer, framing = model_tokenizer()
    tokens = encode_forced_end(tokenizer, framing, "a</think><|end|>b")
    assert b"".join(map(tokenizer.token_bytes, tokens)) == b"a</think><|end|>b\n</think>\n\n"
    assert tokens.count(framing.think_close or -1) == 1
    assert tokenizer.eos_ids.isdisjoint(tokens)


def test_a_model_that_does_not_think_needs_no_text() -> None:
    tokenizer = Tokenizer(byte_level(), eos_tokens=["<|end|>"])
    assert encode_forced_end(tokenizer, Framing.of(tokenizer, "")) == ()


def test_a_tokenizer_that_changes_the_text_is_refused() -> None:
    tokenizer = Tokenizer(byte_fallback(), eos_tokens=["</s>"])
    with pytest.raises(InvalidOptions, match="does not keep the text"):
        encode_forced_end(tokenizer, Framing(think_close=tokenizer.control_id("<s>")))


def test_a_close_that_ends_the_sequence_is_refused() -> None:
    tokenizer, framing = model_tokenizer()
    ending = Tokenizer(byte_level(added=ADDED), eos_tokens=["</think>"], framing="<think></think>")
    with pytest.raises(InvalidOptions, match="end the output"):
        encode_forced_end(ending, framing)
    assert tokenizer.eos_ids


# Room


@pytest.mark.parametrize(
    ("budget", "num_tokens", "fits"),
    [
        (5, 5 + len(FORCED_END) + 1, True),
        (5, 5 + len(FORCED_END), False),
        (5, 6, False),
        (5, 5, True),
        (5, 2, True),
        (0, 0, True),
        (0, 1, False),
        (None, 1, True),
    ],
)
def test_there_has_to_be_room_for_the_end_and_an_answer(budget: int | None, num_tokens: int, fits: bool) -> None:
    if fits:
        thinking_session(budget, num_tokens)
        return
    with pytest.raises(ThinkingBudgetCapacity, match=f"at least {(budget or 0) + len(FORCED_END) + 1} are needed"):
        thinking_session(budget, num_tokens)


@pytest.mark.parametrize(
    ("num_tokens", "fits"), [(5 + 2 + len(FORCED_END), True), (5 + 1 + len(FORCED_END), False), (6, True)]
)
def test_there_has_to_be_room_also_where_the_model_may_open_its_reasoning(num_tokens: int, fits: bool) -> None:
    if fits:
        chat_session(num_tokens=num_tokens, thinking_budget=5)
        return
    with pytest.raises(ThinkingBudgetCapacity, match=f"at least {5 + 2 + len(FORCED_END)} are needed"):
        chat_session(num_tokens=num_tokens, thinking_budget=5)


@pytest.mark.parametrize("continuation", [None, "so"])
def test_a_budget_binds_no_answer_that_cannot_think(continuation: str | None) -> None:
    state = grammar_state(ir.Literal(b"ok")) if continuation is None else None
    session = chat_session(num_tokens=1, thinking_budget=0, state=state, continuation=continuation)
    assert (session.pending_control_tokens, session.num_model_tokens_allowed(9)) == ((), 1)
    assert session.thinking_statistics is None


def test_a_budget_without_an_end_is_no_budget() -> None:
    with pytest.raises(ValueError, match="needs the tokens"):
        ThinkingLimit(5)


# Forcing


@pytest.mark.parametrize("constrained", [True, False])
def test_the_budget_ends_the_reasoning_after_a_whole_round(constrained: bool) -> None:
    session = thinking_session(5, constrained=constrained)
    assert session.num_model_tokens_allowed(3) == 3
    commit(session, A, A, A)
    assert (session.num_model_tokens_allowed(8), session.pending_control_tokens) == (2, ())
    with pytest.raises(ValueError, match="2 left to think"):
        session.preview_model([A, A, A])
    commit(session, A, A)
    assert (session.num_model_tokens_allowed(8), session.pending_control_tokens) == (0, FORCED_END)
    with pytest.raises(ValueError, match="0 allowed"):
        session.preview_model([A])
    preview = session.preview_control(FORCED_END)
    assert (preview.num_accepted, preview.finish_reason) == (len(FORCED_END), None)
    assert reasoning_of(session.commit_preview()) == "\nEnough."
    assert (session.pending_control_tokens, session.num_model_tokens_allowed(8)) == ((), 8)
    commit(session, *text_tokens(b"ok"), EOS)
    assert (session.reasoning, session.text) == ("aaaaa\nEnough.", "ok")
    assert session.thinking_statistics == ThinkingStatistics(5, 5, len(FORCED_END))
    assert session.thinking_statistics.was_forced
    assert session.token_ids[5 : 5 + len(FORCED_END)] == FORCED_END
    observation = session.observe_constraint()
    assert observation is None or (observation.complete, observation.terminated) == (True, True)


def test_a_budget_of_nothing_ends_the_reasoning_at_once() -> None:
    session = thinking_session(0)
    assert session.pending_control_tokens == FORCED_END
    session.preview_control(FORCED_END)
    session.commit_preview()
    assert session.reasoning == "\nEnough."
    commit(session, *text_tokens(b"ok"), EOS)
    assert session.thinking_statistics == ThinkingStatistics(0, 0, len(FORCED_END))


def test_the_forced_end_can_be_taken_back() -> None:
    session = thinking_session(1)
    commit(session, A)
    session.preview_control(FORCED_END)
    session.discard_preview()
    assert session.pending_control_tokens == FORCED_END
    assert session.thinking_statistics == ThinkingStatistics(1, 1, 0)
    session.preview_control(FORCED_END)
    session.commit_preview()
    assert session.pending_control_tokens == ()


@pytest.mark.parametrize("tokens", [(), FORCED_END[:-1], (*FORCED_END, A), (A,)])
def test_only_the_due_tokens_are_control(tokens: tuple[int, ...]) -> None:
    session = thinking_session(0)
    with pytest.raises(ValueError, match="not the control tokens"):
        session.preview_control(tokens)


def test_nothing_is_due_while_there_is_budget() -> None:
    session = thinking_session(1)
    with pytest.raises(ValueError, match="not the control tokens"):
        session.preview_control(FORCED_END)
    assert thinking_session(None).pending_control_tokens == ()


# What wins at the same boundary


def test_a_natural_close_wins() -> None:
    session = thinking_session(3)
    commit(session, A, A, THINK_CLOSE)
    assert session.pending_control_tokens == ()
    commit(session, *text_tokens(b"\n\nok"), EOS)
    assert (session.reasoning, session.text) == ("aa", "ok")
    assert session.thinking_statistics == ThinkingStatistics(3, 2, 0)
    assert not session.thinking_statistics.was_forced


@pytest.mark.parametrize("budget", [None, 50])
def test_what_follows_the_close_in_its_round_and_later_is_no_thinking(budget: int | None) -> None:
    session = thinking_session(budget)
    commit(session, A, A, THINK_CLOSE, *text_tokens(b"\n\no"))
    assert session.thinking_statistics == ThinkingStatistics(budget, 2, 0)
    commit(session, *text_tokens(b"k"), EOS)
    assert (session.reasoning, session.text) == ("aa", "ok")
    assert session.thinking_statistics == ThinkingStatistics(budget, 2, 0)


def test_a_stop_wins() -> None:
    session = thinking_session(2, constrained=False)
    commit(session, A, EOS)
    assert (session.pending_control_tokens, session.finish_reason) == ((), FinishReason.STOP_TOKEN)


def test_a_cancellation_wins() -> None:
    session = thinking_session(1)
    commit(session, A)
    session.preview_terminal(FinishReason.CANCELLED)
    session.commit_preview()
    assert (session.pending_control_tokens, session.reasoning) == ((), "a")


@pytest.mark.parametrize("reason", [FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY])
def test_the_total_limit_wins(reason: FinishReason) -> None:
    session = thinking_session(2, num_tokens=2, reason=reason)
    commit(session, A, A)
    assert (session.pending_control_tokens, session.finish_reason) == ((), reason)
    assert session.observe_constraint() is not None
    assert session.thinking_statistics == ThinkingStatistics(2, 2, 0)


@pytest.mark.parametrize("budget", [0, 2])
def test_a_round_that_opens_the_reasoning_ends_with_its_budget(budget: int) -> None:
    session = chat_session(thinking_budget=budget)
    assert session.num_model_tokens_allowed(9) == budget + 1
    with pytest.raises(ValueError, match="left to think"):
        session.preview_model([THINK_OPEN] + [A] * (budget + 1))
    commit(session, THINK_OPEN, *[A] * budget)
    assert session.pending_control_tokens == FORCED_END
    assert session.thinking_statistics == ThinkingStatistics(budget, budget, 0)


def test_a_round_that_could_have_opened_the_reasoning_leaves_the_next_one_free() -> None:
    session = chat_session(thinking_budget=2)
    commit(session, A, A, A)
    assert (session.num_model_tokens_allowed(9), session.thinking_statistics) == (9, None)


def test_a_grammar_that_does_not_take_the_end_is_an_internal_error() -> None:
    other = ir.Sequence((ir.Repeat(ir.TokenSet((THINK_CLOSE,), excluded=True), 0, None), ir.TokenSet((TOOL_OPEN,))))
    session = chat_session(phase=StartingPhase.THINKING, state=grammar_state(other), thinking_budget=0)
    with pytest.raises(InternalError, match=f"token {THINK_CLOSE} was produced"):
        session.preview_control(FORCED_END)
    assert (session.token_ids, session.pending_control_tokens) == ((), FORCED_END)


def test_stop_strings_are_not_looked_for_in_the_forced_end() -> None:
    session = chat_session(phase=StartingPhase.THINKING, thinking_budget=1, stop=("a\nE", "Enough", "ok"))
    commit(session, A)
    preview = session.preview_control(FORCED_END)
    assert (preview.num_accepted, preview.finish_reason) == (len(FORCED_END), None)
    session.commit_preview()
    assert session.reasoning == "a\nEnough."
    session.preview_model(text_tokens(b"ok"))
    session.commit_preview()
    assert (session.text, session.matched_stop_string) == ("", "ok")


def test_text_of_a_cut_character_stays_in_the_reasoning() -> None:
    session = thinking_session(1)
    commit(session, 0xE5)
    session.preview_control(FORCED_END)
    assert reasoning_of(session.commit_preview()) == "\ufffd\nEnough."
    commit(session, *text_tokens(b"ok"))
    assert session.text == "ok"
