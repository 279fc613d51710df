"""Tiny random DFlash drafters, and their formulas in float64, written out position by position."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from models.tiny_qwen3_5 import HIDDEN, VOCAB_SIZE

HEADS, KV_HEADS, HEAD_DIM, THETA, EPS = 6, 2, 8, 1e4, 1e-6
INNER, GROUP, RANK, CANDIDATES, MASK = 64, 4, 8, 5, 96
TAPS = [1, 3]

CONFIG: dict[str, Any] = {
    "architectures": ["DFlashDraftModel"],
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": 3,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
    "rms_norm_eps": EPS,
    "rope_theta": THETA,
    "num_target_layers": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "sliding_window": 7,
    "is_causal": False,
    "block_size": 8,
    "dflash_config": {"target_layer_ids": TAPS, "mask_token_id": MASK},
}
SELECTOR = {"conv_kernel_size": 2, "conv_group_size": GROUP, "selector_rank": RANK, "selector_top_k": CANDIDATES}
CONFIG2 = CONFIG | {"dflash_config": CONFIG["dflash_config"] | SELECTOR}

_LAYER_SHAPES = {
    "input_layernorm.weight": (HIDDEN,),
    "post_attention_layernorm.weight": (HIDDEN,),
    "self_attn.q_proj.weight": (HEADS * HEAD_DIM, HIDDEN),
    "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
    "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD_DIM),
    "self_attn.q_norm.weight": (HEAD_DIM,),
    "self_attn.k_norm.weight": (HEAD_DIM,),
    "mlp.gate_proj.weight": (INNER, HIDDEN),
    "mlp.up_proj.weight": (INNER, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, INNER),
}
_CONVOLUTION_SHAPES = {
    f"{branch}_conv.{name}": shape
    for branch in ("attention", "mlp")
    for name, shape in (("base_kernel", (2, 2, HIDDEN)), ("kernel_projection.weight", (4 * HIDDEN // GROUP, HIDDEN)))
}
_SELECTOR_SHAPES = {
    "candidate_selector.hidden_projection.weight": (RANK, HIDDEN),
    "candidate_selector.predecessor_codebook": (VOCAB_SIZE, RANK),
    "candidate_selector.successor_codebook": (VOCAB_SIZE, RANK),
}


def drafter_tensors(*, with_selector: bool = False) -> dict[str, torch.Tensor]:
    """Random weights under the published names."""
    layer = _LAYER_SHAPES | (_CONVOLUTION_SHAPES if with_selector else {})
    shapes = {"fc.weight": (HIDDEN, len(TAPS) * HIDDEN), "hidden_norm.weight": (HIDDEN,), "norm.weight": (HIDDEN,)}
    shapes |= {f"layers.{index}.{name}": shape for index in range(3) for name, shape in layer.items()}
    shapes |= _SELECTOR_SHAPES if with_selector else {}
    generator = torch.Generator().manual_seed(31)

    def value(name: str, shape: tuple[int, ...]) -> torch.Tensor:
        noise = torch.randn(*shape, generator=generator)
        if "norm" in name:
            return 1 + 0.3 * noise
        return noise * (0.7 if "codebook" in name or "base_kernel" in name else 0.15)

    return {name: value(name, shape) for name, shape in shapes.items()}


def write_drafter(directory: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Path:
    """The directory, with config.json and weights in it."""
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    save_file(tensors, directory / "model.safetensors")
    return directory


class Reference:
    """One sequence at a time, in float64. `windows` has S or None for each layer."""

    def __init__(self, tensors: dict[str, torch.Tensor], windows: list[int | None], *, is_causal: bool) -> None:
        self._tensors = {name: tensor.double() for name, tensor in tensors.items()}
        self._windows = windows
        self._is_causal = is_causal

    def block(self, features: torch.Tensor, embedded: torch.Tensor) -> torch.Tensor:
        """Features [F, taps * hidden] of the context, embeddings [W, hidden] of the block -> outputs [W, hidden]."""
        context = self._norm(features.double() @ self._tensors["fc.weight"].T, "hidden_norm")
        x = embedded.double()
        for layer, window in enumerate(self._windows):
            name = f"layers.{layer}."
            h = self._norm(x, f"{name}input_layernorm")
            x = x + self._convolved(
                f"{name}attention_conv.", h, lambda y, n=name, w=window: self._attend(n, w, context, y)
            )
            h = self._norm(x, f"{name}post_attention_layernorm")
            x = x + self._convolved(f"{name}mlp_conv.", h, lambda y, n=name: self._feed_forward(n, y))
        return self._norm(x, "norm")

    def scores(self, before: int, ids: list[int], logits: torch.Tensor, hidden: torch.Tensor) -> list[float]:
        """E of the candidates `ids` behind the token `before`."""
        name = "candidate_selector."
        gate = self._tensors[f"{name}hidden_projection.weight"] @ hidden.double()
        predecessor = self._tensors[f"{name}predecessor_codebook"][before]
        successors = self._tensors[f"{name}successor_codebook"]
        return [float(logits[token]) + float((predecessor * gate * successors[token]).sum()) for token in ids]

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.square().mean(dim=-1, keepdim=True) + EPS).sqrt() * self._tensors[f"{name}.weight"]

    def _convolved(self, name: str, h: torch.Tensor, branch: Any) -> torch.Tensor:
        if f"{name}base_kernel" not in self._tensors:
            given: torch.Tensor = branch(h)
            return given
        increments = (h @ self._tensors[f"{name}kernel_projection.weight"].T).view(len(h), 2, 2, HIDDEN // GROUP)
        base = self._tensors[f"{name}base_kernel"]

        def convolution(side: int, x: torch.Tensor) -> torch.Tensor:
            y = torch.zeros_like(x)
            for i in range(len(x)):
                for c in range(HIDDEN):
                    y[i, c] = (base[side, 0, c] + increments[i, side, 0, c // GROUP]) * x[i, c]
                    if i:
                        y[i, c] += (base[side, 1, c] + increments[i, side, 1, c // GROUP]) * x[i - 1, c]
            return y

        return convolution(1, branch(convolution(0, h)))

    def _attend(self, name: str, window: int | None, context: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        t = {part: self._tensors[f"{name}self_attn.{part}_proj.weight"] for part in "qkvo"}
        source = torch.cat((context, x))
        k = self._norm((source @ t["k"].T).view(len(source), KV_HEADS, HEAD_DIM), f"{name}self_attn.k_norm")
        v = (source @ t["v"].T).view(len(source), KV_HEADS, HEAD_DIM)
        q = self._norm((x @ t["q"].T).view(len(x), HEADS, HEAD_DIM), f"{name}self_attn.q_norm")
        given = torch.zeros(len(x), HEADS, HEAD_DIM, dtype=torch.float64)
        for i in range(len(x)):
            place = len(context) + i
            seen = [other for other in range(len(source)) if self._sees(window, place - other)]
            for head in range(HEADS):
                kv = head // (HEADS // KV_HEADS)
                query = rotated(q[i, head], place)
                scores = torch.stack([query @ rotated(k[other, kv], other) for other in seen])
                given[i, head] = torch.softmax(scores / math.sqrt(HEAD_DIM), dim=0) @ v[seen, kv]
        return given.flatten(1) @ t["o"].T

    def _sees(self, window: int | None, distance: int) -> bool:
        if window is None:
            return True
        return 0 <= distance < window if self._is_causal else abs(distance) < window

    def _feed_forward(self, name: str, x: torch.Tensor) -> torch.Tensor:
        gate, up, down = (self._tensors[f"{name}mlp.{part}_proj.weight"] for part in ("gate", "up", "down"))
        inner = x @ gate.T
        return (inner / (1 + torch.exp(-inner)) * (x @ up.T)) @ down.T


def rotated(head: torch.Tensor, position: int) -> torch.Tensor:
    """All dimensions of the head, the first half paired with the second."""
    half = HEAD_DIM // 2
    result = head.clone()
    for pair in range(half):
        angle = position * THETA ** (-2 * pair / HEAD_DIM)
        first, second = float(head[pair]), float(head[pair + half])
        result[pair] = first * math.cos(angle) - second * math.sin(angle)
        result[pair + half] = second * math.cos(angle) + first * math.sin(angle)
    return result
