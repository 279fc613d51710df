"""Rounds as transactions: what they pass to the Program, rows that fail, and faults at every point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine.core import MAX_FAILED_UNITS
from infernix.engine.request import Request
from infernix.engine.states import RequestState
from infernix.engine.statistics import ConstraintOutcome, RequestOutcome
from infernix.errors import ConstraintDeadEnd, ConstraintTooLarge, EngineClosed, InternalError, NonFiniteLogits
from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch
from infernix.program.program import Program
from infernix.results import FinishReason
from support.driven_core import VOCABULARY, DrivenCore, text_of
from support.scripted_model import preferring
from support.vocabularies import EOS_IDS, nasty_token

A, B, OK, EOS = nasty_token("a"), nasty_token("b"), nasty_token("ok"), EOS_IDS[0]
NUM_TOKENS = VOCABULARY.num_tokens


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(NUM_TOKENS, {A: 5.0, EOS: 1.0})


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    logits = np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)
    logits[list(EOS_IDS)] = -9.0
    return logits


class SpyingProgram(Program):
    """Remembers the mask providers, and fails where it is told to."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.masks: list[Any] = []
        self.fault: str = ""
        self.on_fault: Callable[[], object] = lambda: None

    def decode_batch(self, sequences: Any, masks: Any, drafts: Any = None) -> PendingBatch:
        self.masks.append(masks)
        self._fail("before the pass")
        batch = super().decode_batch(sequences, masks, drafts)
        return batch

    def prefix(self, sequence: Any) -> Any:
        self._fail("prefix")
        return super().prefix(sequence)

    def commit(self, batch: PendingBatch, decisions: Sequence[Any]) -> None:
        self._fail("before the commit")
        super().commit(batch, decisions)
        self._fail("after the commit")

    def append_forced_tokens(self, sequence: Any, tokens: Any) -> None:
        self._fail("forced")
        super().append_forced_tokens(sequence, tokens)

    def _fail(self, place: str) -> None:
        if self.fault == place:
            self.on_fault()
            raise OSError(place)


def spied(script: Any = always_a, **options: Any) -> tuple[DrivenCore, SpyingProgram]:
    driven = DrivenCore(script, program_class=SpyingProgram, **options)
    program: Any = driven.program
    return driven, program


def snapshot(request: Request) -> tuple[Any, ...]:
    """All that a unit may change, as far as the request's own state goes."""
    sequence = request.physical
    return (
        request.state,
        request.session.token_ids,
        request.session.text,
        list(sequence.ledger),
        sequence.execution_frontier,
        sequence.cache.num_tokens,
        sequence.is_pending,
    )


# What a round is


def test_a_batch_without_constraints_has_no_provider_and_runs_no_mask_code(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, program = spied()
    requests = [driven.submit([A], 4) for _ in range(2)]
    for request in requests:
        monkeypatch.setattr(request.session, "fill_masks", lambda *_: pytest.fail("asked for a mask"))
    driven.run(*requests)
    assert program.masks == [None] * len(program.masks)
    assert max(len(batch) for batch in driven.model.batches) == 2


def test_a_mixed_batch_asks_for_the_constrained_rows_only() -> None:
    driven, program = spied(max_concurrency=3)
    free, bound = driven.submit([A], 4), driven.submit([B], 4, language=[b"ab"])
    driven.run(free, bound)
    shared = [masks for masks in program.masks if masks is not None]
    assert shared
    assert [shared[0].constrained(row) for row in range(2)] == [False, True]
    assert driven.collect(free).text == "aaaa"
    assert driven.collect(bound).text == "ab"


@pytest.mark.parametrize("seed", range(5))
def test_rows_get_what_they_would_get_alone_whatever_runs_beside_them(seed: int) -> None:
    sampling = SamplingParameters(temperature=1.0, seed=seed, presence_penalty=0.5)
    asked: list[dict[str, Any]] = [
        {"prompt": [A], "max_new_tokens": 12},
        {"prompt": [B, A], "max_new_tokens": 9, "language": [b"aba", b"abb", b"b"]},
        {"prompt": [OK] * 6, "max_new_tokens": 12},
    ]
    alone = [(lambda d, one: d.finish(d.submit(**one, sampling=sampling)))(DrivenCore(spread), one) for one in asked]
    together = DrivenCore(spread, max_concurrency=3)
    requests = [together.submit(**one, sampling=sampling) for one in asked]
    together.run(*requests)
    for request, expected in zip(requests, alone, strict=True):
        result = together.collect(request)
        assert (result.token_ids, result.text, result.finish_reason) == (
            expected.token_ids,
            expected.text,
            expected.finish_reason,
        )


# Rows that fail


def test_a_dead_end_fails_its_row_and_the_others_commit() -> None:
    driven, _ = spied()
    dying = driven.submit([B], 9, language=[b"az"])  # no token spells the second letter
    going_on = driven.submit([A], 4)
    driven.run(dying, going_on)
    assert text_of(dying.delivery.take()) == "a"
    with pytest.raises(ConstraintDeadEnd, match="after 1 new tokens, ending in 'a'"):
        driven.collect(dying)
    assert driven.collect(going_on).text == "aaaa"
    counters = driven.core.statistics().counters
    assert counters.requests[RequestOutcome.DEAD_END] == 1
    assert counters.constraint_requests[ConstraintOutcome.FAILED] == 1
    assert counters.num_failed_units == 0


def test_broken_numbers_fail_their_row_and_the_others_commit() -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return np.full(NUM_TOKENS, np.nan) if so_far[0] == B and len(so_far) == 3 else always_a(so_far)

    driven, _ = spied(script)
    broken, whole = driven.submit([B], 9), driven.submit([A], 4)
    driven.run(broken, whole)
    with pytest.raises(NonFiniteLogits, match="after 2 new tokens"):
        driven.collect(broken)
    assert driven.collect(whole).text == "aaaa"
    assert driven.num_held_positions == 0


# Faults


@pytest.mark.parametrize("place", ["before the pass", "before the commit"])
def test_a_failed_round_fails_its_requests_and_no_other(place: str) -> None:
    driven, program = spied(max_concurrency=3)
    rows = [driven.submit([A], 9) for _ in range(2)]
    driven.turn(3)
    later = driven.submit([B] * 20, 3)
    driven.turn()
    program.fault = place
    driven.turn()
    program.fault = ""
    for request in rows:
        with pytest.raises(OSError, match=place):
            driven.collect(request)
    assert driven.finish(later).text == "aaa"
    counters = driven.core.statistics().counters
    assert (counters.num_failed_units, counters.requests[RequestOutcome.FAILED]) == (1, 2)
    assert driven.num_held_positions == driven.core.statistics().num_cached_positions


def test_a_commit_that_breaks_off_publishes_nothing() -> None:
    driven, program = spied()
    request = driven.submit([A], 9)
    driven.turn(2)
    request.delivery.take()
    program.fault = "after the commit"
    driven.turn()
    assert request.delivery.take() == []
    with pytest.raises(OSError, match="after the commit"):
        driven.collect(request)
    program.fault = ""
    assert driven.finish(driven.submit([A], 2)).text == "aa"


def test_a_mask_that_fails_fails_its_own_request_and_leaves_the_others_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driven, _ = spied(max_concurrency=3)
    requests = [driven.submit([A], 5, language=[b"aaaa"]) for _ in range(3)]
    driven.turn(4)
    before = [snapshot(request) for request in requests]

    def fail(*_: object) -> None:
        raise ConstraintTooLarge("a bound of the matcher")

    monkeypatch.setattr(requests[1].session, "fill_masks", fail)
    driven.turn()
    with pytest.raises(ConstraintTooLarge):
        driven.collect(requests[1])
    assert [snapshot(requests[place]) for place in (0, 2)] == [before[0], before[2]]
    driven.run(*requests)
    assert [driven.collect(requests[place]).text for place in (0, 2)] == ["aaaa", "aaaa"]
    counters = driven.core.statistics().counters
    assert (counters.num_failed_units, counters.requests[RequestOutcome.REQUEST_ERROR]) == (0, 1)


@pytest.mark.parametrize("error", [InternalError("grammar and reader disagree"), MemoryError("no room")])
def test_a_preview_that_fails_takes_back_the_previews_before_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    driven, _ = spied(max_concurrency=3)
    requests = [driven.submit([A], 6, language=[b"aaaa"]) for _ in range(3)]
    driven.turn(4)
    before = [snapshot(request) for request in requests]

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(requests[1].session, "preview_model", fail)
    driven.turn()
    with pytest.raises(type(error)):
        driven.collect(requests[1])
    assert [snapshot(requests[place]) for place in (0, 2)] == [before[0], before[2]]
    driven.run(*requests)
    assert [driven.collect(requests[place]).text for place in (0, 2)] == ["aaaa", "aaaa"]
    assert driven.core.statistics().counters.num_failed_units == 1


def test_a_confirmation_that_fails_is_no_other_rows_business(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, _ = spied()
    broken, whole = driven.submit([A], 5), driven.submit([B], 5)
    driven.turn(3)

    def fail() -> None:
        raise InternalError("cannot be")

    monkeypatch.setattr(broken.session, "commit_preview", fail)
    driven.turn()
    with pytest.raises(InternalError, match="cannot be"):
        driven.collect(broken)
    assert driven.finish(whole).text == "aaaaa"


def test_what_cannot_be_remembered_costs_no_request() -> None:
    driven, program = spied()
    program.fault = "prefix"
    assert driven.finish(driven.submit([A] * 30, 3)).text == "aaa"
    statistics = driven.core.statistics()
    assert (statistics.num_cached_prefixes, statistics.counters.num_failed_prefixes) == (0, 2)


def test_a_consumer_that_raises_ends_its_own_request_only() -> None:
    driven, _ = spied()
    bad, good = driven.submit([A], 9), driven.submit([B], 4)

    def complain() -> None:
        if text_of(bad.delivery.take()):
            raise ValueError("the consumer is gone")

    bad.delivery.subscribe(complain)
    driven.run(bad, good)
    with pytest.raises(ValueError, match="the consumer is gone"):
        driven.collect(bad)
    assert bad.session.finish_reason is FinishReason.CANCELLED
    assert driven.collect(good).text == "aaaa"
    assert driven.core.statistics().requests[RequestOutcome.CANCELLED] == 1


def test_a_consumer_that_raises_at_the_very_end_has_its_own_error() -> None:
    driven, _ = spied()
    request = driven.submit([A], 1)

    def complain() -> None:
        if request.delivery.is_done:
            raise ValueError("too late")

    request.delivery.subscribe(complain)
    driven.run(request)
    driven.turn()
    with pytest.raises(ValueError, match="too late"):
        driven.collect(request)


def test_units_that_fail_one_after_another_stop_the_engine() -> None:
    driven, program = spied()
    for number in range(MAX_FAILED_UNITS - 1):
        request = driven.submit([A], 5)
        driven.turn()
        program.fault = "before the pass"
        driven.turn()
        program.fault = ""
        with pytest.raises(OSError, match="before the pass"):
            driven.collect(request)
        # The prefill between them was good, so nothing adds up.
        assert not driven.core.is_stopped, number
    waiting = [driven.submit([A], 5) for _ in range(MAX_FAILED_UNITS)]
    last = driven.submit([A], 5)
    program.fault = "before the commit"
    for request in waiting:
        driven.run(request)
    assert driven.core.is_stopped
    for request in (*waiting, last):
        with pytest.raises((OSError, EngineClosed), match="before the commit"):
            driven.collect(request)
    with pytest.raises(EngineClosed, match="stopped after a failure: OSError: before the commit"):
        driven.submit([A])
    assert driven.core.statistics().num_outstanding == 0


def test_a_failure_outside_every_unit_stops_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, program = spied()
    running, waiting = driven.submit([A], 9), driven.submit([A], 9)
    driven.turn()

    def fail(_: object) -> None:
        raise OSError("the device is gone")

    monkeypatch.setattr(program, "release", fail)
    driven.core.cancel(running)
    driven.turn()
    assert driven.core.is_stopped
    for request in (running, waiting):
        with pytest.raises(EngineClosed, match="the device is gone"):
            driven.collect(request)
    assert driven.states(running, waiting) == [RequestState.FINISHED] * 2
    assert driven.core.statistics().num_outstanding == 0


def test_drafts_that_cannot_be_made_cost_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, _ = spied()

    def fail(_: object) -> None:
        raise OSError("no drafts")

    drafting: Any = SimpleNamespace(chains=fail)
    monkeypatch.setattr(driven.core._units, "_drafting", drafting)
    assert driven.finish(driven.submit([A], 4)).text == "aaaa"
    assert driven.core.statistics().counters.num_failed_drafts == 3


def test_whoever_submits_while_the_last_unit_fails_is_answered_too() -> None:
    """The engine stops in the middle of a turn, after its messages were looked at."""
    driven, program = spied()
    late: list[Request] = []
    requests = [driven.submit([A], 5) for _ in range(MAX_FAILED_UNITS)]
    program.fault = "before the commit"
    driven.run(*requests[:-2])
    program.on_fault = lambda: late.append(driven.submit([A], 5))
    driven.run(*requests)
    assert driven.core.is_stopped
    assert late
    for request in (*requests, *late):
        with pytest.raises((OSError, EngineClosed), match="before the commit"):
            driven.collect(request)
    assert driven.core.statistics().num_outstanding == 0


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_whatever_a_consumer_raises_ends_its_own_request_only(kind: type[BaseException]) -> None:
    driven, _ = spied()
    other = driven.submit([A], 6)
    request = driven.submit([A], 6)

    def leave() -> None:
        raise kind

    request.delivery.subscribe(leave)
    driven.run(request, other)
    with pytest.raises(kind):
        driven.collect(request)
    assert driven.collect(other).text == "aaaaaa"
    assert not driven.core.is_stopped
