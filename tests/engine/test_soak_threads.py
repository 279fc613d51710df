"""A real worker and eight threads that submit, consume, cancel and let go as they like."""

from __future__ import annotations

import itertools
import threading
from random import Random

import pytest

from infernix.engine import Engine
from infernix.errors import EngineClosed
from tests.engine.simulation.catalogue import Entry, catalogue
from tests.engine.simulation.threads import Crowd, crowded_engine

NUM_THREADS = 8


def settled(engine: Engine) -> None:
    """Waits until the last dropped requests have ended; then nothing may be left."""
    # A request behind all others: requests that were let go of end before it.
    for entry in catalogue()[:2]:
        with engine.submit(entry.prompt, entry.wanted.options) as handle:
            handle.wait_for_end()
    for _ in range(60_000):
        if not engine.statistics().num_outstanding:
            break
        threading.Event().wait(0.001)
    statistics = engine.statistics()
    assert statistics.num_outstanding == statistics.num_waiting == statistics.num_paused == 0


@pytest.mark.parametrize("drafts", [{}, {"ngram_draft_tokens": 4, "ngram_min_match": 4}], ids=["plain", "drafts"])
def test_eight_threads_get_the_answers_that_they_would_get_alone(drafts: dict[str, int]) -> None:
    engine, model = crowded_engine(**drafts)
    with engine:
        crowd = Crowd(engine)
        crowd.run(NUM_THREADS, 30)
        settled(engine)
        counters = engine.statistics().counters
        assert sum(counters.requests.values()) == sum(crowd.outcomes.values()) + 2
        assert counters.num_failed_units == 0
        assert counters.num_pauses > 0
        assert (counters.num_drafted > 0) == bool(drafts)
    assert set(crowd.outcomes) >= {"waited", "streamed", "subscribed", "cancelled", "dropped"}
    [pool] = model.pools
    pool.check_held_by([])


def test_more_requests_than_slots_are_refused_and_the_others_served() -> None:
    engine, model = crowded_engine(max_pending_requests=0)
    with engine:
        crowd = Crowd(engine, may_overload=True)
        crowd.run(NUM_THREADS, 15)
        settled(engine)
        assert engine.is_available
    assert crowd.outcomes["waited"] > 0
    model.pools[0].check_held_by([])


class ClosingCrowd(Crowd):
    """Whoever comes to make a certain request closes the engine before it, with some others at the same time."""

    def __init__(self, engine: Engine, num_requests_before: int, num_threads: int) -> None:
        super().__init__(engine, may_close=True)
        self._num_requests_before = num_requests_before
        self._num_threads = num_threads
        self._begun = itertools.count()

    def _one(self, rng: Random, entry: Entry) -> None:
        if next(self._begun) == self._num_requests_before:
            others = [threading.Thread(target=self._engine.close) for _ in range(self._num_threads - 1)]
            for thread in others:
                thread.start()
            self._engine.close()
            for thread in others:
                thread.join()
        super()._one(rng, entry)


@pytest.mark.parametrize("num_threads_that_close", [1, 3])
def test_closing_while_busy_answers_everybody(num_threads_that_close: int) -> None:
    for num_requests_before in (0, 12, 40):
        engine, model = crowded_engine()
        crowd = ClosingCrowd(engine, num_requests_before, num_threads_that_close)
        crowd.run(NUM_THREADS, 10)
        assert not engine.is_available
        assert crowd.outcomes["EngineClosed"] > 0
        with pytest.raises(EngineClosed):
            engine.generate("a")
        model.pools[0].check_held_by([])
