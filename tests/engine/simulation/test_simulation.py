"""Schedules by seed; see `simulation.py`. `make conformance` runs many more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.engine.simulation.simulation import run_schedule

NUM_SCHEDULES = 120
_PER_TEST = 20


@pytest.mark.parametrize("first", range(0, NUM_SCHEDULES, _PER_TEST))
def test_schedules(first: int) -> None:
    for seed in range(first, first + _PER_TEST):
        try:
            run_schedule(seed)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise


def test_the_schedules_meet_with_everything() -> None:
    """Otherwise they would prove little."""
    happened: Counter[str] = Counter()
    for seed in range(1000, 1040):
        happened += run_schedule(seed)
    for name in (
        *("pause_snapshot", "pause_replay", "replay_chunk", "restored", "append_forced_tokens", "cancel", "close"),
        *("QueueTimeout", "Overloaded", "refused", "dead_end", "reused exactly", "reused in part"),
        *("drafts", "copied drafts", "accepted drafts", "bypassed"),
    ):
        assert happened[name], name
