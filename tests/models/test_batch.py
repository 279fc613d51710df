"""Several sequences in one pass: each row's logits are those that it gets alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from infernix.models.attention import BatchAttention
from infernix.models.cache import BLOCK_TOKENS, KVCache
from infernix.models.llama import LlamaModel
from infernix.models.model import ModelRow
from models.tiny import VOCAB_SIZE, load, tiny_model

PROMPT_LENGTHS = (3, 40, 1, 32, 77, 31, 64, 5)


def tokens_of(row: int, num_tokens: int) -> list[int]:
    return [(5 * row + 7 * index * index + 3 * index) % VOCAB_SIZE for index in range(num_tokens)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama")
    tiny_model("llama").save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(directory: Path) -> LlamaModel:
    return load(directory)


def prefilled(model: LlamaModel, lengths: Sequence[int] = PROMPT_LENGTHS) -> list[KVCache]:
    pool = model.new_pool(sum(length + 4 * BLOCK_TOKENS for length in lengths), len(lengths))
    caches = [pool.new_cache(500) for _ in lengths]
    for row, (length, cache) in enumerate(zip(lengths, caches, strict=True)):
        model.forward(tokens_of(row, length), cache)
    return caches


def check_rows_alone(model: LlamaModel, columns: Sequence[int]) -> None:
    """Rounds with so many new tokens a row, all rows together and each by itself."""
    together, alone = prefilled(model), prefilled(model)
    for number in range(3):
        new = [tokens_of(row + 10 * number, count) for row, count in enumerate(columns)]
        rows = [ModelRow(tokens, cache, len(tokens)) for tokens, cache in zip(new, together, strict=True)]
        logits = model.forward_rows(rows).split(list(columns))
        for tokens, cache, got in zip(new, alone, logits, strict=True):
            expected = model.forward(tokens, cache, len(tokens))
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    assert [cache.num_tokens for cache in together] == [cache.num_tokens for cache in alone]


@pytest.fixture(params=["alone", "padded"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both forms of attention over rows of one new token: what a CPU does, and what a GPU does."""
    form: str = request.param
    attention = partial(BatchAttention, padded=form == "padded")
    monkeypatch.setattr("infernix.models.llama.BatchAttention", attention)
    return form


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    "columns", [[1] * 8, [1, 4, 16, 1, 2, 9, 3, 1], [1, 4, 17, 1, 2, 60, 3, 1], [5, 4, 3, 2, 2, 3, 4, 5]]
)
def test_rows_get_together_what_they_get_alone(model: LlamaModel, columns: list[int]) -> None:
    check_rows_alone(model, columns)


def test_equal_calls_give_equal_results(model: LlamaModel) -> None:
    results = []
    for _ in range(2):
        caches = prefilled(model)
        results.append(model.forward_rows([ModelRow([9], cache) for cache in caches]))
    assert torch.equal(*results)


@pytest.mark.usefixtures("form")
def test_what_others_left_in_a_pool_does_not_matter(model: LlamaModel) -> None:
    results = []
    for left in (0.0, float("nan")):
        pool = model.new_pool(200, 2)
        pool.keys.fill_(left)
        pool.values.fill_(left)
        caches = [pool.new_cache(100) for _ in range(2)]
        for row, cache in enumerate(caches):
            model.forward(tokens_of(row, 3 + 40 * row), cache)
        results.append(model.forward_rows([ModelRow([7], cache) for cache in caches]))
    assert torch.equal(*results)
    assert results[0].isfinite().all()


@pytest.mark.usefixtures("form")
def test_a_sequence_in_scattered_blocks_gets_what_others_get(model: LlamaModel) -> None:
    pool = model.new_pool(7 * BLOCK_TOKENS, 7)
    holders = [pool.new_cache(BLOCK_TOKENS) for _ in range(7)]
    for holder in holders:
        assert holder.reserve(1)
    for holder in holders[::2]:
        holder.release()
    scattered = pool.new_cache(4 * BLOCK_TOKENS)
    tokens = tokens_of(1, 4 * BLOCK_TOKENS - 2)
    got = [model.forward(tokens[:50], scattered, 50), model.forward(tokens[50:-1], scattered, len(tokens) - 51)]
    beside = holders[1]
    model.forward([1, 2], beside)
    got.append(model.forward_rows([ModelRow(tokens[-1:], scattered), ModelRow([3], beside)])[:1])
    assert not isinstance(scattered.positions(0, len(tokens)), slice)
    expected = model.forward(tokens, model.new_cache(len(tokens)), len(tokens))
    torch.testing.assert_close(torch.cat(got), expected, atol=1e-4, rtol=1e-4)


def test_caches_of_different_pools_do_not_meet(model: LlamaModel) -> None:
    caches = [model.new_cache(20), model.new_cache(30)]
    with pytest.raises(ValueError, match="one pool"):
        model.forward_rows([ModelRow([1, 2], cache) for cache in caches])
    assert [cache.num_tokens for cache in caches] == [0, 0]


def test_only_wanted_logits_are_given(model: LlamaModel) -> None:
    pool = model.new_pool(100, 3)
    caches = [pool.new_cache(20) for _ in range(3)]
    rows = [ModelRow(tokens_of(row, 5), cache, row) for row, cache in enumerate(caches)]
    logits = model.forward_rows(rows)
    assert logits.shape == (3, VOCAB_SIZE)
    torch.testing.assert_close(logits[1:], model.forward(tokens_of(2, 5), model.new_cache(5), 2), atol=1e-5, rtol=1e-5)


def test_a_batch_that_cannot_run_changes_no_cache(model: LlamaModel) -> None:
    caches = prefilled(model, [3, 4])
    lengths = [cache.num_tokens for cache in caches]
    full = caches[0].pool.new_cache(1)
    with pytest.raises(ValueError, match="no room for 2 tokens after 0 of 1"):
        model.forward_rows([ModelRow([1], caches[0]), ModelRow([1], caches[1]), ModelRow([1, 2], full)])
    with pytest.raises(ValueError, match="cache of its own"):
        model.forward_rows([ModelRow([1], caches[0]), ModelRow([2], caches[0])])
    with pytest.raises(ValueError, match="at least one row"):
        model.forward_rows([])
    assert [cache.num_tokens for cache in caches] == lengths


def test_a_snapshot_and_a_fork_continue_to_the_bit(model: LlamaModel) -> None:
    cache = model.new_pool(300, 4).new_cache(100)
    model.forward(tokens_of(0, 45), cache)
    fork, snapshot = cache.fork(45, 100), cache.snapshot()
    short = cache.fork(33, 100)
    expected = model.forward([5, 6, 7], cache, 3)
    assert torch.equal(model.forward([5, 6, 7], fork, 3), expected)
    restored = cache.pool.new_cache(100)
    assert restored.restore(snapshot)
    assert torch.equal(model.forward([5, 6, 7], restored, 3), expected)
    again = model.forward([*tokens_of(0, 45)[33:], 5, 6, 7], short, 3)
    torch.testing.assert_close(again, expected, atol=1e-4, rtol=1e-4)
