"""The sizes and switches of a DFlash or DFlash2 drafter, read from the `config.json` of its directory.

A drafter is a stack of dense attention layers over features of a target model, whose embedding and output matrix it
uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infernix.models.config_fields import ConfigFields
from infernix.models.rope import RopeParameters
from infernix.options import shown_value

_ARCHITECTURES = ("DFlashDraftModel", "DFlash2DraftModel")
_FULL, _SLIDING = "full_attention", "sliding_attention"
# What these do to the numbers is not carried out; with these values they do nothing.
_NEUTRAL = {"input_embedding_scale": 1, "output_multiplier": 1, "sample_from_anchor": False}
_NUM_CONVOLUTION_TAPS = 2
# Layers are counted out before a weight file can contradict; scores are kept for every pair of candidates.
_MAX_LAYERS, _MAX_CANDIDATES = 1024, 256


@dataclass(frozen=True, slots=True)
class LayerSpan:
    """How far a layer looks from a position: a window of S tokens, or None for all.

    With a window and `is_causal` it sees the S positions up to its own, otherwise those less than S away on both sides.
    Without a window it sees everything, ahead and behind.
    """

    window: int | None
    is_causal: bool


@dataclass(frozen=True, slots=True)
class SelectorConfig:
    """What makes a DFlash2 of it: convolutions over groups of channels, and a choice among candidates."""

    group_size: int
    rank: int
    num_candidates: int


@dataclass(frozen=True, slots=True)
class DFlashConfig:
    """A drafter of `len(spans)` layers.

    taps          layers of the target, counted from 0, whose residual streams are read side by side
    block_size    tokens of the block that it was trained on: the anchor and block_size - 1 drafts
    selector      None for DFlash, given for DFlash2
    """

    hidden_size: int
    intermediate_size: int
    spans: tuple[LayerSpan, ...]
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: RopeParameters
    num_target_layers: int
    taps: tuple[int, ...]
    mask_token_id: int
    block_size: int
    selector: SelectorConfig | None


def read_dflash_config(document: Mapping[str, Any], source: Path) -> DFlashConfig:
    """The drafter that `document`, the content of the file `source`, describes.

    Raises ModelLoadError, naming the file and the field, for a missing or malformed field, and for a feature that would
    change the numbers and is not carried out.
    """
    fields = ConfigFields(document, source)
    architectures = fields.value("architectures")
    if not isinstance(architectures, list) or len(architectures) != 1 or architectures[0] not in _ARCHITECTURES:
        known = " or ".join(repr(name) for name in _ARCHITECTURES)
        fields.fail("architectures", f"expected [{known}], a drafter, got {shown_value(architectures)}")
    own = fields.inner("dflash_config")
    if own is None:
        fields.fail("dflash_config", "missing")
    _refuse_unsupported(fields, own)
    num_heads, num_kv_heads = fields.count("num_attention_heads"), fields.count("num_key_value_heads")
    if num_heads % num_kv_heads:
        fields.fail("num_key_value_heads", f"{num_kv_heads} does not divide {num_heads} attention heads")
    head_dim = fields.count("head_dim", 128)
    if head_dim % 2:
        fields.fail("head_dim", f"rotary embedding needs an even size, not {head_dim}")
    num_layers = fields.count("num_hidden_layers", largest=_MAX_LAYERS)
    num_target_layers = fields.count("num_target_layers", largest=_MAX_LAYERS)
    taps = own.indices("target_layer_ids", num_target_layers)
    hidden_size = fields.count("hidden_size")
    block_size = (own if "block_size" in own else fields).count("block_size")
    if block_size < 2:
        fields.fail("block_size", "a block of one token has no drafts")
    return DFlashConfig(
        hidden_size=hidden_size,
        intermediate_size=fields.count("intermediate_size"),
        spans=_read_spans(fields, own, num_layers),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rms_norm_eps=fields.number("rms_norm_eps", 1e-6),
        rope=_read_rope(fields),
        num_target_layers=num_target_layers,
        taps=_default_taps(own, num_layers, num_target_layers) if taps is None else taps,
        mask_token_id=own.index("mask_token_id"),
        block_size=block_size,
        selector=_read_selector(own, hidden_size),
    )


def _refuse_unsupported(fields: ConfigFields, own: ConfigFields) -> None:
    if "quantization_config" in fields:
        fields.fail("quantization_config", "quantised checkpoints are not supported")
    activation = fields.text("hidden_act", "silu")
    if activation != "silu":
        fields.fail("hidden_act", f"{activation!r} is not supported, only 'silu'")
    if fields.flag("attention_bias", False):
        fields.fail("attention_bias", "attention with biases is not supported")
    for name, neutral in _NEUTRAL.items():
        if name in own and own.value(name) != neutral:
            own.fail(name, f"{shown_value(own.value(name))} is not supported, only {neutral!r}")
    if own.value("final_logit_softcapping"):
        own.fail("final_logit_softcapping", "is not supported")


def _read_spans(fields: ConfigFields, own: ConfigFields, num_layers: int) -> tuple[LayerSpan, ...]:
    kinds = fields.texts("layer_types", num_layers)
    if kinds is None:
        kinds = (_SLIDING if own.flag("use_swa", False) else _FULL,) * num_layers
        is_causal_by_default = False
    else:
        is_causal_by_default = True
    is_causal = fields.flag("is_causal", own.flag("causal", is_causal_by_default))
    spans = []
    for kind in kinds:
        if kind == _FULL:
            spans.append(LayerSpan(None, is_causal=False))
        elif kind == _SLIDING:
            holder, name = (fields, "sliding_window") if "sliding_window" in fields else (own, "swa_window_size")
            spans.append(LayerSpan(holder.count(name), is_causal))
        else:
            fields.fail("layer_types", f"{shown_value(kind)} is not supported, only {_FULL!r} and {_SLIDING!r}")
    return tuple(spans)


def _default_taps(own: ConfigFields, num_layers: int, num_target_layers: int) -> tuple[int, ...]:
    """One tap for each layer, spread from the second to the fourth last of the target's layers."""
    taps = tuple(round(1 + place * (num_target_layers - 4) / max(1, num_layers - 1)) for place in range(num_layers))
    if num_layers == 1 or num_target_layers < 4 or len(set(taps)) < num_layers:
        own.fail("target_layer_ids", f"missing, and {num_layers} taps do not spread over {num_target_layers} layers")
    return taps


def _read_rope(fields: ConfigFields) -> RopeParameters:
    parameters = fields.inner("rope_parameters") or fields.inner("rope_scaling")
    if parameters is None:
        return RopeParameters(fields.number("rope_theta"))
    kind = parameters.text("rope_type", parameters.text("type", "default"))
    if kind != "default":
        parameters.fail("rope_type", f"{kind!r} is not supported, only 'default'")
    if "partial_rotary_factor" in parameters and parameters.number("partial_rotary_factor") != 1.0:
        parameters.fail("partial_rotary_factor", "a partly rotated head is not supported")
    return RopeParameters((parameters if "rope_theta" in parameters else fields).number("rope_theta"))


def _read_selector(own: ConfigFields, hidden_size: int) -> SelectorConfig | None:
    if "selector_rank" not in own and "conv_kernel_size" not in own:
        return None
    num_taps, group_size = own.count("conv_kernel_size"), own.count("conv_group_size")
    if num_taps != _NUM_CONVOLUTION_TAPS:
        own.fail("conv_kernel_size", f"{num_taps} is not supported, only {_NUM_CONVOLUTION_TAPS}")
    if hidden_size % group_size:
        own.fail("conv_group_size", f"{group_size} does not divide {hidden_size} channels")
    return SelectorConfig(group_size, own.count("selector_rank"), own.count("selector_top_k", largest=_MAX_CANDIDATES))
