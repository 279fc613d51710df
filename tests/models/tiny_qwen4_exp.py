"""Tiny random Qwen3.8-Flash-Next models in Hugging Face directories, written by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, Qwen4ExpForCausalLM, Qwen4ExpTextConfig

from infernix.models.files import read_json_object
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_config import read_qwen4_exp_config
from infernix.models.weights import WeightFiles

VOCAB_SIZE = 97
END = 9
HIDDEN = 32
STREAMS = 3

torch.set_num_threads(1)

SIZES: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": HIDDEN,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "indexed_attention"],
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 20,
    "hc_count": STREAMS,
    "hc_lowrank": 8,
    "ple_layer_ids": [2],
    "ple_embed_dim": 16,
    "ngram_size": 3,
    "heads_per_ngram": 2,
    "ngram_vocab_size_base": 50,
    "make_ngram_vocab_size_divisible_by": 8,
    "split_ngram_parts": 4,
    "indexer_n_heads": 6,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 12,
    "indexer_budget": 16,
    "indexer_compress_ratio": 4,
    "output_gate_type": "sigmoid",
    "eos_token_id": [END, 11],
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
}


def tiny_qwen4_exp(**changes: Any) -> PreTrainedModel:
    """A transformers model with random weights, norms, convolutions and decay rates included."""
    torch.manual_seed(11)
    model = Qwen4ExpForCausalLM(Qwen4ExpTextConfig(**(SIZES | changes)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("linear_attn.norm.weight"):
                parameter.normal_(1.0, 0.3)
            elif "norm" in name or name.endswith("dt_bias"):
                parameter.normal_(0.0, 0.3)
            elif name.endswith("A_log"):
                parameter.uniform_(-2.0, 1.0)  # fades of about 0.1 to 3 a token: history matters
            elif "conv1d" in name or "ngram_embedding" in name:
                parameter.normal_(0.0, 0.5)
            else:
                parameter.normal_(0.0, 0.15)
    return model.eval()


def load_qwen4_exp(directory: Path, dtype: torch.dtype = torch.float32) -> Qwen4ExpModel:
    """Our executor over the directory's weights, without a tokenizer."""
    config = read_qwen4_exp_config(read_json_object(directory / "config.json"), directory / "config.json")
    return Qwen4ExpModel(config, WeightFiles(directory, dtype=dtype, device=torch.device("cpu")))


def random_tokens(num_tokens: int, start: int = 0) -> list[int]:
    """The same tokens every time, END among them."""
    return [(7 * index * index + 3 * index + 5) % VOCAB_SIZE for index in range(start, start + num_tokens)]
