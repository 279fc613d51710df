"""Prompts that begin like earlier ones: what is not run again, and that nothing else of the earlier request stays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.options import SamplingParameters
from infernix.results import GenerationStarted
from support.driven_core import VOCABULARY, DrivenCore
from support.scripted_model import preferring
from support.vocabularies import EOS_IDS, nasty_token

A, B, OK, EOS = nasty_token("a"), nasty_token("b"), nasty_token("ok"), EOS_IDS[0]
NUM_TOKENS = VOCABULARY.num_tokens
PROMPT = [OK, A, B, A] * 5


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    logits = np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)
    logits[list(EOS_IDS)] = -9.0
    return logits


def likes_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(NUM_TOKENS, {A: 5.0, B: 4.0, EOS: 3.0})


@pytest.mark.parametrize("is_recurrent", [False, True])
def test_an_exact_hit_runs_nothing_and_asks_this_requests_mask(is_recurrent: bool) -> None:
    driven = DrivenCore(likes_a, is_recurrent=is_recurrent)
    first = driven.finish(driven.submit(PROMPT, 3, language=[b"ab"]))
    assert (first.text, first.num_reused_prompt_tokens) == ("ab", 0)
    num_units = len(driven.model.units)
    for language, expected in (([b"ba"], "ba"), ([b"a"], "a"), (None, "aaa")):
        request = driven.submit(PROMPT, 3, language=language)
        result = driven.finish(request)
        assert (result.text, result.num_reused_prompt_tokens) == (expected, len(PROMPT))
        assert request.delivery.take()[0] == GenerationStarted(len(PROMPT), len(PROMPT))
    # The first token of each needed no pass.
    assert driven.model.units[num_units:] == [1] * (2 + 1 + 2)


def test_sampling_from_a_known_prompt_is_sampling_from_the_prompt() -> None:
    for seed in range(6):
        sampling = SamplingParameters(temperature=1.0, seed=seed)
        fresh = DrivenCore(spread)
        expected = fresh.finish(fresh.submit(PROMPT, 6, sampling=sampling))
        driven = DrivenCore(spread)
        driven.finish(driven.submit(PROMPT, 2))
        assert driven.finish(driven.submit(PROMPT, 6, sampling=sampling)).token_ids == expected.token_ids


@pytest.mark.parametrize("is_recurrent", [False, True])
def test_a_conversation_that_goes_on_runs_only_what_is_new(is_recurrent: bool) -> None:
    driven = DrivenCore(spread, is_recurrent=is_recurrent)
    first = driven.finish(driven.submit(PROMPT, 4))
    # The answer's last token was never run.
    longer = [*PROMPT, *first.token_ids, B, B]
    second = driven.finish(driven.submit(longer, 4))
    assert second.num_reused_prompt_tokens == len(PROMPT) + 3
    fresh = DrivenCore(spread)
    assert fresh.finish(fresh.submit(longer, 4)).token_ids == second.token_ids


def test_recurrent_state_is_continued_only_where_it_was_kept() -> None:
    other = [*PROMPT[:-1], B, B]
    for is_recurrent, expected in ((False, len(PROMPT) - 1), (True, 0)):
        driven = DrivenCore(spread, is_recurrent=is_recurrent)
        driven.finish(driven.submit(PROMPT, 4))
        assert driven.finish(driven.submit(other, 1)).num_reused_prompt_tokens == expected


def test_what_is_shared_is_never_written_by_the_other() -> None:
    driven = DrivenCore(spread, max_concurrency=3)
    driven.finish(driven.submit(PROMPT, 1))
    suffixes = [[A], [B], [OK, OK]]
    together = [driven.submit([*PROMPT, *suffix], 8) for suffix in suffixes]
    driven.run(*together)
    for suffix, request in zip(suffixes, together, strict=True):
        fresh = DrivenCore(spread)
        assert driven.collect(request).token_ids == fresh.finish(fresh.submit([*PROMPT, *suffix], 8)).token_ids
        assert request.counts.num_reused_prompt_tokens == len(PROMPT)


def test_nothing_is_remembered_where_that_is_switched_off() -> None:
    driven = DrivenCore(spread, max_cached_prefixes=0)
    for _ in range(2):
        assert driven.finish(driven.submit(PROMPT, 2)).num_reused_prompt_tokens == 0
    assert driven.num_held_positions == 0


def test_a_budget_of_nothing_after_an_exact_hit() -> None:
    driven = DrivenCore(spread)
    driven.finish(driven.submit(PROMPT, 2))
    num_units = len(driven.model.units)
    result = driven.finish(driven.submit(PROMPT, 0))
    assert (result.num_reused_prompt_tokens, result.text, len(driven.model.units)) == (len(PROMPT), "", num_units)


def test_stopping_gives_the_memory_back() -> None:
    driven = DrivenCore(spread)
    driven.finish(driven.submit(PROMPT, 2))
    assert driven.num_held_positions == driven.core.statistics().num_cached_positions > 0
    driven.core.stop()
    driven.turn()
    assert driven.num_held_positions == 0
