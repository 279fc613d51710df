"""One store of mask rows for all grammars of a vocabulary.

Thousands of positions share a few dozen different rows, so rows are kept by content. Each kept row has a small number
that is its own as long as it is kept: a device can hold a mirror of the store and be sent numbers instead of rows.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from infernix.matching.jit import kernel

DEFAULT_ROW_BYTES = 64 << 20
# Copies between addresses that agree in their low 12 bits are several times slower on common processors. NumPy puts
# large arrays a little behind a page's beginning, so kept rows begin in a page's middle.
_PAGE_BYTES = 4096
_ROW_OFFSET_BYTES = 2048


def packed_row(legal: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bool vector over the vocabulary as a mask row."""
    row = np.zeros((len(legal) + 31) // 32 * 4, np.uint8)
    packed = np.packbits(legal, bitorder="little")
    row[: len(packed)] = packed
    return row.view("<u4").astype(np.uint32)


@kernel
def _hash_row(row: NDArray[np.uint32]) -> int:
    """FNV-1a over pairs of words, cut to 63 bits."""
    value = 0x4BF29CE484222325
    for i in range(0, len(row) - 1, 2):
        pair = int(row[i]) | (int(row[i + 1]) << 32)
        value = ((value ^ pair) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
    return (value ^ int(row[len(row) - 1])) & 0x7FFFFFFFFFFFFFFF


def _placed_copy(row: NDArray[np.uint32]) -> NDArray[np.int32]:
    buffer = np.empty(row.nbytes + _PAGE_BYTES, np.uint8)
    begin = (_ROW_OFFSET_BYTES - buffer.ctypes.data) % _PAGE_BYTES
    copy = buffer[begin : begin + row.nbytes].view(np.int32)
    copy[:] = row.view(np.int32)
    copy.flags.writeable = False
    return copy


class MaskRow:
    """A row and its number; `words` (read-only int32) is None once the store has dropped it."""

    __slots__ = ("is_empty", "last_used", "num_pins", "number", "words")

    def __init__(self, number: int, words: NDArray[np.int32], is_empty: bool) -> None:
        self.number = number
        self.words: NDArray[np.int32] | None = words
        self.is_empty = is_empty
        self.last_used = 0
        self.num_pins = 0


def _has_words(known: MaskRow, row: NDArray[np.uint32]) -> bool:
    return known.words is not None and np.array_equal(known.words, row.view(np.int32))


class RowStore:
    """Keeps up to `max_bytes` of rows, least recently used ones going first; pinned rows stay.

    `clock` counts the rows that came in; whoever uses a row writes it to `last_used`.
    """

    def __init__(self, num_mask_words: int, max_bytes: int = DEFAULT_ROW_BYTES) -> None:
        self._row_bytes = num_mask_words * 4 + _PAGE_BYTES
        self._max_rows = max(2, max_bytes // self._row_bytes)
        self._rows: dict[int, MaskRow] = {}
        self._free_numbers: list[int] = []
        self._lock = threading.Lock()
        self.clock = 0

    @property
    def num_rows(self) -> int:
        """Rows kept at present."""
        return len(self._rows)

    @property
    def num_bytes(self) -> int:
        """Memory of the rows kept at present."""
        return len(self._rows) * self._row_bytes

    def intern(self, row: NDArray[np.uint32]) -> MaskRow:
        """The kept row with this content."""
        key = _hash_row(row)
        with self._lock:
            self.clock += 1
            # Of two contents under one hash the later one takes the next key: the older one may be pinned.
            while (known := self._rows.get(key)) and not _has_words(known, row):
                key += 1
            if known is None:
                if len(self._rows) >= self._max_rows:
                    self._drop_oldest()
                number = self._free_numbers.pop() if self._free_numbers else len(self._rows)
                known = self._rows[key] = MaskRow(number, _placed_copy(row), not row.any())
            known.last_used = self.clock
            return known

    def pin(self, row: MaskRow) -> None:
        """Keeps a row until `unpin`, as while a round works with its number."""
        with self._lock:
            row.num_pins += 1

    def unpin(self, row: MaskRow) -> None:
        """Takes one `pin` back."""
        with self._lock:
            row.num_pins -= 1

    def _drop_oldest(self) -> None:
        """Drops the older half of the rows that nobody has pinned; at once, so that the work is rare."""
        by_age = sorted(
            (key for key, row in self._rows.items() if row.num_pins == 0), key=lambda key: self._rows[key].last_used
        )
        for key in by_age[: (len(by_age) + 1) // 2]:
            self._drop(key)

    def _drop(self, key: int) -> None:
        row = self._rows.pop(key)
        row.words = None
        self._free_numbers.append(row.number)
