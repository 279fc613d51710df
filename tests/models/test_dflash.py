"""DFlash against its formulas in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models.cache import KVCache, KVPool
from infernix.models.dflash import ContextRow, DFlashDrafter
from infernix.models.dflash2 import DFlash2Drafter, open_dflash
from infernix.models.model import ModelRow
from infernix.models.qwen3_5 import Qwen35Model
from models.tiny_dflash import (
    CONFIG,
    CONFIG2,
    MASK,
    TAPS,
    Reference,
    drafter_tensors,
    write_drafter,
)
from models.tiny_qwen3_5 import HIDDEN, VOCAB_SIZE, load_qwen3_5, random_tokens, tiny_qwen3_5

CLOSE = {"atol": 2e-4, "rtol": 2e-4}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Qwen35Model:
    directory = tmp_path_factory.mktemp("target")
    tiny_qwen3_5().save_pretrained(directory)
    return load_qwen3_5(directory)


@pytest.fixture(scope="module")
def drafter(model: Qwen35Model, tmp_path_factory: pytest.TempPathFactory) -> DFlashDrafter:
    return open_dflash(write_drafter(tmp_path_factory.mktemp("drafter"), CONFIG, drafter_tensors()), model)


def features_of(model: Qwen35Model, tokens: list[int]) -> torch.Tensor:
    features = model.forward_features([ModelRow(tokens, model.new_cache(len(tokens)), 0)], TAPS).taps
    assert features is not None
    return features


def context_of(drafter: DFlashDrafter, pool: KVPool, features: torch.Tensor) -> KVCache:
    cache = pool.new_cache(100)
    if len(features):
        drafter.append_context([ContextRow(features, cache)])
    return cache


def expected_block(
    model: Qwen35Model, reference: Reference, features: torch.Tensor, anchor: int, num_drafts: int
) -> torch.Tensor:
    embedded = model.embed(torch.tensor([anchor] + [MASK] * num_drafts))
    return reference.block(features, embedded)[1:].float()


VARIANTS: dict[str, tuple[dict[str, Any], list[int | None], bool]] = {
    "both ways in windows": ({}, [7, None, 7], False),
    "causal windows": ({"is_causal": True}, [7, None, 7], True),
    "windows are causal where nothing is said": ({"is_causal": None}, [7, None, 7], True),
    "said in the inner config": (
        {"is_causal": None, "dflash_config": CONFIG["dflash_config"] | {"causal": False}},
        [7, None, 7],
        False,
    ),
    "no windows": ({"layer_types": None, "is_causal": None}, [None, None, None], False),
    "one window for all": (
        {
            "layer_types": None,
            "is_causal": None,
            "sliding_window": None,
            "dflash_config": CONFIG["dflash_config"] | {"use_swa": True, "swa_window_size": 4},
        },
        [4, 4, 4],
        False,
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_agree_with_the_formulas(variant: str, model: Qwen35Model, tmp_path: Path) -> None:
    changes, windows, is_causal = VARIANTS[variant]
    tensors = drafter_tensors()
    drafter = open_dflash(write_drafter(tmp_path, CONFIG | changes, tensors), model)
    reference = Reference(tensors, windows, is_causal=is_causal)
    pool = drafter.new_pool(256)
    for num_context, num_drafts in ((0, 3), (1, 1), (5, 7), (12, 4)):
        tokens = random_tokens(max(1, num_context), 3)
        features = features_of(model, tokens)[:num_context]
        cache = context_of(drafter, pool, features)
        hidden = drafter.forward_block([50], [cache], num_drafts)
        assert hidden.shape == (1, num_drafts, HIDDEN)
        expected = expected_block(model, reference, features, 50, num_drafts)
        assert expected.std() > 0.3
        torch.testing.assert_close(hidden[0], expected, **CLOSE)
        assert cache.num_tokens == num_context


def test_a_context_grows_in_pieces_and_rows_differ(model: Qwen35Model, drafter: DFlashDrafter) -> None:
    reference = Reference(drafter_tensors(), [7, None, 7], is_causal=False)
    pool = drafter.new_pool(512)
    lengths = [4, 33, 9]
    features = [features_of(model, random_tokens(length, 7 * length)) for length in lengths]
    caches = [pool.new_cache(100) for _ in lengths]
    for begin, end in ((0, 4), (4, 5), (5, 9), (9, 33)):
        rows = [
            ContextRow(every[begin:end], cache)
            for every, cache in zip(features, caches, strict=True)
            if begin < len(every)
        ]
        drafter.append_context(rows)
    assert [cache.num_tokens for cache in caches] == lengths
    hidden = drafter.forward_block([1, 2, 3], caches, 5)
    for row, (every, anchor) in enumerate(zip(features, (1, 2, 3), strict=True)):
        torch.testing.assert_close(hidden[row], expected_block(model, reference, every, anchor, 5), **CLOSE)


def test_a_context_that_is_cut_and_goes_on(model: Qwen35Model, drafter: DFlashDrafter) -> None:
    pool = drafter.new_pool(256)
    first, second = (features_of(model, random_tokens(20, start)) for start in (0, 50))
    cache = context_of(drafter, pool, first)
    cache.truncate(11)
    drafter.append_context([ContextRow(second[11:], cache)])
    other = context_of(drafter, pool, torch.cat((first[:11], second[11:])))
    hidden = drafter.forward_block([9, 9], [cache, other], 7)
    torch.testing.assert_close(hidden[0], hidden[1], **CLOSE)


def test_drafts_are_the_likeliest_known_tokens(model: Qwen35Model, drafter: DFlashDrafter) -> None:
    cache = context_of(drafter, drafter.new_pool(64), features_of(model, random_tokens(9)))
    logits = model.head(drafter.forward_block([7], [cache], 6)[0])
    for num_tokens in (VOCAB_SIZE, 40):
        drafts = drafter.draft([7], [cache], 6, num_tokens)
        assert drafts.tolist() == [[row[:num_tokens].index(max(row[:num_tokens])) for row in logits.tolist()]]


def test_impossible_calls_are_refused(drafter: DFlashDrafter) -> None:
    pool = drafter.new_pool(64)
    cache = pool.new_cache(3)
    features = torch.zeros(4, len(TAPS) * HIDDEN)
    with pytest.raises(ValueError, match="no room for 4 tokens after 0 of 3"):
        drafter.append_context([ContextRow(features[:1], pool.new_cache(9)), ContextRow(features, cache)])
    with pytest.raises(ValueError, match="no room for 0 tokens"):
        drafter.append_context([ContextRow(features[:0], cache)])
    with pytest.raises(ValueError, match="a cache of its own"):
        drafter.append_context([ContextRow(features[:1], cache)] * 2)
    assert cache.num_tokens == 0
    for num_drafts in (0, 8):
        with pytest.raises(ValueError, match=r"outside 1\.\.7"):
            drafter.forward_block([1], [cache], num_drafts)
    with pytest.raises(ValueError, match="2 anchors for 1 contexts"):
        drafter.forward_block([1, 2], [cache], 1)


def test_names_may_have_a_prefix(model: Qwen35Model, drafter: DFlashDrafter, tmp_path: Path) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in drafter_tensors().items()}
    prefixed = open_dflash(write_drafter(tmp_path, CONFIG, tensors), model)
    features = features_of(model, random_tokens(9))
    given = [one.forward_block([7], [context_of(one, one.new_pool(64), features)], 6) for one in (drafter, prefixed)]
    assert torch.equal(*given)


def test_every_wrong_tensor_is_named(model: Qwen35Model, tmp_path: Path) -> None:
    tensors = drafter_tensors()
    del tensors["hidden_norm.weight"]
    tensors["fc.weight"] = torch.ones(HIDDEN, HIDDEN)
    for name in ("layers.3.input_layernorm.weight", "lm_head.weight", "candidate_selector.successor_codebook"):
        tensors[name] = torch.ones(1)
    with pytest.raises(ModelLoadError) as caught:
        open_dflash(write_drafter(tmp_path, CONFIG, tensors), model)
    message = str(caught.value)
    assert "'hidden_norm.weight' is missing" in message
    assert "'fc.weight' has shape [48, 48], expected [48, 96]" in message
    assert "'layers.3.input_layernorm.weight' is beyond the 3 layers" in message
    assert "'lm_head.weight' is a part of the drafter's own" in message
    assert "'candidate_selector.successor_codebook' belongs to a DFlash2 drafter" in message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 96}, "hidden_size is 96, the model's is 48"),
        ({"num_target_layers": 5}, "num_target_layers is 5, the model's is 4"),
        ({"dflash_config": {"target_layer_ids": TAPS, "mask_token_id": 97}}, "mask_token_id 97 has no row"),
    ],
)
def test_a_drafter_for_another_model(changes: dict[str, Any], message: str, model: Qwen35Model, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=message):
        open_dflash(write_drafter(tmp_path, CONFIG | changes, drafter_tensors()), model)


def test_a_mask_embedding_of_its_own(model: Qwen35Model, tmp_path: Path) -> None:
    write_drafter(tmp_path, CONFIG, drafter_tensors())
    (tmp_path / "mask_embedding.pt").write_bytes(b"")
    with pytest.raises(ModelLoadError, match=r"mask_embedding\.pt: a mask embedding of its own"):
        open_dflash(tmp_path, model)


def test_the_config_says_which_kind_it_is(model: Qwen35Model, drafter: DFlashDrafter, tmp_path: Path) -> None:
    assert type(drafter) is DFlashDrafter
    second = open_dflash(write_drafter(tmp_path, CONFIG2, drafter_tensors(with_selector=True)), model)
    assert isinstance(second, DFlash2Drafter)
    assert second.max_drafts == drafter.max_drafts == 7
