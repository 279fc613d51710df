"""Beginnings that sequences share: what the model already knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.models.model import SequenceCache
from infernix.program.drafters.context import DraftContext
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A beginning that the model has run over; it holds memory of the pool until it is released.

    `logits` are what the model said after all of `tokens`, float32 [num_logits], or None. Nothing in it comes from a
    constraint or from sampling: whoever continues it does so with its own. `drafting` is a drafter's memory of
    it, None where there is none.
    """

    tokens: tuple[int, ...]
    cache: SequenceCache
    logits: torch.Tensor | None
    drafting: DraftContext | None = None

    @classmethod
    def of(cls, sequence: PhysicalSequence) -> CachedPrefix:
        """What `sequence` has run of its ledger, also in a unit that is still pending."""
        cache = sequence.cache
        num_tokens = cache.num_forkable(min(cache.num_tokens, len(sequence.ledger)))
        logits = None
        if num_tokens == sequence.execution_frontier:
            logits = sequence.frontier_logits
        elif num_tokens == len(sequence.ledger):
            logits = sequence.pending_logits
        return cls(
            tuple(sequence.ledger[:num_tokens]),
            cache.fork(num_tokens, num_tokens),
            # A row of a batch's logits would keep the whole batch's alive.
            None if logits is None else logits.clone(),
        )

    def num_reusable(self, prompt: Sequence[int]) -> int:
        """Tokens of `prompt` that need not be run: all of them only where the logits after the last are known."""
        num_common = num_common_tokens(tuple(prompt), self.tokens)
        is_exact = num_common == len(prompt) == len(self.tokens) and self.logits is not None
        if is_exact and self.cache.num_forkable(num_common) == num_common:
            return num_common
        return self.cache.num_forkable(min(num_common, len(prompt) - 1))

    def release(self) -> None:
        """Gives the memory back; sequences that continue the prefix keep theirs."""
        self.cache.release()
        if self.drafting is not None:
            self.drafting.clear()


def num_common_tokens(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """How many tokens two sequences begin with alike.

    Slices are compared, doubled up to the first that differs and then halved: no Python step for each token.
    """
    low, end = 0, min(len(first), len(second))
    high = min(64, end)
    while first[low:high] == second[low:high]:
        if high == end:
            return end
        low, high = high, min(2 * high, end)
    while high - low > 1:  # alike before `low`, and different somewhere before `high`
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low
