"""How drafts fare, counted round by round: for one request, and for all together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from infernix.program.drafters.chain import DraftChain, DraftSource
from infernix.results import DraftCounts


def _of_no_source() -> dict[DraftSource, int]:
    return dict.fromkeys(DraftSource, 0)


@dataclass(slots=True)
class DraftCounters:
    """Sums over committed rounds; a round of several requests is one round of each.

    num_rounds, num_fallback_rounds   with drafts and without
    num_drafted, num_accepted         drafts, and those of them that were committed, by what they come from
    accepted_per_position             how often the first, the second, ... draft of a round was committed
    wait_seconds                      wall seconds until the drafts of a round were there, or it was known that there
                                      are none: a request's own counters have it for each of its rounds, the engine's
                                      once a round, so those of requests do not add up to the engine's
    """

    num_rounds: int = 0
    num_fallback_rounds: int = 0
    num_drafted: dict[DraftSource, int] = field(default_factory=_of_no_source)
    num_accepted: dict[DraftSource, int] = field(default_factory=_of_no_source)
    accepted_per_position: list[int] = field(default_factory=list)
    wait_seconds: float = 0.0

    def add(self, chain: DraftChain, num_accepted: int) -> None:
        """One request's round with these drafts, perhaps none, of which the first `num_accepted` were committed."""
        if not chain:
            self.num_fallback_rounds += 1
            return
        self.num_rounds += 1
        self.num_drafted[chain.source] += len(chain)
        self.num_accepted[chain.source] += num_accepted
        self.accepted_per_position += [0] * (num_accepted - len(self.accepted_per_position))
        for place in range(num_accepted):
            self.accepted_per_position[place] += 1

    def of(self, source: DraftSource) -> DraftCounts:
        """The drafts of one source."""
        return DraftCounts(self.num_drafted[source], self.num_accepted[source])

    def copy(self) -> DraftCounters:
        """Equal counters that do not change any more."""
        return replace(
            self,
            num_drafted=dict(self.num_drafted),
            num_accepted=dict(self.num_accepted),
            accepted_per_position=list(self.accepted_per_position),
        )


def total(counts: Mapping[DraftSource, int]) -> int:
    """Of all sources together."""
    return sum(counts.values())
