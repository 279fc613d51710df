"""Reading many tensors and complaining about all that are wrong at once."""

from __future__ import annotations

import torch

from infernix.errors import ModelLoadError
from infernix.models.linear import Linear
from infernix.models.weights import WeightFiles

_MAX_NAMED_PROBLEMS = 20


class TensorReader:
    """Tensors of a checkpoint by their name and shape. What is wrong is kept until `check`."""

    def __init__(self, weights: WeightFiles) -> None:
        self._weights = weights
        self._problems: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._weights

    def tensor(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensor, in the checkpoint's chosen format or in `dtype`; a stand-in where it is missing or misshapen."""
        try:
            return self._weights.tensor(name, shape, dtype)
        except ModelLoadError as error:
            self._problems.append(error.message)
            return torch.zeros((), device=self._weights.device).expand(shape)

    def offset_norm(self, name: str, size: int) -> torch.Tensor:
        """Factors of a norm that is stored as its distance from one; float32 [size]."""
        return self.tensor(name, size, dtype=torch.float32) + 1.0

    def matrix(self, weight: torch.Tensor, *, is_delicate: bool = False) -> Linear:
        """A linear layer without bias over a tensor that was read here, as `WeightFiles.linear` makes it."""
        return self._weights.linear(weight, is_delicate=is_delicate)

    def linear(self, name: str, num_outputs: int, num_inputs: int, *, is_delicate: bool = False) -> Linear:
        """A linear layer without bias."""
        return self.matrix(self.tensor(name, num_outputs, num_inputs), is_delicate=is_delicate)

    def stacked(self, sizes: dict[str, int], num_inputs: int) -> Linear:
        """Linear layers that read the same input as one; `sizes` are their outputs by the tensor's name."""
        return self.matrix(torch.cat([self.tensor(name, size, num_inputs) for name, size in sizes.items()]))

    def refuse_from(self, prefix: str, reason: str) -> None:
        """Counts every tensor whose name begins with `prefix` as wrong."""
        self._problems += [f"tensor {name!r} {reason}" for name in self._weights.names_from(prefix)]

    def check(self) -> None:
        """Raises ModelLoadError that names every tensor that was missing, misshapen or refused."""
        if not self._problems:
            return
        named = self._problems[:_MAX_NAMED_PROBLEMS]
        rest = len(self._problems) - len(named)
        raise ModelLoadError("; ".join(named) + (f"; and {rest} more" if rest else ""))
