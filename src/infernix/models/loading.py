"""Opening a model by its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from infernix.errors import ModelLoadError
from infernix.frontend.framing import Framing
from infernix.frontend.template import ChatTemplate
from infernix.frontend.tokenizer import Tokenizer
from infernix.models.config import ModelConfig
from infernix.models.directory import ModelDirectory
from infernix.models.llama import LlamaModel
from infernix.models.model import LanguageModel
from infernix.models.weights import WeightFiles
from infernix.options import SamplingParameters

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model and everything that says what its ids mean; `name` is for people."""

    model: LanguageModel
    tokenizer: Tokenizer
    template: ChatTemplate
    framing: Framing
    sampling_defaults: SamplingParameters
    name: str


def open_model(
    path: str | Path | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> LoadedModel:
    """Open a local Hugging Face directory; None or "smollm2" is the embedded SmolLM2-135M-Instruct.

    `device` is "cpu", "cuda", or "auto": CUDA where there is one. `dtype` is "float32", "bfloat16", "float16", or
    "auto": float32 on a CPU, the checkpoint's own format on CUDA. `progress` receives lines about slow steps.

    Raises ModelLoadError, naming the file and what is wrong with it; ValueError for an unknown `dtype`.
    """
    directory = ModelDirectory.find(path, progress)
    config = directory.model_config()
    tokenizer = directory.tokenizer()
    if tokenizer.num_tokens > config.vocab_size:
        raise ModelLoadError(
            f"{directory.path / 'tokenizer.json'}: token id {tokenizer.num_tokens - 1} has no row in an embedding of"
            f" {config.vocab_size} tokens (vocab_size in config.json)"
        )
    template = directory.template(tokenizer)
    sampling_defaults = directory.sampling_defaults()
    chosen_device = _choose_device(device)
    if chosen_device.type == "cuda":
        # cuDNN plans its attention anew for every number of keys: 46 ms a decoded token where the other kernels took 5
        # (bfloat16, 22 layers, H200).
        torch.backends.cuda.enable_cudnn_sdp(False)
    weights = WeightFiles(directory.path, dtype=_choose_dtype(dtype, chosen_device, config), device=chosen_device)
    return LoadedModel(
        model=LlamaModel(config, weights),
        tokenizer=tokenizer,
        template=template,
        framing=Framing.of(tokenizer, template.source or ""),
        sampling_defaults=sampling_defaults,
        name=directory.name,
    )


def _choose_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ModelLoadError(f"device {device!r} is unknown: {str(error).splitlines()[0]}") from error
    if chosen.type not in ("cpu", "cuda"):
        raise ModelLoadError(f"device {device!r} is not supported; supported: auto, cpu, cuda")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ModelLoadError(f"device {device!r} is not available: PyTorch finds no CUDA device")
    return chosen


def _choose_dtype(dtype: str, device: torch.device, config: ModelConfig) -> torch.dtype:
    if dtype != "auto":
        if dtype not in _DTYPES:
            raise ValueError(f"dtype {dtype!r} is not one of auto, {', '.join(_DTYPES)}")
        return _DTYPES[dtype]
    # Processors without bfloat16 arithmetic run its matrix products many times slower than float32's.
    if device.type == "cpu":
        return torch.float32
    return _DTYPES.get(config.stored_dtype or "", torch.float32)
