"""Reading many tensors and complaining about all that are wrong at once, before any of them is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import torch

from infernix.errors import ModelLoadError
from infernix.models.linear import Linear
from infernix.models.weights import WeightFiles

_MAX_NAMED_PROBLEMS = 20
# No tensor has so many numbers, and PyTorch counts them in 64 bits.
_LARGEST_SIZE = 1 << 48


class TensorReader:
    """Tensors of a checkpoint by their name and shape.

    With `is_rehearsal` nothing is read and nothing allocated: tensors have shapes only (they are on PyTorch's meta
    device), and what is wrong is kept until `check`. Otherwise the first tensor that is wrong raises ModelLoadError.
    """

    def __init__(self, weights: WeightFiles, *, is_rehearsal: bool = False) -> None:
        self._weights = weights
        self._is_rehearsal = is_rehearsal
        self._problems: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._weights

    def tensor(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensor, in the checkpoint's chosen format or in `dtype`."""
        if not self._is_rehearsal:
            return self._weights.tensor(name, shape, dtype)
        try:
            self._weights.check_shape(name, shape)
        except ModelLoadError as error:
            self._complain(error.message)
            if math.prod(shape) > _LARGEST_SIZE:
                self._give_up()
        return torch.empty(shape, device="meta")

    def offset_norm(self, name: str, size: int) -> torch.Tensor:
        """Factors of a norm that is stored as its distance from one; float32 [size]."""
        return self.tensor(name, size, dtype=torch.float32) + 1.0

    def matrix(self, weight: torch.Tensor, *, is_delicate: bool = False) -> Linear:
        """A linear layer without bias over a tensor read here; `is_delicate` is explained at `WeightFiles.linear`."""
        return Linear(weight) if self._is_rehearsal else self._weights.linear(weight, is_delicate=is_delicate)

    def linear(self, name: str, num_outputs: int, num_inputs: int, *, is_delicate: bool = False) -> Linear:
        """A linear layer without bias."""
        return self.matrix(self.tensor(name, num_outputs, num_inputs), is_delicate=is_delicate)

    def stacked(self, sizes: dict[str, int], num_inputs: int) -> Linear:
        """Linear layers that read the same input as one; `sizes` are their outputs by the tensor's name."""
        return self.matrix(torch.cat([self.tensor(name, size, num_inputs) for name, size in sizes.items()]))

    def refuse_from(self, prefix: str, reason: str) -> None:
        """Counts every tensor whose name begins with `prefix` as wrong."""
        for name in self._weights.names_from(prefix):
            self._complain(f"tensor {name!r} {reason}")

    def check(self) -> None:
        """Raises ModelLoadError that names every tensor that was missing, misshapen or refused."""
        if self._problems:
            raise ModelLoadError("; ".join(self._problems))

    def _complain(self, problem: str) -> None:
        """Keeps the problem; after many the rest is not looked for, so that a wild config comes to an end."""
        self._problems.append(problem)
        if not self._is_rehearsal:
            self.check()
        if len(self._problems) == _MAX_NAMED_PROBLEMS:
            self._give_up()

    def _give_up(self) -> NoReturn:
        raise ModelLoadError("; ".join(self._problems) + "; the rest was not looked at")


def read_checked(weights: WeightFiles, read: Callable[[TensorReader], None]) -> None:
    """Calls `read` twice: for the shapes alone, so that one error names all that is wrong, and then in earnest."""
    rehearsal = TensorReader(weights, is_rehearsal=True)
    read(rehearsal)
    rehearsal.check()
    read(TensorReader(weights))
