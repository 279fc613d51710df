"""What drafters read of a model beside its logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from infernix.models.model import LanguageModel, ModelRow


@dataclass(frozen=True, slots=True)
class ForwardOutput:
    """One forward pass over N new tokens of all rows.

    logits   float32 [sum of num_logits_rows, num_logits], as `forward_rows` gives them
    hidden   [N, hidden], every new token's state after the final norm, which the output matrix reads
    taps     [N, number of taps * hidden], the residual stream after each tapped layer, side by side; None without taps
    """

    logits: torch.Tensor
    hidden: torch.Tensor
    taps: torch.Tensor | None


class FeatureModel(LanguageModel, Protocol):
    """A LanguageModel that drafters can build on: they share its embedding and its output matrix."""

    @property
    def hidden_size(self) -> int:
        """Width of the residual stream."""
        ...

    @property
    def num_layers(self) -> int:
        """Layers that may be tapped, counted from 0."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Number format of hidden states."""
        ...

    def forward_features(self, rows: Sequence[ModelRow], taps: Sequence[int] = ()) -> ForwardOutput:
        """`forward_rows` that also gives hidden states, and the residual stream after the layers `taps`."""
        ...

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Rows of the embedding, [*, hidden], for int64 [*]."""
        ...

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [N, num_logits] of hidden states [N, hidden] after the final norm."""
        ...
