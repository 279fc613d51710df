"""Tiny random Qwen3.5 models in Hugging Face directories, written by transformers, and rewritten as releases differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
)

from infernix.models.files import read_json_object
from infernix.models.qwen3_5 import Qwen35Model
from infernix.models.qwen3_5_config import read_qwen3_5_config
from infernix.models.weights import WeightFiles

VOCAB_SIZE = 97
HIDDEN = 48

torch.set_num_threads(1)

_SIZES: dict[str, Any] = {
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
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}
_DENSE = {"intermediate_size": 80}
_EXPERTS = {
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 32,
}


def tiny_qwen3_5(*, experts: bool = False, **changes: Any) -> PreTrainedModel:
    """A transformers model with random weights, norms and decay rates included."""
    torch.manual_seed(11)
    model: PreTrainedModel
    if experts:
        model = Qwen3_5MoeForCausalLM(Qwen3_5MoeTextConfig(**(_SIZES | _EXPERTS | changes)))
    else:
        model = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**(_SIZES | _DENSE | changes)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("linear_attn.norm.weight"):
                parameter.normal_(1.0, 0.3)
            elif "norm" in name or name.endswith("dt_bias"):
                parameter.normal_(0.0, 0.3)
            elif name.endswith("A_log"):
                parameter.uniform_(-2.0, 1.0)  # fades of about 0.1 to 3 a token: history matters
            elif "conv1d" in name:
                parameter.normal_(0.0, 0.5)
            else:
                parameter.normal_(0.0, 0.15)
    return model.eval()


def load_qwen3_5(directory: Path, dtype: torch.dtype = torch.float32) -> Qwen35Model:
    """Our network over the directory's weights, without a tokenizer."""
    config = read_qwen3_5_config(read_json_object(directory / "config.json"), directory / "config.json")
    return Qwen35Model(config, WeightFiles(directory, dtype=dtype, device=torch.device("cpu")))


def rewrite_tensors(directory: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Puts changed tensors in place of the directory's."""
    path = directory / "model.safetensors"
    tensors = change({name: tensor.clone() for name, tensor in load_file(path).items()})
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def rewrite_config(directory: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Puts a changed config.json in place of the directory's."""
    path = directory / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def random_tokens(num_tokens: int, start: int = 0) -> list[int]:
    """The same tokens every time."""
    return [(7 * index * index + 3 * index + 5) % VOCAB_SIZE for index in range(start, start + num_tokens)]
