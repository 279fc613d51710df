"""Going back, branching off, leaving and coming back: recurrent state follows exactly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from infernix.models.qwen3_5 import Qwen35Model
from infernix.models.recurrent_state import MAX_STEP_TOKENS, RecurrentCache
from models import recurrent_checks
from models.recurrent_checks import RecurrentChecks
from models.tiny_qwen3_5 import VOCAB_SIZE, load_qwen3_5, random_tokens, tiny_qwen3_5


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Model:
    directory: Path = tmp_path_factory.mktemp("qwen3_5")
    tiny_qwen3_5().save_pretrained(directory)
    return load_qwen3_5(directory)


def state_of(cache: RecurrentCache) -> tuple[torch.Tensor, torch.Tensor]:
    return cache.pool.states[:, cache.slot].clone(), cache.pool.columns[:, cache.slot].clone()


def assert_like_fresh(model: Qwen35Model, cache: RecurrentCache, tokens: list[int]) -> None:
    """The cache stands where a new one stands that ran these tokens only, up to rounding."""
    recurrent_checks.assert_like_fresh(model, cache, tokens, state_of)


@pytest.mark.parametrize("num_before", [0, 2, 11, 50])
@pytest.mark.parametrize("num_new", [1, 2, 8, MAX_STEP_TOKENS])
def test_back_to_every_length_within_the_last_pass(model: Qwen35Model, num_before: int, num_new: int) -> None:
    tokens = random_tokens(num_before + num_new, 17)
    for num_kept in range(num_new + 1):
        cache = model.new_cache(100)
        if num_before:
            model.forward(tokens[:num_before], cache)
        model.forward(tokens[num_before:], cache)
        cache.truncate(num_before + num_kept)
        if num_before + num_kept:
            assert_like_fresh(model, cache, tokens[: num_before + num_kept])
        else:
            assert not any(tensor.any() for tensor in state_of(cache))


def test_going_back_gives_the_very_state_that_the_pass_went_through(model: Qwen35Model) -> None:
    """Bit for bit: a shorter way back is a way through a longer one, and nothing is left of what was dropped."""
    tokens = random_tokens(30)
    for num_kept in range(12):
        direct, detour = model.new_cache(60), model.new_cache(60)
        for cache in (direct, detour):
            model.forward(tokens[:14], cache)
            model.forward(tokens[14:26], cache)
        direct.truncate(14 + num_kept)
        for there in range(11, num_kept - 1, -1):
            detour.truncate(14 + there)
        for ours, theirs in zip(state_of(direct), state_of(detour), strict=True):
            assert torch.equal(ours, theirs)
        # Dropped tokens do not matter: other ones in their place give the same, in a pass of the same shape.
        other = model.new_cache(60)
        model.forward(tokens[:14], other)
        model.forward(
            [*tokens[14 : 14 + num_kept], *[(token + 1) % VOCAB_SIZE for token in tokens[14 + num_kept : 26]]], other
        )
        other.truncate(14 + num_kept)
        for ours, theirs in zip(state_of(direct), state_of(other), strict=True):
            assert torch.equal(ours, theirs)


class TestRecurrentState(RecurrentChecks):
    vocab_size = VOCAB_SIZE

    def state_of(self, cache: RecurrentCache) -> Sequence[torch.Tensor]:
        return state_of(cache)

    def random_tokens(self, num_tokens: int, start: int = 0) -> list[int]:
        return random_tokens(num_tokens, start)


def test_states_are_bounded_like_positions(model: Qwen35Model) -> None:
    pool = model.new_pool(512, 2)
    first, second, third = (pool.new_cache(100) for _ in range(3))
    assert first.reserve(5)
    assert second.reserve(5)
    assert pool.num_free_slots == 0
    num_free = pool.num_free_positions
    assert not third.reserve(5)
    assert pool.num_free_positions == num_free
    model.forward(random_tokens(5), first)
    assert first.num_forkable(5) == 0
    with pytest.raises(ValueError, match="no slot is free"):
        first.fork(5, 20)
    with pytest.raises(ValueError, match="no room"):
        model.forward([1], third)
    snapshot = first.snapshot()
    assert not third.restore(snapshot)
    second.release()
    kept = first.fork(5, 20)
    assert pool.num_free_slots == 1
    assert kept.reserve(20)
    assert pool.num_free_slots == 0
    kept.release()
    first.release()
    assert (pool.num_free_slots, pool.num_free_positions) == (4, pool.num_positions)


def test_a_lack_of_positions_claims_no_state(model: Qwen35Model) -> None:
    pool = model.new_pool(32, 2)
    first, second = pool.new_cache(100), pool.new_cache(100)
    assert first.reserve(32)
    snapshot_source = model.new_cache(10)
    model.forward(random_tokens(3), snapshot_source)
    assert not second.reserve(1)
    assert not second.restore(snapshot_source.snapshot())
    assert pool.num_free_slots == 2


def test_a_pool_is_for_at_least_one_sequence(model: Qwen35Model) -> None:
    with pytest.raises(ValueError, match="at least one sequence"):
        model.new_pool(10, 0)
