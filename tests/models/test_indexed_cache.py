"""Index keys go wherever keys and values go."""

from __future__ import annotations

import pytest
import torch

from infernix.models.cache import BLOCK_TOKENS, KVSnapshot
from infernix.models.indexed_cache import IndexedKVCache, IndexedKVPool

LENGTH = BLOCK_TOKENS + 5


def pool_of(num_blocks: int) -> IndexedKVPool:
    pool = IndexedKVPool(2, 1, num_blocks * BLOCK_TOKENS, 4, 3)
    for tensor in (pool.keys, pool.values, pool.index_keys):
        tensor.zero_()
    return pool


def filled(pool: IndexedKVPool) -> IndexedKVCache:
    cache = pool.new_cache(100)
    assert cache.reserve(LENGTH)
    pool.index_keys[:, cache.positions(0, LENGTH)] = numbers()
    cache.advance(LENGTH)
    return cache


def numbers() -> torch.Tensor:
    return torch.arange(2.0 * LENGTH * 3).view(2, LENGTH, 3)


def index_keys_of(cache: IndexedKVCache) -> torch.Tensor:
    return cache.pool.index_keys[:, cache.positions(0, cache.num_tokens)]


def test_a_fork_that_grows_takes_its_own_block_with_it() -> None:
    pool = pool_of(4)
    cache = filled(pool)
    fork = cache.fork(LENGTH - 2, 100)
    assert fork.reserve(LENGTH)
    pool.index_keys[:, fork.positions(LENGTH - 2, LENGTH)] = -1.0
    fork.advance(2)
    assert torch.equal(index_keys_of(cache), numbers())
    assert torch.equal(index_keys_of(fork)[:, : LENGTH - 2], numbers()[:, : LENGTH - 2])
    assert (index_keys_of(fork)[:, LENGTH - 2 :] == -1.0).all()
    fork.release()
    cache.release()
    assert pool.num_free_positions == pool.num_positions


def test_a_snapshot_brings_them_back() -> None:
    pool = pool_of(2)
    cache = filled(pool)
    snapshot = cache.snapshot()
    assert snapshot.num_bytes == 4 * 2 * LENGTH * (4 + 4 + 3)
    cache.release()
    pool.index_keys.fill_(torch.nan)
    other = pool.new_cache(100)
    assert other.restore(snapshot)
    assert torch.equal(index_keys_of(other), numbers())
    assert not pool.new_cache(100).restore(snapshot)
    with pytest.raises(TypeError, match="expected an IndexedKVSnapshot"):
        pool.new_cache(100).restore(KVSnapshot(snapshot.keys, snapshot.values))


def test_an_empty_snapshot() -> None:
    cache = pool_of(1).new_cache(10)
    snapshot = cache.snapshot()
    assert (snapshot.num_tokens, snapshot.num_bytes) == (0, 0)
    assert cache.restore(snapshot)
