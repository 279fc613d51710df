"""Tiny models in directories with the networks that draft for them, whole enough for an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from frontend.tokenizer_files import SPECIAL, byte_level
from models import test_qwen4_exp_mtp, tiny_mtp, tiny_qwen3_5, tiny_qwen4_exp
from models.tiny_dflash import CONFIG, CONFIG2, drafter_tensors, write_drafter
from models.tiny_qwen3_5 import rewrite_tensors
from transformers import PreTrainedModel

MARKS = ("<think>", "</think>")
NUM_LOGITS = len(SPECIAL) + len(MARKS) + 256 + 6 + 7
TEMPLATE = (
    "{% for message in messages %}<|user|>{{ message.content }}<|end|>{% endfor %}"
    "<|assistant|>{% if enable_thinking %}<think>{% endif %}"
)
# What a layer adds to the residual stream goes through these matrices.
_WRITES = (
    "o_proj.weight",
    "out_proj.weight",
    "down_proj.weight",
    "experts.down_proj",
    "ple.value_proj.weight",
    "ple.conv1d.weight",
)
_STREAMS_MIXER = "hyper_connection_mixer."

BACKENDS = ("mtp", "mtp of streams", "dflash", "dflash2")
"""Whose model is a Qwen3.5, but for the predictor of streams, whose model is a Qwen3.8-Flash-Next."""


def write_models(path: Path) -> None:
    """One directory for each of the two kinds of model, with a tokenizer, a template that thinks, and drafters."""
    _write_model(path / "qwen3_5", tiny_qwen3_5.tiny_qwen3_5(vocab_size=NUM_LOGITS))
    rewrite_tensors(path / "qwen3_5", predictable)
    _write_model(path / "qwen4_exp", tiny_qwen4_exp.tiny_qwen4_exp(vocab_size=NUM_LOGITS, eos_token_id=[0]))
    rewrite_tensors(path / "qwen4_exp", predictable_streams)
    tensors = drafter_tensors(with_selector=True)
    for name, tensor in tensors.items():
        if name.endswith("codebook"):
            tensors[name] = tensor.repeat(3, 1)[:NUM_LOGITS]
    write_drafter(path / "dflash", CONFIG, drafter_tensors())
    write_drafter(path / "dflash2", CONFIG2, tensors)


def model_of(path: Path, backend: str) -> Path:
    """The directory of the model that a backend drafts for."""
    return path / ("qwen4_exp" if backend == "mtp of streams" else "qwen3_5")


def asked_for(path: Path, backend: str, num_drafts: int | None = 4) -> dict[str, Any]:
    """What an engine is told for a backend."""
    drafter = {"draft_model": path / backend} if backend.startswith("dflash") else {}
    return {"speculation": backend.split()[0], "draft_tokens": num_drafts} | drafter


def predictable(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A Qwen3.5 that mostly goes by its last token, and a predictor that knows no more than that."""
    more = _without_norms(tiny_mtp.predictor_tensors(experts=False))
    hidden = tiny_qwen3_5.HIDDEN
    more["mtp.fc.weight"] = torch.cat((torch.eye(hidden), torch.zeros(hidden, hidden)), dim=1)
    more["mtp.norm.weight"] = tensors["model.norm.weight"].clone()
    return _with_little_written(tensors | more)


def predictable_streams(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Likewise a Qwen3.8-Flash-Next."""
    more = _without_norms(test_qwen4_exp_mtp.predictor_tensors())
    hidden = tiny_qwen4_exp.HIDDEN
    more |= {"mtp.fc_embedding.weight": torch.eye(hidden), "mtp.fc_hidden.weight": torch.zeros(hidden, hidden)}
    for name, tensor in tensors.items():
        if name.startswith(f"model.{_STREAMS_MIXER}"):
            more[f"mtp.{name.removeprefix('model.')}"] = tensor.clone()
    # Streams are normed to small numbers: without sharper logits a temperature would drown what the last token says.
    more["lm_head.weight"] = tensors["lm_head.weight"] * 8
    return _with_little_written(tensors | more)


def _write_model(path: Path, model: PreTrainedModel) -> None:
    model.save_pretrained(path)
    (path / "tokenizer.json").write_text(byte_level(special=(*SPECIAL, *MARKS)))
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))


def _without_norms(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor * (0.0 if "norm" in name else 1.0) for name, tensor in tensors.items()}


def _with_little_written(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor * 0.01 if name.endswith(_WRITES) else tensor for name, tensor in tensors.items()}
