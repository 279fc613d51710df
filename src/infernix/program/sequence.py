"""One physical sequence: its tokens, how far the model has run over them, and the model's memory of them."""

from __future__ import annotations

from collections.abc import Sequence

from infernix.models.model import SequenceCache
from infernix.ops.penalties import TokenCounts
from infernix.options import SamplingParameters


class PhysicalSequence:
    """The committed tokens of a request as the model sees them; only the Program changes it.

    ledger              every accepted token, prompt included
    execution_frontier  how many of them the model has run over and keeps in `cache`

    Between units the last accepted token of a generating sequence, the anchor, has not been run, and neither have
    forced tokens directly before it.
    """

    def __init__(self, prompt: Sequence[int], cache: SequenceCache, sampling: SamplingParameters) -> None:
        self.ledger = list(prompt)
        self.num_prompt_tokens = len(self.ledger)
        self.execution_frontier = 0
        self.sampling = sampling
        self.counts = TokenCounts()
        self.is_pending = False
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

    def release(self) -> None:
        """Gives the model's memory back; the ledger stays readable."""
        self._cache = None
