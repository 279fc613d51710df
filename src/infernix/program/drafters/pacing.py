"""How long one request's drafts are: as long as its own recent ones say that they are likely enough to be right.

A draft is judged where those before it were right. Of the drafts judged so far, N in all and R of them right,

    p = (0.8 + R) / (1 + N)

estimates the chance that the next one is right, where each counts 0.95 times as much as the one judged after it. A
chain has its k-th draft if p^k, the chance that all of it up to there is right, is at least 0.1: ten drafts at the
start, one after some that were refused, none after nine in a row. What is not tried is slowly forgotten, and so it is
tried again. Copies and a network's drafts are paced apart.

All of it follows from the request's own drafts and tokens: clocks, lanes and pauses have no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource

_NUM_RIGHT_BEFORE, _NUM_JUDGED_BEFORE = 0.8, 1.0
_LEAST_CHANCE = 0.1
_KEPT_A_DRAFT = 0.95
_KEPT_A_ROUND = 0.99


class DraftPace:
    """The length of chains from one source."""

    def __init__(self) -> None:
        self._num_right = 0.0
        self._num_judged = 0.0

    def extent(self, num_wanted: int) -> int:
        """How many of `num_wanted` drafts are worth a round."""
        chance = (_NUM_RIGHT_BEFORE + self._num_right) / (_NUM_JUDGED_BEFORE + self._num_judged)
        return min(num_wanted, int(math.log(_LEAST_CHANCE) / math.log(chance)))

    def judged(self, num_right: int, *, is_refused: bool) -> None:
        """A chain's first drafts were right; `is_refused`: the one after them was not."""
        for right in [1.0] * num_right + [0.0] * is_refused:
            self._num_right = self._num_right * _KEPT_A_DRAFT + right
            self._num_judged = self._num_judged * _KEPT_A_DRAFT + 1.0

    def passed(self) -> None:
        """A round for which there could have been drafts goes without, because so few were worth it."""
        self._num_right *= _KEPT_A_ROUND
        self._num_judged *= _KEPT_A_ROUND


class DraftPacing:
    """The pace of each source, and the chain of the round that is about to run."""

    def __init__(self) -> None:
        self._paces = {source: DraftPace() for source in DraftSource}
        self._chain = NO_DRAFTS
        self._place = 0

    def of(self, source: DraftSource) -> DraftPace:
        """The pace of chains from this source."""
        return self._paces[source]

    def propose(self, chain: DraftChain, place: int) -> None:
        """A round is about to run with these drafts for the tokens at `place` of the ledger and behind."""
        self._chain, self._place = chain, place

    def settle(self, ledger: Sequence[int]) -> None:
        """Judges the last chain by what was committed instead of it; one whose round came to nothing is forgotten."""
        committed = ledger[self._place : self._place + len(self._chain)]
        num_right = 0
        while num_right < len(committed) and committed[num_right] == self._chain.tokens[num_right]:
            num_right += 1
        if committed:
            self._paces[self._chain.source].judged(num_right, is_refused=num_right < len(committed))
        self._chain = NO_DRAFTS
