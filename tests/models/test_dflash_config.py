"""Reading a drafter's config.json: its spellings, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infernix.errors import ModelLoadError
from infernix.models.dflash_config import DFlashConfig, LayerSpan, SelectorConfig, read_dflash_config
from infernix.models.rope import RopeParameters
from models.tiny_dflash import CONFIG, CONFIG2, MASK, SELECTOR, TAPS

INNER = CONFIG["dflash_config"]


def read(document: dict[str, Any]) -> DFlashConfig:
    return read_dflash_config(document, Path("config.json"))


def test_fields() -> None:
    config = read(CONFIG)
    window = LayerSpan(7, is_causal=False)
    assert config.spans == (window, LayerSpan(None, is_causal=False), window)
    assert (config.taps, config.mask_token_id, config.block_size) == (tuple(TAPS), MASK, 8)
    assert (config.rope, config.selector) == (RopeParameters(1e4), None)
    assert read(CONFIG2).selector == SelectorConfig(4, 8, 5)


def test_block_size_may_stand_inside() -> None:
    inside = CONFIG | {"block_size": None, "dflash_config": INNER | {"block_size": 16}}
    assert read(inside).block_size == 16


def test_rope_parameters_and_default_head_size() -> None:
    newer = CONFIG | {
        "rope_theta": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7},
        "head_dim": None,
    }
    assert (read(newer).rope, read(newer).head_dim) == (RopeParameters(1e7), 128)


@pytest.mark.parametrize(
    ("num_layers", "num_target_layers", "taps"),
    [(5, 64, (1, 16, 31, 46, 61)), (5, 32, (1, 8, 15, 22, 29)), (8, 40, (1, 6, 11, 16, 22, 27, 32, 37))],
)
def test_taps_that_are_not_named_are_those_of_published_drafters(
    num_layers: int, num_target_layers: int, taps: tuple[int, ...]
) -> None:
    document = CONFIG | {
        "num_hidden_layers": num_layers,
        "num_target_layers": num_target_layers,
        "layer_types": None,
        "dflash_config": {"mask_token_id": 1},
    }
    assert read(document).taps == taps


def test_neutral_values_are_accepted() -> None:
    neutral = {
        "input_embedding_scale": 1.0,
        "output_multiplier": 1,
        "final_logit_softcapping": None,
        "sample_from_anchor": False,
    }
    assert read(CONFIG | {"dflash_config": INNER | neutral}) == read(CONFIG)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, "architectures: expected ['DFlashDraftModel' or"),
        ({"dflash_config": None}, "dflash_config: missing"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config: quantised"),
        ({"hidden_act": "gelu"}, "hidden_act: 'gelu'"),
        ({"attention_bias": True}, "attention_bias: attention with biases"),
        ({"num_key_value_heads": 4}, "num_key_value_heads: 4 does not divide 6"),
        ({"num_hidden_layers": 2000}, "num_hidden_layers: 2000 is more than the 1024 that are supported"),
        ({"dflash_config": INNER | SELECTOR | {"selector_top_k": 257}}, "selector_top_k: 257 is more than the 256"),
        ({"head_dim": 7}, "head_dim: rotary embedding needs an even size"),
        ({"block_size": 1}, "block_size: a block of one token has no drafts"),
        ({"sliding_window": None}, "dflash_config.swa_window_size: missing"),
        ({"layer_types": ["linear_attention"] * 3}, "layer_types: 'linear_attention' is not supported"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type: 'yarn'"),
        ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters.partial_rotary_factor"),
        ({"dflash_config": INNER | {"target_layer_ids": [4]}}, "dflash_config.target_layer_ids: expected different"),
        ({"dflash_config": INNER | {"target_layer_ids": [1, 1]}}, "dflash_config.target_layer_ids: expected different"),
        ({"dflash_config": INNER | {"target_layer_ids": []}}, "dflash_config.target_layer_ids: expected a list"),
        ({"dflash_config": {"mask_token_id": 1}}, "dflash_config.target_layer_ids: missing, and 3 taps do not spread"),
        ({"dflash_config": {"target_layer_ids": TAPS}}, "dflash_config.mask_token_id: missing"),
        ({"dflash_config": INNER | {"output_multiplier": 2}}, "dflash_config.output_multiplier: 2 is not supported"),
        ({"dflash_config": INNER | {"final_logit_softcapping": 30.0}}, "dflash_config.final_logit_softcapping"),
        ({"dflash_config": INNER | SELECTOR | {"conv_kernel_size": 3}}, "dflash_config.conv_kernel_size: 3"),
        ({"dflash_config": INNER | SELECTOR | {"conv_group_size": 7}}, "dflash_config.conv_group_size: 7 does not"),
        ({"dflash_config": INNER | SELECTOR | {"selector_top_k": None}}, "dflash_config.selector_top_k: missing"),
    ],
)
def test_refusals_name_file_and_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError) as caught:
        read(CONFIG | changes)
    assert str(caught.value).startswith("config.json: ")
    assert message in str(caught.value)
