from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from infernix.engine.prefix_cache import PrefixCache


@dataclass(eq=False)
class Prefix:
    """A beginning that can be continued from `steps` multiples only (1: from anywhere)."""

    tokens: tuple[int, ...]
    logits: Any = None
    steps: int = 1
    released: list[tuple[int, ...]] = field(default_factory=list)

    def num_reusable(self, prompt: Sequence[int]) -> int:
        num = 0
        while num < min(len(prompt), len(self.tokens)) and prompt[num] == self.tokens[num]:
            num += 1
        if num == len(prompt) and not (num == len(self.tokens) and self.logits is not None):
            num -= 1
        return num // self.steps * self.steps

    def release(self) -> None:
        self.released.append(self.tokens)


def entry(tokens: Sequence[int], **fields: Any) -> Any:
    return Prefix(tuple(tokens), **fields)


def test_the_longest_beginning_is_found() -> None:
    cache = PrefixCache(8, chunk_tokens=2)
    short, long, other = entry([1, 2, 3]), entry([1, 2, 3, 4, 5]), entry([9, 9, 9])
    for one in (short, long, other):
        cache.add(one)
    assert cache.find([1, 2, 3, 4, 7]) is long
    assert cache.find([9, 9, 1]) is other
    assert cache.find([2, 2, 3]) is None
    assert cache.find([1]) is None
    assert (len(cache), cache.num_positions) == (3, 11)


def test_the_least_recently_used_goes_first() -> None:
    cache = PrefixCache(2, chunk_tokens=2)
    released: list[tuple[int, ...]] = []
    for tokens in ([1, 1], [2, 2]):
        cache.add(entry(tokens, released=released))
    assert cache.find([1, 1, 5]) is not None
    cache.add(entry([3, 3], released=released))
    assert released == [(2, 2)]
    assert cache.evict()
    assert released == [(2, 2), (1, 1)]
    cache.clear()
    assert (len(released), len(cache), cache.num_positions, cache.evict()) == (3, 0, 0, False)
    assert cache.find([3, 3, 1]) is None


def test_the_same_beginning_is_kept_once_with_its_logits() -> None:
    cache = PrefixCache(4, chunk_tokens=2)
    released: list[tuple[int, ...]] = []
    bare, known = entry([1, 1], released=released), entry([1, 1], logits=1, released=released)
    cache.add(bare)
    cache.add(known)
    assert (released, cache.find([1, 1])) == ([(1, 1)], known)
    cache.add(entry([1, 1], released=released))
    cache.add(entry([1, 1], logits=2, released=released))
    assert (len(released), cache.find([1, 1]), cache.num_positions) == (3, known, 2)


def test_what_could_not_be_found_is_not_kept() -> None:
    for cache in (PrefixCache(4, chunk_tokens=3), PrefixCache(0, chunk_tokens=1)):
        one = entry([1, 1])
        cache.add(one)
        assert not cache.would_keep(2)
        assert (one.released, len(cache)) == ([(1, 1)], 0)
    assert PrefixCache(4, chunk_tokens=3).would_keep(3)


@pytest.mark.parametrize("steps", [1, 3])
def test_lookups_find_what_comparing_with_everything_finds(steps: int) -> None:
    rng = random.Random(steps)
    cache = PrefixCache(12, chunk_tokens=3)
    kept: dict[tuple[int, ...], Any] = {}
    num_found = 0
    for _ in range(1500):
        tokens = tuple(rng.randint(0, 1) for _ in range(rng.randint(1, 14)))
        if rng.random() < 0.4:
            one = entry(tokens, logits=rng.choice([None, 1]), steps=steps)
            cache.add(one)
        kept = {held.prefix.tokens: held.prefix for held in cache._entries.values()}
        found = cache.find(tokens)
        best = max((one.num_reusable(tokens) for one in kept.values()), default=0)
        # What shares less than a chunk is not looked for.
        if best >= 3:
            assert found is not None
            assert found.num_reusable(tokens) == best
            num_found += 1
        if rng.random() < 0.1:
            cache.evict()
        assert cache.num_positions == sum(len(held) for held in cache._entries)
    assert num_found > 300
