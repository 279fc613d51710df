"""A model whose hidden states tell which text they are of, so that a feature at a wrong place can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from infernix.models.features import ForwardOutput
from infernix.models.model import ModelRow
from tests.engine.simulation.memory_model import MemoryModel


def marks(tokens: Sequence[int]) -> list[int]:
    """One number for each beginning of the text, from its first token on."""
    found: list[int] = []
    mark = 0
    for token in tokens:
        mark = hash((mark, token))
        found.append(mark)
    return found


def tapped(mark: int, layer: int) -> int:
    """What the residual stream after a layer is, for the text of this mark."""
    return hash((mark, ~layer))


class FeatureMemoryModel(MemoryModel):
    """`text_of` knows the texts of all hidden states and taps that there were."""

    hidden_size = 1
    num_layers = 4
    dtype = torch.int64

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.text_of: dict[int, tuple[int, ...]] = {}

    def forward_features(self, rows: Sequence[ModelRow], taps: Sequence[int] = ()) -> ForwardOutput:
        logits = self.forward_rows(rows)
        hidden: list[list[int]] = []
        streams: list[list[int]] = []
        for row in rows:
            cache: Any = row.cache
            tokens = tuple(cache.tokens)
            for end, mark in list(enumerate(marks(tokens), 1))[-len(row.token_ids) :]:
                hidden.append([mark])
                streams.append([tapped(mark, layer) for layer in taps])
                self.text_of.update(dict.fromkeys([mark, *streams[-1]], tokens[:end]))
        return ForwardOutput(logits, torch.tensor(hidden), torch.tensor(streams) if taps else None)
