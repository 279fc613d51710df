"""The gated delta rule in both forms against the recurrence in float64, written out head by head."""

from __future__ import annotations

import math

import pytest
import torch

from infernix.models.gated_delta import (
    CHUNK_TOKENS,
    DeltaInputs,
    causal_convolution,
    delta_chunks,
    delta_steps,
)

KEY_HEADS, HEADS, KEY, VALUE = 2, 6, 8, 5


def random_inputs(num_rows: int, num_tokens: int, seed: int = 3, fade: float = 1.0) -> DeltaInputs:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    return DeltaInputs(
        normal(num_rows, num_tokens, KEY_HEADS, KEY),
        normal(num_rows, num_tokens, KEY_HEADS, KEY),
        normal(num_rows, num_tokens, HEADS, VALUE),
        -fade * normal(num_rows, num_tokens, HEADS).abs(),
        normal(num_rows, num_tokens, HEADS).sigmoid(),
    )


def random_state(num_rows: int) -> torch.Tensor:
    return torch.randn(num_rows, HEADS, KEY, VALUE, generator=torch.Generator().manual_seed(5))


def reference(inputs: DeltaInputs, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """float64, one row, one head and one token at a time."""
    num_rows, num_tokens = inputs.values.shape[:2]
    outputs = torch.zeros(num_rows, num_tokens, HEADS, VALUE, dtype=torch.float64)
    states = state.double().clone()
    for row in range(num_rows):
        for head in range(HEADS):
            source = head // (HEADS // KEY_HEADS)
            s = states[row, head]
            for token in range(num_tokens):
                q = inputs.queries[row, token, source].double()
                k = inputs.keys[row, token, source].double()
                q, k = (x / math.sqrt(float(x @ x) + 1e-6) for x in (q, k))
                s = math.exp(float(inputs.fades[row, token, head])) * s
                error = inputs.values[row, token, head].double() - k @ s
                s = s + float(inputs.strengths[row, token, head]) * torch.outer(k, error)
                outputs[row, token, head] = q @ s / math.sqrt(KEY)
            states[row, head] = s
    return outputs, states


@pytest.mark.parametrize("num_tokens", [1, 7, CHUNK_TOKENS, CHUNK_TOKENS + 1, 150])
@pytest.mark.parametrize("fade", [0.01, 1.0, 40.0])
def test_both_forms_agree_with_the_recurrence(num_tokens: int, fade: float) -> None:
    inputs, state = random_inputs(2, num_tokens, fade=fade), random_state(2)
    before = state.clone()
    expected_outputs, expected_state = reference(inputs, state)
    for form in (delta_steps, delta_chunks):
        outputs, after = form(inputs, state)
        torch.testing.assert_close(outputs.double(), expected_outputs, atol=2e-5, rtol=2e-5)
        torch.testing.assert_close(after.double(), expected_state, atol=2e-5, rtol=2e-5)
        assert torch.equal(state, before)


def test_a_state_does_not_depend_on_what_follows_or_stands_beside_it() -> None:
    """Bit for bit: taking tokens back relies on it."""
    inputs, state = random_inputs(3, 20), random_state(3)
    for num_tokens in (1, 2, 13):
        _, together = delta_steps(first_tokens(inputs, num_tokens), state)
        for row in range(3):
            _, alone = delta_steps(row_of(first_tokens(inputs, num_tokens), row), state[row : row + 1])
            assert torch.equal(alone[0], together[row])
        _, then = delta_steps(last_tokens(inputs, num_tokens), together)
        assert torch.equal(then, delta_steps(inputs, state)[1])


def test_tokens_without_fade_and_strength_change_nothing() -> None:
    inputs, state = random_inputs(2, 9), random_state(2)
    silent = DeltaInputs(
        inputs.queries,
        inputs.keys,
        inputs.values,
        torch.cat((inputs.fades[:, :4], torch.zeros(2, 5, HEADS)), dim=1),
        torch.cat((inputs.strengths[:, :4], torch.zeros(2, 5, HEADS)), dim=1),
    )
    assert torch.equal(delta_steps(silent, state)[1], delta_steps(first_tokens(inputs, 4), state)[1])


def test_half_precision_inputs_are_worked_on_in_float32() -> None:
    inputs, state = random_inputs(1, 80), random_state(1)
    half = DeltaInputs(
        inputs.queries.bfloat16(), inputs.keys.bfloat16(), inputs.values.bfloat16(), inputs.fades, inputs.strengths
    )
    for form in (delta_steps, delta_chunks):
        outputs, after = form(half, state)
        expected_outputs, expected_state = reference(half, state)
        torch.testing.assert_close(outputs.double(), expected_outputs, atol=2e-5, rtol=2e-5)
        torch.testing.assert_close(after.double(), expected_state, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_convolution_looks_back_only(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    columns = torch.randn(2, 3 + 6, 4, generator=generator).to(dtype)
    kernel = torch.randn(4, 4, generator=generator)
    result = causal_convolution(columns, kernel)
    assert (result.shape, result.dtype) == ((2, 6, 4), dtype)
    expected = torch.zeros(2, 6, 4, dtype=torch.float64)
    for token in range(6):
        total = sum(columns[:, token + tap].double() * kernel[tap].double() for tap in range(4))
        assert isinstance(total, torch.Tensor)
        expected[:, token] = total / (1 + torch.exp(-total))
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=tolerance)


def first_tokens(inputs: DeltaInputs, num_tokens: int) -> DeltaInputs:
    return _cut(inputs, slice(None), slice(0, num_tokens))


def last_tokens(inputs: DeltaInputs, start: int) -> DeltaInputs:
    return _cut(inputs, slice(None), slice(start, None))


def row_of(inputs: DeltaInputs, row: int) -> DeltaInputs:
    return _cut(inputs, slice(row, row + 1), slice(None))


def _cut(inputs: DeltaInputs, rows: slice, tokens: slice) -> DeltaInputs:
    return DeltaInputs(
        inputs.queries[rows, tokens],
        inputs.keys[rows, tokens],
        inputs.values[rows, tokens],
        inputs.fades[rows, tokens],
        inputs.strengths[rows, tokens],
    )
