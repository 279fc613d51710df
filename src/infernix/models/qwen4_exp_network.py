"""transformers' own network for Qwen3.8-Flash-Next, over the tensors of a checkpoint.

The network is laid out without memory first, so that every tensor is read once, and into its place.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

from infernix.errors import ModelLoadError
from infernix.models.linear import MatrixFormat
from infernix.models.qwen4_exp_config import Qwen4ExpConfig
from infernix.models.tensor_reader import TensorReader, read_checked
from infernix.models.weights import WeightFiles

_LIBRARY = "transformers.models.qwen4_exp"
_PREFIXES = ("model.language_model.", "model.")

# Which of its forms of attention and of experts transformers runs; the rest is one form each.
_IMPLEMENTATIONS = {"attn_implementation": "sdpa", "experts_implementation": "grouped_mm"}

# Exponents and biases of the recurrence's fades, which are float32 whatever the model's format.
_FLOAT32_NAMES = (".A_log", ".dt_bias")


def load_library(part: str) -> Any:
    """transformers' module `configuration_qwen4_exp` or `modeling_qwen4_exp`; ModelLoadError where it is missing."""
    try:
        return importlib.import_module(f"{_LIBRARY}.{part}")
    except ImportError as error:
        raise ModelLoadError(
            "Qwen3.8-Flash-Next runs on the modules of transformers, which cannot be imported: install"
            f" infernix[transformers] ({error})"
        ) from error


def library_config(config: Qwen4ExpConfig) -> Any:
    """transformers' config of the network; ModelLoadError, naming the file, where transformers refuses it."""
    configuration = load_library("configuration_qwen4_exp")
    try:
        return configuration.Qwen4ExpTextConfig(**config.network_fields, **_IMPLEMENTATIONS)
    except Exception as error:  # its checks raise errors of many kinds
        reason = " ".join(str(error).split())
        raise ModelLoadError(f"{config.source}: transformers refuses the config: {reason}") from error


def build_network(config: Qwen4ExpConfig, weights: WeightFiles) -> Any:
    """A `Qwen4ExpForCausalLM` that holds the checkpoint's text model, for inference.

    Raises ModelLoadError that names every tensor which is missing or has another shape than `config` says.
    """
    if weights.matrix_format is not MatrixFormat.OWN:
        wanted = weights.matrix_format.value
        raise ModelLoadError(f"{config.source}: dtype {wanted!r} is not supported for this network on a CPU")
    modeling = load_library("modeling_qwen4_exp")
    settings = library_config(config)
    try:
        with torch.device("meta"):
            network = modeling.Qwen4ExpForCausalLM(settings)
    except Exception as error:  # such as sizes that no tensor has
        reason = str(error).splitlines()[0]
        raise ModelLoadError(f"{config.source}: transformers cannot lay the network out: {reason}") from error
    read_checked(weights, lambda reader: _read_network(reader, network, config))
    network.model.rotary_emb = modeling.Qwen4ExpTextRotaryEmbedding(network.config).to(weights.device)
    for layer in config.ngrams.layers if config.ngrams else ():
        name = f"layers.{layer}.ple.ple_embedding"
        _set_hashes(weights, f"{_prefix(weights)}{name}.", network.model.get_submodule(name), modeling)
    return network.eval().requires_grad_(False)


def read_module(reader: TensorReader, module: nn.Module, prefix: str, config: Qwen4ExpConfig) -> None:
    """Puts the checkpoint's tensors in the place of the module's parameters; a rehearsal looks at shapes only."""
    for name, parameter in list(module.named_parameters()):
        tensor = _read(reader, f"{prefix}{name}", tuple(parameter.shape), config)
        if tensor.device.type != "meta":
            owner, _, attribute = name.rpartition(".")
            setattr(module.get_submodule(owner), attribute, nn.Parameter(tensor, requires_grad=False))


def _read_network(reader: TensorReader, network: Any, config: Qwen4ExpConfig) -> None:
    prefix = _prefix(reader)
    read_module(reader, network.model, prefix, config)
    reader.refuse_from(
        f"{prefix}layers.{config.num_layers}.", f"is beyond the {config.num_layers} layers of the config"
    )
    if config.tie_word_embeddings:
        network.lm_head.weight = network.model.embed_tokens.weight
    else:
        read_module(reader, network.lm_head, "lm_head.", config)


def _read(reader: TensorReader, name: str, shape: tuple[int, ...], config: Qwen4ExpConfig) -> torch.Tensor:
    """One tensor, which a checkpoint may keep in parts: experts one by one, the table of n-grams in shards."""
    owner, _, attribute = name.rpartition(".")
    if owner.endswith(".mlp.experts") and f"{owner}.0.down_proj.weight" in reader:
        return _read_experts(reader, owner, attribute, shape)
    if owner.endswith(".ngram_embedding") and name not in reader and config.ngrams is not None:
        return _read_shards(reader, owner, shape, config.ngrams.num_parts)
    return reader.tensor(name, *shape, dtype=torch.float32 if name.endswith(_FLOAT32_NAMES) else None)


def _read_experts(reader: TensorReader, owner: str, attribute: str, shape: tuple[int, ...]) -> torch.Tensor:
    num_experts, num_outputs, num_inputs = shape
    parts = ("gate_proj", "up_proj") if attribute == "gate_up_proj" else ("down_proj",)
    num_rows = num_outputs // len(parts)
    whole = None
    for expert in range(num_experts):
        for place, part in enumerate(parts):
            tensor = reader.tensor(f"{owner}.{expert}.{part}.weight", num_rows, num_inputs)
            whole = tensor.new_empty(shape) if whole is None else whole
            whole[expert, place * num_rows : (place + 1) * num_rows] = tensor
    assert whole is not None
    return whole


def _read_shards(reader: TensorReader, owner: str, shape: tuple[int, ...], num_parts: int) -> torch.Tensor:
    num_rows = -(-shape[0] // num_parts)
    whole = None
    for part, begin in enumerate(range(0, shape[0], num_rows)):
        end = min(begin + num_rows, shape[0])
        tensor = reader.tensor(f"{owner}.shard_{part}.weight", end - begin, shape[1])
        whole = tensor.new_empty(shape) if whole is None else whole
        whole[begin:end] = tensor
    assert whole is not None
    return whole


def _set_hashes(weights: WeightFiles, prefix: str, embedding: Any, modeling: Any) -> None:
    """The constants that n-grams are hashed with: the checkpoint's where it has them, else transformers'."""
    computed = {
        "layer_multipliers": modeling._build_layer_multipliers(
            embedding.unigram_vocab_size, embedding.ngram_size, embedding.ple_layer_index, embedding.seed
        ),
        "ngram_heads_vocab_sizes": torch.tensor(embedding.head_vocab_sizes),
        "ngram_heads_offsets": torch.tensor(embedding.head_offsets),
    }
    for attribute, values in computed.items():
        name = f"{prefix}{attribute}"
        stored = weights.integers(name, tuple(values.shape)) if name in weights else values
        setattr(embedding, attribute, stored.to(weights.device))
    sizes, offsets = embedding.ngram_heads_vocab_sizes, embedding.ngram_heads_offsets
    num_rows = embedding.ngram_embedding.num_embeddings
    if int(sizes.min()) < 1 or int(offsets.min()) < 0 or int((sizes + offsets).max()) > num_rows:
        raise ModelLoadError(f"{prefix}ngram_heads_offsets and _vocab_sizes reach beyond {num_rows} rows of n-grams")


def _prefix(names: TensorReader | WeightFiles) -> str:
    return next((prefix for prefix in _PREFIXES if f"{prefix}embed_tokens.weight" in names), _PREFIXES[-1])
