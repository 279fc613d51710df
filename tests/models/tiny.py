"""Tiny random models in Hugging Face directories, written by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from infernix.models.directory import ModelDirectory
from infernix.models.llama import LlamaModel
from infernix.models.weights import WeightFiles

VOCAB_SIZE = 97

torch.set_num_threads(1)

_CLASSES: dict[str, tuple[Any, Any]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def tiny_model(family: str, **changes: Any) -> PreTrainedModel:
    """A transformers model with random weights, biases and norms included."""
    config_class, model_class = _CLASSES[family]
    values: dict[str, Any] = {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
    }
    torch.manual_seed(7)
    model = model_class(config_class(**(values | changes)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                parameter.normal_(1.0 if "norm" in name else 0.0, 0.3)
            else:
                parameter.normal_(0.0, 0.15)
    return model.eval()


def load(directory: Path, dtype: torch.dtype = torch.float32) -> LlamaModel:
    """Our network over the directory's weights, without a tokenizer."""
    weights = WeightFiles(directory, dtype=dtype, device=torch.device("cpu"))
    return LlamaModel(ModelDirectory(directory).model_config(), weights)


def reference_logits(model: PreTrainedModel, token_ids: list[int]) -> torch.Tensor:
    """transformers' logits, float32 [len(token_ids), vocab_size]."""
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([token_ids])).logits[0]
    return logits
