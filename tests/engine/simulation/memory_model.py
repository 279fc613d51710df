"""A model that keeps its tokens where others keep keys: in the blocks of a real pool, shared and copied like them.

A wrong block, copy, truncation or restoration changes the tokens that the script sees, and so the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from infernix.models import cache as blocks
from infernix.models.cache import KVCache, KVPool, KVSnapshot
from infernix.models.model import ModelRow, SequenceCache
from support.scripted_model import Script


def check_blocks(pool: KVPool, caches: Sequence[KVCache]) -> None:
    """These caches hold the blocks that are not free, and nobody else holds any."""
    holders = Counter(block for cache in caches for block in cache.blocks)
    for block, num_holders in enumerate(pool._num_holders):
        assert num_holders == holders[block], "memory has leaked, or is held by nobody"
    assert pool.num_free_positions == (len(pool._num_holders) - len(holders)) * blocks.BLOCK_TOKENS


class MemoryPool:
    """Blocks of a real pool. Caches of a recurrent model also claim slots: two to grow, one to keep what they have."""

    def __init__(self, num_positions: int, num_sequences: int, is_recurrent: bool) -> None:
        self.kv = KVPool(1, 1, num_positions, 1, dtype=torch.int64)
        self.is_recurrent = is_recurrent
        self.num_slots = self.num_slots_left = 2 * num_sequences

    @property
    def num_positions(self) -> int:
        return self.kv.num_positions

    @property
    def num_free_positions(self) -> int:
        return self.kv.num_free_positions

    def new_cache(self, max_tokens: int) -> MemoryCache:
        return MemoryCache(self, KVCache(self.kv, max_tokens))

    def check_held_by(self, caches: Sequence[MemoryCache]) -> None:
        """These caches hold the blocks and the slots that are not free, and nobody else holds any."""
        assert self.num_slots_left + sum(cache.num_claimed for cache in caches) == self.num_slots
        check_blocks(self.kv, [cache.kv for cache in caches])


class MemoryCache:
    """One sequence's blocks. That of a recurrent model can go back only within the last pass, and be forked only where
    it ends.
    """

    def __init__(self, pool: MemoryPool, kv: KVCache) -> None:
        self.pool = pool
        self.kv = kv
        self.last_begin = kv.num_tokens
        self.num_claimed = 0

    @property
    def num_tokens(self) -> int:
        return self.kv.num_tokens

    @property
    def tokens(self) -> list[int]:
        """What the model has run."""
        if not self.num_tokens:
            return []
        tokens: list[int] = self.pool.kv.keys[0, 0, self.kv.positions(0, self.num_tokens), 0].tolist()
        return tokens

    def reserve(self, num_tokens: int) -> bool:
        return self._claim(2 if num_tokens > self.num_tokens else 0, lambda: self.kv.reserve(num_tokens))

    def truncate(self, num_tokens: int) -> None:
        assert num_tokens >= self.last_begin or not self.pool.is_recurrent, "there is no state for so few tokens"
        self.kv.truncate(num_tokens)

    def num_forkable(self, num_tokens: int) -> int:
        if not self.pool.is_recurrent:
            return self.kv.num_forkable(num_tokens)
        if not self.pool.num_slots_left:
            return 0
        return next((count for count in (self.num_tokens, self.last_begin) if count <= num_tokens), 0)

    def fork(self, num_tokens: int, max_tokens: int) -> MemoryCache:
        assert self.num_forkable(num_tokens) == num_tokens, "the cache cannot be forked there"
        other = MemoryCache(self.pool, self.kv.fork(num_tokens, max_tokens))
        if num_tokens:
            assert other._claim(1, lambda: True)
        return other

    def snapshot(self) -> KVSnapshot:
        return self.kv.snapshot()

    def restore(self, snapshot: KVSnapshot) -> bool:
        is_restored = self._claim(1, lambda: self.kv.restore(snapshot))
        self.last_begin = self.num_tokens
        return is_restored

    def release(self) -> None:
        self.kv.release()
        self.last_begin = 0
        self.pool.num_slots_left += self.num_claimed
        self.num_claimed = 0

    def append(self, token_ids: Sequence[int]) -> None:
        begin = self.last_begin = self.num_tokens
        if not self.reserve(begin + len(token_ids)):
            raise ValueError("no room")
        where = self.kv.positions(begin, begin + len(token_ids))
        assert not any(self.pool.kv.is_shared(block) for block in self.kv.blocks[begin // blocks.BLOCK_TOKENS :])
        self.pool.kv.keys[0, 0, where, 0] = torch.tensor(token_ids)
        self.kv.advance(len(token_ids))

    def _claim(self, num_slots: int, take_room: Callable[[], bool]) -> bool:
        """Has so many slots at least, if there is room too."""
        num_missing = max(0, num_slots - self.num_claimed) if self.pool.is_recurrent else 0
        if num_missing > self.pool.num_slots_left or not take_room():
            return False
        self.pool.num_slots_left -= num_missing
        self.num_claimed += num_missing
        return True


class MemoryModel:
    """Calls `script(all tokens so far)` for the logits after each token. `pools` are all that were made."""

    device = torch.device("cpu")

    def __init__(self, script: Script, num_logits: int, max_context: int, *, is_recurrent: bool) -> None:
        self.script = script
        self.num_logits = num_logits
        self.max_context = max_context
        self.is_recurrent = is_recurrent
        self.pools: list[MemoryPool] = []

    def new_pool(self, num_positions: int, num_sequences: int) -> MemoryPool:
        self.pools.append(MemoryPool(num_positions, num_sequences, self.is_recurrent))
        return self.pools[-1]

    def new_cache(self, max_tokens: int) -> MemoryCache:
        return self.new_pool(max_tokens, 1).new_cache(max_tokens)

    def forward(self, token_ids: Sequence[int], cache: SequenceCache, num_logits_rows: int = 1) -> torch.Tensor:
        return self.forward_rows([ModelRow(token_ids, cache, num_logits_rows)])

    def forward_rows(self, rows: Sequence[ModelRow]) -> torch.Tensor:
        return torch.cat([self._append(row) for row in rows])

    def _append(self, row: ModelRow) -> torch.Tensor:
        cache: Any = row.cache
        assert row.token_ids, "a forward pass needs a token"
        cache.append(row.token_ids)
        if not row.num_logits_rows:
            return torch.empty((0, self.num_logits))
        tokens = tuple(cache.tokens)
        ends = range(len(tokens) - row.num_logits_rows + 1, len(tokens) + 1)
        return torch.from_numpy(np.stack([np.asarray(self.script(tokens[:end]), dtype=np.float32) for end in ends]))
