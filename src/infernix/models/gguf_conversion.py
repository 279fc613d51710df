"""From a GGUF file of the Llama architecture to the files of a Hugging Face model directory.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Only what the embedded model needs is read: a
byte-level BPE tokenizer of the kind `smollm`, plain rotary positions, no biases. Everything else is refused by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from infernix.errors import ModelLoadError

# Part of the name of a converted directory: raise it with every change of what is written.
CONVERTER_VERSION = 1

_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_MODEL_TENSORS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_CONTROL_TOKEN_TYPE = 3  # gguf: 1 normal, 3 control


def convert_gguf(
    source: Path,
    directory: Path,
    *,
    generation_defaults: dict[str, Any],
    progress: Callable[[str], None] | None = None,
) -> None:
    """Write the model of the GGUF file `source` into the existing, empty `directory`, weights as float32.

    `generation_defaults` becomes generation_config.json. Every file is on the disk when this returns. Raises
    ModelLoadError for a file that is corrupt or of another kind.
    """
    report = progress or (lambda message: None)
    report(f"reading {source.name}")
    try:
        reader = gguf.GGUFReader(source)
    except (OSError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ModelLoadError(f"{source}: not a whole GGUF file: {error}") from error
    metadata = _Metadata(reader, source)
    config = _config(metadata, is_tied=all(tensor.name != "output.weight" for tensor in reader.tensors))
    _write_json(directory / "config.json", config)
    _write_json(directory / "generation_config.json", generation_defaults)
    _write_json(directory / "tokenizer_config.json", _tokenizer_config(metadata))
    report("building the tokenizer")
    _write_bytes(directory / "tokenizer.json", _tokenizer(metadata).to_str(pretty=False).encode())
    report("unpacking the weights")
    try:
        save_file(_tensors(reader, config, source), directory / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:  # the library's own class also where the disk is full
        raise ModelLoadError(f"{directory / 'model.safetensors'}: cannot be written: {error}") from error
    _flush(directory / "model.safetensors")
    _flush(directory)


class _Metadata:
    """Typed access to the key/value part of the file."""

    def __init__(self, reader: gguf.GGUFReader, source: Path) -> None:
        self._reader = reader
        self.source = source

    def get(self, key: str, default: Any = None) -> Any:
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def require(self, key: str, expected: Any = None) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelLoadError(f"{self.source}: {key} is missing")
        if expected is not None and value != expected:
            raise ModelLoadError(f"{self.source}: {key} is {value!r}; only {expected!r} can be converted")
        return value


def _config(metadata: _Metadata, *, is_tied: bool) -> dict[str, Any]:
    metadata.require("general.architecture", "llama")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        raise ModelLoadError(f"{metadata.source}: llama.rope.scaling.type: scaled positions cannot be converted")
    num_heads = metadata.require("llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(metadata.require("tokenizer.ggml.tokens")),
        "hidden_size": metadata.require("llama.embedding_length"),
        "intermediate_size": metadata.require("llama.feed_forward_length"),
        "num_hidden_layers": metadata.require("llama.block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv", num_heads),
        "head_dim": metadata.require("llama.rope.dimension_count"),
        "max_position_embeddings": metadata.require("llama.context_length"),
        "rms_norm_eps": _shortest(metadata.require("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": _shortest(metadata.get("llama.rope.freq_base", 10000.0)),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": is_tied,
        "bos_token_id": metadata.require("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.require("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float32",
    }


def _shortest(value: float) -> float:
    """The shortest decimal that is the same float32: 1e-05 for 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _tokenizer(metadata: _Metadata) -> Tokenizer:
    metadata.require("tokenizer.ggml.model", "gpt2")
    metadata.require("tokenizer.ggml.pre", "smollm")
    tokens: list[str] = metadata.require("tokenizer.ggml.tokens")
    merges: list[str] = metadata.require("tokenizer.ggml.merges")
    model = models.BPE(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=[(left, right) for left, right in (merge.split(" ") for merge in merges)],
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata.require("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, types, strict=True)
            if kind == _CONTROL_TOKEN_TYPE
        ]
    )
    return tokenizer


def _tokenizer_config(metadata: _Metadata) -> dict[str, Any]:
    tokens = metadata.require("tokenizer.ggml.tokens")
    document: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": metadata.require("llama.context_length"),
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token_id = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if token_id is not None:
            document[f"{name}_token"] = tokens[token_id]
    template = metadata.get("tokenizer.chat_template")
    if template is not None:
        document["chat_template"] = template
    return document


def _tensors(reader: gguf.GGUFReader, config: dict[str, Any], source: Path) -> dict[str, torch.Tensor]:
    tensors = {}
    for tensor in reader.tensors:
        name = _huggingface_name(tensor.name)
        if name is None:
            raise ModelLoadError(f"{source}: tensor {tensor.name!r} has no place in the network")
        try:
            values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        except (NotImplementedError, ValueError) as error:
            raise ModelLoadError(f"{source}: tensor {tensor.name!r} cannot be unpacked: {error}") from error
        if ".attn_q." in tensor.name:
            values = _half_split_rows(values, config["num_attention_heads"])
        elif ".attn_k." in tensor.name:
            values = _half_split_rows(values, config["num_key_value_heads"])
        tensors[name] = torch.from_numpy(np.array(values))  # a copy: the reader's own arrays are read-only
    return tensors


def _huggingface_name(name: str) -> str | None:
    stem, _, kind = name.rpartition(".")
    if kind != "weight":
        return None
    if stem in _MODEL_TENSORS:
        return f"{_MODEL_TENSORS[stem]}.weight"
    block, _, rest = stem.partition(".")
    index, _, part = rest.partition(".")
    if block == "blk" and index.isdecimal() and part in _LAYER_TENSORS:
        return f"model.layers.{index}.{_LAYER_TENSORS[part]}.weight"
    return None


def _half_split_rows(weight: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """Rows of each head from llama.cpp's order, which alternates the two halves of a rotation, to Hugging Face's.

    llama.cpp turns neighbouring rows (2i, 2i + 1) into a rotation pair; Hugging Face pairs row i with row i + D / 2.
    """
    rows, columns = weight.shape
    return weight.reshape(num_heads, rows // num_heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    _write_bytes(path, json.dumps(document, ensure_ascii=False, indent=2).encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _flush(path)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
