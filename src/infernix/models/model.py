"""What the engine needs of a language model, and nothing about how the model is built.

A test may implement these protocols with a function that returns logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch


class SequenceCache(Protocol):
    """The state that a model keeps for the tokens of one sequence."""

    @property
    def num_tokens(self) -> int:
        """Tokens that the cache holds."""
        ...

    def truncate(self, num_tokens: int) -> None:
        """Forget every token after the first `num_tokens`; ValueError where it holds fewer."""
        ...


class LanguageModel(Protocol):
    """A causal language model over token ids."""

    @property
    def num_logits(self) -> int:
        """Width of a row of logits; it may be padded beyond the tokenizer's ids."""
        ...

    @property
    def max_context(self) -> int:
        """Most tokens that one sequence may hold."""
        ...

    def new_cache(self, max_tokens: int) -> SequenceCache:
        """An empty cache with room for `max_tokens` tokens, 1 <= max_tokens <= max_context."""
        ...

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` (at least one) to the sequence of `cache` and score what may follow.

        Returns float32 [num_logits_rows, num_logits]: the logits after each of the last `num_logits_rows` of these
        tokens, 0 <= num_logits_rows <= len(token_ids). Raises ValueError where the cache has no room; the cache is then
        unchanged.
        """
        ...
