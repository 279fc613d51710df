"""Keys and values with a third vector beside them, by which attention chooses the positions that it reads.

Letters in shapes: A attending layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from infernix.models.cache import BLOCK_TOKENS, KVCache, KVPool, KVSnapshot


@dataclass(frozen=True, slots=True)
class IndexedKVSnapshot(KVSnapshot):
    """A sequence in the host's memory; index_keys are [A, num_tokens, index_dim]."""

    index_keys: torch.Tensor

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        return self.keys.nbytes + self.values.nbytes + self.index_keys.nbytes


class IndexedKVPool(KVPool):
    """A KVPool whose positions have index keys too.

    index_keys   [A, num_positions, index_dim]
    """

    def __init__(
        self,
        num_layers: int,
        num_kv_heads: int,
        num_positions: int,
        head_dim: int,
        index_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_layers, num_kv_heads, num_positions, head_dim, dtype=dtype, device=device)
        self.index_keys = torch.empty((num_layers, self.num_positions, index_dim), dtype=dtype, device=device)

    def new_cache(self, max_tokens: int) -> IndexedKVCache:
        """An empty cache that holds no block yet and will never hold more than `max_tokens` tokens."""
        return IndexedKVCache(self, max_tokens)

    def copy_block(self, source: int, target: int) -> None:
        """Overwrites the block `target` with the content of `source`."""
        super().copy_block(source, target)
        begins = source * BLOCK_TOKENS, target * BLOCK_TOKENS
        copied, overwritten = (self.index_keys[:, begin : begin + BLOCK_TOKENS] for begin in begins)
        overwritten.copy_(copied)


class IndexedKVCache(KVCache):
    """The keys, values and index keys of one sequence, in blocks of a pool."""

    pool: IndexedKVPool

    def __init__(self, pool: IndexedKVPool, max_tokens: int) -> None:
        super().__init__(pool, max_tokens)

    def fork(self, num_tokens: int, max_tokens: int) -> IndexedKVCache:
        """Another cache with the first `num_tokens` tokens, for at most `max_tokens`; it takes memory when it grows."""
        plain = super().fork(num_tokens, max_tokens)
        other = IndexedKVCache(self.pool, max_tokens)
        other.blocks, other._num_tokens = plain.blocks, num_tokens
        return other

    def snapshot(self) -> IndexedKVSnapshot:
        """A copy in the host's memory, which outlives the cache."""
        plain = super().snapshot()
        where = self.positions(0, self.num_tokens) if self.num_tokens else slice(0)
        return IndexedKVSnapshot(plain.keys, plain.values, self.pool.index_keys[:, where].to("cpu", copy=True))

    def restore(self, snapshot: KVSnapshot) -> bool:
        """Fill an empty cache with a snapshot's tokens; False, and nothing changes, where there is no room."""
        if not isinstance(snapshot, IndexedKVSnapshot):
            raise TypeError(f"expected an IndexedKVSnapshot, got {type(snapshot).__name__}")
        if not super().restore(snapshot):
            return False
        if snapshot.num_tokens:
            where = self.positions(0, snapshot.num_tokens)
            self.pool.index_keys[:, where] = snapshot.index_keys.to(self.pool.index_keys.device)
        return True
