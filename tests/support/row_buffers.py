"""Mask rows as a walk would hand them in."""

from __future__ import annotations

from numpy.typing import ArrayLike

from infernix.matching.row_buffer import RowBuffer
from infernix.matching.rows import RowStore


def row_buffer(store: RowStore, words: ArrayLike) -> RowBuffer:
    """A row of these words, none of them listed."""
    buffer = store.new_row()
    buffer.words[:] = words
    buffer.places[0] = len(buffer.places)
    return buffer
