"""One physical sequence: its tokens, how far the model has run over them, and the model's memory of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.models.model import CacheSnapshot, SequenceCache
from infernix.ops.penalties import TokenCounts
from infernix.options import SamplingParameters
from infernix.program.drafters.context import ContextSnapshot, DraftContext


@dataclass(frozen=True, slots=True)
class SequenceSnapshot:
    """A sequence's memory on the host: the model's, and the drafter's where there is one."""

    cache: CacheSnapshot
    drafting: ContextSnapshot | None

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        return self.cache.num_bytes + (0 if self.drafting is None else self.drafting.num_bytes)


class PhysicalSequence:
    """The committed tokens of a request as the model sees them; only the Program changes it.

    ledger              every accepted token, prompt included
    execution_frontier  how many of them the model has run over and keeps in `cache`
    frontier_logits     what the model said after exactly those, float32 [num_logits], where it left them; None where
                        that is not known
    pending_logits      the same after the whole ledger, as long as the unit that ran it is pending
    is_paused           the model's memory was given back for now; the frontier stays where it was
    snapshot            what `cache` and `drafting` held, in the host's memory, while paused by snapshot
    drafting            a drafter's memory of the sequence; None: it is not drafted for

    Between units the last accepted token of a generating sequence, the anchor, has not been run, and neither have
    forced tokens directly before it.
    """

    def __init__(self, prompt: Sequence[int], cache: SequenceCache, sampling: SamplingParameters) -> None:
        self.ledger = list(prompt)
        self.num_prompt_tokens = len(self.ledger)
        self.execution_frontier = cache.num_tokens
        self.frontier_logits: torch.Tensor | None = None
        self.pending_logits: torch.Tensor | None = None
        self.sampling = sampling
        self.counts = TokenCounts()
        self.is_pending = False
        self.is_paused = False
        self.snapshot: SequenceSnapshot | None = None
        self.drafting: DraftContext | None = None
        self._cache: SequenceCache | None = cache

    @property
    def cache(self) -> SequenceCache:
        """The model's memory of the tokens before the execution frontier."""
        if self._cache is None:
            raise ValueError("the sequence is released")
        return self._cache

    @property
    def is_released(self) -> bool:
        """Whether the sequence has ended and its memory was given back."""
        return self._cache is None

    @property
    def num_generated_tokens(self) -> int:
        """Committed tokens after the prompt."""
        return len(self.ledger) - self.num_prompt_tokens

    @property
    def anchor(self) -> int:
        """The last accepted token, which the next decode unit runs."""
        return self.ledger[-1]

    @property
    def num_unprocessed_prompt_tokens(self) -> int:
        """Prompt tokens that prefill still has to run."""
        return max(0, self.num_prompt_tokens - self.execution_frontier)

    @property
    def num_tokens_to_replay(self) -> int:
        """Tokens before the frontier that a resumed sequence's cache lacks."""
        return 0 if self.is_paused else max(0, self.execution_frontier - self.cache.num_tokens)

    def require_ready(self) -> None:
        """ValueError unless the next unit may run."""
        if self.is_released:
            raise ValueError("the sequence is released")
        if self.is_pending:
            raise ValueError("the sequence's last unit is neither committed nor aborted")
        if self.is_paused or self.num_tokens_to_replay:
            raise ValueError("the sequence is paused, or not yet replayed to its frontier")

    def take_back(self) -> None:
        """Forgets what the model ran past the frontier."""
        if self.cache.num_tokens > self.execution_frontier:
            self.cache.truncate(self.execution_frontier)
        if self.drafting is not None:
            self.drafting.accept(0)

    def release(self) -> None:
        """Gives the model's memory back; the ledger stays readable."""
        if self._cache is not None:
            self._cache.release()
        if self.drafting is not None:
            self.drafting.clear()
        self._cache = self.drafting = None
        self.frontier_logits = self.pending_logits = self.snapshot = None
