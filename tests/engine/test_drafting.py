"""Drafts copied from a request's own text: what they bring, and what they must not cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine.core import EngineCore
from infernix.engine.drafting import Drafting, NgramOptions
from infernix.engine.limits import CoreLimits
from infernix.options import SamplingParameters
from infernix.program.program import Program
from infernix.results import FinishReason, GenerationResult, SpeculationBackend
from support.driven_core import GREEDY, VOCABULARY, prepared
from support.scripted_model import ScriptedModel

# The text of these tokens is "ab1ae0b1-"; k comes in between.
PERIOD = (10, 11, 12, 10, 16, 13, 11, 12, 14)
ODD_ONE = 31
PROMPT = PERIOD * 2


def periodic(so_far: tuple[int, ...]) -> ArrayLike:
    """The period goes on, now and then with another letter."""
    logits = np.zeros(VOCABULARY.num_tokens, dtype=np.float32)
    logits[PERIOD[len(so_far) % len(PERIOD)]] = 9.0
    logits[ODD_ONE] = 10.0 if len(so_far) % 31 == 0 else 5.0
    return logits


class Bench:
    """A core with one pool of `cache_tokens`, and requests that all begin with PROMPT."""

    def __init__(self, ngram: NgramOptions | None, cache_tokens: int = 1000) -> None:
        self.model = ScriptedModel(periodic, VOCABULARY.num_tokens, 1000)
        num_drafts = 0 if ngram is None else ngram.num_draft_tokens
        self.program = Program(
            self.model, VOCABULARY, max_rows=2, num_cache_positions=cache_tokens, num_draft_tokens=num_drafts
        )
        drafting = None if ngram is None else Drafting(self.program, VOCABULARY, ngram)
        limits = CoreLimits(max_concurrency=2, max_cached_prefixes=0)
        self.core = EngineCore(self.program, limits, drafting=drafting)

    def answers(
        self, num_tokens: Sequence[int], sampling: SamplingParameters = GREEDY, stop: tuple[str, ...] = ()
    ) -> list[GenerationResult]:
        """The results of requests with so many tokens each, run together."""
        requests = [
            self.core.submit(lambda n=n: prepared(PROMPT, n, 1000, sampling=sampling, stop=stop)) for n in num_tokens
        ]
        for _ in range(2000):
            if all(request.delivery.is_done for request in requests):
                break
            self.core.cycle()
        for request in requests:
            self.core.release(request)
        return [request.delivery.result() for request in requests]


@pytest.mark.parametrize("sampling", [GREEDY, SamplingParameters(temperature=1.0, seed=7)], ids=["greedy", "sampled"])
def test_the_text_is_the_same_in_fewer_rounds(sampling: SamplingParameters) -> None:
    plain = Bench(None).answers([80, 55], sampling)
    drafted = Bench(NgramOptions(6, min_match=4)).answers([80, 55], sampling)
    for without, with_drafts in zip(plain, drafted, strict=True):
        assert with_drafts.token_ids == without.token_ids
        assert with_drafts.text == without.text
        assert without.speculation is None
        counts = with_drafts.speculation
        assert counts is not None
        assert counts.num_accepted > 0
        # A first token comes from prefill; a round brings one and the drafts that were right.
        rounds = counts.num_rounds + counts.num_fallback_rounds
        assert rounds + counts.num_accepted == len(with_drafts.token_ids) - 1
        assert rounds == with_drafts.scheduling.num_decode_rounds < without.scheduling.num_decode_rounds
        assert sum(counts.accepted_per_position) == counts.num_accepted <= counts.num_drafted <= 6 * counts.num_rounds
        assert list(counts.accepted_per_position) == sorted(counts.accepted_per_position, reverse=True)


def test_drafts_stop_at_the_budget_and_at_a_stop_string() -> None:
    bench = Bench(NgramOptions(8, min_match=4))
    for budget in range(1, 30):
        [result] = bench.answers([budget])
        assert len(result.token_ids) == budget
        assert result.finish_reason is FinishReason.OUTPUT_LIMIT
    [result] = bench.answers([80], stop=("-ab",))
    [without] = Bench(None).answers([80], stop=("-ab",))
    assert result.finish_reason is FinishReason.STOP_STRING
    assert (result.text, result.token_ids) == (without.text, without.token_ids)
    counts = result.speculation
    assert counts is not None
    # The last round ends in the middle of drafts that are right, so it brings no token of its own.
    num_rounds = counts.num_rounds + counts.num_fallback_rounds
    assert num_rounds - 1 + counts.num_accepted == len(result.token_ids) - 1


def test_no_request_pauses_for_the_sake_of_drafts() -> None:
    budgets = [20, 20]
    # Together the two need this many positions at their end, and not one more is there.
    needed = sum(len(PROMPT) + budget - 1 for budget in budgets)
    bench = Bench(NgramOptions(8, min_match=4), cache_tokens=needed)
    for result in bench.answers(budgets):
        assert result.scheduling.num_pauses == 0
        assert result.speculation is not None
        assert result.speculation.num_accepted > 0


def test_where_nobody_has_memory_left_there_are_no_drafts() -> None:
    bench = Bench(NgramOptions(8, min_match=4))
    request = bench.core.submit(lambda: prepared(PROMPT, 40, 1000))
    bench.core.cycle()
    held = bench.model.pools[0].num_held
    bench.model.pools[0].num_positions = held + 1
    bench.core.cycle()
    assert request.counts.drafts.num_rounds == 0
    bench.model.pools[0].num_positions = 1000
    bench.core.cycle()
    assert request.counts.drafts.num_rounds > 0


def test_statistics_count_all_requests() -> None:
    bench = Bench(NgramOptions(6, min_match=4))
    # The second output ends in the middle of drafts that are right.
    results = [*bench.answers([60, 60]), *bench.answers([80], stop=("-ab",))]
    counters = bench.core.statistics().counters
    observed = [result.speculation for result in results if result.speculation is not None]
    assert len(observed) == 3
    assert counters.num_drafted == sum(each.num_drafted for each in observed)
    assert counters.num_accepted_drafts == sum(each.num_accepted for each in observed) > 0
    assert counters.drafts.num_rounds == sum(each.num_rounds for each in observed) > 0
    assert counters.drafts.num_fallback_rounds == sum(each.num_fallback_rounds for each in observed) > 0
    assert all(each.network.num_drafted == 0 for each in observed)
    assert all(each.backend is SpeculationBackend.NONE for each in observed)


@pytest.mark.parametrize("options", [(64, 12), (-1, 12), (8, 3), (8, 65)])
def test_numbers_out_of_range_are_refused_at_the_start(options: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="tokens"):
        NgramOptions(*options)
    program = Bench(None).program
    with pytest.raises(ValueError, match="nothing to draft with"):
        Drafting(program, VOCABULARY, NgramOptions(0))
