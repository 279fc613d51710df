"""The sizes of a Qwen3.8-Flash-Next text model (`qwen4_exp`), read from a Hugging Face `config.json`.

Only what its state and its files are laid out by is read here; the network itself is transformers', and so are its
defaults. The fields stand in `text_config` (releases with a vision tower, which is not carried out) or at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infernix.models.config_fields import ConfigFields
from infernix.models.qwen3_5_config import DeltaConfig, read_delta
from infernix.options import shown_value

QWEN4_EXP_ARCHITECTURES = ("Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration")

# Bounds on what is counted out, looked for or allocated before a weight file can contradict it.
_MAX_LAYERS, _MAX_STREAMS, _MAX_TAPS, _MAX_NGRAM, _MAX_HEADS = 1024, 64, 64, 16, 64
_MAX_PRIME, _MAX_PARTS = 1 << 31, 4096

_RECURRENT, _INDEXED = "linear_attention", ("full_attention", "indexed_attention")

# What transformers' config is made of; nothing else of the file reaches it.
_LIBRARY_FIELDS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("hidden_act", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "attention_bias"),
    *("linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim"),
    *("linear_num_key_heads", "linear_num_value_heads", "output_gate_type"),
    *("moe_intermediate_size", "shared_expert_intermediate_size"),
    *("num_experts", "num_experts_per_tok", "norm_topk_prob", "hc_count", "hc_lowrank"),
    *("ple_layer_ids", "ple_embed_dim", "ple_conv_kernel_size", "ngram_size", "heads_per_ngram"),
    *("ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by", "seed", "split_ngram_parts", "eos_token_id"),
    *("indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio"),
)


@dataclass(frozen=True, slots=True)
class NgramConfig:
    """Layers that add embeddings of n-grams to the residual streams, and what a sequence remembers for each of them.

    layers         their places, counted from 0
    num_columns    newest inputs of the dilated convolution
    num_context    newest token ids
    end_token      the id in the place of tokens that are not there
    num_parts      tensors that a checkpoint splits the table of embeddings into
    """

    layers: tuple[int, ...]
    num_columns: int
    num_context: int
    end_token: int
    num_parts: int


@dataclass(frozen=True, slots=True)
class Qwen4ExpConfig:
    """A decoder of several residual streams whose layers are recurrent or attend to indexed keys.

    is_recurrent     for every layer, whether it is recurrent
    num_streams      residual streams, each `hidden_size` wide
    index_dim        size of the key that an attending layer keeps of a token to choose it by
    index_budget     keys that a token attends to at most, beside those of a block that is not full
    ngrams           None where no layer has them
    num_mtp_layers   layers of the multi-token predictor that the checkpoint names
    network_fields   fields of transformers' config
    source           the file
    """

    vocab_size: int
    hidden_size: int
    is_recurrent: tuple[bool, ...]
    num_streams: int
    num_kv_heads: int
    head_dim: int
    index_dim: int
    index_budget: int
    delta: DeltaConfig
    ngrams: NgramConfig | None
    max_positions: int
    tie_word_embeddings: bool
    num_mtp_layers: int
    stored_dtype: str | None
    network_fields: Mapping[str, Any]
    source: Path

    @property
    def num_layers(self) -> int:
        """Layers of both kinds."""
        return len(self.is_recurrent)

    @property
    def width(self) -> int:
        """Width of all residual streams side by side."""
        return self.num_streams * self.hidden_size


def read_qwen4_exp_config(document: Mapping[str, Any], source: Path) -> Qwen4ExpConfig:
    """The network that `document`, the content of the file `source`, describes.

    Raises ModelLoadError, naming the file and the field, for a missing or malformed field, and for a feature that would
    change the numbers and is not carried out.
    """
    outer = ConfigFields(document, source)
    fields = outer.inner("text_config") or outer
    _refuse_unsupported(outer, fields)
    is_recurrent = _read_layer_types(fields)
    tie_word_embeddings = fields.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", False))
    ngrams = _read_ngrams(fields, is_recurrent)
    network_fields = {name: fields.value(name) for name in _LIBRARY_FIELDS if name in fields}
    network_fields |= {
        "layer_types": [_RECURRENT if recurrent else _INDEXED[1] for recurrent in is_recurrent],
        "rope_parameters": _read_rope(fields),
        "tie_word_embeddings": tie_word_embeddings,
    }
    return Qwen4ExpConfig(
        vocab_size=fields.count("vocab_size"),
        hidden_size=fields.count("hidden_size"),
        is_recurrent=is_recurrent,
        num_streams=fields.count("hc_count", 4, largest=_MAX_STREAMS),
        num_kv_heads=fields.count("num_key_value_heads"),
        head_dim=fields.count("head_dim", 256),
        index_dim=fields.count("indexer_head_dim"),
        index_budget=fields.count("indexer_budget"),
        delta=read_delta(fields, max_conv_width=_MAX_TAPS),
        ngrams=ngrams,
        max_positions=fields.count("max_position_embeddings"),
        tie_word_embeddings=tie_word_embeddings,
        num_mtp_layers=fields.index("mtp_num_hidden_layers") if "mtp_num_hidden_layers" in fields else 0,
        stored_dtype=fields.text("dtype", None) or outer.text("dtype", None) or outer.text("torch_dtype", None),
        network_fields=network_fields,
        source=source,
    )


def _refuse_unsupported(outer: ConfigFields, fields: ConfigFields) -> None:
    if "quantization_config" in outer:
        outer.fail("quantization_config", "quantised checkpoints are not supported")
    activation = fields.text("hidden_act", "silu")
    if activation != "silu":
        fields.fail("hidden_act", f"{activation!r} is not supported, only 'silu'")


def _read_layer_types(fields: ConfigFields) -> tuple[bool, ...]:
    num_layers = fields.count("num_hidden_layers", largest=_MAX_LAYERS)
    kinds = fields.texts("layer_types", num_layers)
    if kinds is None:
        interval = fields.count("full_attention_interval", 4)
        return tuple((index + 1) % interval != 0 for index in range(num_layers))
    for kind in kinds:
        if kind != _RECURRENT and kind not in _INDEXED:
            known = ", ".join((_RECURRENT, *_INDEXED))
            fields.fail("layer_types", f"{shown_value(kind)} is not supported, only {known}")
    return tuple(kind == _RECURRENT for kind in kinds)


def _read_ngrams(fields: ConfigFields, is_recurrent: tuple[bool, ...]) -> NgramConfig | None:
    ids = fields.value("ple_layer_ids")
    if not ids:
        return None
    # The file counts layers from 1.
    places = fields.indices("ple_layer_ids", len(is_recurrent) + 1) or ()
    layers = tuple(sorted(place - 1 for place in places))
    if layers[0] < 0 or not all(is_recurrent[layer] for layer in layers):
        fields.fail("ple_layer_ids", f"expected layers of {_RECURRENT}, counted from 1, got {shown_value(ids)}")
    ngram_size = fields.count("ngram_size", 3, largest=_MAX_NGRAM)
    num_heads = len(layers) * (ngram_size - 1) * fields.count("heads_per_ngram", 8)
    if not 0 < num_heads <= _MAX_HEADS:
        fields.fail("heads_per_ngram", f"{shown_value(num_heads)} tables of n-grams in all are not supported")
    # Every table has a prime number of rows that is looked for by division.
    fields.count("ngram_vocab_size_base", 20_000_000, largest=_MAX_PRIME)
    end = fields.value("eos_token_id")
    end = end[0] if isinstance(end, list) and end else end
    if isinstance(end, bool) or not isinstance(end, int) or not 0 <= end < fields.count("vocab_size"):
        fields.fail("eos_token_id", f"n-grams need the id of a token, or a list that begins with one, got {end!r}")
    return NgramConfig(
        layers,
        (fields.count("ple_conv_kernel_size", 4, largest=_MAX_TAPS) - 1) * ngram_size,
        ngram_size - 1,
        end,
        fields.count("split_ngram_parts", 512, largest=_MAX_PARTS),
    )


def _read_rope(fields: ConfigFields) -> dict[str, Any]:
    """transformers' `rope_parameters`. The sections of pictures and films do not matter: for text the three positions
    of a token are one and the same.
    """
    parameters = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    if parameters is not None:
        kind = parameters.text("rope_type", parameters.text("type", "default"))
        if kind not in ("default", "mrope"):
            parameters.fail("rope_type", f"{kind!r} is not supported, only 'default'")
    values: dict[str, Any] = {"rope_type": "default"}
    for name, default in (("rope_theta", None), ("partial_rotary_factor", 1.0)):
        holder = parameters if parameters is not None and name in parameters else fields
        values[name] = holder.number(name, default)
    return values
