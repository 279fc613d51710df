"""Going back, branching off, leaving and coming back: every part of a Qwen3.8-Flash-Next state follows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_state import Qwen4ExpCache
from infernix.models.recurrent_state import RecurrentSnapshot
from models import recurrent_checks
from models.recurrent_checks import RecurrentChecks
from models.tiny_qwen4_exp import END, VOCAB_SIZE, load_qwen4_exp, tiny_qwen4_exp
from models.tiny_qwen4_exp import random_tokens as plain_tokens


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen4ExpModel:
    directory: Path = tmp_path_factory.mktemp("qwen4_exp")
    tiny_qwen4_exp().save_pretrained(directory)
    return load_qwen4_exp(directory)


def random_tokens(num_tokens: int, start: int = 0) -> list[int]:
    """The same tokens every time; every fifth one is the end of a text."""
    return [END if token % 5 == 0 else token for token in plain_tokens(num_tokens, start)]


def state_of(cache: Qwen4ExpCache) -> list[torch.Tensor]:
    """Copies of matrices, both kinds of columns, and token ids."""
    pool = cache.pool
    return [tensor[:, cache.slot].clone() for tensor in (pool.states, pool.columns, pool.ngram_columns, pool.context)]


def assert_like_fresh(model: Qwen4ExpModel, cache: Qwen4ExpCache, tokens: list[int]) -> None:
    """The cache stands where a new one stands that ran these tokens only, up to rounding."""
    recurrent_checks.assert_like_fresh(model, cache, tokens, state_of)


@pytest.mark.parametrize("num_before", [0, 1, 2, 11])
@pytest.mark.parametrize("num_new", [1, 2, 9])
def test_back_to_every_length_within_the_last_pass(model: Qwen4ExpModel, num_before: int, num_new: int) -> None:
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
            *columns, context = state_of(cache)
            assert not any(tensor.any() for tensor in columns)
            assert (context == END).all()


def test_going_back_gives_the_very_state_that_the_pass_went_through(model: Qwen4ExpModel) -> None:
    """A shorter way back is a way through a longer one, bit for bit, and nothing is left of what was dropped."""
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
        # Dropped tokens do not matter. Other ones in their place meet other experts, and those that stay are multiplied
        # in other company, so only up to rounding.
        other = model.new_cache(60)
        model.forward(tokens[:14], other)
        model.forward(
            [*tokens[14 : 14 + num_kept], *[(token + 1) % VOCAB_SIZE for token in tokens[14 + num_kept : 26]]], other
        )
        other.truncate(14 + num_kept)
        for ours, theirs in zip(state_of(direct), state_of(other), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


class TestQwen4ExpState(RecurrentChecks):
    vocab_size = VOCAB_SIZE

    def state_of(self, cache: Qwen4ExpCache) -> Sequence[torch.Tensor]:
        return state_of(cache)

    def random_tokens(self, num_tokens: int, start: int = 0) -> list[int]:
        return random_tokens(num_tokens, start)


def test_only_a_snapshot_of_the_same_kind_is_restored(model: Qwen4ExpModel) -> None:
    cache = model.new_cache(20)
    model.forward(random_tokens(5), cache)
    snapshot = cache.snapshot()
    plain = RecurrentSnapshot(snapshot.kv, snapshot.states, snapshot.columns)
    assert snapshot.num_bytes == plain.num_bytes + snapshot.ngram_columns.nbytes + snapshot.context.nbytes
    other = model.new_cache(20)
    with pytest.raises(TypeError, match="expected a Qwen4ExpSnapshot"):
        other.restore(plain)
    assert not model.new_cache(4).restore(snapshot)
    assert other.restore(snapshot)
