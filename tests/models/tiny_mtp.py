"""Random weights of a tiny multi-token predictor, for the tiny Qwen3.5 models."""

from __future__ import annotations

import torch

from models.tiny_qwen3_5 import HIDDEN

HEADS, KV_HEADS, HEAD_DIM, ROTARY, THETA, EPS = 4, 2, 16, 8, 1e4, 1e-6
DENSE_SHAPES = {
    "mlp.gate_proj.weight": (80, HIDDEN),
    "mlp.up_proj.weight": (80, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, 80),
}
EXPERT_SHAPES = {
    "mlp.gate.weight": (6, HIDDEN),
    "mlp.experts.gate_up_proj": (6, 48, HIDDEN),
    "mlp.experts.down_proj": (6, HIDDEN, 24),
    "mlp.shared_expert.gate_proj.weight": (32, HIDDEN),
    "mlp.shared_expert.up_proj.weight": (32, HIDDEN),
    "mlp.shared_expert.down_proj.weight": (HIDDEN, 32),
    "mlp.shared_expert_gate.weight": (1, HIDDEN),
}
SHAPES = {
    "pre_fc_norm_embedding.weight": (HIDDEN,),
    "pre_fc_norm_hidden.weight": (HIDDEN,),
    "fc.weight": (HIDDEN, 2 * HIDDEN),
    "norm.weight": (HIDDEN,),
}
LAYER_SHAPES = {
    "input_layernorm.weight": (HIDDEN,),
    "post_attention_layernorm.weight": (HIDDEN,),
    "self_attn.q_proj.weight": (2 * HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
    "self_attn.q_norm.weight": (HEAD_DIM,),
    "self_attn.k_norm.weight": (HEAD_DIM,),
}


def predictor_tensors(*, experts: bool) -> dict[str, torch.Tensor]:
    """By their names in a checkpoint."""
    generator = torch.Generator().manual_seed(23)
    layer = LAYER_SHAPES | (EXPERT_SHAPES if experts else DENSE_SHAPES)
    shapes = SHAPES | {f"layers.0.{name}": shape for name, shape in layer.items()}
    return {
        f"mtp.{name}": torch.randn(*shape, generator=generator) * (0.3 if "norm" in name else 0.15)
        for name, shape in shapes.items()
    }
