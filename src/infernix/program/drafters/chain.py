"""Guesses at the next tokens of one sequence, as they go into a round."""

from __future__ import annotations

from dataclasses import dataclass

from infernix.ops.proposals import SparseProposals


@dataclass(frozen=True, slots=True)
class DraftChain:
    """Drafts one behind another, perhaps none.

    proposals   what they were drawn from, at a temperature above 0; None: no chance was involved (q is one-hot)

    Raises ValueError where `proposals` are not those of these tokens.
    """

    tokens: tuple[int, ...] = ()
    proposals: SparseProposals | None = None

    def __post_init__(self) -> None:
        if self.proposals is not None and len(self.proposals) != len(self.tokens):
            raise ValueError(f"{len(self.tokens)} drafts were not drawn from {len(self.proposals)} laws")

    def __len__(self) -> int:
        return len(self.tokens)


NO_DRAFTS = DraftChain()
