"""Schedules by seed; see `simulation.py`. `make conformance` runs many more."""

from __future__ import annotations

import pytest

from tests.engine.simulation.simulation import run_schedule


@pytest.mark.parametrize("seed", range(60))
def test_a_schedule(seed: int) -> None:
    run_schedule(seed)
