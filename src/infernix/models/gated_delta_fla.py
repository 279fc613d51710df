"""The gated delta rule by the Triton kernels of flash-linear-attention, on a GPU and where that package is installed.

https://github.com/fla-org/flash-linear-attention (`fla-core`); shapes as in `gated_delta`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

Kernel = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def steps_kernel(values: torch.Tensor) -> Kernel | None:
    """One kernel that walks over the tokens in float32, or None where it does not run."""
    if values.device.type != "cuda" or _package() is None:
        return None
    kernel: Kernel = _package().fused_recurrent_gated_delta_rule
    return kernel


def chunks_kernel(values: torch.Tensor) -> Kernel | None:
    """Kernels over chunks of tokens, or None where they do not run, or would take values in float32 for less."""
    if values.device.type != "cuda" or values.dtype == torch.float32 or _package() is None:
        return None
    kernel: Kernel = _package().chunk_gated_delta_rule
    return kernel


def run_kernel(
    kernel: Kernel,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    fades: torch.Tensor,
    strengths: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs [R, T, H, V] and the state after the last token."""
    repeats = values.shape[2] // keys.shape[2]
    outputs, after = kernel(
        q=queries.repeat_interleave(repeats, dim=2).contiguous(),
        k=keys.repeat_interleave(repeats, dim=2).contiguous(),
        v=values.contiguous(),
        g=fades.contiguous(),
        beta=strengths.contiguous(),
        initial_state=state.contiguous(),
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
    )
    return outputs.float(), after


@cache
def _package() -> Any:
    try:
        return importlib.import_module("fla.ops.gated_delta_rule")
    except ImportError:
        return None
