"""From submission to the last answer: slots, deadlines, order, cancellation, the end of the service."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine.states import RequestState
from infernix.engine.statistics import Rejection, RequestOutcome
from infernix.errors import EngineClosed, InvalidOptions, Overloaded, QueueTimeout
from infernix.results import FinishReason, GenerationStarted
from support.driven_core import VOCABULARY, DrivenCore, text_of
from support.scripted_model import preferring
from support.vocabularies import EOS_IDS, nasty_token

A, EOS = nasty_token("a"), EOS_IDS[0]
NUM_TOKENS = VOCABULARY.num_tokens


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(NUM_TOKENS, {A: 5.0, EOS: 1.0})


# Slots


def test_a_slot_is_free_when_the_request_is_done_and_let_go_of_in_whichever_order() -> None:
    driven = DrivenCore(always_a, max_pending_requests=0)
    first, second = driven.submit([A], 2), driven.submit([A], 2)
    with pytest.raises(Overloaded, match="2 requests are under way"):
        driven.submit([A], 2, during=lambda: pytest.fail("prepared"))
    driven.core.release(first)  # before it is done
    assert driven.core.statistics().num_outstanding == 2
    driven.run(first, second)
    assert driven.core.statistics().num_outstanding == 1
    driven.core.release(second)
    driven.core.release(second)
    assert driven.core.statistics().num_outstanding == 0
    assert driven.core.statistics().counters.rejections[Rejection.OVERLOADED] == 1


def test_a_slot_is_free_after_a_failed_preparation() -> None:
    driven = DrivenCore(always_a, max_concurrency=1, max_pending_requests=0)

    def refuse() -> None:
        raise InvalidOptions("no", field="x")

    for _ in range(3):
        with pytest.raises(InvalidOptions):
            driven.submit([A], during=refuse)
    statistics = driven.core.statistics()
    assert (statistics.num_outstanding, statistics.counters.rejections[Rejection.INVALID]) == (0, 3)
    assert driven.finish(driven.submit([A], 1)).text == "a"


# Deadlines


def test_a_deadline_that_has_passed_prepares_nothing() -> None:
    driven = DrivenCore(always_a)
    with pytest.raises(QueueTimeout, match="has passed"):
        driven.submit([A], deadline=driven.now, during=lambda: pytest.fail("prepared"))
    assert driven.core.statistics().num_outstanding == 0


@pytest.mark.parametrize("seconds", [29.0, 30.0])
def test_preparing_does_not_move_the_deadline(seconds: float) -> None:
    driven = DrivenCore(always_a, pending_timeout_seconds=30.0)

    def compile_for_long() -> None:
        driven.now += seconds

    if seconds < 30.0:
        request = driven.submit([A], 1, during=compile_for_long)
        assert driven.finish(request).timings.queue_seconds == 0.0
        return
    with pytest.raises(QueueTimeout, match="while it was prepared"):
        driven.submit([A], during=compile_for_long)
    assert driven.core.statistics().num_outstanding == 0


def test_waiting_ends_with_the_deadline_and_running_does_not() -> None:
    driven = DrivenCore(always_a, max_concurrency=1)
    running = driven.submit([A], 5, deadline=driven.now + 1.0)
    early, late = driven.submit([A], 1, deadline=driven.now + 2.0), driven.submit([A], 1)
    driven.turn()
    assert driven.states(running, early, late) == [
        RequestState.DECODE_READY,
        RequestState.WAITING,
        RequestState.WAITING,
    ]
    driven.now += 2.0
    driven.turn()
    assert driven.states(running, early, late) == [
        RequestState.DECODE_READY,
        RequestState.FINISHED,
        RequestState.WAITING,
    ]
    with pytest.raises(QueueTimeout, match="before a place was free"):
        driven.collect(early)
    assert driven.finish(running).num_generated_tokens == 5
    assert driven.finish(late).timings.queue_seconds == 2.0
    outcomes = driven.core.statistics().requests
    assert (outcomes[RequestOutcome.QUEUE_TIMEOUT], outcomes[RequestOutcome.OUTPUT_LIMIT]) == (1, 2)


# Order


def test_requests_get_their_places_in_the_order_of_their_readiness() -> None:
    driven = DrivenCore(always_a, max_concurrency=1)
    order: list[int] = []
    requests = [driven.submit([A], 2) for _ in range(4)]
    for _ in range(40):
        driven.turn()
        order += [request.number for request in requests if request.lane is not None]
    assert list(dict.fromkeys(order)) == [request.number for request in requests]


def test_chunks_of_a_prompt_come_between_the_rounds_of_others() -> None:
    driven = DrivenCore(always_a, prefill_chunk_tokens=3)
    short = driven.submit([A], 20)
    driven.turn()
    long = driven.submit([A] * 8, 2)
    driven.run(long)
    assert driven.model.batches == [[1], [1], [3], [1], [3], [1], [2], [1, 1]]
    assert not short.delivery.is_done


def test_prompts_take_turns() -> None:
    driven = DrivenCore(always_a, prefill_chunk_tokens=2)
    requests = [driven.submit([A] * 4, 1) for _ in range(2)]
    driven.turn(2)
    assert [request.physical.execution_frontier for request in requests] == [2, 2]


# What is published


def test_the_start_comes_once_and_first_when_the_request_gets_its_place() -> None:
    driven = DrivenCore(always_a, prefill_chunk_tokens=2)
    request = driven.submit([A, A, A], 2)
    assert request.delivery.take() == []
    driven.turn()
    assert request.delivery.take() == [GenerationStarted(3, 0)]
    driven.run(request)
    assert text_of(request.delivery.take()) == "aa"


def test_events_join_to_the_result_and_come_with_their_commit() -> None:
    driven = DrivenCore(always_a)
    request = driven.submit([A], 3)
    seen = []
    while not request.delivery.is_done:
        driven.turn()
        seen.append(text_of(request.delivery.take()))
    assert seen == ["a", "a", "a"]
    result = driven.collect(request)
    assert (result.text, result.num_generated_tokens, result.request_id) == ("aaa", 3, request.number)
    assert (result.scheduling.num_prefill_units, result.scheduling.num_decode_rounds) == (1, 2)


@pytest.mark.parametrize("language", [None, [b"", b"a"]])
def test_a_budget_of_nothing_is_no_finished_answer(language: list[bytes] | None) -> None:
    driven = DrivenCore(always_a, prefill_chunk_tokens=2)
    result = driven.finish(driven.submit([A, A, A], 0, language=language))
    assert (result.text, result.finish_reason, driven.model.units) == ("", FinishReason.OUTPUT_LIMIT, [2, 1])
    assert result.constraint is None or not result.constraint.terminated
    assert (result.timings.first_token_seconds, result.timings.generation_wall_seconds) == (None, 0.0)


def test_a_budget_used_up_with_the_content_is_complete_and_not_terminated() -> None:
    driven = DrivenCore(always_a)
    result = driven.finish(driven.submit([A], 1, language=[b"a"]))
    assert result.constraint is not None
    assert (result.constraint.complete, result.constraint.terminated) == (True, False)
    assert result.finish_reason is FinishReason.OUTPUT_LIMIT


# Cancellation


@pytest.mark.parametrize("num_cycles", [0, 1, 2, 3, 4])
def test_cancelling_is_a_result_at_every_stage(num_cycles: int) -> None:
    driven = DrivenCore(always_a, prefill_chunk_tokens=2)
    request = driven.submit([A] * 4, 10, language=[b"aaaaaaaa"])
    driven.turn(num_cycles)
    driven.core.cancel(request)
    driven.core.cancel(request)
    driven.turn()
    result = driven.collect(request)
    assert (result.finish_reason, len(result.text)) == (FinishReason.CANCELLED, max(0, num_cycles - 1))
    assert result.constraint is not None
    assert not result.constraint.complete
    statistics = driven.core.statistics()
    assert (driven.num_held_positions, statistics.num_running, statistics.num_outstanding) == (0, 0, 0)
    assert statistics.requests[RequestOutcome.CANCELLED] == 1
    driven.turn()
    assert driven.core.is_idle


def test_cancelling_one_that_waits_leaves_the_others_in_their_order() -> None:
    driven = DrivenCore(always_a, max_concurrency=1)
    first, second, third = (driven.submit([A], 2) for _ in range(3))
    driven.turn()
    driven.core.cancel(second)
    driven.turn()
    assert driven.states(first, second, third)[1:] == [RequestState.FINISHED, RequestState.WAITING]
    assert driven.collect(second).text == ""
    assert driven.finish(third).text == "aa"


def test_cancelling_after_the_end_changes_nothing() -> None:
    driven = DrivenCore(always_a)
    request = driven.submit([A], 1)
    driven.run(request)
    driven.core.cancel(request)
    driven.turn()
    assert driven.collect(request).finish_reason is FinishReason.OUTPUT_LIMIT


# The end of the service


def test_stopping_answers_everybody() -> None:
    driven = DrivenCore(always_a, max_concurrency=1)
    done = driven.submit([A], 1)
    driven.run(done)
    running, waiting = driven.submit([A] * 3, 9), driven.submit([A], 9)
    driven.turn(2)
    new = driven.submit([A], 9)
    driven.core.stop()
    with pytest.raises(EngineClosed):
        driven.submit([A], during=lambda: pytest.fail("prepared"))
    driven.turn()
    assert driven.core.is_stopped
    for request in (running, waiting, new):
        with pytest.raises(EngineClosed):
            driven.collect(request)
    assert driven.collect(done).text == "a"
    statistics = driven.core.statistics()
    assert (driven.num_held_positions, statistics.num_outstanding, statistics.num_waiting) == (0, 0, 0)
    assert statistics.requests[RequestOutcome.CLOSED] == 3


def test_a_request_prepared_while_the_engine_closes_is_not_lined_up() -> None:
    driven = DrivenCore(always_a)
    with pytest.raises(EngineClosed):
        driven.submit([A], during=driven.core.stop)
    assert driven.core.statistics().num_outstanding == 0


# Sums


def test_every_request_is_settled_in_the_sums() -> None:
    driven = DrivenCore(always_a)
    driven.finish(driven.submit([A, A], 2, language=[b"a"]))
    driven.finish(driven.submit([A, A], 1, language=[b"a"]))
    cut = driven.submit([A, A], 3, language=[b"aaaa"])
    driven.finish(cut)
    free = driven.submit([A, A], 3)
    driven.finish(free)
    counters = driven.core.statistics().counters
    assert {outcome.value: count for outcome, count in counters.constraint_requests.items() if count} == {
        "terminated": 1,
        "complete": 1,
        "incomplete": 1,
    }
    assert {access.value: count for access, count in counters.constraint_cache.items() if count} == {"hit": 3}
    assert (counters.num_prompt_tokens, counters.num_generated_tokens) == (8, 9)
    assert counters.mask_positions == 2 + 1 + 3
    assert counters.num_first_tokens == 4
    assert (counters.num_decode_rounds, counters.num_decode_rows) == (5, 5)


def test_times_are_read_from_the_engines_clock() -> None:
    steps: list[Any] = []

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        driven.now += 2.0
        steps.append(so_far)
        return np.asarray(always_a(so_far))

    driven = DrivenCore(script, max_concurrency=2)

    def compile_for_long() -> None:
        driven.now += 0.5

    request = driven.submit([A], 3, during=compile_for_long)
    driven.now += 1.0
    driven.turn()
    other = driven.submit([A], 3)
    driven.run(request, other)
    timings = driven.collect(request).timings
    assert timings.queue_seconds == 1.0
    assert timings.prefill_seconds == 2.0
    assert timings.first_token_seconds == 3.5
    # Beside its second round another prompt ran, and the third was for both.
    assert (timings.decode_seconds, timings.decode_share_seconds) == (6.0, 4.0)
    assert timings.generation_wall_seconds == 8.0
    assert timings.total_seconds == 11.5
