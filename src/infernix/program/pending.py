"""The outcome of one execution unit before it counts, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from infernix.program.sequence import PhysicalSequence


class PendingRowFailure(StrEnum):
    """Why a row has no token although its unit ran: its request fails, the other rows are committed."""

    DEAD_END = "dead_end"
    NON_FINITE_LOGITS = "non_finite_logits"


@dataclass(frozen=True, slots=True)
class PendingRow:
    """What one sequence produced: tokens, or a failure and no tokens."""

    sequence: PhysicalSequence
    tokens: tuple[int, ...]
    failure: PendingRowFailure | None = None


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """The rows of one unit. It is used up whole, once, by `Program.commit` or `Program.abort_pending`."""

    rows: tuple[PendingRow, ...]


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
