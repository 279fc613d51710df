"""Parts of rows with drafts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.ops.acceptance import ChainMasks
from infernix.ops.penalties import TokenCounts
from infernix.ops.sampling import TokenDomain
from support.mask_words import mask_words


def counted(*tokens: int) -> TokenCounts:
    counts = TokenCounts()
    for token in tokens:
        counts.add(token)
    return counts


def all_of(num_tokens: int) -> TokenDomain:
    return TokenDomain.without(np.zeros(num_tokens, dtype=bool))


def masks_of(legal: NDArray[np.bool_], num_ready: int | None = None, dead_positions: int = 0) -> ChainMasks:
    words = np.stack([mask_words(np.flatnonzero(row).tolist(), row.size) for row in legal])
    return ChainMasks(words, len(legal) if num_ready is None else num_ready, dead_positions)
