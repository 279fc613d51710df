"""Packed sets of tokens, the plain way."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def mask_words(ids: Iterable[int], num_tokens: int) -> NDArray[np.int32]:
    """The row over `num_tokens` ids in which exactly `ids` are set: 32 ids a word, the smallest in the lowest bit."""
    words = np.zeros(-(-num_tokens // 32), dtype=np.uint32)
    for token in ids:
        words[token // 32] |= np.uint32(1 << token % 32)
    return words.view(np.int32)
