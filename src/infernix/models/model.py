"""What the engine needs of a language model, and nothing about how the model is built.

A test may implement these protocols with a function that returns logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch


class CacheSnapshot(Protocol):
    """What a cache held, in the host's memory; it outlives the cache."""

    @property
    def num_tokens(self) -> int:
        """Tokens that it has."""
        ...

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        ...


class SequenceCache(Protocol):
    """The state that a model keeps for the tokens of one sequence: keys and values, or recurrent state, or both."""

    @property
    def num_tokens(self) -> int:
        """Tokens that the cache holds."""
        ...

    def reserve(self, num_tokens: int) -> bool:
        """Make sure of room for `num_tokens` tokens in all, present ones included.

        False, and nothing changes, where the pool has none or the cache would grow past its own limit.
        """
        ...

    def truncate(self, num_tokens: int) -> None:
        """Forget every token after the first `num_tokens`, exactly as if only those had been run.

        It may go back to any length that the last forward pass found or made. A cache of keys and values alone may go
        back anywhere. ValueError where the cache holds fewer tokens, or has no state for so few.
        """
        ...

    def num_forkable(self, num_tokens: int) -> int:
        """The greatest count up to `num_tokens` (of those held) at which the cache can be forked; perhaps 0."""
        ...

    def fork(self, num_tokens: int, max_tokens: int) -> SequenceCache:
        """Another cache with the first `num_tokens` tokens, for at most `max_tokens`.

        Neither sees what the other appends later. ValueError where `num_tokens` is no count that can be forked.
        """
        ...

    def snapshot(self) -> CacheSnapshot:
        """A copy of what is held, for `restore`."""
        ...

    def restore(self, snapshot: Any) -> bool:
        """Fill an empty cache with what a snapshot of the same model's cache has, bit for bit.

        False, and nothing changes, where there is no room. ValueError where the cache is not empty.
        """
        ...

    def release(self) -> None:
        """Forget everything and give the memory back; the cache may be filled anew."""
        ...


class CachePool(Protocol):
    """Memory that the caches of many sequences take their room from; all of it is allocated at once."""

    @property
    def num_positions(self) -> int:
        """Tokens that there is memory for, in all sequences together."""
        ...

    @property
    def num_free_positions(self) -> int:
        """Of them, those that no sequence holds."""
        ...

    def new_cache(self, max_tokens: int) -> SequenceCache:
        """An empty cache without room, which will never hold more than `max_tokens` tokens."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One sequence of a batch: tokens (at least one) to append to it, and after how many of them logits are wanted."""

    token_ids: Sequence[int]
    cache: SequenceCache
    num_logits_rows: int = 1


class LanguageModel(Protocol):
    """A causal language model over token ids.

    What a sequence gets may differ by rounding with the batch around it and with how its tokens are split into calls:
    products of another shape add up in another order. Equal calls give equal results.
    """

    @property
    def num_logits(self) -> int:
        """Width of a row of logits; it may be padded beyond the tokenizer's ids."""
        ...

    @property
    def max_context(self) -> int:
        """Most tokens that one sequence may hold."""
        ...

    @property
    def device(self) -> torch.device:
        """Where logits are."""
        ...

    def new_pool(self, num_positions: int, num_sequences: int) -> CachePool:
        """Memory for caches that hold at most `num_positions` tokens together.

        `num_sequences` bounds the caches that hold recurrent state at a time; keys and values know no such bound.
        """
        ...

    def new_cache(self, max_tokens: int) -> SequenceCache:
        """An empty cache with a pool of its own for `max_tokens` tokens, 1 <= max_tokens <= max_context."""
        ...

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        """Append `token_ids` (at least one) to the sequence of `cache` and score what may follow.

        Returns float32 [num_logits_rows, num_logits]: the logits after each of the last `num_logits_rows` of these
        tokens, 0 <= num_logits_rows <= len(token_ids). Raises ValueError where the cache has no room; its tokens are
        then unchanged.
        """
        ...

    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        """`forward` of several sequences at once: float32 [sum of num_logits_rows, num_logits], row after row.

        Every cache is of one pool. Raises ValueError, with every cache's tokens unchanged, where one has no room or is
        there twice.
        """
        ...
