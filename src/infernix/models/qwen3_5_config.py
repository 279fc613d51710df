"""The sizes and switches of a Qwen3.5 text model, dense or with experts, read from a Hugging Face `config.json`.

The fields stand in `text_config` (releases with a vision tower, which is not carried out) or at the top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infernix.models.config_fields import ConfigFields
from infernix.models.rope import RopeParameters
from infernix.options import shown_value

DENSE_ARCHITECTURES = ("Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration")
EXPERT_ARCHITECTURES = ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration")
QWEN3_5_ARCHITECTURES = DENSE_ARCHITECTURES + EXPERT_ARCHITECTURES

# What is counted out in Python, or allocated, before a weight file can contradict it.
_MAX_LAYERS, _MAX_EXPERTS = 1024, 4096

_RECURRENT, _FULL = "linear_attention", "full_attention"


@dataclass(frozen=True, slots=True)
class ExpertConfig:
    """A mixture of experts: `num_chosen` of `num_experts` a token, and one shared expert that all tokens pass."""

    num_experts: int
    num_chosen: int
    intermediate_size: int
    shared_intermediate_size: int


@dataclass(frozen=True, slots=True)
class DeltaConfig:
    """A gated DeltaNet layer: heads of keys and of values, and the taps of its causal convolution.

    Every key head serves num_value_heads / num_key_heads neighbouring value heads.
    """

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    num_taps: int

    @property
    def num_channels(self) -> int:
        """Width of the convolution: queries, keys and values side by side."""
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim

    @property
    def output_size(self) -> int:
        """Width of what the value heads give together."""
        return self.num_value_heads * self.value_dim


@dataclass(frozen=True, slots=True)
class Qwen35Config:
    """A decoder whose layers are recurrent (gated DeltaNet) or attend in full.

    is_recurrent        for every layer, whether it is recurrent
    rotary_dim          dimensions at the front of a head that are rotated
    intermediate_size   of the feed-forward block; `experts` stands in its place where it is not None
    num_mtp_layers      layers of the multi-token predictor that the checkpoint names, often 0 or 1
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    experts: ExpertConfig | None
    is_recurrent: tuple[bool, ...]
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rotary_dim: int
    delta: DeltaConfig
    max_positions: int
    rms_norm_eps: float
    rope: RopeParameters
    tie_word_embeddings: bool
    num_mtp_layers: int
    stored_dtype: str | None

    @property
    def num_layers(self) -> int:
        """Layers of both kinds."""
        return len(self.is_recurrent)


def read_qwen3_5_config(document: Mapping[str, Any], source: Path) -> Qwen35Config:
    """The network that `document`, the content of the file `source`, describes.

    Raises ModelLoadError, naming the file and the field, for a missing or malformed field, and for a feature that would
    change the numbers and is not carried out.
    """
    outer = ConfigFields(document, source)
    fields = outer.inner("text_config") or outer
    _refuse_unsupported(outer, fields)
    architectures = outer.value("architectures")
    has_experts = isinstance(architectures, list) and architectures[:1] and architectures[0] in EXPERT_ARCHITECTURES
    num_heads, num_kv_heads = fields.count("num_attention_heads"), fields.count("num_key_value_heads")
    if num_heads % num_kv_heads:
        fields.fail("num_key_value_heads", f"{num_kv_heads} does not divide {num_heads} attention heads")
    head_dim = fields.count("head_dim", 256)
    rope, rotary_dim = _read_rope(fields, head_dim)
    return Qwen35Config(
        vocab_size=fields.count("vocab_size"),
        hidden_size=fields.count("hidden_size"),
        intermediate_size=0 if has_experts else fields.count("intermediate_size"),
        experts=_read_experts(fields) if has_experts else None,
        is_recurrent=_read_layer_types(fields),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rotary_dim=rotary_dim,
        delta=read_delta(fields),
        max_positions=fields.count("max_position_embeddings"),
        rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
        rope=rope,
        # A text model taken out of a larger one may keep the switch at the top only.
        tie_word_embeddings=fields.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", False)),
        num_mtp_layers=fields.index("mtp_num_hidden_layers") if "mtp_num_hidden_layers" in fields else 0,
        stored_dtype=fields.text("dtype", None) or outer.text("dtype", None) or outer.text("torch_dtype", None),
    )


def _refuse_unsupported(outer: ConfigFields, fields: ConfigFields) -> None:
    if "quantization_config" in outer:
        outer.fail("quantization_config", "quantised checkpoints are not supported")
    activation = fields.text("hidden_act", "silu")
    if activation != "silu":
        fields.fail("hidden_act", f"{activation!r} is not supported, only 'silu'")
    gate = fields.text("output_gate_type", "swish")
    if gate not in ("swish", "silu"):
        fields.fail("output_gate_type", f"{gate!r} is not supported, only 'swish'")
    if not fields.flag("attn_output_gate", True):
        fields.fail("attn_output_gate", "attention without an output gate is not supported")
    if fields.flag("attention_bias", False):
        fields.fail("attention_bias", "attention with biases is not supported")
    if not fields.flag("norm_topk_prob", True):
        fields.fail("norm_topk_prob", "expert weights that do not sum to one are not supported")
    if fields.value("mlp_only_layers"):
        fields.fail("mlp_only_layers", "dense layers among layers with experts are not supported")
    if fields.count("decoder_sparse_step", 1) != 1:
        fields.fail("decoder_sparse_step", "dense layers among layers with experts are not supported")


def _read_layer_types(fields: ConfigFields) -> tuple[bool, ...]:
    num_layers = fields.count("num_hidden_layers", largest=_MAX_LAYERS)
    kinds = fields.texts("layer_types", num_layers)
    if kinds is None:
        interval = fields.count("full_attention_interval", 4)
        return tuple((index + 1) % interval != 0 for index in range(num_layers))
    for kind in kinds:
        if kind not in (_RECURRENT, _FULL):
            fields.fail("layer_types", f"{shown_value(kind)} is not supported, only {_RECURRENT!r} and {_FULL!r}")
    return tuple(kind == _RECURRENT for kind in kinds)


def read_delta(fields: ConfigFields, *, max_conv_width: int | None = None) -> DeltaConfig:
    """The sizes of gated DeltaNet layers. Raises ModelLoadError for those that do not fit together."""
    num_key_heads = fields.count("linear_num_key_heads")
    num_value_heads = fields.count("linear_num_value_heads")
    if num_value_heads % num_key_heads:
        fields.fail("linear_num_key_heads", f"{num_key_heads} does not divide {num_value_heads} value heads")
    return DeltaConfig(
        num_key_heads,
        num_value_heads,
        fields.count("linear_key_head_dim", 128),
        fields.count("linear_value_head_dim", 128),
        fields.count("linear_conv_kernel_dim", 4, largest=max_conv_width),
    )


def _read_experts(fields: ConfigFields) -> ExpertConfig:
    num_experts, num_chosen = fields.count("num_experts", largest=_MAX_EXPERTS), fields.count("num_experts_per_tok")
    if num_chosen > num_experts:
        fields.fail("num_experts_per_tok", f"{num_chosen} of {num_experts} experts cannot be chosen")
    return ExpertConfig(
        num_experts, num_chosen, fields.count("moe_intermediate_size"), fields.count("shared_expert_intermediate_size")
    )


def _read_rope(fields: ConfigFields, head_dim: int) -> tuple[RopeParameters, int]:
    """Frequencies and rotated dimensions. The sections of pictures and films do not matter: for text the three
    positions of a token are one and the same.
    """
    parameters = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    holder = parameters if parameters is not None and "rope_theta" in parameters else fields
    theta = holder.number("rope_theta")
    if parameters is not None:
        kind = parameters.text("rope_type", parameters.text("type", "default"))
        if kind not in ("default", "mrope"):
            parameters.fail("rope_type", f"{kind!r} is not supported, only 'default'")
    holder = parameters if parameters is not None and "partial_rotary_factor" in parameters else fields
    rotary_dim = int(head_dim * holder.number("partial_rotary_factor", 0.25))
    if not 0 < rotary_dim <= head_dim or rotary_dim % 2:
        holder.fail("partial_rotary_factor", f"cannot rotate {rotary_dim} of {head_dim} dimensions")
    return RopeParameters(theta), rotary_dim
