"""Packed sets of token ids: 32 ids a word, the lowest bit of a word is its smallest id, bits past the domain are 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A word's bytes are read one by one below, so their order must not depend on the machine.
_LITTLE_ENDIAN_WORD = np.dtype("<i4")
_SPARSE_DIVISOR = 4


def unpack(words: NDArray[np.int32], num_tokens: int) -> NDArray[np.bool_]:
    """The boolean array of shape [num_tokens] of a row."""
    data = words.astype(_LITTLE_ENDIAN_WORD, copy=False).view(np.uint8)
    return np.unpackbits(data, count=num_tokens, bitorder="little").view(np.bool_)


def legal_ids(words: NDArray[np.int32], num_tokens: int) -> NDArray[np.intp]:
    """The ids in a row, ascending. Time follows the number of words that are not zero."""
    used = np.flatnonzero(words)
    if used.size > words.size // _SPARSE_DIVISOR:
        return np.flatnonzero(unpack(words, num_tokens))
    places = np.flatnonzero(unpack(words[used], used.size * 32))
    ids = used[places >> 5] * 32 + (places & 31)
    within: NDArray[np.intp] = ids[ids < num_tokens]
    return within
