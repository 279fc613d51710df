"""Blocks of keys and values: who holds which, and that nobody writes into another's."""

from __future__ import annotations

import random

import pytest
import torch

from infernix.models.cache import BLOCK_TOKENS, KVCache, KVPool, num_blocks_of

LAYERS, HEADS, SIZE = 2, 1, 4


def pool_of(num_positions: int) -> KVPool:
    return KVPool(LAYERS, HEADS, num_positions, SIZE)


def write(cache: KVCache, numbers: list[int]) -> bool:
    """Appends tokens whose keys and values are their number and its negative."""
    if not cache.reserve(cache.num_tokens + len(numbers)):
        return False
    for place, number in enumerate(numbers, start=cache.num_tokens):
        position = cache.blocks[place // BLOCK_TOKENS] * BLOCK_TOKENS + place % BLOCK_TOKENS
        cache.pool.keys[:, :, position] = number
        cache.pool.values[:, :, position] = -number
    cache.advance(len(numbers))
    return True


def read(cache: KVCache) -> list[int]:
    numbers = []
    for place in range(cache.num_tokens):
        position = cache.blocks[place // BLOCK_TOKENS] * BLOCK_TOKENS + place % BLOCK_TOKENS
        key = cache.pool.keys[:, :, position].unique()
        assert torch.equal(cache.pool.values[:, :, position].unique(), -key)
        numbers.append(int(key.item()))
    if numbers:
        where = cache.positions(0, len(numbers))
        assert cache.pool.keys[0, 0, where, 0].tolist() == numbers
        middle = cache.positions(len(numbers) // 2, len(numbers))
        assert cache.pool.values[-1, -1, middle, -1].tolist() == [-number for number in numbers[len(numbers) // 2 :]]
    return numbers


def test_counts() -> None:
    cache = pool_of(5).new_cache(5)
    assert cache.reserve(5)
    cache.advance(3)
    with pytest.raises(ValueError, match="no room for 3 tokens after 3 of 5"):
        cache.advance(3)
    with pytest.raises(ValueError, match="cannot keep 4 of 3"):
        cache.truncate(4)
    with pytest.raises(ValueError, match="cannot share 4 of 3"):
        cache.fork(4, 5)
    cache.truncate(1)
    assert cache.num_tokens == 1


def test_room_is_taken_in_blocks_and_given_back() -> None:
    pool = pool_of(3 * BLOCK_TOKENS - 5)
    assert pool.num_positions == pool.num_free_positions == 3 * BLOCK_TOKENS
    first, second = pool.new_cache(1000), pool.new_cache(1000)
    assert first.reserve(1)
    assert first.reserve(BLOCK_TOKENS)
    assert pool.num_free_positions == 2 * BLOCK_TOKENS
    assert not second.reserve(2 * BLOCK_TOKENS + 1)
    assert pool.num_free_positions == 2 * BLOCK_TOKENS
    assert second.reserve(2 * BLOCK_TOKENS)
    assert not first.reserve(BLOCK_TOKENS + 1)
    second.release()
    assert first.reserve(BLOCK_TOKENS + 1)
    assert pool.num_free_positions == BLOCK_TOKENS


def test_a_cache_never_outgrows_its_own_limit() -> None:
    cache = pool_of(1000).new_cache(40)
    assert not cache.reserve(41)
    assert cache.reserve(40)


def test_sequences_that_grow_by_turns_keep_their_blocks_together() -> None:
    pool = pool_of(32 * BLOCK_TOKENS)
    caches = [pool.new_cache(1000) for _ in range(4)]
    for round_number in range(8):
        for cache in caches:
            assert write(cache, [round_number] * BLOCK_TOKENS)
    assert pool.num_free_positions == 0
    for cache in caches:
        assert isinstance(cache.positions(0, 8 * BLOCK_TOKENS), slice)


def test_blocks_are_taken_wherever_they_are_free() -> None:
    pool = pool_of(6 * BLOCK_TOKENS)
    caches = [pool.new_cache(1000) for _ in range(6)]
    for cache in caches:
        assert cache.reserve(1)
    for cache in caches:
        if cache.blocks[0] % 2:
            cache.release()
    scattered = pool.new_cache(1000)
    assert write(scattered, list(range(3 * BLOCK_TOKENS)))
    assert not isinstance(scattered.positions(0, 3 * BLOCK_TOKENS), slice)
    assert read(scattered) == list(range(3 * BLOCK_TOKENS))
    with pytest.raises(ValueError, match="1 blocks wanted, 0 free"):
        pool.take(1)


def test_a_pool_is_never_empty() -> None:
    with pytest.raises(ValueError, match="at least one position"):
        pool_of(0)


def test_forks_do_not_see_what_the_other_appends() -> None:
    pool = pool_of(6 * BLOCK_TOKENS)
    original = pool.new_cache(1000)
    assert write(original, list(range(40)))
    fork = original.fork(35, 1000)
    assert pool.num_free_positions == 4 * BLOCK_TOKENS
    assert write(fork, [100, 101])
    assert write(original, [200])
    assert read(fork) == [*range(35), 100, 101]
    assert read(original) == [*range(40), 200]
    # The full first block is still one for both.
    assert fork.blocks[0] == original.blocks[0]
    assert fork.blocks[1] != original.blocks[1]
    original.release()
    assert read(fork) == [*range(35), 100, 101]
    fork.release()
    assert pool.num_free_positions == pool.num_positions


def test_going_back_into_a_shared_block_does_not_harm_the_other() -> None:
    pool = pool_of(6 * BLOCK_TOKENS)
    original = pool.new_cache(1000)
    assert write(original, list(range(70)))
    fork = original.fork(70, 1000)
    original.truncate(10)
    assert write(original, [300] * 50)
    assert read(fork) == list(range(70))
    assert read(original) == [*range(10), *[300] * 50]


def test_a_fork_needs_room_for_its_own_copy_of_a_block() -> None:
    pool = pool_of(2 * BLOCK_TOKENS)
    original = pool.new_cache(1000)
    assert write(original, [1, 2, 3])
    fork = original.fork(3, 1000)
    other = pool.new_cache(1000)
    assert other.reserve(1)
    assert not fork.reserve(4)
    assert read(fork) == [1, 2, 3]
    other.release()
    assert fork.reserve(4)
    assert read(fork) == [1, 2, 3]


def test_a_snapshot_outlives_its_cache_and_fills_another() -> None:
    pool = pool_of(3 * BLOCK_TOKENS)
    cache = pool.new_cache(1000)
    assert write(cache, list(range(40)))
    snapshot = cache.snapshot()
    assert snapshot.num_tokens == 40
    assert snapshot.num_bytes == 2 * LAYERS * HEADS * SIZE * 40 * 4
    cache.release()
    other = pool.new_cache(1000)
    assert write(other, [9] * 90)
    assert not cache.restore(snapshot)
    other.release()
    assert write(other, [9])
    assert cache.restore(snapshot)
    assert read(cache) == list(range(40))
    with pytest.raises(ValueError, match="holds 40 tokens"):
        cache.restore(snapshot)


@pytest.mark.parametrize("seed", range(5))
def test_random_histories_equal_plain_lists(seed: int) -> None:
    rng = random.Random(seed)
    pool = pool_of(20 * BLOCK_TOKENS)
    caches: list[tuple[KVCache, list[int]]] = [(pool.new_cache(200), [])]
    for step in range(150):
        place = rng.randrange(len(caches))
        cache, numbers = caches[place]
        action = rng.choice(["write", "write", "truncate", "fork", "release", "pause"])
        if action == "write":
            new = [step * 100 + index for index in range(rng.randrange(1, 50))]
            if write(cache, new):
                numbers += new
        elif action == "truncate":
            del numbers[rng.randrange(len(numbers) + 1) :]
            cache.truncate(len(numbers))
        elif action == "fork":
            kept = rng.randrange(len(numbers) + 1)
            caches.append((cache.fork(kept, 200), numbers[:kept]))
        elif action == "release" and len(caches) > 1:
            cache.release()
            del caches[place]
        elif action == "pause":
            snapshot = cache.snapshot()
            cache.release()
            if not cache.restore(snapshot):
                del caches[place]
                caches = caches or [(pool.new_cache(200), [])]
        if step % 10 == 9:
            for cache, numbers in caches:
                assert read(cache) == numbers
        held = {block for cache, _ in caches for block in cache.blocks}
        assert pool.num_free_positions == pool.num_positions - len(held) * BLOCK_TOKENS


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (BLOCK_TOKENS, 1), (BLOCK_TOKENS + 1, 2)])
def test_blocks_of_tokens(tokens: int, blocks: int) -> None:
    assert num_blocks_of(tokens) == blocks
