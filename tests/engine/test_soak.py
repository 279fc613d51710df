"""Many small requests, one after another and together: every answer right, nothing left behind."""

from __future__ import annotations

from tests.engine.simulation.soak import Soak, growth_of_memory


def test_memory_stays_flat() -> None:
    """A request that left half a kilobyte behind would be seen."""
    soak = Soak(seed=1)
    soak.run(200)
    assert growth_of_memory(soak, 100) < 50 * 1024
    counters = soak.core.statistics().counters
    assert sum(counters.requests.values()) == 350
    assert counters.num_pauses > 20
    assert counters.num_snapshot_restores > 0
    assert counters.num_replay_restores > 0
    assert counters.num_reused_prompt_tokens > 500
    assert counters.num_failed_units == 0
    soak.close()
