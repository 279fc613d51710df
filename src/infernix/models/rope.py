"""Rotary position embedding: the frequencies and the table of cosines and sines.

Source: Su et al., "RoFormer" (2021), in the half-split layout of Hugging Face checkpoints: dimension i is paired with
dimension i + head_dim / 2. The `llama3` scaling is the one published with Llama 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class RopeParameters:
    """How positions become angles.

    theta    base of the geometric row of frequencies
    factor   positions are stretched by this much; 1 for no scaling
    The last three are given for the `llama3` scaling and None for the plain and the `linear` one.
    """

    theta: float
    factor: float = 1.0
    low_frequency_factor: float | None = None
    high_frequency_factor: float | None = None
    original_max_positions: int | None = None


def inverse_frequencies(parameters: RopeParameters, head_dim: int) -> torch.Tensor:
    """Radians a position, float32 [head_dim / 2]."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    frequencies = 1.0 / (parameters.theta**exponents)
    low, high = parameters.low_frequency_factor, parameters.high_frequency_factor
    if low is None or high is None or parameters.original_max_positions is None:
        return frequencies / parameters.factor
    # Long waves are stretched whole, short waves are left alone, and those between are blended.
    num_turns = parameters.original_max_positions * frequencies / (2 * math.pi)
    smooth = ((num_turns - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - smooth) * frequencies / parameters.factor + smooth * frequencies


def rope_table(frequencies: torch.Tensor, num_positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and signed sines, float32 [num_positions, 1, head_dim] each.

    The sine of the first half carries the minus sign of the rotation, so rotating x is
    `x * cos + swap_halves(x) * sin`.
    """
    angles = torch.outer(torch.arange(num_positions, dtype=torch.float32), frequencies)
    cosines, sines = angles.cos(), angles.sin()
    return torch.cat((cosines, cosines), dim=-1).unsqueeze(1), torch.cat((-sines, sines), dim=-1).unsqueeze(1)
