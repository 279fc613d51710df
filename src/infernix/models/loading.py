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
from infernix.models.directory import ModelDirectory
from infernix.models.linear import MatrixFormat
from infernix.models.model import LanguageModel
from infernix.models.registry import AnyModelConfig, build_model
from infernix.models.weights import WeightFiles
from infernix.options import SamplingParameters

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# On a CPU these say how matrices are kept; all else is float32.
_CPU_FORMATS = {"float16": MatrixFormat.FLOAT16, "int8": MatrixFormat.INT8}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model and everything that says what its ids mean.

    `name` is for people; `directory` is where it was opened, None for one that was made otherwise.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    template: ChatTemplate
    framing: Framing
    sampling_defaults: SamplingParameters
    name: str
    directory: Path | None = None


def open_model(
    path: str | Path | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    progress: Callable[[str], None] | None = None,
) -> LoadedModel:
    """Open a local Hugging Face directory; None or "smollm2" is the embedded SmolLM2-135M-Instruct.

    `device` is "cpu", "cuda", or "auto": CUDA where there is one. `dtype` is "float32", "bfloat16", "float16", "int8",
    or "auto": float32 on a CPU, the checkpoint's own format on CUDA. On a CPU "float16" and "int8" are how the matrices
    of linear layers are kept, for less memory to read; embeddings, norms, attention, sums and logits are float32. int8
    is for CPUs only; the head and, in Llama-like networks, the last matrix of a feed-forward block are float16 there.
    `progress` receives lines about slow steps.

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
    chosen_dtype, matrix_format = _choose_dtype(dtype, chosen_device, config)
    weights = WeightFiles(directory.path, dtype=chosen_dtype, device=chosen_device, matrix_format=matrix_format)
    return LoadedModel(
        model=build_model(config, weights),
        tokenizer=tokenizer,
        template=template,
        framing=Framing.of(tokenizer, template.source or ""),
        sampling_defaults=sampling_defaults,
        name=directory.name,
        directory=directory.path,
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


def _choose_dtype(dtype: str, device: torch.device, config: AnyModelConfig) -> tuple[torch.dtype, MatrixFormat]:
    if dtype not in ("auto", *_DTYPES, *_CPU_FORMATS):
        raise ValueError(f"dtype {dtype!r} is not one of auto, {', '.join(dict.fromkeys((*_DTYPES, *_CPU_FORMATS)))}")
    if device.type == "cpu":
        if dtype in _CPU_FORMATS:
            return torch.float32, _CPU_FORMATS[dtype]
        # Processors without bfloat16 arithmetic run its matrix products many times slower than float32's.
        return _DTYPES.get(dtype, torch.float32), MatrixFormat.OWN
    if dtype == "int8":
        raise ModelLoadError(f"dtype 'int8' is for CPUs, not for {device.type}")
    chosen = config.stored_dtype or "" if dtype == "auto" else dtype
    return _DTYPES.get(chosen, torch.float32), MatrixFormat.OWN
