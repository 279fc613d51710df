"""Drafts copied from where the text was the same before: the prompt and the request's own output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infernix.program.drafters.corpus import MAX_MATCH_TOKENS, WINDOWS, Corpus

MAX_DRAFT_TOKENS = 63
DEFAULT_MIN_MATCH = 12
# A copy stops so many tokens before its source does.
_NUM_HELD_BACK = 2


class NgramDrafter:
    """Proposes the tokens that followed the longest match of one request's text; no chance is involved: q is one-hot.

    is_boundary        bool [num_tokens]: tokens never matched and never proposed, such as control tokens
    num_draft_tokens   the longest chain, 1..MAX_DRAFT_TOKENS
    min_match          how many of the last tokens must be the same, 4..64
    capacity           how many tokens the prompt and the output may have together; older ones are forgotten past it

    Raises ValueError for a number out of its range.
    """

    def __init__(
        self,
        is_boundary: NDArray[np.bool_],
        *,
        num_draft_tokens: int,
        capacity: int,
        min_match: int = DEFAULT_MIN_MATCH,
    ) -> None:
        if not 1 <= num_draft_tokens <= MAX_DRAFT_TOKENS:
            raise ValueError(f"1 to {MAX_DRAFT_TOKENS} tokens can be drafted, not {num_draft_tokens}")
        if not WINDOWS[-1] <= min_match <= MAX_MATCH_TOKENS:
            raise ValueError(f"a match has {WINDOWS[-1]} to {MAX_MATCH_TOKENS} tokens, not {min_match}")
        self._corpus = Corpus(is_boundary, capacity)
        self._num_draft_tokens = num_draft_tokens
        self._min_match = min_match

    def append(self, tokens: Sequence[int] | NDArray[np.integer]) -> None:
        """Takes in committed tokens: first the prompt, then what each round or forced control adds. Never drafts."""
        self._corpus.append(tokens)

    def propose(self, num_neural_drafts: int = 0) -> tuple[int, ...]:
        """Drafts for the next tokens, or () if there is no copy worth a round.

        A copy that is cut short by a boundary or the end of the text must be longer than `num_neural_drafts`, the
        number of drafts that another drafter has for the row: a copy takes their place. The output budget is not looked
        at here; the caller verifies no more drafts than it has room for.
        """
        num_wanted = self._num_draft_tokens + _NUM_HELD_BACK
        match = self._corpus.longest_match(num_wanted)
        if match is None or match.num_matched < self._min_match:
            return ()
        num_available = len(match.continuation)
        num_drafts = min(self._num_draft_tokens, num_available - _NUM_HELD_BACK)
        if num_available < num_wanted and num_drafts <= num_neural_drafts:
            return ()
        return match.continuation[:num_drafts]
