"""Feed-forward blocks of Qwen3.5: one for all tokens, or experts that a router chooses for each."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F

from infernix.models.linear import Linear
from infernix.models.qwen3_5_config import ExpertConfig, Qwen35Config
from infernix.models.tensor_reader import TensorReader


class FeedForward(Protocol):
    """What follows the attention or the recurrence of a layer."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        ...


class DenseFeedForward:
    """down(SiLU(gate(x)) * up(x))."""

    def __init__(self, reader: TensorReader, prefix: str, hidden: int, inner: int) -> None:
        self._gate_up = reader.stacked({f"{prefix}gate_proj.weight": inner, f"{prefix}up_proj.weight": inner}, hidden)
        self._down = reader.linear(f"{prefix}down_proj.weight", hidden, inner, is_delicate=True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        gate, up = self._gate_up(x).chunk(2, dim=-1)
        return self._down(F.silu(gate) * up)


class ExpertFeedForward:
    """The chosen experts, weighed by the router, and one shared expert behind a gate of its own.

    The router's probabilities are over all experts, in float32, and those of the chosen ones are made to sum to one.
    """

    def __init__(self, reader: TensorReader, prefix: str, hidden: int, config: ExpertConfig) -> None:
        self._num_experts, self._num_chosen = config.num_experts, config.num_chosen
        self._router = reader.linear(f"{prefix}gate.weight", config.num_experts, hidden, is_delicate=True)
        self._gate_up, self._down = _read_experts(reader, f"{prefix}experts.", hidden, config)
        self._shared = DenseFeedForward(reader, f"{prefix}shared_expert.", hidden, config.shared_intermediate_size)
        self._shared_gate: Linear = reader.linear(f"{prefix}shared_expert_gate.weight", 1, hidden, is_delicate=True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        probabilities = F.softmax(self._router(x), dim=-1, dtype=torch.float32)
        weights, chosen = probabilities.topk(self._num_chosen, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype).flatten()
        total = torch.zeros_like(x)
        # Tokens of the same expert stand together, so each expert's matrices are read once.
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=self._num_experts).tolist()
        for expert, pairs in enumerate(torch.split(order, counts)):
            if len(pairs):
                tokens = pairs // self._num_chosen
                gate, up = self._gate_up[expert](x[tokens]).chunk(2, dim=-1)
                given = self._down[expert](F.silu(gate) * up)
                total.index_add_(0, tokens, given * weights[pairs].unsqueeze(-1))
        return total + torch.sigmoid(self._shared_gate(x)) * self._shared(x)


def read_feed_forward(reader: TensorReader, prefix: str, config: Qwen35Config) -> FeedForward:
    """The block whose tensors begin with `prefix`, of the kind that the config says."""
    if config.experts is None:
        return DenseFeedForward(reader, prefix, config.hidden_size, config.intermediate_size)
    return ExpertFeedForward(reader, prefix, config.hidden_size, config.experts)


def _read_experts(
    reader: TensorReader, prefix: str, hidden: int, config: ExpertConfig
) -> tuple[list[Linear], list[Linear]]:
    """Every expert's gate and up [2 inner, hidden] and down [hidden, inner], stored together or one by one."""
    num_experts, inner = config.num_experts, config.intermediate_size
    if f"{prefix}0.gate_proj.weight" in reader:
        names = [f"{prefix}{expert}." for expert in range(num_experts)]
        return (
            [
                reader.stacked({f"{name}gate_proj.weight": inner, f"{name}up_proj.weight": inner}, hidden)
                for name in names
            ],
            [reader.linear(f"{name}down_proj.weight", hidden, inner, is_delicate=True) for name in names],
        )
    gate_up = reader.tensor(f"{prefix}gate_up_proj", num_experts, 2 * inner, hidden)
    down = reader.tensor(f"{prefix}down_proj", num_experts, hidden, inner)
    return [reader.matrix(matrix) for matrix in gate_up], [reader.matrix(matrix, is_delicate=True) for matrix in down]
