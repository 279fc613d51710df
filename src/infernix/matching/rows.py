"""One store of mask rows for all grammars of a vocabulary.

Thousands of positions share a few dozen different rows, so rows are kept by content. Each kept row has a small number
that is its own as long as it is kept: a device can hold a mirror of the store and be sent numbers instead of rows.

Most positions allow few tokens. A row with few words that are not zero is kept in a short form, too: clearing a buffer
and setting those words reads next to nothing, where copying all words fetches them from memory far away.
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
_MAX_SPARE_ROWS = 4
# Setting more words than this one by one takes as long as copying a row from nearby.
MAX_SPARSE_WORDS = 128
_WORDS_PER_SPARSE_WORD = 4
# A place, a word, and what two arrays take beside their content.
_SPARSE_WORD_BYTES = 12
_SPARSE_BYTES = 300


def packed_row(legal: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bool vector over the vocabulary as a mask row."""
    row = np.zeros((len(legal) + 31) // 32 * 4, np.uint8)
    packed = np.packbits(legal, bitorder="little")
    row[: len(packed)] = packed
    return row.view("<u4").astype(np.uint32)


@kernel
def _hash_row(row: NDArray[np.uint32]) -> int:
    """FNV-1a over pairs of words in four lanes, cut to 63 bits."""
    first, second, third, fourth = 0x4BF29CE484222325, 0x3C6EF372FE94F82B, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179
    num_whole = len(row) // 8 * 8
    for i in range(0, num_whole, 8):
        first = ((first ^ (int(row[i]) | (int(row[i + 1]) << 32))) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
        second = ((second ^ (int(row[i + 2]) | (int(row[i + 3]) << 32))) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
        third = ((third ^ (int(row[i + 4]) | (int(row[i + 5]) << 32))) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
        fourth = ((fourth ^ (int(row[i + 6]) | (int(row[i + 7]) << 32))) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
    for i in range(num_whole, len(row)):
        first = ((first ^ int(row[i])) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
    for lane in (second, third, fourth):
        first = ((first ^ lane) * 0x100000001B3) & 0x7FFFFFFFFFFFFFFF
    return first


@kernel
def _differ(left: NDArray[np.int32], right: NDArray[np.int32]) -> bool:
    """Whether two rows of one length differ anywhere."""
    difference = 0
    for i in range(len(right)):
        difference |= int(left[i]) ^ int(right[i])
    return difference != 0


@kernel
def _find_words(row: NDArray[np.int32], places: NDArray[np.int64]) -> int:
    """Writes where the words are that are not zero; returns how many, or one more than there is room for."""
    num_found = 0
    num_whole = len(row) // 8 * 8
    for begin in range(0, len(row), 8):
        end = begin + 8
        if begin < num_whole:
            anything = row[begin] | row[begin + 1] | row[begin + 2] | row[begin + 3]
            if anything | row[begin + 4] | row[begin + 5] | row[begin + 6] | row[begin + 7] == 0:
                continue
        else:
            end = len(row)
        for i in range(begin, end):
            if row[i] != 0:
                if num_found == len(places):
                    return num_found + 1
                places[num_found] = i
                num_found += 1
    return num_found


class MaskRow:
    """A row and its number; `words` (read-only int32) is None once the store has dropped it.

    sparse: places and values of the words that are not zero, int64 and int32, where these are few. None with `words`.
    """

    __slots__ = ("is_empty", "last_used", "num_pins", "number", "sparse", "words")

    def __init__(
        self,
        number: int,
        words: NDArray[np.int32],
        sparse: tuple[NDArray[np.int64], NDArray[np.int32]] | None,
        is_empty: bool,
    ) -> None:
        self.number = number
        self.words: NDArray[np.int32] | None = words
        self.sparse = sparse
        self.is_empty = is_empty
        self.last_used = 0
        self.num_pins = 0


def _has_words(known: MaskRow, row: NDArray[np.uint32]) -> bool:
    return known.words is not None and not _differ(known.words, row.view(np.int32))


class RowStore:
    """Keeps up to `max_bytes` of rows, least recently used ones going first; pinned rows stay.

    `clock` counts the rows that came in; whoever uses a row writes it to `last_used`.
    """

    def __init__(self, num_mask_words: int, max_bytes: int = DEFAULT_ROW_BYTES) -> None:
        self._num_mask_words = num_mask_words
        self._max_sparse_words = min(MAX_SPARSE_WORDS, num_mask_words // _WORDS_PER_SPARSE_WORD)
        num_sparse_bytes = _SPARSE_BYTES + _SPARSE_WORD_BYTES * self._max_sparse_words
        self._row_bytes = num_mask_words * 4 + _PAGE_BYTES + num_sparse_bytes
        self._max_rows = max(2, max_bytes // self._row_bytes)
        self._rows: dict[int, MaskRow] = {}
        self._free_numbers: list[int] = []
        # Rows that turned out to be known: fresh memory would have to be mapped in, which takes longer than filling it.
        self._spare_rows: list[NDArray[np.uint32]] = []
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

    def new_row(self) -> NDArray[np.uint32]:
        """Room for a row that `intern` will get, its content undefined."""
        try:
            return self._spare_rows.pop()
        except IndexError:
            pass
        buffer = np.empty(self._row_bytes, np.uint8)
        begin = (_ROW_OFFSET_BYTES - buffer.__array_interface__["data"][0]) % _PAGE_BYTES
        return buffer[begin : begin + 4 * self._num_mask_words].view(np.uint32)

    def intern(self, row: NDArray[np.uint32]) -> MaskRow:
        """The kept row with this content: `row` itself or an older one. Nobody may touch `row` afterwards."""
        key = _hash_row(row)
        with self._lock:
            self.clock += 1
            # Of two contents under one hash the later one takes the next key: the older one may be pinned.
            while (known := self._rows.get(key)) and not _has_words(known, row):
                key += 1
            if known is None:
                if len(self._rows) >= self._max_rows:
                    self._drop_oldest()
                known = self._rows[key] = self._new_mask_row(row.view(np.int32))
            elif len(self._spare_rows) < _MAX_SPARE_ROWS:
                self._spare_rows.append(row)
            known.last_used = self.clock
            return known

    def _new_mask_row(self, words: NDArray[np.int32]) -> MaskRow:
        number = self._free_numbers.pop() if self._free_numbers else len(self._rows)
        places = np.empty(self._max_sparse_words, np.int64)
        num_places = _find_words(words, places)
        words.flags.writeable = False
        sparse = None
        if num_places <= len(places):
            places = places[:num_places].copy()
            sparse = (places, words[places])
        return MaskRow(number, words, sparse, is_empty=num_places == 0)

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
        row.words = row.sparse = None
        self._free_numbers.append(row.number)
