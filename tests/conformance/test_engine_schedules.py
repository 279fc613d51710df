"""The engine's simulation and soak for long: `INFERNIX_CONFORMANCE_CASES=N` runs N schedules and 10 N requests."""

from __future__ import annotations

import os

import pytest

from tests.engine.simulation.simulation import run_schedule
from tests.engine.simulation.soak import Soak, growth_of_memory
from tests.engine.simulation.threads import Crowd, crowded_engine

NUM_CASES = int(os.environ.get("INFERNIX_CONFORMANCE_CASES", "0"))
FIRST_SEED = 100_000
_PER_TEST = 100


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + max(NUM_CASES, 1), _PER_TEST))
def test_schedules(first: int) -> None:
    for seed in range(first, min(first + _PER_TEST, FIRST_SEED + max(NUM_CASES, 1))):
        try:
            run_schedule(seed)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise


def test_an_hour_s_worth_of_requests_leaves_nothing_behind() -> None:
    soak = Soak(seed=2)
    soak.run(200 + 9 * NUM_CASES)
    assert growth_of_memory(soak, 50 + NUM_CASES) < 100 * 1024
    soak.close()


def test_a_crowd_for_long() -> None:
    engine, model = crowded_engine()
    with engine:
        Crowd(engine).run(8, 5 + NUM_CASES // 8)
    model.pools[0].check_held_by([])
