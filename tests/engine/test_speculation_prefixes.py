"""Beginnings that drafted rounds leave behind: whoever continues one gets what it would get without."""

from __future__ import annotations

import pytest

from infernix.engine.request import Request
from infernix.options import RequestOptions, SamplingOptions
from infernix.results import GenerationResult
from support.chat_output import text_tokens
from tests.engine.simulation.identity import Bench
from tests.engine.simulation.requests import Wanted

PROMPT = tuple(text_tokens(b"A beginning that is long enough to be remembered, and more"))
LENGTH = 14


def wanted(prompt: tuple[int, ...], length: int, seed: int) -> Wanted:
    sampling = SamplingOptions(temperature=1.0, seed=seed)
    return Wanted(prompt, RequestOptions(length, sampling=sampling, ignore_eos=True))


def answer(bench: Bench, each: Wanted) -> GenerationResult:
    [found] = bench.answers([each])
    assert isinstance(found, GenerationResult)
    return found


@pytest.mark.parametrize("is_recurrent", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_cut_of_a_drafted_text_goes_on_as_if_nothing_was_known(seed: int, is_recurrent: bool) -> None:
    first = wanted(PROMPT, LENGTH, seed)
    text = answer(Bench(), first).token_ids
    num_exact = 0
    for num_tokens in range(LENGTH + 1):
        again = wanted((*PROMPT, *text[:num_tokens]), 5, seed + 100)
        plain = answer(Bench(is_recurrent=is_recurrent), again)
        said = {False: text, True: plain.token_ids}

        def what_follows(request: Request, said: dict[bool, tuple[int, ...]] = said) -> tuple[int, ...]:
            return said[request.prepared.sampling.seed != seed]

        bench = Bench(what_follows, seed=seed, is_recurrent=is_recurrent)
        assert answer(bench, first).token_ids == text
        continued = answer(bench, again)
        assert continued.token_ids == plain.token_ids
        assert continued.num_reused_prompt_tokens >= len(PROMPT) - 1
        num_exact += num_tokens > 0 and continued.num_reused_prompt_tokens == len(PROMPT) + num_tokens
    assert num_exact > 0
