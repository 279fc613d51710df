"""What tests of the Program share: a vocabulary, a script whose every token counts, and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infernix.matching.matcher import LookAhead
from infernix.program.pending import RowDecision
from support.mask_words import mask_words
from support.vocabularies import nasty_vocabulary

VOCABULARY = nasty_vocabulary()
NUM_LOGITS = 64  # wider than the vocabulary's 50
GO_ON = RowDecision(num_accepted=1, is_terminal=False)
STOP = RowDecision(num_accepted=0, is_terminal=True)


def spread(so_far: tuple[int, ...]) -> ArrayLike:
    """Logits that depend on every token so far."""
    return np.random.default_rng(list(so_far)).standard_normal(NUM_LOGITS)


class RowMaskTable:
    """Legal ids of some rows, the same at each position of a chain, which is followed as far as it is legal.

    `calls` records what was asked for, `uploads` what was said to be sent.
    """

    def __init__(self, legal: Mapping[int, Sequence[int]]) -> None:
        self.legal = legal
        self.calls: list[tuple[int, tuple[int, ...]]] = []
        self.uploads: list[tuple[int, int]] = []

    def constrained(self, row: int) -> bool:
        return row in self.legal

    def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
        self.calls.append((row, tuple(drafts)))
        assert words.shape == (len(drafts) + 1, VOCABULARY.num_mask_words)
        num_ready = next((i for i, draft in enumerate(drafts) if draft not in self.legal[row]), len(drafts)) + 1
        words[:num_ready] = mask_words(self.legal[row], VOCABULARY.num_tokens)
        words[num_ready:] = -1
        return LookAhead(num_ready, 0) if self.legal[row] else LookAhead(0, 1)

    def uploaded(self, row: int, num_bytes: int) -> None:
        self.uploads.append((row, num_bytes))


class FixedMask(RowMaskTable):
    """Of a batch of one row."""

    def __init__(self, ids: Sequence[int]) -> None:
        super().__init__({0: ids})

    @property
    def num_fills(self) -> int:
        return len(self.calls)
