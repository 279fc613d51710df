"""Our network against transformers' on the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.models.llama import LlamaModel
from models.tiny import VOCAB_SIZE, load, reference_logits, tiny_model

LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama-tied": ("llama", {"tie_word_embeddings": True}),
    "llama-biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-llama3-rope": ("llama", {"rope_parameters": LLAMA3_SCALING}),
    "llama-linear-rope": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 5e3, "factor": 4.0}}),
    "llama-no-groups": ("llama", {"num_key_value_heads": 6}),
    "llama-wide-heads": ("llama", {"head_dim": 16}),
    "qwen2": ("qwen2", {}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "qwen3-biases-tied": ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
}

TOKEN_IDS = [(7 * index * index + 3 * index + 5) % VOCAB_SIZE for index in range(150)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_transformers(variant: str, tmp_path: Path) -> None:
    family, changes = VARIANTS[variant]
    reference = tiny_model(family, **changes)
    reference.save_pretrained(tmp_path)
    expected = reference_logits(reference, TOKEN_IDS)
    assert expected.std() > 0.3, "logits without contrast would agree with anything"

    model = load(tmp_path)

    whole = model.forward(TOKEN_IDS, model.new_cache(len(TOKEN_IDS)), len(TOKEN_IDS))
    torch.testing.assert_close(whole, expected, atol=1e-4, rtol=1e-4)
    cache = model.new_cache(len(TOKEN_IDS))
    single = torch.cat([model.forward([token_id], cache) for token_id in TOKEN_IDS])
    torch.testing.assert_close(single, expected, atol=1e-4, rtol=1e-4)
    cache = model.new_cache(len(TOKEN_IDS))
    chunks = torch.cat([model.forward(TOKEN_IDS[at : at + 40], cache, 10) for at in range(0, 150, 40)])
    rows = [row for at in (40, 80, 120, 150) for row in range(at - 10, at)]
    torch.testing.assert_close(chunks, expected[rows], atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LlamaModel:
    directory = tmp_path_factory.mktemp("llama")
    tiny_model("llama").save_pretrained(directory)
    return load(directory)


def test_truncating_the_cache_takes_tokens_back(model: LlamaModel) -> None:
    cache = model.new_cache(20)
    model.forward(TOKEN_IDS[:6], cache)
    model.forward([50, 51, 52], cache)
    cache.truncate(6)
    again = model.forward(TOKEN_IDS[6:8], cache)
    assert cache.num_tokens == 8
    torch.testing.assert_close(again, model.forward(TOKEN_IDS[:8], model.new_cache(8)), atol=1e-5, rtol=1e-5)


def test_sequences_do_not_touch_each_other(model: LlamaModel) -> None:
    first, second = model.new_cache(12), model.new_cache(12)
    model.forward(TOKEN_IDS[:5], first)
    model.forward(TOKEN_IDS[20:29], second)
    mixed = model.forward(TOKEN_IDS[5:6], first)
    torch.testing.assert_close(mixed, model.forward(TOKEN_IDS[:6], model.new_cache(6)), atol=1e-5, rtol=1e-5)


def test_logits_are_float32_rows_of_the_asked_number(model: LlamaModel) -> None:
    for rows in (0, 1, 4):
        logits = model.forward([1, 2, 3, 4], model.new_cache(4), rows)
        assert logits.shape == (rows, VOCAB_SIZE)
        assert logits.dtype == torch.float32
    assert model.num_logits == VOCAB_SIZE
    assert model.max_context == 512


def test_half_precision_is_close_and_gives_float32(model: LlamaModel, tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path)
    half = load(tmp_path, torch.bfloat16)
    logits = half.forward(TOKEN_IDS[:9], half.new_cache(9))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, model.forward(TOKEN_IDS[:9], model.new_cache(9)), atol=0.3, rtol=0.1)


def test_a_full_cache_refuses_and_stays_as_it_was(model: LlamaModel) -> None:
    cache = model.new_cache(4)
    model.forward([1, 2, 3], cache)
    with pytest.raises(ValueError, match="no room for 2 tokens after 3 of 4"):
        model.forward([4, 5], cache)
    assert cache.num_tokens == 3
    expected = model.forward([1, 2, 3, 4], model.new_cache(4))
    torch.testing.assert_close(model.forward([4], cache), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("token_ids", "rows"), [([], 0), ([1], 2), ([1], -1)])
def test_impossible_rows_are_refused(model: LlamaModel, token_ids: list[int], rows: int) -> None:
    with pytest.raises(ValueError, match="rows of logits"):
        model.forward(token_ids, model.new_cache(4), rows)


@pytest.mark.parametrize("max_tokens", [0, 513])
def test_cache_size_is_bounded_by_the_context(model: LlamaModel, max_tokens: int) -> None:
    with pytest.raises(ValueError, match=r"outside 1\.\.512"):
        model.new_cache(max_tokens)
