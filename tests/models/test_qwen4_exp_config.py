"""Reading the config.json of Qwen3.8-Flash-Next, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infernix.errors import ModelLoadError
from infernix.models.qwen3_5_config import DeltaConfig
from infernix.models.qwen4_exp_config import NgramConfig, Qwen4ExpConfig
from infernix.models.registry import read_any_config

RELEASED: dict[str, Any] = {
    "vocab_size": 248320,
    "hidden_size": 2560,
    "num_hidden_layers": 48,
    "num_attention_heads": 24,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "output_gate_type": "sigmoid",
    "hc_count": 4,
    "indexer_n_heads": 4,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 128,
    "indexer_budget": 2048,
    "indexer_compress_ratio": 4,
    "ple_layer_ids": [2],
    "split_ngram_parts": 128,
    "max_position_embeddings": 262144,
    "eos_token_id": 248044,
    "mtp_num_hidden_layers": 1,
    "dtype": "bfloat16",
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
}


def read(changes: dict[str, Any], **outer: Any) -> Qwen4ExpConfig:
    document = {"architectures": ["Qwen4ExpForConditionalGeneration"], "text_config": RELEASED | changes} | outer
    config = read_any_config(document, Path("config.json"))
    assert isinstance(config, Qwen4ExpConfig)
    return config


def test_the_released_sizes() -> None:
    config = read({})
    assert config.is_recurrent == (True, True, True, False) * 12
    assert (config.num_layers, config.width, config.num_streams) == (48, 10240, 4)
    assert (config.num_kv_heads, config.head_dim, config.index_dim, config.index_budget) == (2, 256, 128, 2048)
    assert config.delta == DeltaConfig(16, 48, 128, 128, 4)
    assert config.ngrams == NgramConfig((1,), 9, 2, 248044, 128)
    assert (config.max_positions, config.num_mtp_layers, config.stored_dtype) == (262144, 1, "bfloat16")
    assert (config.tie_word_embeddings, config.vocab_size) == (False, 248320)
    assert config.network_fields["rope_parameters"] == RELEASED["rope_parameters"]
    assert config.network_fields["layer_types"][:4] == ["linear_attention"] * 3 + ["indexed_attention"]
    assert "mtp_num_hidden_layers" not in config.network_fields


def test_other_spellings() -> None:
    kinds = ["full_attention", "linear_attention", "indexed_attention", "linear_attention"]
    config = read({"num_hidden_layers": 4, "layer_types": kinds, "eos_token_id": [7, 8]}, tie_word_embeddings=True)
    assert config.is_recurrent == (False, True, False, True)
    assert config.ngrams is not None
    assert (config.ngrams.end_token, config.tie_word_embeddings) == (7, True)
    assert read({"ple_layer_ids": None}).ngrams is None
    flat = {"rope_parameters": None, "rope_theta": 5e3, "partial_rotary_factor": 0.5}
    assert read(flat).network_fields["rope_parameters"] == {
        "rope_type": "default",
        "rope_theta": 5e3,
        "partial_rotary_factor": 0.5,
    }
    for kind in ({"rope_type": "mrope"}, {"type": "mrope"}):
        assert read({"rope_parameters": {"rope_theta": 5e3} | kind}).network_fields["rope_parameters"] == {
            "rope_type": "default",
            "rope_theta": 5e3,
            "partial_rotary_factor": 1.0,
        }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_act": "gelu"}, "hidden_act: 'gelu' is not supported"),
        ({"layer_types": ["sliding_attention"] * 48}, "layer_types: 'sliding_attention' is not supported"),
        ({"num_hidden_layers": 2000}, "num_hidden_layers: 2000 is more than"),
        ({"linear_num_key_heads": 5}, "linear_num_key_heads: 5 does not divide 48"),
        ({"indexer_head_dim": None}, "indexer_head_dim: missing"),
        ({"hc_count": 65}, "hc_count: 65 is more than"),
        ({"ple_layer_ids": [0]}, "ple_layer_ids: expected layers of linear_attention"),
        ({"ple_layer_ids": [4]}, "ple_layer_ids: expected layers of linear_attention"),
        ({"ple_layer_ids": [49]}, r"ple_layer_ids: expected different integers in 0\.\.48"),
        ({"heads_per_ngram": 40}, "heads_per_ngram: 80 tables of n-grams"),
        ({"ngram_size": 1}, "heads_per_ngram: 0 tables of n-grams"),
        ({"ngram_size": 17}, "ngram_size: 17 is more than"),
        ({"ngram_vocab_size_base": 1 << 40}, "ngram_vocab_size_base: 1099511627776 is more than"),
        ({"eos_token_id": None}, "eos_token_id: n-grams need the id"),
        ({"eos_token_id": [True]}, "eos_token_id: n-grams need the id"),
        ({"eos_token_id": 248320}, "eos_token_id: n-grams need the id"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e7}}, "rope_type: 'yarn' is not supported"),
        ({"rope_parameters": {"rope_type": "default"}}, "rope_theta: missing"),
    ],
)
def test_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError, match=message):
        read(changes)


def test_quantised_checkpoints_are_refused() -> None:
    with pytest.raises(ModelLoadError, match="quantization_config: quantised checkpoints"):
        read({}, quantization_config={"quant_method": "fp8"})
