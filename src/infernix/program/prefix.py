"""Beginnings that sequences share: what the model already knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.models.model import SequenceCache
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A beginning that the model has run over; it holds memory of the pool until it is released.

    `logits` are what the model said after all of `tokens`, float32 [num_logits], or None. Nothing in it comes from a
    constraint or from sampling: whoever continues it does so with its own.
    """

    tokens: tuple[int, ...]
    cache: SequenceCache
    logits: torch.Tensor | None

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
        num_common = 0
        for token, known in zip(prompt, self.tokens, strict=False):
            if token != known:
                break
            num_common += 1
        is_exact = num_common == len(prompt) == len(self.tokens) and self.logits is not None
        if is_exact and self.cache.num_forkable(num_common) == num_common:
            return num_common
        return self.cache.num_forkable(min(num_common, len(prompt) - 1))

    def release(self) -> None:
        """Gives the memory back; sequences that continue the prefix keep theirs."""
        self.cache.release()
