"""Guesses at the next tokens of one sequence, as they go into a round."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from infernix.ops.proposals import SparseProposals


class DraftSource(StrEnum):
    """What drafts come from: the request's own text, or a drafter that is a network."""

    COPY = "copy"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class DraftChain:
    """Drafts one behind another, perhaps none.

    proposals   what they were drawn from, at a temperature above 0; None: no chance was involved (q is one-hot)
    source      what they come from; of no meaning where there are none

    Raises ValueError where `proposals` are not those of these tokens.
    """

    tokens: tuple[int, ...] = ()
    proposals: SparseProposals | None = None
    source: DraftSource = DraftSource.NETWORK

    def __post_init__(self) -> None:
        if self.proposals is not None and len(self.proposals) != len(self.tokens):
            raise ValueError(f"{len(self.tokens)} drafts were not drawn from {len(self.proposals)} laws")

    def __len__(self) -> int:
        return len(self.tokens)


NO_DRAFTS = DraftChain()
