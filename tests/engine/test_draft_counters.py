from __future__ import annotations

from infernix.engine.draft_counters import DraftCounters, total
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource
from infernix.results import DraftCounts


def test_rounds_drafts_and_places_are_counted_by_source() -> None:
    counters = DraftCounters()
    counters.add(DraftChain((5, 6, 7), source=DraftSource.COPY), 2)
    counters.add(DraftChain((5, 6), source=DraftSource.NETWORK), 0)
    counters.add(NO_DRAFTS, 0)
    counters.add(DraftChain((5,), source=DraftSource.NETWORK), 1)
    assert (counters.num_rounds, counters.num_fallback_rounds) == (3, 1)
    assert counters.of(DraftSource.COPY) == DraftCounts(3, 2)
    assert counters.of(DraftSource.NETWORK) == DraftCounts(3, 1)
    assert (total(counters.num_drafted), total(counters.num_accepted)) == (6, 3)
    assert counters.accepted_per_position == [2, 1]


def test_a_copy_stays_as_it_is() -> None:
    counters = DraftCounters()
    counters.add(DraftChain((5, 6)), 1)
    counters.wait_seconds = 0.5
    copied = counters.copy()
    counters.add(DraftChain((5, 6)), 2)
    counters.wait_seconds = 1.0
    assert copied.num_rounds == 1
    assert copied.of(DraftSource.NETWORK) == DraftCounts(2, 1)
    assert copied.accepted_per_position == [1]
    assert copied.wait_seconds == 0.5
