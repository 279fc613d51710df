"""What results, statistics and the request log say of drafts, with drafts and a clock that a test makes up."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest
from numpy.typing import ArrayLike

from infernix.engine import JsonLinesLog
from infernix.engine.core import EngineCore
from infernix.engine.limits import CoreLimits
from infernix.engine.request import Request
from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource
from infernix.program.program import Program
from infernix.results import (
    DraftCounts,
    FinishReason,
    GenerationResult,
    SpeculationBackend,
    SpeculativeStatistics,
)
from support.driven_core import VOCABULARY, prepared
from support.scripted_model import ScriptedModel, preferring
from support.vocabularies import nasty_token

A, B = nasty_token("a"), nasty_token("b")
COPY, NETWORK = DraftSource.COPY, DraftSource.NETWORK
SECONDS = 0.25
"""How long drafts take in these tests; nothing else takes any time."""


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(VOCABULARY.num_tokens, {A: 5.0})


class Bench:
    """A core whose requests get the drafts of their `plans`, round by round and then none; or drafting fails."""

    def __init__(self, *plans: Sequence[DraftChain | Exception], script: Any = always_a) -> None:
        self.now = 100.0
        self.plans = dict(enumerate(map(list, plans), 1))
        self.log = io.StringIO()
        program = Program(
            ScriptedModel(script, VOCABULARY.num_tokens, 200),
            VOCABULARY,
            max_rows=2,
            num_cache_positions=400,
            num_draft_tokens=4,
        )
        drafting: Any = self
        self.core = EngineCore(
            program,
            CoreLimits(max_concurrency=2, max_cached_prefixes=0),
            clock=lambda: self.now,
            log=JsonLinesLog(self.log),
            drafting=drafting,
            backend=SpeculationBackend.MTP,
        )

    def chains(self, requests: Sequence[Request]) -> list[DraftChain] | None:
        """In place of the engine's own drafting."""
        self.now += SECONDS
        chains = []
        for request in requests:
            plan = self.plans.get(request.number)
            planned = plan.pop(0) if plan else NO_DRAFTS
            if isinstance(planned, Exception):
                raise planned
            chains.append(planned)
        return chains if any(chains) else None

    def submit(self, num_tokens: int, **options: Any) -> Request:
        return self.core.submit(lambda: prepared([A], num_tokens, 200, **options))

    def run(self, *requests: Request) -> None:
        for _ in range(200):
            if all(request.delivery.is_done for request in requests):
                return
            self.core.cycle()
        raise AssertionError("not done")

    def result(self, request: Request) -> GenerationResult:
        self.run(request)
        return request.delivery.result()

    def records(self, event: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [record for record in found if record["event"] == event]


def copied(*tokens: int) -> DraftChain:
    return DraftChain(tokens, source=COPY)


def proposed(*tokens: int) -> DraftChain:
    return DraftChain(tokens, source=NETWORK)


def test_a_result_tells_how_its_drafts_fared() -> None:
    # One token from prefill; then 3, 2, 1, 1, 1 and 3 tokens. In the last round but one drafting fails.
    bench = Bench(
        [copied(A, A, B), proposed(A), NO_DRAFTS, proposed(B, A), RuntimeError("broken"), copied(A, A)],
    )
    result = bench.result(bench.submit(12))
    assert result.speculation == SpeculativeStatistics(
        num_rounds=4,
        num_fallback_rounds=2,
        num_drafted=8,
        num_accepted=5,
        accepted_per_position=(3, 2),
        backend=SpeculationBackend.MTP,
        copies=DraftCounts(5, 4),
        network=DraftCounts(3, 1),
        draft_wait_seconds=6 * SECONDS,
    )
    assert result.scheduling.num_decode_rounds == 6
    assert result.timings.decode_seconds == 6 * SECONDS
    statistics = bench.core.statistics()
    drafts = statistics.counters.drafts
    assert statistics.backend is SpeculationBackend.MTP
    assert (drafts.num_rounds, drafts.num_fallback_rounds, drafts.wait_seconds) == (4, 2, 6 * SECONDS)
    assert (drafts.of(COPY), drafts.of(NETWORK)) == (result.speculation.copies, result.speculation.network)
    assert drafts.accepted_per_position == [3, 2]
    assert statistics.counters.num_failed_drafts == 1


def test_requests_of_one_round_wait_together() -> None:
    """Each of them waits for the drafts of both, and the engine counts a round's wait once."""
    bench = Bench([NO_DRAFTS, copied(A)], [proposed(A), proposed(B)])
    requests = [bench.submit(4), bench.submit(5)]
    bench.run(*requests)
    results = [bench.result(request) for request in requests]
    # The first is one round ahead, in which the second's prompt runs; its last two are with the second's first two.
    assert [result.scheduling.num_decode_rounds for result in results] == [2, 3]
    assert all(result.speculation is not None for result in results)
    one, two = [result.speculation for result in results if result.speculation is not None]
    assert (one.num_rounds, one.num_fallback_rounds, one.copies, one.network) == (
        1,
        1,
        DraftCounts(1, 1),
        DraftCounts(),
    )
    assert (two.num_rounds, two.num_fallback_rounds, two.copies, two.network) == (
        2,
        1,
        DraftCounts(),
        DraftCounts(2, 1),
    )
    assert (one.draft_wait_seconds, two.draft_wait_seconds) == (2 * SECONDS, 3 * SECONDS)
    counters = bench.core.statistics().counters
    assert (counters.drafts.num_rounds, counters.drafts.num_fallback_rounds) == (3, 2)
    assert counters.drafts.wait_seconds == counters.num_decode_rounds * SECONDS < 5 * SECONDS


def test_masks_wait_only_in_rounds_that_have_any() -> None:
    bench = Bench([proposed(A)])
    bench.result(bench.submit(4))
    counters = bench.core.statistics().counters
    assert (counters.drafts.wait_seconds, counters.constraint_draft_wait_seconds) == (2 * SECONDS, 0.0)
    result = bench.result(bench.submit(3, language=[b"aaa"]))
    counters = bench.core.statistics().counters
    assert result.scheduling.num_decode_rounds == 2
    assert (counters.drafts.wait_seconds, counters.constraint_draft_wait_seconds) == (4 * SECONDS, 2 * SECONDS)


def test_an_engine_that_does_not_draft_says_nothing_of_drafts() -> None:
    model = ScriptedModel(always_a, VOCABULARY.num_tokens, 200)
    core = EngineCore(Program(model, VOCABULARY, num_cache_positions=100))
    request = core.submit(lambda: prepared([A], 3, 200))
    while not request.delivery.is_done:
        core.cycle()
    assert request.delivery.result().speculation is None
    drafts = core.statistics().counters.drafts
    assert (drafts.num_rounds, drafts.num_fallback_rounds, drafts.wait_seconds) == (0, 0, 0.0)
    assert core.statistics().backend is SpeculationBackend.NONE


def test_a_cancelled_request_keeps_its_figures() -> None:
    bench = Bench([copied(A, A), copied(A, B)])
    request = bench.submit(100)
    for _ in range(3):
        bench.core.cycle()
    bench.core.cancel(request)
    result = bench.result(request)
    assert result.finish_reason is FinishReason.CANCELLED
    assert result.speculation is not None
    assert result.speculation.copies == DraftCounts(4, 3) == bench.core.statistics().counters.drafts.of(COPY)
    [done] = bench.records("request_done")
    assert done["speculation"] == json.loads(json.dumps(asdict(result.speculation)))
    assert done["speculation"]["backend"] == "mtp"


def test_drafts_behind_the_end_are_no_accepted_ones() -> None:
    """The output's limit, or a stop string, may come in the middle of right drafts."""
    bench = Bench([copied(A, A, A, A)])
    result = bench.result(bench.submit(20, stop=("aaa",)))
    assert result.finish_reason is FinishReason.STOP_STRING
    assert result.speculation is not None
    assert result.speculation.num_drafted == 4
    assert result.speculation.num_accepted == result.num_generated_tokens - 1 == 2
    assert result.speculation.accepted_per_position == (1, 1)
    assert bench.core.statistics().counters.num_accepted_drafts == 2


@pytest.mark.parametrize("error", [NonFiniteLogits, ConstraintDeadEnd])
def test_a_request_that_fails_is_settled_in_the_log(error: type[Exception]) -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        is_bad = error is NonFiniteLogits and len(so_far) == 4
        return [float("nan")] * VOCABULARY.num_tokens if is_bad else always_a(so_far)

    bench = Bench([copied(A), proposed(A, A)], script=script)
    # What the vocabulary cannot spell in time: after three letters nothing is legal that the model may say.
    language = [b"aaaz"] if error is ConstraintDeadEnd else None
    options: dict[str, Any] = {} if language is None else {"language": language}
    request = bench.submit(9, **options)
    bench.run(request)
    with pytest.raises(error):
        request.delivery.result()
    [record] = bench.records("request_error")
    assert record["speculation"]["num_drafted"] == 3
    assert (record["speculation"]["copies"], record["generated_tokens"]) == ({"num_drafted": 1, "num_accepted": 1}, 3)
    assert record["speculation"]["network"] == {"num_drafted": 2, "num_accepted": 0}
    assert (record["constraint"] is None) == (language is None)
    assert bench.core.statistics().counters.num_drafted == 3
    assert bench.core.statistics().counters.num_accepted_drafts == 1


def test_whoever_gets_a_result_finds_its_drafts_counted() -> None:
    bench = Bench([copied(A, A, A)])
    request = bench.submit(5)
    seen: list[int] = []
    request.delivery.subscribe(
        lambda: seen.append(bench.core.statistics().counters.num_accepted_drafts) if request.delivery.is_done else None
    )
    assert bench.result(request).num_generated_tokens == 5
    assert seen == [3]
