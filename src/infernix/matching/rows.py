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

from infernix.matching.jit import inner, kernel
from infernix.matching.row_buffer import MAX_LISTED_WORDS, RowBuffer, note_word

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
_LISTED_WORD_BYTES = 12
_LISTED_BYTES = 300


def packed_row(legal: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bool vector over the vocabulary as a mask row."""
    row = np.zeros((len(legal) + 31) // 32 * 4, np.uint8)
    packed = np.packbits(legal, bitorder="little")
    row[: len(packed)] = packed
    return row.view("<u4").astype(np.uint32)


@inner
def _hash_row(row: NDArray[np.uint32]) -> int:
    """NH (Black et al., "UMAC: Fast and Secure Message Authentication", 1999), cut to 63 bits, with keys by place.

    Each word of the row's first half is multiplied with one of the second: that can be done for several at once.
    """
    half = len(row) // 2
    first_key, second_key, total = 0x4BF29CE4, 0x3C6EF372, len(row)
    for i in range(half):
        first_key += 0x9E3779B1
        second_key += 0x85EBCA77
        first = (int(row[i]) + first_key) & 0xFFFFFFFF
        second = (int(row[half + i]) + second_key) & 0xFFFFFFFF
        total += first * second
    if 2 * half < len(row):
        total += (int(row[2 * half]) + 1) * 0x1B873593CC9E2D51
    return total & 0x7FFFFFFFFFFFFFFF


@inner
def _list_words(row: NDArray[np.uint32], places: NDArray[np.int64]) -> None:
    """Lists the words of a row that are not zero, where they can be listed."""
    num_listed = 0
    for i in range(len(row)):
        if row[i] != 0:
            num_listed += 1
    if num_listed + 1 > len(places):
        return
    num_whole = len(row) // 8 * 8
    places[0] = 0
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
                note_word(places, i)


@kernel
def _digest(row: NDArray[np.uint32], places: NDArray[np.int64]) -> int:
    """A 63-bit hash of the row's content; lists its words that are not zero, where they can be listed (RowBuffer)."""
    if places[0] == len(places):
        _list_words(row, places)
    if places[0] == len(places):
        return _hash_row(row)
    # A sum, because the list is in no order.
    h = 0x4BF29CE484222325
    for i in range(1, places[0] + 1):
        word = int(row[places[i]]) | (int(places[i]) << 32)
        word = ((word ^ (word >> 29)) * 0x1B873593CC9E2D51) & 0x7FFFFFFFFFFFFFFF
        word = ((word ^ (word >> 32)) * 0x2545F4914F6CDD1D) & 0x7FFFFFFFFFFFFFFF
        h = (h + word) & 0x7FFFFFFFFFFFFFFF
    return h


@kernel
def _differ(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> bool:
    """Whether two rows of one length differ anywhere."""
    difference = 0
    for i in range(len(right)):
        difference |= int(left[i]) ^ int(right[i])
    return difference != 0


@kernel
def _lacks(known_places: NDArray[np.int64], known_words: NDArray[np.uint32], row: NDArray[np.uint32]) -> bool:
    """Whether some of these words are others in `row`."""
    for i in range(len(known_places)):  # noqa: SIM110  (a kernel has no generators)
        if known_words[i] != row[known_places[i]]:
            return True
    return False


class MaskRow:
    """A row and its number; `words` (read-only int32) is None once the store has dropped it.

    listed: places and values of the words that are not zero, int64 and uint32, where RowBuffer can list them; sparse:
    the same, int64 and int32, where setting them is faster than copying all words. Both are None with `words`.
    """

    __slots__ = ("is_empty", "last_used", "listed", "num_pins", "number", "sparse", "words")

    def __init__(self, number: int, buffer: RowBuffer, max_sparse_words: int) -> None:
        """The buffer is what `_digest` made of it, and the row's from now on."""
        self.number = number
        self.words: NDArray[np.int32] | None = buffer.words.view(np.int32)
        self.words.flags.writeable = False
        self.listed: tuple[NDArray[np.int64], NDArray[np.uint32]] | None = None
        self.sparse: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None
        num_listed = int(buffer.places[0])
        self.is_empty = num_listed == 0
        if num_listed < len(buffer.places):
            places = buffer.places[1 : num_listed + 1].copy()
            values = buffer.words[places]
            self.listed = (places, values)
            if num_listed <= max_sparse_words:
                self.sparse = (places, values.view(np.int32))
        self.last_used = 0
        self.num_pins = 0

    def drop(self) -> None:
        """Lets go of the content."""
        self.words = self.listed = self.sparse = None


def _has_content(known: MaskRow, buffer: RowBuffer) -> bool:
    """Whether a row with the same digest is the same row."""
    if known.words is None:
        return False
    if buffer.places[0] == len(buffer.places):
        return not _differ(known.words.view(np.uint32), buffer.words)
    listed = known.listed
    return listed is not None and len(listed[0]) == buffer.places[0] and not _lacks(*listed, buffer.words)


class RowStore:
    """Keeps up to `max_bytes` of rows, least recently used ones going first; pinned rows stay.

    `clock` counts the rows that came in; whoever uses a row writes it to `last_used`.
    """

    def __init__(self, num_mask_words: int, max_bytes: int = DEFAULT_ROW_BYTES) -> None:
        self._num_mask_words = num_mask_words
        self._max_sparse_words = min(MAX_SPARSE_WORDS, num_mask_words // _WORDS_PER_SPARSE_WORD)
        self._list_length = 1 + min(MAX_LISTED_WORDS, num_mask_words)
        self._row_bytes = num_mask_words * 4 + _PAGE_BYTES + _LISTED_BYTES + _LISTED_WORD_BYTES * self._list_length
        self._max_rows = max(2, max_bytes // self._row_bytes)
        self._rows: dict[int, MaskRow] = {}
        self._free_numbers: list[int] = []
        # Rows that turned out to be known: fresh memory would have to be mapped in, which takes longer than filling it.
        self._spare_rows: list[RowBuffer] = []
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

    def new_row(self) -> RowBuffer:
        """Room for a row that `intern` will get, its content undefined."""
        try:
            return self._spare_rows.pop()
        except IndexError:
            pass
        buffer = np.zeros(self._row_bytes, np.uint8)
        begin = (_ROW_OFFSET_BYTES - buffer.__array_interface__["data"][0]) % _PAGE_BYTES
        words = buffer[begin : begin + 4 * self._num_mask_words].view(np.uint32)
        return RowBuffer(words, np.zeros(self._list_length, np.int64))

    def intern(self, row: RowBuffer) -> MaskRow:
        """The kept row with this content: `row` itself or an older one. Nobody may touch `row` afterwards."""
        key = _digest(row.words, row.places)
        with self._lock:
            self.clock += 1
            # Of two contents under one hash the later one takes the next key: the older one may be pinned.
            while (known := self._rows.get(key)) and not _has_content(known, row):
                key += 1
            if known is None:
                if len(self._rows) >= self._max_rows:
                    self._drop_oldest()
                number = self._free_numbers.pop() if self._free_numbers else len(self._rows)
                known = self._rows[key] = MaskRow(number, row, self._max_sparse_words)
            elif len(self._spare_rows) < _MAX_SPARE_ROWS:
                self._spare_rows.append(row)
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
        row.drop()
        self._free_numbers.append(row.number)
