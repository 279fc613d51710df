from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from infernix.errors import ContextLengthExceeded, InternalError
from infernix.frontend.budget import OutputBudget
from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import Framing
from infernix.frontend.opening import OutputModel, open_session
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.ops import masks
from infernix.options import RequestOptions
from infernix.results import CacheAccess, FinishReason, OutputDelta
from support.scripted_matcher import ScriptedMatcher
from support.vocabularies import (
    EMPTY_TEXT,
    EOS_IDS,
    THINK_CLOSE,
    THINK_CLOSE_AS_TEXT,
    TOOL_CALL,
    nasty_token,
    nasty_vocabulary,
)

VOCABULARY = nasty_vocabulary()
EOS = EOS_IDS[0]
LETTER_O, LETTER_K, OK = nasty_token("o"), nasty_token("k"), nasty_token("ok")


def raw_session(budget: OutputBudget, constraint: ConstraintState | None = None) -> OutputSession:
    model = OutputModel(VOCABULARY, Framing())
    return open_session(model, StartingPhase.RAW, budget, RequestOptions(), constraint=constraint)


def free_session(num_tokens: int = 20) -> OutputSession:
    return raw_session(OutputBudget(num_tokens, FinishReason.OUTPUT_LIMIT))


def constrained_session(language: Sequence[bytes], num_tokens: int = 20) -> tuple[OutputSession, ScriptedMatcher]:
    matcher = ScriptedMatcher(VOCABULARY, language)
    state = ConstraintState(matcher, CacheAccess.BUILT, prepare_seconds=0.25)
    return raw_session(OutputBudget(num_tokens, FinishReason.OUTPUT_LIMIT), state), matcher


def commit(session: OutputSession, *tokens: int) -> str:
    preview = session.preview_model(tokens)
    assert preview.num_accepted == len(tokens)
    return commit_text(session)


def commit_text(session: OutputSession) -> str:
    return "".join(delta.text for delta in session.commit_preview() if isinstance(delta, OutputDelta))


def legal(session: OutputSession) -> list[int]:
    words = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    assert session.fill_mask(words)
    return [int(token) for token in masks.legal_ids(words, VOCABULARY.num_tokens)]


# Budget


@pytest.mark.parametrize(
    ("asked", "prompt", "context", "num_tokens", "reason"),
    [
        (5, 10, 64, 5, FinishReason.OUTPUT_LIMIT),
        (55, 10, 64, 55, FinishReason.OUTPUT_LIMIT),
        (56, 10, 64, 55, FinishReason.CONTEXT_CAPACITY),
        (9, 64, 64, 1, FinishReason.CONTEXT_CAPACITY),
        (1, 64, 64, 1, FinishReason.OUTPUT_LIMIT),
        (0, 64, 64, 0, FinishReason.OUTPUT_LIMIT),
    ],
)
def test_the_smaller_limit_is_the_budget(
    asked: int, prompt: int, context: int, num_tokens: int, reason: FinishReason
) -> None:
    assert OutputBudget.of(asked, prompt, context) == OutputBudget(num_tokens, reason)


def test_a_prompt_longer_than_the_context_is_refused_with_both_figures() -> None:
    with pytest.raises(ContextLengthExceeded, match="65 tokens and the context holds 64"):
        OutputBudget.of(0, 65, 64)


@pytest.mark.parametrize("reason", [FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY])
def test_the_last_token_of_the_budget_ends_the_output(reason: FinishReason) -> None:
    session = raw_session(OutputBudget(2, reason))
    assert session.preview_model([LETTER_O]).finish_reason is None
    session.commit_preview()
    assert session.num_tokens_left == 1
    assert session.preview_model([LETTER_K]).finish_reason is reason
    assert commit_text(session) == "k"
    assert (session.text, session.finish_reason, session.num_tokens_left) == ("ok", reason, 0)


def test_an_end_token_in_the_budgets_last_place_is_a_stop() -> None:
    session = free_session(2)
    commit(session, LETTER_O)
    assert session.preview_model([EOS]).finish_reason is FinishReason.STOP_TOKEN


def test_tokens_past_the_budget_or_past_an_end_token_are_not_accepted() -> None:
    preview = free_session(2).preview_model([LETTER_O, LETTER_K, LETTER_O])
    assert (preview.num_accepted, preview.text) == (2, "ok")
    preview = free_session().preview_model([LETTER_O, EOS, LETTER_K, EOS])
    assert (preview.num_accepted, preview.text, preview.finish_reason) == (2, "o", FinishReason.STOP_TOKEN)


# Text


@pytest.mark.parametrize("eos", EOS_IDS)
def test_every_end_token_is_committed_and_is_no_text(eos: int) -> None:
    session = free_session()
    commit(session, OK)
    assert commit(session, eos) == ""
    assert (session.text, session.token_ids) == ("ok", (OK, eos))
    assert session.finish_reason is FinishReason.STOP_TOKEN


def test_control_tokens_are_committed_and_are_no_text_but_their_letters_are() -> None:
    session = free_session()
    assert commit(session, THINK_CLOSE) == ""
    assert commit(session, TOOL_CALL, LETTER_O) == "o"
    assert commit(session, THINK_CLOSE_AS_TEXT) == "</think>"
    assert session.token_ids == (THINK_CLOSE, TOOL_CALL, LETTER_O, THINK_CLOSE_AS_TEXT)


def test_a_token_without_bytes_publishes_nothing() -> None:
    assert commit(free_session(), EMPTY_TEXT) == ""


def test_characters_split_over_tokens_are_published_whole() -> None:
    session = free_session()
    pieces = [commit(session, nasty_token(data)) for data in (b"\xc3", b"\xa9", b"\xe5\x9c", b'\xa8"')]
    assert pieces == ["", "é", "", '在"']


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    session = free_session()
    pieces = [commit(session, nasty_token(data)) for data in (b"\xff", b"\xc3(", b"\xf0\x9f\x98", b"a")]
    assert pieces == ["\ufffd", "\ufffd(", "", "\ufffda"]


def test_a_character_cut_by_the_limit_becomes_one_replacement_character() -> None:
    session = free_session(2)
    commit(session, LETTER_O)
    assert commit(session, nasty_token(b"\xf0\x9f\x98")) == "\ufffd"
    assert session.text == "o\ufffd"


def test_a_character_cut_by_a_cancellation_becomes_one_replacement_character() -> None:
    session = free_session()
    commit(session, nasty_token(b"\xe5\x9c"))
    session.preview_terminal(FinishReason.CANCELLED)
    assert commit_text(session) == "\ufffd"
    assert session.finish_reason is FinishReason.CANCELLED


# Transactions


def test_a_preview_shows_and_changes_nothing() -> None:
    session, matcher = constrained_session([b"ok"])
    preview = session.preview_model([LETTER_O])
    assert (preview.text, session.text, session.token_ids) == ("o", "", ())
    session.discard_preview()
    assert (session.text, session.token_ids) == ("", ())
    assert commit(session, OK) == "ok"
    assert matcher.calls == ["preview 1", "discard", "preview 1", "confirm"]


def test_a_discarded_preview_gives_back_half_a_character() -> None:
    session = free_session()
    commit(session, nasty_token(b"\xc3"))
    session.preview_model([nasty_token(b"\xa9")])
    session.discard_preview()
    assert commit(session, nasty_token(b"\xa9")) == "é"


def test_a_discarded_end_is_no_end() -> None:
    session, _ = constrained_session([b"", b"ok"])
    assert session.preview_model([EOS]).is_terminal
    session.discard_preview()
    assert session.finish_reason is None
    assert EOS in legal(session)
    session.preview_terminal(FinishReason.CANCELLED)
    session.discard_preview()
    assert session.finish_reason is None


def test_previews_and_masks_exclude_each_other() -> None:
    session, _ = constrained_session([b"ok"])
    session.preview_model([LETTER_O])
    words = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
    for attempt in (
        lambda: session.preview_model([LETTER_K]),
        lambda: session.fill_mask(words),
        lambda: session.preview_terminal(FinishReason.CANCELLED),
    ):
        with pytest.raises(ValueError, match="neither committed nor discarded"):
            attempt()


def test_a_commit_needs_a_preview_and_a_discard_does_not() -> None:
    session = free_session()
    with pytest.raises(ValueError, match="no preview"):
        session.commit_preview()
    session.discard_preview()


def test_nothing_follows_the_end() -> None:
    session, _ = constrained_session([b"ok"])
    commit(session, OK)
    commit(session, EOS)
    with pytest.raises(ValueError, match="ended"):
        session.preview_model([LETTER_O])
    with pytest.raises(ValueError, match="ended"):
        session.fill_mask(np.zeros(2, dtype=np.int32))


@pytest.mark.parametrize("tokens", [(), (LETTER_O,)])
def test_a_preview_needs_a_token_and_a_budget(tokens: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="to preview"):
        free_session(0 if tokens else 5).preview_model(tokens)


# Constraint


def test_the_mask_follows_the_committed_text() -> None:
    session, _ = constrained_session([b"ok"])
    assert legal(session) == [OK, LETTER_O]
    commit(session, LETTER_O)
    assert legal(session) == [LETTER_K]
    commit(session, LETTER_K)
    assert legal(session) == list(EOS_IDS)


def test_an_illegal_token_is_an_internal_error_and_changes_nothing() -> None:
    session, _ = constrained_session([b"ok"])
    with pytest.raises(InternalError, match=f"token {LETTER_O} was produced"):
        session.preview_model([LETTER_O, LETTER_O])
    assert session.token_ids == ()
    assert legal(session) == [OK, LETTER_O]


def test_the_mask_of_a_free_output_is_never_asked_for() -> None:
    session = free_session()
    assert not session.is_constrained
    with pytest.raises(ValueError, match="not constrained"):
        session.fill_mask(np.zeros(2, dtype=np.int32))
    assert session.observe_constraint() is None


def test_the_observation_tells_may_end_from_ended() -> None:
    session, _ = constrained_session([b"o", b"ok"])
    seen = []
    for token in (LETTER_O, LETTER_K, EOS):
        legal(session)
        commit(session, token)
        observation = session.observe_constraint()
        assert observation is not None
        seen.append((observation.complete, observation.terminated, observation.mask_positions))
        assert (observation.cache, observation.prepare_seconds) == (CacheAccess.BUILT, 0.25)
    assert seen == [(True, False, 1), (True, False, 2), (True, True, 3)]


def test_half_a_text_is_not_complete() -> None:
    session, _ = constrained_session([b"ok"], num_tokens=1)
    commit(session, LETTER_O)
    observation = session.observe_constraint()
    assert observation is not None
    assert (observation.complete, observation.terminated) == (False, False)
