"""What the Program needs of a drafter that is a network, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from infernix.models.cache import KVPool
from infernix.models.features import FeatureModel, ForwardOutput
from infernix.options import SamplingParameters
from infernix.program.drafters.chain import DraftChain
from infernix.program.drafters.context import ContextRow


@dataclass(frozen=True, slots=True)
class DraftRow(ContextRow):
    """A sequence that at most `num_drafts` drafts, at least one, are wanted for.

    All of its ledger but the last token, the anchor, is known to the context. There is room in the drafter's pool for
    `num_drafts` positions behind the anchor's.
    """

    num_drafts: int
    sampling: SamplingParameters


class NeuralDrafter(Protocol):
    """A drafter on the features of one model. It proposes for free text: masks, penalties and cuts are the model's."""

    @property
    def model(self) -> FeatureModel:
        """The model that it drafts for."""
        ...

    @property
    def num_drafts(self) -> int:
        """Drafts of one round at most, at least one."""
        ...

    @property
    def taps(self) -> Sequence[int]:
        """Layers of the model whose residual streams it reads."""
        ...

    @property
    def width(self) -> int:
        """Width of a row of `features`."""
        ...

    @property
    def lag(self) -> int:
        """At how many positions from the last on it can read only once the next tokens are known: 0 or 1."""
        ...

    def features(self, output: ForwardOutput) -> torch.Tensor:
        """What it reads of a pass, [N, width]."""
        ...

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for the contexts of `num_positions` tokens of all sequences together."""
        ...

    def read(self, row: ContextRow, end: int) -> None:
        """Reads the positions before `end`, for which there is room in the pool."""
        ...

    def propose(self, rows: Sequence[DraftRow]) -> list[DraftChain]:
        """Drafts for the rows, each at most as many as it wants; contexts have read all that they know afterwards.

        They are a function of the row alone, but for rounding: sequence, seed and temperature.
        """
        ...
