"""Reading config.json: what it means and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from infernix.errors import ModelLoadError
from infernix.models.config import ModelConfig, read_model_config
from infernix.models.files import read_json_object
from infernix.models.rope import RopeParameters, inverse_frequencies

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
QWEN2 = LLAMA | {"architectures": ["Qwen2ForCausalLM"]}
QWEN3 = LLAMA | {"architectures": ["Qwen3ForCausalLM"]}
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def read(document: dict[str, Any]) -> ModelConfig:
    return read_model_config(document, Path("config.json"))


def test_defaults_of_each_architecture() -> None:
    llama, qwen2, qwen3 = read(LLAMA), read(QWEN2), read(QWEN3)
    assert (llama.num_kv_heads, llama.head_dim, llama.rope) == (4, 16, RopeParameters(10000.0))
    assert (llama.qkv_bias, llama.output_bias, llama.mlp_bias, llama.qk_norm) == (False, False, False, False)
    assert (qwen2.qkv_bias, qwen2.output_bias, qwen2.qk_norm) == (True, False, False)
    assert (qwen3.qkv_bias, qwen3.output_bias, qwen3.qk_norm) == (False, False, True)
    assert not llama.tie_word_embeddings


def test_older_and_newer_spelling_of_rotary_parameters() -> None:
    older = read(LLAMA | {"rope_theta": 5e5, "rope_scaling": LLAMA3_SCALING})
    newer = read(LLAMA | {"rope_parameters": LLAMA3_SCALING | {"rope_theta": 5e5}})
    assert older.rope == newer.rope == RopeParameters(5e5, 8.0, 1.0, 4.0, 64)
    assert read(LLAMA | {"rope_scaling": {"type": "linear", "factor": 2}}).rope == RopeParameters(1e4, 2.0)


def test_llama3_scaling_stretches_long_waves_only() -> None:
    plain = inverse_frequencies(RopeParameters(1e4), 64)
    scaled = inverse_frequencies(RopeParameters(1e4, 8.0, 1.0, 4.0, 1024), 64)
    ratio = plain / scaled
    assert torch.allclose(ratio[:10], torch.ones(10))
    assert torch.allclose(ratio[-6:], torch.full((6,), 8.0))
    assert torch.all(ratio[1:] >= ratio[:-1])


@pytest.mark.parametrize(
    "document",
    [
        QWEN2 | {"sliding_window": 4096},
        QWEN2 | {"sliding_window": 4096, "use_sliding_window": False},
        LLAMA | {"sliding_window": None},
        QWEN3 | {"layer_types": ["full_attention", "full_attention"]},
        LLAMA | {"rope_scaling": None, "head_dim": None},
        LLAMA | {"rope_scaling": {"rope_type": "default"}},
    ],
)
def test_switched_off_features_are_accepted(document: dict[str, Any]) -> None:
    assert read(document).num_layers == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "architectures: 'MambaForCausalLM' is not supported"),
        ({"architectures": None}, "architectures: expected a list of one name, got None"),
        ({"architectures": []}, "architectures: expected a list of one name"),
        ({"hidden_act": "gelu"}, "hidden_act: 'gelu' is not supported"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantization_config: quantised"),
        ({"sliding_window": 128}, "sliding_window: sliding-window attention is not supported"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types: only layers of 'full_attention'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_scaling.rope_type: 'yarn' is not supported"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_scaling.rope_type: 'dynamic' is not supported"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor: missing"),
        ({"rope_scaling": "linear"}, "rope_scaling: expected an object, got 'linear'"),
        ({"rope_scaling": LLAMA3_SCALING | {"low_freq_factor": 4.0}}, "rope_scaling.low_freq_factor: 4 is not below"),
        ({"vocab_size": None}, "vocab_size: missing"),
        ({"vocab_size": 0}, "vocab_size: expected a positive integer, got 0"),
        ({"hidden_size": "64"}, "hidden_size: expected a positive integer, got '64'"),
        ({"num_hidden_layers": True}, "num_hidden_layers: expected a positive integer, got True"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide 4"),
        ({"hidden_size": 66}, "hidden_size: 66 is no multiple of 4"),
        ({"head_dim": 15}, "head_dim: rotary embedding needs an even size, not 15"),
        ({"rope_theta": 10**400}, "rope_theta: expected a positive number, got an integer of 1329 bits"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps: expected a positive number, got nan"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings: expected true or false, got 1"),
    ],
)
def test_refusals_name_file_and_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError) as caught:
        read(LLAMA | changes)
    assert str(caught.value).startswith(f"config.json: {message}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b'{"a', "not JSON: Unterminated string starting at line 1, column 2"),
        (b"\xff{}", "not UTF-8"),
        (b"[]", "expected a JSON object, got list"),
        (b"[" * 100_000, "not usable JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable JSON"),
    ],
)
def test_bad_json(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(ModelLoadError) as caught:
        read_json_object(path)
    assert str(caught.value).startswith(f"{path}: {message}")
