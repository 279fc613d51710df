"""Linear layers in every format against the product in float64."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from infernix.models.linear import (
    ArrangedProduct,
    HalfProduct,
    Int8Product,
    Linear,
    MatrixFormat,
    PlainProduct,
)
from infernix.models.weights import WeightFiles
from models.tiny import tiny_model

SHAPES = [(1, 1), (3, 5), (64, 24), (24, 64), (70, 33), (200, 96)]
# Of the outputs' standard deviation: rounding of float32, of float16, of 8 bits on both sides.
TOLERANCES = {MatrixFormat.OWN: 1e-5, MatrixFormat.FLOAT16: 2e-3, MatrixFormat.INT8: 0.1}


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    y = x.double() @ weight.double().T
    return y if bias is None else y + bias.double()


def random_layer(num_outputs: int, num_inputs: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(num_outputs * 1000 + num_inputs)
    weight = torch.randn(num_outputs, num_inputs, generator=generator)
    return weight, torch.randn(num_outputs, generator=generator)


@pytest.mark.parametrize("matrix_format", MatrixFormat)
@pytest.mark.parametrize(("num_outputs", "num_inputs"), SHAPES)
@pytest.mark.parametrize("has_bias", [False, True])
@torch.inference_mode()
def test_agrees_with_the_product(
    matrix_format: MatrixFormat, num_outputs: int, num_inputs: int, has_bias: bool
) -> None:
    weight, bias = random_layer(num_outputs, num_inputs)
    linear = Linear(weight, bias if has_bias else None, matrix_format)
    for num_rows in (1, 2, 7, 8, 33):
        x = torch.randn(num_rows, num_inputs, generator=torch.Generator().manual_seed(num_rows))
        expected = product(x, weight, bias if has_bias else None)
        y = linear(x)
        assert (y.dtype, y.shape) == (torch.float32, (num_rows, num_outputs))
        scale = weight.double().norm(dim=1) * x.double().norm(dim=1, keepdim=True) / num_inputs**0.5
        assert ((y - expected).abs() <= TOLERANCES[matrix_format] * scale + 1e-6).all()


@pytest.mark.parametrize(
    ("matrix_format", "kind"),
    [
        (MatrixFormat.OWN, ArrangedProduct),
        (MatrixFormat.FLOAT16, HalfProduct),
        (MatrixFormat.INT8, Int8Product),
    ],
)
def test_formats_have_kernels_of_their_own(matrix_format: MatrixFormat, kind: type) -> None:
    weight, _ = random_layer(8, 8)
    assert isinstance(Linear(weight, None, matrix_format)._multiply, kind)
    assert isinstance(Linear(weight.bfloat16(), None)._multiply, PlainProduct)


def test_numbers_too_large_for_float16_keep_their_own_format() -> None:
    weight, _ = random_layer(8, 8)
    weight[3, 4] = 70000.0
    linear = Linear(weight, None, MatrixFormat.FLOAT16)
    x = torch.ones(2, 8)
    torch.testing.assert_close(linear(x), product(x, weight, None).float())


@torch.inference_mode()
def test_a_row_of_int8_does_not_depend_on_the_others() -> None:
    weight, bias = random_layer(64, 48)
    linear = Linear(weight, bias, MatrixFormat.INT8)
    x = torch.randn(9, 48) * torch.logspace(-3, 3, 9).unsqueeze(1)
    together = linear(x)
    for row in range(9):
        assert torch.equal(linear(x[row : row + 1]), together[row : row + 1])


@torch.inference_mode()
def test_int8_products_of_the_largest_integers_are_exact() -> None:
    """Pairs of products fill 16 bits to the brim and do not spill over."""
    for sign in (1.0, -1.0):
        linear = Linear(torch.full((16, 512), sign), None, MatrixFormat.INT8)
        assert linear(torch.full((2, 512), 3.0)).tolist() == [[sign * 1536.0] * 16] * 2


@torch.inference_mode()
def test_int8_of_nothing_is_nothing() -> None:
    linear = Linear(torch.zeros(4, 8), None, MatrixFormat.INT8)
    assert linear(torch.ones(1, 8)).tolist() == [[0.0] * 4]
    assert Linear(torch.ones(4, 8), None, MatrixFormat.INT8)(torch.zeros(1, 8)).tolist() == [[0.0] * 4]


@pytest.mark.parametrize("matrix_format", MatrixFormat)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@torch.inference_mode()
def test_what_is_no_number_stays_none(matrix_format: MatrixFormat, bad: float) -> None:
    """A broken model is noticed by its logits, so nothing on the way may make numbers of it again."""
    linear = Linear(torch.ones(16, 16), None, matrix_format)
    x = torch.ones(2, 16)
    x[0, 3] = bad
    y = linear(x)
    assert not y[0].isfinite().any()
    assert torch.allclose(y[1], torch.tensor(16.0))


def test_delicate_layers_are_kept_in_float16_where_int8_is_wanted(tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path)

    def kinds(matrix_format: MatrixFormat) -> list[type]:
        files = WeightFiles(tmp_path, dtype=torch.float32, device=torch.device("cpu"), matrix_format=matrix_format)
        return [
            type(files.linear(torch.ones(8, 8), is_delicate=is_delicate)._multiply) for is_delicate in (False, True)
        ]

    assert kinds(MatrixFormat.OWN) == [ArrangedProduct, ArrangedProduct]
    assert kinds(MatrixFormat.FLOAT16) == [HalfProduct, HalfProduct]
    assert kinds(MatrixFormat.INT8) == [Int8Product, HalfProduct]
