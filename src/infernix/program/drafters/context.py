"""What a drafter has read of one sequence, and what it has yet to read.

A drafter reads features of the model at positions whose tokens are accepted, never at a draft that was refused. What a
unit computes waits beside the context until the unit is committed; the drafter reads it when it next has to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.models.cache import KVCache, KVSnapshot


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """A context in the host's memory."""

    kv: KVSnapshot
    start: int
    features: torch.Tensor

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        return self.kv.num_bytes + self.features.nbytes


class DraftContext:
    """A drafter's memory of one sequence.

    cache      keys and values of the positions that were read, from the first on
    start      the position of the first of `features`, at most `cache.num_tokens`
    features   [T, width] at the positions from `start` on: all that were not read, perhaps a few that were
    unit       [T, width] at the columns of a unit that is pending, from `num_known` on; None: there is none
    """

    def __init__(self, cache: KVCache, features: torch.Tensor, start: int = 0) -> None:
        self.cache = cache
        self.start = start
        self.features = features
        self.unit: torch.Tensor | None = None

    @property
    def num_known(self) -> int:
        """Positions, from the first on, that are read or can be."""
        return self.start + len(self.features)

    @property
    def num_unread(self) -> int:
        """Positions that are known and not read."""
        return self.num_known - self.cache.num_tokens

    def accept(self, num_columns: int) -> None:
        """Takes over the first columns of the pending unit, and forgets the others."""
        if num_columns and self.unit is not None:
            # A slice would keep alive what all rows of the unit computed.
            self.features = torch.cat((self.features, self.unit[:num_columns]))
        self.unit = None

    def part(self, begin: int, end: int) -> torch.Tensor:
        """The features at the positions begin..end - 1."""
        return self.features[begin - self.start : end - self.start]

    def keep_from(self, position: int) -> None:
        """Forgets the features before a position."""
        if position > self.start:
            self.features = self.features[position - self.start :].clone()
            self.start = position

    def fork(self, num_tokens: int, lag: int, max_tokens: int) -> DraftContext | None:
        """What is known of the first `num_tokens` positions, those of a pending unit included, for a sequence that goes
        on after them in another way; of them the last `lag` have to be read anew, with the token that follows there.

        None where features that this takes are not kept.
        """
        num_read = max(0, min(self.cache.num_tokens, num_tokens - lag))
        features = self.features if self.unit is None else torch.cat((self.features, self.unit))
        if num_read < min(self.start, num_tokens) or self.start + len(features) < num_tokens:
            return None
        kept = features[max(0, num_read - self.start) : max(0, num_tokens - self.start)].clone()
        return DraftContext(self.cache.fork(num_read, max_tokens), kept, num_read)

    def snapshot(self) -> ContextSnapshot:
        """A copy in the host's memory, which outlives the context."""
        return ContextSnapshot(self.cache.snapshot(), self.start, self.features.to("cpu", copy=True))

    def restore(self, snapshot: ContextSnapshot) -> bool:
        """Fills an empty context with what a snapshot has; False, and nothing changes, where there is no room."""
        if not self.cache.restore(snapshot.kv):
            return False
        self.start, self.features = snapshot.start, snapshot.features.to(self.features.device, copy=True)
        return True

    def clear(self) -> None:
        """Forgets all and gives the memory back; the context may be filled anew."""
        self.cache.release()
        self.start, self.features, self.unit = 0, self.features[:0].clone(), None


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A context, and the accepted tokens of its sequence: at least one for every position that is known."""

    context: DraftContext
    ledger: Sequence[int]
