"""What a drafter has read and has yet to read, in memory of either kind."""

from __future__ import annotations

import pytest
import torch

from infernix.models.cache import BLOCK_TOKENS, KVCache, KVPool
from infernix.models.indexed_cache import IndexedKVPool
from infernix.program.drafters.context import DraftContext

WIDTH = 3
LAG = 1
NUM_READ = BLOCK_TOKENS + 4
NUM_KNOWN = NUM_READ + 3
MAX_TOKENS = 100


@pytest.fixture(params=["keys and values", "with index keys"])
def pool(request: pytest.FixtureRequest) -> KVPool:
    if request.param == "keys and values":
        return KVPool(1, 1, 6 * BLOCK_TOKENS, 4)
    return IndexedKVPool(1, 1, 6 * BLOCK_TOKENS, 4, 2)


def features(begin: int, end: int) -> torch.Tensor:
    """Every position has its own."""
    return torch.arange(begin, end).unsqueeze(1).expand(-1, WIDTH).float()


def tensors_of(cache: KVCache) -> list[torch.Tensor]:
    """What the cache holds at its positions, kind by kind, positions first."""
    if not cache.num_tokens:
        return []
    where, pool = cache.positions(0, cache.num_tokens), cache.pool
    found = [tensor[0, 0, where] for tensor in (pool.keys, pool.values)]
    return [*found, pool.index_keys[0, where]] if isinstance(pool, IndexedKVPool) else found


def read(cache: KVCache, num_tokens: int, sign: float = 1.0) -> None:
    """Writes as a drafter does: each position has its own number, the sign says who wrote it."""
    begin = cache.num_tokens
    assert cache.reserve(begin + num_tokens)
    where, pool = cache.positions(begin, begin + num_tokens), cache.pool
    numbers = sign * torch.arange(begin + 1.0, begin + num_tokens + 1).unsqueeze(1)
    pool.keys[0, 0, where] = pool.values[0, 0, where] = numbers
    if isinstance(pool, IndexedKVPool):
        pool.index_keys[0, where] = numbers
    cache.advance(num_tokens)


def signs(cache: KVCache) -> list[float]:
    """Who wrote the positions; every one of them has its own number, in tensors of all kinds."""
    numbers = torch.arange(1.0, cache.num_tokens + 1).unsqueeze(1)
    every = [(tensor / numbers) for tensor in tensors_of(cache)]
    for tensor in every:
        assert torch.equal(tensor, every[0][:, :1].expand_as(tensor))
    return [] if not every else every[0][:, 0].tolist()


def context_of(pool: KVPool) -> DraftContext:
    """Of a sequence that a drafter with a lag has read up to NUM_READ."""
    context = DraftContext(pool.new_cache(MAX_TOKENS), features(0, 0))
    context.unit = features(0, NUM_KNOWN)
    context.accept(NUM_KNOWN)
    read(context.cache, NUM_READ)
    context.keep_from(NUM_READ - LAG)
    return context


def test_a_unit_is_taken_over_in_part(pool: KVPool) -> None:
    context = context_of(pool)
    assert (context.num_known, context.num_unread) == (NUM_KNOWN, 3)
    context.unit = features(NUM_KNOWN, NUM_KNOWN + 5)
    context.accept(2)
    assert (context.num_known, context.num_unread, context.unit) == (NUM_KNOWN + 2, 5, None)
    assert torch.equal(context.part(NUM_READ, NUM_KNOWN + 2), features(NUM_READ, NUM_KNOWN + 2))
    context.unit = features(0, 4)
    context.accept(0)
    assert (context.num_known, context.unit) == (NUM_KNOWN + 2, None)


def test_a_fork_and_its_origin_go_on_apart(pool: KVPool) -> None:
    """Behind positions that were read the fork reads the last one anew: another token follows there."""
    context = context_of(pool)
    for num_tokens, num_kept in [(NUM_READ, NUM_READ - LAG), (NUM_KNOWN, NUM_READ)]:
        fork = context.fork(num_tokens, LAG, MAX_TOKENS)
        assert fork is not None
        assert (fork.cache.num_tokens, fork.num_known) == (num_kept, num_tokens)
        assert torch.equal(fork.part(num_kept, num_tokens), features(num_kept, num_tokens))
        read(fork.cache, num_tokens - num_kept, sign=-1.0)
        assert signs(fork.cache) == [1.0] * num_kept + [-1.0] * (num_tokens - num_kept)
        assert signs(context.cache) == [1.0] * NUM_READ
        fork.clear()
    # Features before those that are kept are gone.
    assert context.fork(NUM_READ - LAG, LAG, MAX_TOKENS) is None
    assert context.fork(NUM_KNOWN + 1, LAG, MAX_TOKENS) is None
    context.unit = features(NUM_KNOWN, NUM_KNOWN + 1)
    with_unit = context.fork(NUM_KNOWN + 1, LAG, MAX_TOKENS)
    assert with_unit is not None
    assert with_unit.num_unread == 4
    with_unit.clear()
    context.clear()
    assert pool.num_free_positions == pool.num_positions


def test_guesses_are_forgotten_and_their_room_is_written_again(pool: KVPool) -> None:
    context = context_of(pool)
    read(context.cache, 5, sign=-1.0)
    context.cache.truncate(NUM_READ)
    assert signs(context.cache) == [1.0] * NUM_READ
    read(context.cache, 3)
    assert signs(context.cache) == [1.0] * NUM_KNOWN
    assert not context.cache.reserve(MAX_TOKENS + 1)


def test_a_snapshot_brings_all_back(pool: KVPool) -> None:
    context = context_of(pool)
    snapshot = context.snapshot()
    num_numbers = NUM_READ * sum(tensor.shape[1] for tensor in tensors_of(context.cache))
    assert snapshot.num_bytes == 4 * (num_numbers + (NUM_KNOWN - NUM_READ + LAG) * WIDTH)
    context.clear()
    assert (context.num_known, context.cache.num_tokens, pool.num_free_positions) == (0, 0, pool.num_positions)
    other = pool.new_cache(MAX_TOKENS)
    read(other, MAX_TOKENS, sign=-1.0)
    assert context.restore(snapshot)
    assert signs(context.cache) == [1.0] * NUM_READ
    assert torch.equal(context.part(NUM_READ, NUM_KNOWN), features(NUM_READ, NUM_KNOWN))
    context.clear()
    assert other.reserve(MAX_TOKENS)
    hoarder = pool.new_cache(pool.num_positions)
    assert hoarder.reserve(pool.num_free_positions)
    assert not context.restore(snapshot)
    assert (context.num_known, context.cache.num_tokens) == (0, 0)
