"""Reading the config.json of Qwen3.5: its spellings, and what is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infernix.errors import ModelLoadError
from infernix.models.qwen3_5_config import DeltaConfig, ExpertConfig, Qwen35Config
from infernix.models.registry import read_any_config
from infernix.models.rope import RopeParameters

DENSE: dict[str, Any] = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "max_position_embeddings": 256,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
}
EXPERTS = {name: value for name, value in DENSE.items() if name != "intermediate_size"} | {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 48,
}


def read(document: dict[str, Any]) -> Qwen35Config:
    config = read_any_config(document, Path("config.json"))
    assert isinstance(config, Qwen35Config)
    return config


def test_defaults() -> None:
    config = read(DENSE)
    assert config.is_recurrent == (True, True, True, False) * 2
    assert (config.head_dim, config.rotary_dim, config.rope) == (256, 64, RopeParameters(1e7))
    assert config.delta == DeltaConfig(2, 6, 128, 128, 4)
    assert (config.delta.num_channels, config.delta.output_size) == (2 * 2 * 128 + 6 * 128, 6 * 128)
    assert (config.experts, config.num_mtp_layers, config.tie_word_embeddings) == (None, 0, False)
    assert (config.rms_norm_eps, config.num_layers) == (1e-6, 8)


def test_experts_need_no_dense_size() -> None:
    assert read(EXPERTS).experts == ExpertConfig(8, 2, 32, 48)


def test_layers_by_name_or_by_interval() -> None:
    kinds = ["full_attention"] + ["linear_attention"] * 7
    assert read(DENSE | {"layer_types": kinds}).is_recurrent == (False, *[True] * 7)
    assert read(DENSE | {"full_attention_interval": 2}).is_recurrent == (True, False) * 4


def test_an_inner_config_and_where_its_switches_stand() -> None:
    inner = {name: value for name, value in DENSE.items() if name != "architectures"}
    outer = {"architectures": ["Qwen3_5ForConditionalGeneration"], "text_config": inner, "vision_config": {"depth": 1}}
    assert read(outer) == read(DENSE)
    assert read(outer | {"tie_word_embeddings": True}).tie_word_embeddings
    assert read(outer | {"text_config": inner | {"tie_word_embeddings": True}}).tie_word_embeddings
    own = outer | {"tie_word_embeddings": True, "text_config": inner | {"tie_word_embeddings": False}}
    assert not read(own).tie_word_embeddings
    assert read(outer | {"dtype": "bfloat16"}).stored_dtype == "bfloat16"
    assert read(outer | {"torch_dtype": "float16"}).stored_dtype == "float16"


def test_older_spelling_of_rotary_parameters() -> None:
    older = {name: value for name, value in DENSE.items() if name != "rope_parameters"}
    config = read(older | {"rope_theta": 1e6, "partial_rotary_factor": 0.5, "rope_scaling": {"type": "mrope"}})
    assert (config.rope, config.rotary_dim) == (RopeParameters(1e6), 128)


@pytest.mark.parametrize(
    "document",
    [
        DENSE | {"output_gate_type": "swish", "attn_output_gate": True, "mamba_ssm_dtype": "float32"},
        DENSE | {"mtp_num_hidden_layers": 0},
        EXPERTS | {"norm_topk_prob": True, "mlp_only_layers": [], "decoder_sparse_step": 1},
    ],
)
def test_switches_in_their_usual_place_are_accepted(document: dict[str, Any]) -> None:
    assert read(document).num_layers == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config: quantised"),
        ({"hidden_act": "gelu"}, "hidden_act: 'gelu' is not supported"),
        ({"output_gate_type": "sigmoid"}, "output_gate_type: 'sigmoid' is not supported"),
        ({"attn_output_gate": False}, "attn_output_gate: attention without an output gate"),
        ({"attention_bias": True}, "attention_bias: attention with biases"),
        ({"norm_topk_prob": False}, "norm_topk_prob: "),
        ({"mlp_only_layers": [1]}, "mlp_only_layers: dense layers among"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step: dense layers among"),
        ({"layer_types": ["linear_attention"]}, "layer_types: expected a list of 8 strings"),
        ({"layer_types": ["sliding_attention"] * 8}, "layer_types: 'sliding_attention' is not supported"),
        ({"num_hidden_layers": 10**12}, "num_hidden_layers: 1000000000000 is more than the 1024 that are supported"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide 4"),
        ({"linear_num_key_heads": 4}, "linear_num_key_heads: 4 does not divide 6"),
        ({"linear_num_value_heads": None}, "linear_num_value_heads: missing"),
        ({"intermediate_size": None}, "intermediate_size: missing"),
        ({"mtp_num_hidden_layers": -1}, "mtp_num_hidden_layers: expected an integer of at least 0, got -1"),
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}}, "rope_parameters.rope_type: 'yarn'"),
        ({"rope_parameters": {}}, "rope_theta: missing"),
        (
            {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 2}},
            "rope_parameters.partial_rotary_factor: cannot rotate 512 of 256",
        ),
        (
            {"partial_rotary_factor": 0.25, "head_dim": 12, "rope_parameters": {"rope_theta": 1.0}},
            "cannot rotate 3 of 12",
        ),
    ],
)
def test_refusals_name_file_and_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelLoadError) as caught:
        read(DENSE | changes)
    assert str(caught.value).startswith("config.json: ")
    assert message in str(caught.value)


def test_more_experts_than_there_are() -> None:
    with pytest.raises(ModelLoadError, match="num_experts_per_tok: 9 of 8 experts"):
        read(EXPERTS | {"num_experts_per_tok": 9})


def test_an_unknown_architecture_is_told_the_known_ones() -> None:
    with pytest.raises(ModelLoadError, match=r"'MambaForCausalLM' is not supported, only LlamaForCausalLM, .*Qwen3_5"):
        read_any_config(DENSE | {"architectures": ["MambaForCausalLM"]}, Path("config.json"))
    with pytest.raises(ModelLoadError, match="architectures: expected a list of one name"):
        read_any_config(DENSE | {"architectures": ["A", "B"]}, Path("config.json"))
