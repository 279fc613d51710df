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
    for seed in range(1000, 1050):
        happened += run_schedule(seed)
    for name in (
        *("pause_snapshot", "pause_replay", "replay_chunk", "restored", "append_forced_tokens", "cancel", "close"),
        *("QueueTimeout", "Overloaded", "refused", "dead_end", "reused exactly", "reused in part", "bypassed"),
        *("guessed drafts", "accepted drafts", "strikes", "unread", "followed", "rows with drawn drafts"),
        *("contexts lost", "contexts after a snapshot", "contexts after a replay"),
        *("contexts behind a prefix", "contexts behind forced tokens"),
    ):
        assert happened[name], name
    num_drafted, num_copied = happened["rows that a network may draft for"], happened["rows that may be copied to"]
    shares = {
        "network": happened["rows with network drafts"] / num_drafted,
        "accepted network": happened["rows with accepted network drafts"] / num_drafted,
        "copy": happened["rows with copy drafts"] / num_copied,
        "accepted copy": happened["rows with accepted copy drafts"] / num_copied,
    }
    assert all(share > 0.05 for share in shares.values()), shares
