"""The outcome of one execution unit before it counts, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from infernix.ops.acceptance import RowFailure
from infernix.program.sequence import PhysicalSequence


@dataclass(frozen=True, slots=True)
class PendingRow:
    """What one sequence produced: tokens, or a failure and no tokens. A failed row's request fails, the others go on.

    num_accepted   how many of the first tokens are drafts
    logits         float32 [at least len(tokens), num_logits], where the model left them: row i is what it said before
                   tokens[i]
    """

    sequence: PhysicalSequence
    tokens: tuple[int, ...]
    failure: RowFailure | None = None
    num_accepted: int = 0
    logits: torch.Tensor | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """The rows of one unit. It is used up whole, once, by `Program.commit` or `Program.abort_pending`.

    Wall seconds: `forward_seconds` of the model (on a GPU also the wait for it), `mask_seconds` of the provider and of
    sending masks, `sampling_seconds` of the choice of tokens.
    """

    rows: tuple[PendingRow, ...]
    forward_seconds: float = field(default=0.0, compare=False)
    mask_seconds: float = field(default=0.0, compare=False)
    sampling_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class RowDecision:
    """How much of a row is committed.

    A row that goes on is accepted whole. A terminal row may be accepted up to a shorter beginning; a failed row is
    terminal with nothing accepted. A terminal row gives its sequence's memory back.
    """

    num_accepted: int
    is_terminal: bool

    def suits(self, row: PendingRow) -> bool:
        """Whether the decision is one that this row may meet."""
        if row.failure is not None:
            return self.is_terminal and self.num_accepted == 0
        if self.is_terminal:
            return 0 <= self.num_accepted <= len(row.tokens)
        return self.num_accepted == len(row.tokens)
