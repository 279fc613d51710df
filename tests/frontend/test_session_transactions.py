"""Previews in any order: what is discarded was never there, and what is committed does not depend on the rounds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from infernix.errors import InternalError
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.grammar import ir
from infernix.ops import masks
from infernix.options import OutputConstraint
from infernix.results import FinishReason, OutputBranch, PublishedDelta
from infernix.tools import ToolCall
from support.chat_output import (
    CHAT,
    EOS,
    FORCED_END,
    JSON,
    JSON_AS_TEXT,
    THINK_CLOSE,
    TOOL_CLOSE,
    TOOL_OPEN,
    XML,
    answer_tokens,
    chat_session,
    grammar_state,
    joined_calls,
    policy,
    published,
    reasoning_of,
    run_tokens,
    text_tokens,
    thinking_then,
    tool,
    xml_call,
)
from support.output_grammars import JSON_CONTENT, json_or_calls, text_then_calls, tool_calls

F = policy(tool("f", a="text"))
NEEDED = policy(tool("f", a="text"), required=True)
HINTED = policy(tool("f", a={"integer"}))
FREE = policy(tool("f", a={"integer"}), constrained=False)
OBJECT = OutputConstraint.json_object()
THINKING = StartingPhase.THINKING
MAKERS: dict[str, Callable[[], OutputSession]] = {
    "json": lambda: chat_session(state=grammar_state(JSON_CONTENT), content=OBJECT),
    "thinking-json": lambda: chat_session(
        phase=THINKING, state=grammar_state(thinking_then(JSON_CONTENT)), content=OBJECT, thinking_budget=7
    ),
    "thinking-xml": lambda: chat_session(
        phase=THINKING, state=grammar_state(thinking_then(tool_calls(XML))), tools=NEEDED, thinking_budget=5
    ),
    "auto-xml": lambda: chat_session(state=grammar_state(text_then_calls(XML)), tools=HINTED),
    "json-or-json-calls": lambda: chat_session(JSON, state=grammar_state(json_or_calls(JSON)), content=OBJECT, tools=F),
    "json-calls-as-text": lambda: chat_session(
        JSON_AS_TEXT, state=grammar_state(json_or_calls(JSON_AS_TEXT)), content=OBJECT, tools=F
    ),
    "continued": lambda: chat_session(
        state=grammar_state(text_then_calls(XML)), tools=F, continuation="a<tool_call>\n<function=f>\n<par"
    ),
    "free": lambda: chat_session(phase=THINKING, tools=FREE, thinking_budget=6, stop=("xx", "yes")),
    "free-stops": lambda: chat_session(stop=("ab\n", "ba", "\xe5"), stop_token_ids=(TOOL_CLOSE,)),
}


def legal_tokens(session: OutputSession) -> list[int]:
    words = np.zeros(CHAT.num_mask_words, dtype=np.int32)
    assert session.fill_mask(words)
    return [int(token) for token in masks.legal_ids(words, CHAT.num_tokens)]


def draw(session: OutputSession, rng: Random) -> int:
    """A legal token; those that lead on are likelier, or random answers would be all text."""
    if session.is_constrained:
        legal = legal_tokens(session)
    else:
        legal = [*b"ab\nx", *answer_tokens(xml_call("f", {"a": "1"})), THINK_CLOSE, EOS, CHAT.token_bytes.index(b"yes")]
    special = [token for token in legal if token >= CHAT.num_tokens - 7]
    return rng.choice(special if special and rng.random() < 0.3 else legal)


def walk(make: Callable[[], OutputSession], rng: Random) -> tuple[list[tuple[bool, int]], FinishReason | None]:
    """An answer of one token after the other, each with whether it is a control token that was due."""
    session = make()
    steps: list[tuple[bool, int]] = []
    while session.finish_reason is None and len(steps) < 60:
        control = session.pending_control_tokens
        if control:
            session.preview_control(control)
            steps += [(True, token) for token in control]
        else:
            token = draw(session, rng)
            session.preview_model([token])
            steps.append((False, token))
        session.commit_preview()
    return steps, session.finish_reason


def state_of(session: OutputSession) -> tuple[Any, ...]:
    """Everything that can be seen of the committed output."""
    observation = session.observe_constraint()
    seen = None if observation is None else (observation.branch, observation.complete, observation.terminated)
    may_follow = None
    if session.is_constrained and session.finish_reason is None:
        may_follow = legal_tokens(session)
    return (
        session.token_ids,
        session.text,
        session.reasoning,
        session.tool_calls,
        session.tool_diagnostics,
        session.thinking_statistics,
        session.pending_control_tokens,
        session.num_model_tokens_allowed(100),
        session.finish_reason,
        session.matched_stop_string,
        seen,
        may_follow,
    )


def disturb(session: OutputSession, rng: Random) -> None:
    """Previews that are taken back, one of them perhaps illegal."""
    before = state_of(session)
    for _ in range(rng.randint(0, 2)):
        kind = rng.randrange(3)
        if kind == 0:
            session.preview_terminal(FinishReason.CANCELLED)
        elif session.pending_control_tokens:
            session.preview_control(session.pending_control_tokens)
        elif kind == 1:
            session.preview_model([draw(session, rng)])
        else:
            try:
                session.preview_model([rng.randrange(CHAT.num_tokens)])
            except InternalError:
                assert session.is_constrained
        session.discard_preview()
        assert state_of(session) == before


@pytest.mark.parametrize("name", MAKERS)
def test_rounds_and_discards_change_nothing(name: str) -> None:
    make = MAKERS[name]
    rng = Random(name)
    reasons = set()
    for _ in range(12):
        steps, reason = walk(make, rng)
        reasons.add(reason)
        session, plain = make(), make()
        deltas: list[PublishedDelta] = []
        plain_deltas: list[PublishedDelta] = []
        at = 0
        while at < len(steps):
            disturb(session, rng)
            if steps[at][0]:
                end = at + len(FORCED_END)
                session.preview_control([token for _, token in steps[at:end]])
                plain.preview_control(FORCED_END)
                plain_deltas += plain.commit_preview()
            else:
                end = at + min(rng.randint(1, 5), session.num_model_tokens_allowed(100))
                while any(is_control for is_control, _ in steps[at:end]):
                    end -= 1
                round_tokens = [token for _, token in steps[at:end]]
                # Behind the end of an output the model may have produced anything.
                extra = [ord("a")] * rng.randint(0, 2) if end >= len(steps) and reason is not None else []
                room = session.num_model_tokens_allowed(100) - len(round_tokens)
                preview = session.preview_model(round_tokens + extra[: max(0, room)])
                assert preview.num_accepted == len(steps[at:end])
                plain_deltas += run_tokens(plain, round_tokens)
            deltas += session.commit_preview()
            at = end
            assert state_of(session) == state_of(plain)
        assert session.finish_reason is reason
        assert published(deltas) == published(plain_deltas) == session.text
        assert reasoning_of(deltas) == reasoning_of(plain_deltas) == session.reasoning
        assert joined_calls(deltas) == joined_calls(plain_deltas)
        finished = {index: call for index, call in joined_calls(deltas).items() if index < len(session.tool_calls)}
        assert finished == dict(enumerate(session.tool_calls))
    assert FinishReason.STOP_TOKEN in reasons or FinishReason.STOP_STRING in reasons


# Look-ahead


def test_the_grammar_of_the_content_holds_behind_the_close_in_the_same_round() -> None:
    """A fence may not follow the reasoning, however many drafts are looked at in one go."""
    array = ir.Sequence((ir.Literal(b"["), ir.Literal(b"]")))
    session = chat_session(phase=THINKING, state=grammar_state(thinking_then(array)))
    drafts = [THINK_CLOSE, CHAT.token_bytes.index(b"\n\n"), ord("`"), ord("j"), ord("\n")]
    rows = np.zeros((len(drafts) + 1, CHAT.num_mask_words), dtype=np.int32)
    before = state_of(session)
    found = session.fill_masks(drafts, rows)
    assert (found.num_ready, found.dead_positions) == (3, 0)
    assert [int(token) for token in masks.legal_ids(rows[2], CHAT.num_tokens)] == [ord("[")]
    assert EOS not in masks.legal_ids(rows[0], CHAT.num_tokens)
    assert state_of(session)[:-1] == before[:-1]
    observation = session.observe_constraint()
    assert observation is not None
    assert observation.mask_positions == 3 + 2
    session.preview_model([*drafts[:2], ord("[")])
    session.commit_preview()
    assert session.text == "["


def test_looking_ahead_over_the_end_of_a_call_can_be_taken_back() -> None:
    session = chat_session(state=grammar_state(tool_calls(XML)), tools=NEEDED)
    run_tokens(session, answer_tokens(xml_call("f", {}))[:-1])
    before = state_of(session)
    rows = np.zeros((4, CHAT.num_mask_words), dtype=np.int32)
    assert session.fill_masks([TOOL_CLOSE, EOS, ord("x")], rows).num_ready == 2
    assert session.fill_masks([TOOL_CLOSE, ord("\n"), TOOL_OPEN], rows).num_ready == 4
    assert state_of(session) == before
    run_tokens(session, [TOOL_CLOSE, ord("\n"), *answer_tokens(xml_call("f", {})), EOS])
    assert session.tool_calls == (ToolCall("f", "{}"),) * 2


def test_masks_are_for_constrained_outputs_without_a_preview() -> None:
    rows = np.zeros((1, CHAT.num_mask_words), dtype=np.int32)
    with pytest.raises(ValueError, match="not constrained"):
        chat_session().fill_masks([], rows)
    session = chat_session(state=grammar_state(JSON_CONTENT))
    session.preview_model([ord("{")])
    with pytest.raises(ValueError, match="neither committed nor discarded"):
        session.fill_masks([], rows)


def test_tokens_behind_the_end_never_reach_the_matcher() -> None:
    session = chat_session(state=grammar_state(ir.Literal(b"ok")))
    preview = session.preview_model([*text_tokens(b"ok"), EOS, ord("\n"), ord("x")])
    assert (preview.num_accepted, preview.text, preview.finish_reason) == (2, "ok", FinishReason.STOP_TOKEN)
    session.commit_preview()
    observation = session.observe_constraint()
    assert observation is not None
    assert (observation.terminated, observation.branch) == (True, OutputBranch.CONTENT)


def test_a_reader_that_disagrees_with_the_grammar_leaves_both_as_they_were() -> None:
    """The grammar lets a tool be called that the contract does not have."""
    other = policy(tool("g"), required=True)
    session = chat_session(state=grammar_state(tool_calls(XML)), tools=other)
    tokens = answer_tokens("<tool_call>\n<function=f>\n")
    before = state_of(session)
    with pytest.raises(InternalError, match="there is no tool 'f'"):
        session.preview_model(tokens)
    assert state_of(session) == before
    session.preview_model(tokens[:1])
    session.commit_preview()
