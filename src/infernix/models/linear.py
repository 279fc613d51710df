"""Linear layers, y = x W^T + b, in the form that suits device and number format.

What PyTorch's own `linear` does at every call, arranging the matrix for the processor's caches, is done once here where
the weights are float32 on a CPU. There the matrix may also be kept in fewer bits, since reading it is what takes the
time of a decoded token; what is computed from it stays float32.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import torch
import torch.nn.functional as F

from infernix.errors import ModelLoadError

# A matrix is arranged for products with about so many rows. Others give the same numbers, a little later.
_EXPECTED_ROWS = 16


class MatrixFormat(StrEnum):
    """How the matrices of linear layers are kept on a CPU; everything else of a model is as its dtype says.

    OWN      as they are
    FLOAT16  rounded to float16, read as float32
    INT8     rounded to 8 bits with a scale for each output; inputs are rounded, too, with a scale for each token
    """

    OWN = "own"
    FLOAT16 = "float16"
    INT8 = "int8"


class Product(Protocol):
    """A matrix that rows can be multiplied with."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, in] -> [N, out]."""
        ...


class Linear:
    """The weights of a linear layer, [out, in], and its bias, [out] or None."""

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, matrix_format: MatrixFormat = MatrixFormat.OWN
    ) -> None:
        """Formats other than OWN are for float32 on a CPU; ModelLoadError where PyTorch has no kernel for one."""
        self._multiply = _product(weight, bias, matrix_format)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, in] -> [N, out], N >= 1."""
        return self._multiply(x)


def _product(weight: torch.Tensor, bias: torch.Tensor | None, matrix_format: MatrixFormat) -> Product:
    if matrix_format is MatrixFormat.FLOAT16 and HalfProduct.is_available() and HalfProduct.has_room_for(weight):
        return HalfProduct(weight, bias)
    if matrix_format is MatrixFormat.INT8:
        return Int8Product(weight, bias)
    if weight.device.type == "cpu" and weight.dtype == torch.float32 and _has_onednn():
        return ArrangedProduct(weight, bias)
    return PlainProduct(weight, bias)


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


class PlainProduct:
    """PyTorch's own."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._weight = weight
        self._bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self._weight, self._bias)


class ArrangedProduct:
    """float32 on a CPU, the matrix arranged beforehand by oneDNN."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._arranged = torch.ops.mkldnn._reorder_linear_weight(weight, _EXPECTED_ROWS)
        self._bias = bias
        self._multiply = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self._multiply(x, self._arranged, self._bias, "none", [], "")
        return y


class HalfProduct:
    """The matrix in float16, inputs, sums and outputs in float32, by FBGEMM."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        self._multiply = torch.ops.quantized.linear_dynamic_fp16.default

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self._multiply(x.contiguous(), self._packed)
        return y

    @staticmethod
    def is_available() -> bool:
        """Whether this PyTorch has the kernel, which is for x86 processors with AVX2."""
        return "fbgemm" in torch.backends.quantized.supported_engines

    @staticmethod
    def has_room_for(weight: torch.Tensor) -> bool:
        """Whether no number is too large for float16, which FBGEMM would cut."""
        return bool(weight.abs().max() <= torch.finfo(torch.float16).max)


class Int8Product:
    """The matrix in integers with a scale for each output, by oneDNN: W_oi ~ scale_o q_oi.

    A token's inputs become bytes with a scale and a zero of their own, x_i ~ scale (b_i - zero), so that no other row
    of a batch has a part in its result. Sums are exact: y_o = scale scale_o (sum_i q_oi b_i - zero sum_i q_oi), and the
    last sum is known beforehand. |q_oi| is at most 64 because processors without VNNI add pairs of products in 16 bits,
    and 2 * 64 * 255 still has room there.
    """

    _MAX_WEIGHT = 64
    _MAX_INPUT = 255

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        if not _has_onednn():
            raise ModelLoadError("int8 matrices need a PyTorch with oneDNN")
        self._smallest = torch.finfo(torch.float32).tiny
        self._scales = weight.abs().amax(dim=1).clamp_min(self._smallest) / self._MAX_WEIGHT
        integers = torch.round(weight / self._scales.unsqueeze(1)).to(torch.int8)
        self._sums = -self._scales * integers.sum(dim=1)
        self._packed = torch.ops.onednn.qlinear_prepack(integers, [_EXPECTED_ROWS, weight.shape[1]])
        self._weight_zeros = torch.zeros(weight.shape[0], dtype=torch.int64)
        self._bias = bias
        self._multiply = torch.ops.onednn.qlinear_pointwise.default

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        least, most = torch.aminmax(x, dim=-1, keepdim=True)
        least = least.clamp_max(0.0)
        scale = (most.clamp_min(0.0).sub_(least) / self._MAX_INPUT).clamp_min_(self._smallest)
        zero = torch.round(-least / scale)
        # What is cut after a half was added is rounded to the nearest.
        inputs = (x / scale).add_(zero + 0.5).clamp_(0, self._MAX_INPUT).to(torch.uint8)
        products = self._multiply(
            inputs, 1.0, 0, self._packed, self._scales, self._weight_zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y: torch.Tensor = products.addcmul_(zero, self._sums).mul_(scale)
        return y if self._bias is None else y.add_(self._bias)
