"""One store of mask rows for all grammars of a vocabulary.

Thousands of positions share a few dozen different rows, so rows are kept by content. Each kept row has a small number
that is its own as long as it is kept: a device can hold a mirror of the store and be sent numbers instead of rows.

Most rows differ in few words from one that many share: from that without tokens, or from a row that is known of the
vocabulary alone. Such a row is kept as these words. To copy it means to copy what is in a near cache, because it is
used everywhere, and to set a few words.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from infernix.matching.row_buffer import RowBuffer
from infernix.matching.row_digest import digest_row

DEFAULT_ROW_BYTES = 64 << 20
# Copies between addresses that agree in their low 12 bits are several times slower on common processors. NumPy puts
# large arrays a little behind a page's beginning, so kept rows begin in a page's middle.
_PAGE_BYTES = 4096
_ROW_OFFSET_BYTES = 2048
_MAX_SPARE_BUFFERS = 4
# Fewer are kept in any case, for matchers that would else drop each other's rows in turn.
_MIN_ROWS = 2
# To set more words than this one by one, or a larger share of a short row, takes longer than to copy a row from far
# away.
MAX_CHANGED_WORDS = 512
_WORDS_PER_CHANGED_WORD = 4
# A row that differs in more is made whole when it is used again.
_MAX_SHORT_WORDS = 128
# A place and a word, and what a row takes beside them.
_CHANGED_WORD_BYTES = 12
_ENTRY_BYTES = 600

_WordT = TypeVar("_WordT", np.int32, np.uint32)


def packed_row(legal: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """A bool vector over the vocabulary as a mask row."""
    row = np.zeros((len(legal) + 31) // 32 * 4, np.uint8)
    packed = np.packbits(legal, bitorder="little")
    row[: len(packed)] = packed
    return row.view("<u4").astype(np.uint32)


def row_of_tokens(token_ids: NDArray[np.int32], num_tokens: int) -> NDArray[np.uint32]:
    """The mask row of some tokens."""
    legal = np.zeros(num_tokens, np.bool_)
    legal[token_ids] = True
    return packed_row(legal)


# Words, and their places.
ListedWords = tuple[NDArray[np.uint32], NDArray[np.int64]]
NO_WORDS: ListedWords = (np.zeros(0, np.uint32), np.zeros(0, np.int64))


def listed_words(row: NDArray[np.uint32]) -> ListedWords:
    """The words of a row that are not zero, and their places."""
    places = np.flatnonzero(row)
    return row[places], places


class BaseRow:
    """A row that others are kept as differences from.

    words: uint32 [num_mask_words], which nobody writes to any more; digest: their hash. content: the same words, int32,
    or None where all of them are zero. num_rows: how many kept rows refer to it, counted by their store.
    """

    __slots__ = ("content", "digest", "num_bytes", "num_rows", "num_set_words", "words")

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self.words = words
        self.digest: int = digest_row(words)
        self.num_set_words = int(np.count_nonzero(words))
        self.content: NDArray[np.int32] | None = words.view(np.int32) if self.num_set_words else None
        self.num_bytes = words.nbytes
        self.num_rows = 0


# What to copy, or None for zeros; and words to set after that and their places, or None twice.
RowContent = tuple[NDArray[np.int32] | None, NDArray[np.int64] | None, NDArray[np.int32] | None]


# A row just made: the words that differ from its base, and their places; or all words.
MadeRow = ListedWords | NDArray[np.uint32]


class MaskRow:
    """A row and its number; `content` is None once the store has dropped it.

    base, differences: what it differs from, and how, unless in too many words. is_long: copying it takes longer than it
    would from a whole row, which is made of it (`RowStore.write_out`) when it is used again. is_used: it was used.
    """

    __slots__ = (
        "base",
        "content",
        "differences",
        "is_empty",
        "is_long",
        "is_used",
        "last_used",
        "num_bytes",
        "num_mask_words",
        "num_pins",
        "number",
    )

    def __init__(self, base: BaseRow, made: MadeRow) -> None:
        self.number = -1
        self.num_mask_words = len(base.words)
        self.base: BaseRow | None = None
        self.differences: ListedWords | None = None
        self.content: RowContent | None
        self.is_long = False
        self.is_used = False
        if isinstance(made, tuple):
            words, places = made[0].copy(), made[1].copy()
            self.base = base
            self.differences = words, places
            self.content = base.content, places, words.view(np.int32)
            # A word that differs is not zero where that of the base is.
            self.is_empty = len(words) == base.num_set_words and not words.any()
            self.is_long = len(words) > _MAX_SHORT_WORDS
            self.num_bytes = _ENTRY_BYTES + _CHANGED_WORD_BYTES * len(words)
        else:
            self.content = _copied(made).view(np.int32), None, None
            self.is_empty = not made.any()
            self.num_bytes = _ENTRY_BYTES + _PAGE_BYTES + base.num_bytes
        self.last_used = 0
        self.num_pins = 0

    def words(self) -> NDArray[np.int32] | None:
        """The row as a new array, int32 [num_mask_words]; None where it is dropped."""
        content = self.content
        if content is None:
            return None
        row = np.zeros(self.num_mask_words, np.int32)
        copy_row(content, row)
        return row


def copy_row(content: RowContent, target: NDArray[np.int32]) -> None:
    """Copies a row to `target`, int32 [num_mask_words]."""
    whole, places, changed = content
    if whole is None:
        target.fill(0)
    else:
        target[:] = whole
    if places is not None and changed is not None:
        target[places] = changed


def _has_content(known: MaskRow, base: BaseRow, made: MadeRow) -> bool:
    """Whether a row with the same hash is the same row."""
    content = known.content
    if content is None:
        return False
    if isinstance(made, tuple):
        if known.base is base and known.differences is not None and _are_same(made, known.differences):
            return True
    elif known.base is None and content[0] is not None:
        return _have_same_bytes(content[0], made)
    # Two ways to one row: from different bases, or in another order.
    row, other = known.words(), MaskRow(base, made).words()
    return row is not None and other is not None and _have_same_bytes(row, other)


def _are_same(words: ListedWords, others: ListedWords) -> bool:
    return _have_same_bytes(words[1], others[1]) and _have_same_bytes(words[0], others[0])


def _have_same_bytes(left: NDArray[Any], right: NDArray[Any]) -> bool:
    # NumPy takes several times as long to compare.
    return left.tobytes() == right.tobytes()


def _copied(row: NDArray[_WordT]) -> NDArray[_WordT]:
    buffer = np.empty(row.nbytes + _PAGE_BYTES, np.uint8)
    begin = (_ROW_OFFSET_BYTES - buffer.__array_interface__["data"][0]) % _PAGE_BYTES
    copy = buffer[begin : begin + row.nbytes].view(row.dtype)
    copy[:] = row
    return copy


class RowStore:
    """Keeps up to `max_bytes` of rows, least recently used ones going first; pinned rows stay.

    `clock` counts the rows that came in; whoever uses a row writes it to `last_used`.
    """

    def __init__(self, num_mask_words: int, max_bytes: int = DEFAULT_ROW_BYTES) -> None:
        self.num_mask_words = num_mask_words
        self.max_changed_words = min(MAX_CHANGED_WORDS, num_mask_words // _WORDS_PER_CHANGED_WORD)
        self.no_tokens = BaseRow(np.zeros(num_mask_words, np.uint32))
        """The row without tokens."""
        self.num_bytes = 0
        """Memory of the rows kept at present, and of the bases that they refer to."""
        self.clock = 0
        self._max_bytes = max_bytes
        self._rows: dict[int, MaskRow] = {}
        self._free_numbers: list[int] = []
        self._spare_buffers: list[RowBuffer] = []
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Rows kept at present."""
        return len(self._rows)

    def take_buffer(self) -> RowBuffer:
        """Room for rows in the making, until it is given back."""
        try:
            return self._spare_buffers.pop()
        except IndexError:
            return RowBuffer(self.num_mask_words, self.max_changed_words)

    def give_back(self, buffer: RowBuffer) -> None:
        """Takes a buffer back that nobody touches any more."""
        if len(self._spare_buffers) < _MAX_SPARE_BUFFERS:
            self._spare_buffers.append(buffer)

    def intern(self, base: BaseRow, made: MadeRow, digest: int) -> MaskRow:
        """The kept row with this content, a copy or an older one; digest: the hash of all its words."""
        with self._lock:
            self.clock += 1
            # Of two contents under one hash the later one takes the next key: the older one may be pinned.
            key = digest
            while (known := self._rows.get(key)) and not _has_content(known, base, made):
                key += 1
            if known is None:
                known = MaskRow(base, made)
                self._keep(key, known)
            known.last_used = self.clock
        return known

    def write_out(self, row: MaskRow) -> None:
        """Makes a whole row of a long one that is used again; what it differs by stays, for other rows to be compared.

        Not where this would push other rows out.
        """
        words = row.words()
        with self._lock:
            row.is_long = False
            num_bytes = _PAGE_BYTES + 4 * self.num_mask_words
            if words is not None and row.content is not None and self.num_bytes + num_bytes <= self._max_bytes:
                row.content = _copied(words), None, None
                row.num_bytes += num_bytes
                self.num_bytes += num_bytes

    def pin(self, row: MaskRow) -> None:
        """Keeps a row until `unpin`, as while a round works with its number."""
        with self._lock:
            row.num_pins += 1

    def unpin(self, row: MaskRow) -> None:
        """Takes one `pin` back."""
        with self._lock:
            row.num_pins -= 1

    def _keep(self, key: int, row: MaskRow) -> None:
        if self.num_bytes + self._num_new_bytes(row) > self._max_bytes and len(self._rows) >= _MIN_ROWS:
            self._drop_oldest()
        self.num_bytes += self._num_new_bytes(row)
        row.number = self._free_numbers.pop() if self._free_numbers else len(self._rows)
        self._rows[key] = row
        if row.base is not None:
            row.base.num_rows += 1

    @staticmethod
    def _num_new_bytes(row: MaskRow) -> int:
        """What a row takes that is not kept."""
        return row.num_bytes + (row.base.num_bytes if row.base is not None and row.base.num_rows == 0 else 0)

    def _drop_oldest(self) -> None:
        """Drops the older half of the rows that nobody has pinned; at once, so that the work is rare."""
        by_age = sorted(
            (key for key, row in self._rows.items() if row.num_pins == 0), key=lambda key: self._rows[key].last_used
        )
        for key in by_age[: (len(by_age) + 1) // 2]:
            self._drop(key)

    def _drop(self, key: int) -> None:
        row = self._rows.pop(key)
        self._free_numbers.append(row.number)
        if row.base is not None:
            row.base.num_rows -= 1
        self.num_bytes -= self._num_new_bytes(row)
        row.content = row.differences = row.base = None
        row.is_long = False
