"""What the kernels of flash-linear-attention are handed, with a plain stand-in for them: they run on GPUs only."""

from __future__ import annotations

import math

import pytest
import torch

from infernix.models import gated_delta_fla
from infernix.models.gated_delta import DeltaInputs, delta_chunks, delta_steps
from models.test_gated_delta import HEADS, KEY, VALUE, random_inputs, random_state


def kernel(
    *,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
    output_final_state: bool,
    use_qk_l2norm_in_kernel: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The package's conventions: queries and keys are normed inside, the scale is 1 / sqrt(K), outputs are like v."""
    assert output_final_state
    assert use_qk_l2norm_in_kernel
    num_rows, num_tokens = v.shape[:2]
    assert q.shape == k.shape == (num_rows, num_tokens, HEADS, KEY)
    assert v.shape[2:] == (HEADS, VALUE)
    assert all(tensor.is_contiguous() for tensor in (q, k, v, g, beta, initial_state))
    state, outputs = initial_state.double(), torch.zeros_like(v)
    for token in range(num_tokens):
        query, key = (x[:, token].double() / x[:, token].double().norm(dim=-1, keepdim=True) for x in (q, k))
        state = g[:, token].double().exp()[..., None, None] * state
        error = v[:, token].double() - torch.einsum("rhkv,rhk->rhv", state, key)
        state = state + torch.einsum("rhk,rhv->rhkv", key, beta[:, token].double().unsqueeze(-1) * error)
        outputs[:, token] = (torch.einsum("rhkv,rhk->rhv", state, query) / math.sqrt(KEY)).to(v.dtype)
    return outputs, state.float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_forms_agree_with_our_own(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, state = random_inputs(2, 70), random_state(2)
    inputs = DeltaInputs(
        inputs.queries.to(dtype), inputs.keys.to(dtype), inputs.values.to(dtype), inputs.fades, inputs.strengths
    )
    expected = delta_steps(inputs, state)
    calls = []

    def given(values: torch.Tensor) -> gated_delta_fla.Kernel:
        calls.append(values.shape)
        return kernel

    monkeypatch.setattr(gated_delta_fla, "steps_kernel", given)
    monkeypatch.setattr(gated_delta_fla, "chunks_kernel", given)
    tolerance = 2e-5 if dtype == torch.float32 else 1e-2
    for form in (delta_steps, delta_chunks):
        outputs, after = form(inputs, state)
        assert (outputs.dtype, after.dtype) == (torch.float32, torch.float32)
        torch.testing.assert_close(outputs, expected[0], atol=tolerance, rtol=tolerance)
        torch.testing.assert_close(after, expected[1], atol=2e-5, rtol=2e-5)
    assert len(calls) == 2


def test_a_cpu_has_no_kernels() -> None:
    assert gated_delta_fla.steps_kernel(torch.zeros(1, dtype=torch.bfloat16)) is None
    assert gated_delta_fla.chunks_kernel(torch.zeros(1, dtype=torch.bfloat16)) is None
