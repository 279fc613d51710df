"""Mask rows as the kernel would hand them in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from infernix.matching.row_digest import digest_row
from infernix.matching.rows import BaseRow, MadeRow, MaskRow, RowStore


def made_row(store: RowStore, words: ArrayLike, base: BaseRow) -> MadeRow:
    """A row of these words."""
    row = np.asarray(words, np.uint32)
    places = np.flatnonzero(row != base.words)
    return (row[places], places) if len(places) <= store.max_changed_words else row


def kept_row(store: RowStore, words: ArrayLike, base: BaseRow | None = None) -> MaskRow:
    """The row of these words that a store keeps."""
    base = base or store.no_tokens
    return store.intern(base, made_row(store, words, base), digest_row(np.asarray(words, np.uint32)))
