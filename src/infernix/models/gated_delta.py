"""The gated delta rule: a matrix for every head that is faded, corrected and read at every token.

With S the state [K, V] of one head, k and q of unit length, fade g <= 0 and strength beta in 0..1, at each token

    S := exp(g) S;   S := S + k (beta (v - S^T k))^T;   o = S^T q / sqrt(K)

Source: Yang, Kautz and Hatamizadeh, "Gated Delta Networks" (2024). All of it is computed in float32.

Letters in shapes: R rows of a batch, T tokens, H value heads, K and V sizes of a key and of a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.models import gated_delta_fla

CHUNK_TOKENS = 64
_NORM_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class DeltaInputs:
    """What the rule reads at T tokens of R rows.

    queries, keys   [R, T, key heads, K], not yet of unit length; every head serves H / key heads neighbouring ones
    values          [R, T, H, V]
    fades           float32 [R, T, H], logarithms
    strengths       float32 [R, T, H]

    A token with fade 0 and strength 0 leaves the state as it is, bit for bit.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    fades: torch.Tensor
    strengths: torch.Tensor


def delta_steps(inputs: DeltaInputs, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rule token by token; state float32 [R, H, K, V] -> outputs float32 [R, T, H, V] and the state afterwards.

    The state after the first n tokens is the same, bit for bit, whether more tokens follow or not. `state` itself is
    not changed.
    """
    kernel = gated_delta_fla.steps_kernel(inputs.values)
    if kernel is not None:
        return gated_delta_fla.run_kernel(
            kernel, inputs.queries, inputs.keys, inputs.values, inputs.fades, inputs.strengths, state
        )
    num_heads = state.shape[1]
    q, k = _unit_heads(inputs.queries, num_heads), _unit_heads(inputs.keys, num_heads)
    q = q * state.shape[2] ** -0.5
    v, fades, strengths = inputs.values.float(), inputs.fades.exp(), inputs.strengths
    outputs = torch.empty(v.shape, dtype=torch.float32, device=v.device)
    for token in range(v.shape[1]):
        fade = fades[:, token, :, None, None]
        # The caller's state stays as it is; the copy is faded in place from then on.
        state = state.mul_(fade) if token else state * fade
        key = k[:, token].unsqueeze(2)
        known = torch.matmul(key, state)
        correction = (v[:, token].unsqueeze(2) - known) * strengths[:, token, :, None, None]
        state += key.transpose(2, 3) * correction
        outputs[:, token] = torch.matmul(q[:, token].unsqueeze(2), state).squeeze(2)
    return outputs, state


def delta_chunks(inputs: DeltaInputs, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`delta_steps` up to rounding, in matrix products over CHUNK_TOKENS tokens at a time, for many tokens.

    Within a chunk, with G the running sum of the fades, the corrections are the rows of (I + A)^-1 (beta V - beta
    exp(G) K S), where A[i, j] = beta_i k_i . k_j exp(G_i - G_j) for j < i and 0 otherwise.
    """
    kernel = gated_delta_fla.chunks_kernel(inputs.values)
    if kernel is not None:
        return gated_delta_fla.run_kernel(
            kernel, inputs.queries, inputs.keys, inputs.values, inputs.fades, inputs.strengths, state
        )
    num_tokens, num_heads = inputs.values.shape[1:3]
    padding = -num_tokens % CHUNK_TOKENS
    q = _in_chunks(_unit_heads(inputs.queries, num_heads) * state.shape[2] ** -0.5, padding)
    k = _in_chunks(_unit_heads(inputs.keys, num_heads), padding)
    v = _in_chunks(inputs.values.float(), padding)
    strengths = _in_chunks(inputs.strengths.unsqueeze(-1), padding)
    totals = _in_chunks(inputs.fades.unsqueeze(-1), padding).cumsum(dim=3)  # [R, H, chunks, CHUNK_TOKENS, 1]

    later = torch.ones(CHUNK_TOKENS, CHUNK_TOKENS, dtype=torch.bool, device=v.device).triu(1)
    # What is later is masked before exp, where it could overflow.
    between = (totals - totals.transpose(3, 4)).masked_fill(later, float("-inf")).exp()
    faded_from_start = totals.exp()
    weighted = k * strengths
    system = torch.matmul(weighted, k.transpose(3, 4)) * between
    solved = torch.linalg.solve_triangular(
        system, torch.cat((v * strengths, weighted * faded_from_start), dim=-1), upper=False, unitriangular=True
    )
    from_values, from_state = solved[..., : v.shape[-1]], solved[..., v.shape[-1] :]
    attention = torch.matmul(q, k.transpose(3, 4)) * between
    q = q * faded_from_start
    k_to_end = (k * (totals[..., -1:, :] - totals).exp()).transpose(3, 4)
    faded_to_end = totals[..., -1:, :].exp()

    outputs = torch.empty_like(v)
    for chunk in range(v.shape[2]):
        corrections = from_values[:, :, chunk] - torch.matmul(from_state[:, :, chunk], state)
        outputs[:, :, chunk] = torch.matmul(q[:, :, chunk], state) + torch.matmul(attention[:, :, chunk], corrections)
        state = state * faded_to_end[:, :, chunk] + torch.matmul(k_to_end[:, :, chunk], corrections)
    return outputs.flatten(2, 3)[:, :, :num_tokens].transpose(1, 2), state


def causal_convolution(columns: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """SiLU of a convolution of every channel with its own taps, the last tap on the newest column.

    columns [R, taps - 1 + T, C], kernel float32 [taps, C] -> [R, T, C] in the format of `columns`.
    """
    num_taps = kernel.shape[0]
    num_tokens = columns.shape[1] - num_taps + 1
    total = columns[:, :num_tokens] * kernel[0]
    for tap in range(1, num_taps):
        total = torch.addcmul(total, columns[:, tap : tap + num_tokens].float(), kernel[tap])
    return F.silu(total).to(columns.dtype)


def _unit_heads(heads: torch.Tensor, num_heads: int) -> torch.Tensor:
    """[R, T, key heads, K] -> float32 [R, T, num_heads, K], each of length one and repeated for its value heads."""
    heads = heads.float()
    heads = heads * torch.rsqrt(heads.square().sum(dim=-1, keepdim=True) + _NORM_EPS)
    return heads.repeat_interleave(num_heads // heads.shape[2], dim=2)


def _in_chunks(x: torch.Tensor, padding: int) -> torch.Tensor:
    """[R, T, H, size] -> [R, H, chunks, CHUNK_TOKENS, size], zeros behind the last token."""
    x = F.pad(x.transpose(1, 2), (0, 0, 0, padding))
    return x.reshape(*x.shape[:2], -1, CHUNK_TOKENS, x.shape[3])
