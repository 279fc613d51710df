"""Memory that is short: who pauses, how it comes back, and that nobody can tell from the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine.request import Request
from infernix.engine.states import RequestState
from infernix.engine.statistics import RequestOutcome
from infernix.errors import CacheCapacityExceeded
from infernix.options import SamplingParameters
from infernix.results import FinishReason, GenerationStarted
from support.driven_core import VOCABULARY, DrivenCore
from support.scripted_model import preferring
from support.vocabularies import EOS_IDS, nasty_token

A, B, EOS = nasty_token("a"), nasty_token("b"), EOS_IDS[0]
NUM_TOKENS = VOCABULARY.num_tokens
SAMPLED = SamplingParameters(temperature=1.0, seed=7, frequency_penalty=0.5)
LANGUAGE = [bytes(text, "ascii") for text in ("abab" * 6, "baba" * 6, "aabb" * 6)]


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(NUM_TOKENS, {A: 5.0})


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    logits = np.random.default_rng(list(so_far)).standard_normal(NUM_TOKENS)
    logits[list(EOS_IDS)] = -9.0
    return logits


def tight(script: Any = always_a, **options: Any) -> DrivenCore:
    return DrivenCore(script, **{"cache_tokens": 20, "max_concurrency": 3, "max_cached_prefixes": 0, **options})


def run_until_paused(driven: DrivenCore, *requests: Request) -> Request:
    for _ in range(100):
        driven.turn()
        for request in requests:
            if request.state is RequestState.PAUSED:
                return request
    raise AssertionError("nobody pauses")


@pytest.mark.parametrize("snapshot_bytes", [0, 1000], ids=["replay", "snapshot"])
@pytest.mark.parametrize("is_recurrent", [False, True])
@pytest.mark.parametrize("sampling", [SamplingParameters(temperature=0.0), SAMPLED], ids=["greedy", "sampled"])
def test_a_pause_cannot_be_told_from_the_output(
    snapshot_bytes: int, is_recurrent: bool, sampling: SamplingParameters
) -> None:
    asked: list[dict[str, Any]] = [
        {"prompt": [A, B], "max_new_tokens": 12},
        {"prompt": [B], "max_new_tokens": 12, "language": LANGUAGE},
        {"prompt": [B, B, B], "max_new_tokens": 12},
    ]
    expected = []
    for one in asked:
        ample = DrivenCore(spread, is_recurrent=is_recurrent)
        expected.append(ample.finish(ample.submit(**one, sampling=sampling)))
    driven = tight(spread, snapshot_bytes=snapshot_bytes, is_recurrent=is_recurrent)
    requests = [driven.submit(**one, sampling=sampling) for one in asked]
    driven.run(*requests)
    num_pauses = 0
    for request, alone in zip(requests, expected, strict=True):
        result = driven.collect(request)
        assert (result.token_ids, result.text, result.finish_reason) == (
            alone.token_ids,
            alone.text,
            alone.finish_reason,
        )
        if alone.constraint is not None:
            assert result.constraint is not None
            # No mask is asked for twice: replay has no part in the constraint.
            assert result.constraint.mask_positions == alone.constraint.mask_positions
        events = request.delivery.take()
        assert sum(isinstance(event, GenerationStarted) for event in events) == 1
        scheduling = result.scheduling
        restores = (scheduling.num_snapshot_restores, scheduling.num_replay_restores)
        assert restores == ((scheduling.num_pauses, 0) if snapshot_bytes else (0, scheduling.num_pauses))
        num_pauses += scheduling.num_pauses
    counters = driven.core.statistics().counters
    assert counters.num_pauses == num_pauses >= 2
    assert driven.num_held_positions == 0


def test_the_youngest_pauses_and_the_oldest_goes_on() -> None:
    driven = tight()
    oldest, middle, youngest = (driven.submit([A] * 3, 12) for _ in range(3))
    assert run_until_paused(driven, oldest, middle, youngest) is youngest
    assert youngest.lane is None
    for _ in range(100):
        driven.turn()
        assert oldest.state is not RequestState.PAUSED
        if oldest.delivery.is_done:
            break
    driven.run(middle, youngest)
    assert [driven.collect(request).text for request in (oldest, middle, youngest)] == ["a" * 12] * 3
    assert oldest.counts.num_pauses == 0


def test_the_oldest_paused_comes_back_first_and_one_at_a_time() -> None:
    driven = tight(snapshot_bytes=0)
    requests = [driven.submit([A] * 3, 14) for _ in range(3)]
    came_back: list[int] = []
    for _ in range(300):
        before = [request.state for request in requests]
        driven.turn()
        for request, state in zip(requests, before, strict=True):
            if state is RequestState.PAUSED and request.state is not RequestState.PAUSED:
                came_back.append(request.number)
                older = [other for other in requests if other.number < request.number]
                assert not any(other.state is RequestState.PAUSED for other in older)
        assert sum(request.is_protected for request in requests) <= 1
        assert not any(request.is_protected and request.state is RequestState.PAUSED for request in requests)
    assert came_back
    assert all(request.delivery.is_done for request in requests)


def test_what_is_only_remembered_goes_before_anybody_pauses() -> None:
    driven = DrivenCore(always_a, cache_tokens=60, max_cached_prefixes=8)
    driven.finish(driven.submit([A] * 20, 1))
    assert driven.core.statistics().num_cached_positions > 0
    requests = [driven.submit([B] * 3, 26) for _ in range(2)]
    driven.run(*requests)
    statistics = driven.core.statistics()
    assert statistics.counters.num_pauses == 0
    assert [driven.collect(request).text for request in requests] == ["a" * 26] * 2


def test_snapshots_beyond_the_hosts_memory_are_revoked_youngest_first() -> None:
    driven = tight(max_concurrency=4, cache_tokens=24, snapshot_bytes=9)
    requests = [driven.submit([A] * 3, 16) for _ in range(4)]
    driven.run(*requests)
    results = [driven.collect(request) for request in requests]
    assert [result.text for result in results] == ["a" * 16] * 4
    counters = driven.core.statistics().counters
    assert counters.num_revoked_snapshots > 0
    assert counters.num_replay_restores > 0
    assert counters.num_snapshot_restores + counters.num_replay_restores == counters.num_pauses


def test_a_snapshot_that_the_host_has_no_room_for_becomes_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = tight()
    requests = [driven.submit([A] * 3, 12) for _ in range(3)]

    def refuse(_: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(driven.program, "pause_snapshot", refuse)
    driven.run(*requests)
    assert [driven.collect(request).text for request in requests] == ["a" * 12] * 3
    assert driven.core.statistics().counters.num_replay_restores > 0


@pytest.mark.parametrize("snapshot_bytes", [0, 1000])
def test_cancelling_a_paused_request(snapshot_bytes: int) -> None:
    driven = tight(snapshot_bytes=snapshot_bytes)
    requests = [driven.submit([A] * 3, 12) for _ in range(3)]
    paused = run_until_paused(driven, *requests)
    num_tokens = paused.session.num_tokens
    driven.now += 3.0
    driven.core.cancel(paused)
    driven.turn()
    result = driven.collect(paused)
    assert (result.text, result.finish_reason) == ("a" * num_tokens, FinishReason.CANCELLED)
    assert (result.timings.paused_seconds, result.scheduling.num_pauses) == (3.0, 1)
    driven.run(*requests)
    assert driven.num_held_positions == 0


def test_stopping_with_a_paused_request() -> None:
    driven = tight()
    requests = [driven.submit([A] * 3, 12) for _ in range(3)]
    run_until_paused(driven, *requests)
    driven.core.stop()
    driven.turn()
    assert all(request.delivery.is_done for request in requests)
    statistics = driven.core.statistics()
    assert (statistics.requests[RequestOutcome.CLOSED], statistics.num_paused, driven.num_held_positions) == (3, 0, 0)


def test_admission_never_pauses_anybody() -> None:
    driven = tight(cache_tokens=20)
    first, second = driven.submit([A] * 10, 4), driven.submit([A] * 15, 4)
    driven.turn(2)
    assert driven.states(first, second)[1] is RequestState.WAITING
    driven.run(first, second)
    assert [driven.collect(request).text for request in (first, second)] == ["aaaa"] * 2
    assert driven.core.statistics().counters.num_pauses == 0


def test_a_large_request_is_bypassed_by_small_ones_but_not_for_ever() -> None:
    driven = tight(cache_tokens=30, max_concurrency=2, max_pending_requests=30)
    running = driven.submit([A] * 12, 8)
    driven.turn(2)
    large = driven.submit([A] * 25, 2)
    small = [driven.submit([A], 2) for _ in range(10)]
    driven.run(running, large, *small)
    assert large.counts.num_bypassed == 2  # as many as there are lanes
    assert sum(one.times.admitted is not None for one in small) == 10
    assert driven.collect(large).scheduling.num_bypassed == 2


def test_a_request_that_no_memory_holds_fails_alone() -> None:
    driven = tight(cache_tokens=10)
    too_long, fits = driven.submit([A] * 11, 2), driven.submit([A], 3)
    driven.run(too_long, fits)
    with pytest.raises(CacheCapacityExceeded, match=r"room for 11 tokens at once.*of 10"):
        driven.collect(too_long)
    assert driven.collect(fits).text == "aaa"


@pytest.mark.parametrize("num_beside", [0, 2])
def test_a_request_that_outgrows_the_memory_fails_alone_and_keeps_what_it_said(num_beside: int) -> None:
    driven = tight(cache_tokens=10)
    growing = driven.submit([A] * 3, 20)
    others = [driven.submit([A] * 2, 5) for _ in range(num_beside)]
    driven.run(growing, *others)
    with pytest.raises(CacheCapacityExceeded, match="room for 11 tokens"):
        driven.collect(growing)
    assert growing.session.text == "a" * 8
    assert [driven.collect(other).text for other in others] == ["aaaaa"] * num_beside
    assert driven.num_held_positions == 0


def test_a_paused_request_that_no_memory_holds_any_more_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = tight()
    requests = [driven.submit([A] * 3, 12) for _ in range(3)]
    paused = run_until_paused(driven, *requests)
    monkeypatch.setattr(driven.program, "resume", lambda *_: False)
    driven.run(*requests)
    with pytest.raises(CacheCapacityExceeded):
        driven.collect(paused)
    assert driven.collect(requests[0]).text == "a" * 12
