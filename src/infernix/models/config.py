"""The sizes and switches of a Llama-like network, read from a Hugging Face `config.json`.

Whatever the network definition does not carry out is refused by name here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infernix.models.config_fields import ConfigFields
from infernix.models.rope import RopeParameters
from infernix.options import shown_value

SUPPORTED_ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
SUPPORTED_ROPE_TYPES = ("default", "linear", "llama3")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder of `num_layers` layers of grouped-query attention and a gated SiLU feed-forward block.

    vocab_size          rows of the embedding and of the output matrix
    max_positions       longest sequence the checkpoint was made for, tokens
    qkv_bias, output_bias, mlp_bias   linear layers that have a bias: query/key/value, attention output, feed-forward
    qk_norm             queries and keys are normalised per head before rotation
    stored_dtype        the checkpoint's own number format, as its config names it; None where it does not
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_positions: int
    rms_norm_eps: float
    rope: RopeParameters
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    tie_word_embeddings: bool
    stored_dtype: str | None


def read_model_config(document: Mapping[str, Any], source: Path) -> ModelConfig:
    """The network that `document`, the content of the file `source`, describes.

    Raises ModelLoadError, naming the file and the field, for a missing or malformed field, for another architecture,
    and for a feature that would change the numbers and is not carried out.
    """
    fields = ConfigFields(document, source)
    architecture = _read_architecture(fields)
    _refuse_unsupported(fields, architecture)
    num_heads = fields.count("num_attention_heads")
    num_kv_heads = fields.count("num_key_value_heads", num_heads)
    if num_heads % num_kv_heads:
        fields.fail("num_key_value_heads", f"{num_kv_heads} does not divide {num_heads} attention heads")
    hidden_size = fields.count("hidden_size")
    if "head_dim" not in fields and hidden_size % num_heads:
        fields.fail("hidden_size", f"{hidden_size} is no multiple of {num_heads} attention heads")
    head_dim = fields.count("head_dim", hidden_size // num_heads)
    if head_dim % 2:
        fields.fail("head_dim", f"rotary embedding needs an even size, not {head_dim}")
    attention_bias = fields.flag("attention_bias", False)
    return ModelConfig(
        architecture=architecture,
        vocab_size=fields.count("vocab_size"),
        hidden_size=hidden_size,
        intermediate_size=fields.count("intermediate_size"),
        num_layers=fields.count("num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        max_positions=fields.count("max_position_embeddings"),
        rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
        rope=_read_rope(fields),
        qkv_bias=True if architecture == "Qwen2ForCausalLM" else attention_bias,
        output_bias=False if architecture == "Qwen2ForCausalLM" else attention_bias,
        mlp_bias=architecture == "LlamaForCausalLM" and fields.flag("mlp_bias", False),
        qk_norm=architecture == "Qwen3ForCausalLM",
        tie_word_embeddings=fields.flag("tie_word_embeddings", False),
        stored_dtype=fields.text("dtype", None) or fields.text("torch_dtype", None),
    )


def _read_architecture(fields: ConfigFields) -> str:
    names = fields.value("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        fields.fail("architectures", f"expected a list of one name, got {shown_value(names)}")
    name: str = names[0]
    if name not in SUPPORTED_ARCHITECTURES:
        fields.fail("architectures", f"{shown_value(name)} is not supported, only {', '.join(SUPPORTED_ARCHITECTURES)}")
    return name


def _refuse_unsupported(fields: ConfigFields, architecture: str) -> None:
    activation = fields.text("hidden_act", "silu")
    if activation != "silu":
        fields.fail("hidden_act", f"{activation!r} is not supported, only 'silu'")
    if "quantization_config" in fields:
        fields.fail("quantization_config", "quantised checkpoints are not supported")
    # Qwen configs carry a window that is off unless use_sliding_window is true; Llama has no such switch.
    if "sliding_window" in fields and fields.flag("use_sliding_window", architecture == "LlamaForCausalLM"):
        fields.fail("sliding_window", "sliding-window attention is not supported")
    layer_types = fields.value("layer_types") or []
    if not isinstance(layer_types, list) or any(kind != "full_attention" for kind in layer_types):
        fields.fail("layer_types", "only layers of 'full_attention' are supported")
    if "partial_rotary_factor" in fields and fields.number("partial_rotary_factor") != 1.0:
        fields.fail("partial_rotary_factor", "a partly rotated head is not supported")


def _read_rope(fields: ConfigFields) -> RopeParameters:
    """`rope_parameters` of newer configs, or `rope_theta` with `rope_scaling` of older ones."""
    parameters = fields.inner("rope_parameters")
    scaling = parameters or fields.inner("rope_scaling")
    theta = parameters.number("rope_theta") if parameters and "rope_theta" in parameters else None
    if theta is None:
        theta = fields.number("rope_theta", 10000.0)
    if scaling is None:
        return RopeParameters(theta)
    if "partial_rotary_factor" in scaling and scaling.number("partial_rotary_factor") != 1.0:
        scaling.fail("partial_rotary_factor", "a partly rotated head is not supported")
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    if kind == "default":
        return RopeParameters(theta)
    if kind == "linear":
        return RopeParameters(theta, scaling.number("factor"))
    if kind == "llama3":
        low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
        if low >= high:
            scaling.fail("low_freq_factor", f"{low:g} is not below high_freq_factor {high:g}")
        return RopeParameters(
            theta, scaling.number("factor"), low, high, scaling.count("original_max_position_embeddings")
        )
    scaling.fail("rope_type", f"{kind!r} is not supported; supported: {', '.join(SUPPORTED_ROPE_TYPES)}")
