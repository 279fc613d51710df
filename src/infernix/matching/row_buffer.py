"""A mask row in the making: the words in which it differs from another row, its base.

Most rows differ in few words from one that is known of the vocabulary alone: from that of no token, or of all tokens
made of some characters. To know which spares writing, hashing, comparing and keeping all the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.addresses import address_of, int64_at, uint32_at
from infernix.matching.jit import inner
from infernix.matching.row_digest import hash_changed, hash_row

Words = NDArray[np.uint32]
Places = NDArray[np.int64]

# The rows of the two arrays of a RowBuffer.
SET = 0
CLEARED = 1
CONTENT = 2
# What the numbers of a RowBuffer are: addresses and lengths.
WORDS = 0
NUM_WORDS = 1
PLACES = 2
LIST_LENGTH = 3
MAX_CHANGED = 4
PATH = 5
MAX_DEPTH = 6
FOUND = 7
MADE_WORDS = 8
MADE_PLACES = 9
NUM_MADE_WORDS = 10
NUM_NUMBERS = 11
# So many rows may be made at one go, as long as there is room for their words.
MAX_MADE_ROWS = 17
MADE_WORDS_ROOM = 1 << 12
# Columns of what is found out about a row: see `row_making`.
FOUND_WIDTH = 21
HEAD_WIDTH = 7
# So many tokens of one place are taken to have more words than can be listed.
MAX_LISTED_ENTRIES = 1 << 10
# More words than change are listed: those that the base has, too, turn out not to.
_LISTED_PER_CHANGED_WORD = 2


class RowBuffer:
    """Room for rows in the making.

    words: uint32 [3, num_mask_words]. places: int64 [2, room in the list + 1]. While a row is being made, words[SET]
    are bits to be set and words[CLEARED] bits to be cleared in the base, the former winning. The words of either that
    are not zero are listed in the same row of `places`: how many, then where they are; or the first figure is the
    length of that row, and they may be anywhere.

    Of a finished row, the words that differ from the base, at most max_changed_words, are in made_words, and where they
    are in made_places, behind those of the rows before; where they are more, words[CONTENT] is the whole row.
    found: int64 [MAX_MADE_ROWS, FOUND_WIDTH], what `make_rows` found out; heads: the columns of it that are always
    asked for. numbers: all of this for the kernel.
    """

    __slots__ = ("_max_depth", "_path", "found", "heads", "made_places", "made_words", "numbers", "places", "words")

    def __init__(self, num_mask_words: int, max_changed_words: int) -> None:
        self.words: Words = np.zeros((3, num_mask_words), np.uint32)
        self.places: Places = np.zeros((2, 1 + _LISTED_PER_CHANGED_WORD * max_changed_words), np.int64)
        self.found = np.zeros((MAX_MADE_ROWS, FOUND_WIDTH), np.int64)
        self.heads = self.found[:, :HEAD_WIDTH]
        self.made_words: Words = np.zeros(MADE_WORDS_ROOM, np.uint32)
        self.made_places: Places = np.zeros(MADE_WORDS_ROOM, np.int64)
        self.numbers = np.zeros(NUM_NUMBERS, np.int64)
        self.numbers[[WORDS, NUM_WORDS]] = address_of(self.words, np.uint32), num_mask_words
        self.numbers[[PLACES, LIST_LENGTH]] = address_of(self.places, np.int64), self.places.shape[1]
        self.numbers[MAX_CHANGED] = max_changed_words
        self.numbers[FOUND] = address_of(self.found, np.int64)
        self.numbers[MADE_WORDS] = address_of(self.made_words, np.uint32)
        self.numbers[MADE_PLACES] = address_of(self.made_places, np.int64)
        self._max_depth = -1
        self.give_depth(0)

    def give_depth(self, max_depth: int) -> None:
        """Makes room for walks that go down so far."""
        if max_depth > self._max_depth:
            self._max_depth = max_depth
            self._path = np.zeros((max_depth, 4), np.int32)
            self.numbers[[PATH, MAX_DEPTH]] = address_of(self._path, np.int32), max_depth

    def made_row(self, num_changed: int, begin: int) -> tuple[Words, Places] | Words:
        """A finished row, as `finish_row` counted its words and where these begin."""
        if num_changed < 0:
            whole: Words = self.words[CONTENT]
            return whole
        return self.made_words[begin : begin + num_changed], self.made_places[begin : begin + num_changed]


@inner
def note_word(places: Places, word: int) -> None:
    """Lists a word that is about to be set."""
    num_listed = places[0] + 1
    if num_listed < len(places):
        places[num_listed] = word
        places[0] = num_listed
    else:
        forget_words(places)


@inner
def forget_words(places: Places) -> None:
    """Lists nothing any more."""
    places[0] = len(places)


@inner
def set_bits(token_ids: NDArray[np.int32], first: int, last: int, to_set: Words, places: Places) -> None:
    """Sets the bits of entries first .. last - 1."""
    if last - first > MAX_LISTED_ENTRIES:
        forget_words(places)
    for entry in range(first, last):
        token = token_ids[entry]
        word = int(token >> 5)
        if to_set[word] == 0:
            note_word(places, word)
        to_set[word] |= np.uint32(1) << np.uint32(token & 31)


@inner
def clear_bits(token_ids: NDArray[np.int32], first: int, last: int, words: Words, places: Places) -> None:
    """Clears the bits of entries first .. last - 1, also where they were set before."""
    for entry in range(first, last):
        token = token_ids[entry]
        word = int(token >> 5)
        if words[CLEARED, word] == 0:
            note_word(places[CLEARED], word)
        bit = np.uint32(1) << np.uint32(token & 31)
        words[CLEARED, word] |= bit
        words[SET, word] &= ~bit


@inner
def empty_buffer(words: Words, places: Places) -> None:
    """Forgets what is in the buffer."""
    for kind in range(2):
        if places[kind, 0] < len(places[kind]):
            for i in range(1, places[kind, 0] + 1):
                words[kind, places[kind, i]] = 0
        else:
            for word in range(len(words[kind])):
                words[kind, word] = 0
        places[kind, 0] = 0


@inner
def add_words(added: Words, added_places: Places, to_set: Words, places: Places) -> None:
    """Sets the bits of some words that are not zero."""
    for i in range(len(added)):
        word = int(added_places[i])
        if to_set[word] == 0:
            note_word(places, word)
        to_set[word] |= added[i]


@inner
def finish_row(base: Words, base_hash: int, words: Words, places: Places, buffer: Places) -> tuple[int, int]:
    """Finishes the row; returns in how many words it differs from the base, and the hash of all of it.

    buffer: the numbers of the RowBuffer. Instead of the former -1 where words[CONTENT] is the whole row.
    """
    to_set, to_clear, content = words[SET], words[CLEARED], words[CONTENT]
    changed, cleared = places[SET], places[CLEARED]
    if changed[0] + cleared[0] >= len(changed):
        for word in range(len(base)):
            content[word] = (base[word] & ~to_clear[word]) | to_set[word]
        return -1, hash_row(content)
    num_changed = 0
    for i in range(1, changed[0] + 1):
        place = int(changed[i])
        # The others come below: such a word may be listed twice, if all that was set in it was cleared meanwhile.
        if to_clear[place] == 0:
            to_set[place] &= ~base[place]
            if to_set[place] != 0:
                num_changed += 1
                changed[num_changed] = place
    for i in range(1, cleared[0] + 1):
        place = int(cleared[i])
        to_set[place] = (to_set[place] | (base[place] & ~to_clear[place])) ^ base[place]
        to_clear[place] = 0
        if to_set[place] != 0:
            num_changed += 1
            changed[num_changed] = place
    changed[0] = num_changed
    cleared[0] = 0
    if num_changed > buffer[MAX_CHANGED]:
        for word in range(len(base)):
            content[word] = base[word] ^ to_set[word]
        return -1, hash_row(content)
    begin = int(buffer[NUM_MADE_WORDS])
    made_words = uint32_at(buffer[MADE_WORDS], begin + num_changed)
    made_places = int64_at(buffer[MADE_PLACES], begin + num_changed)
    for i in range(num_changed):
        place = int(changed[i + 1])
        made_places[begin + i] = place
        made_words[begin + i] = base[place] ^ to_set[place]
    buffer[NUM_MADE_WORDS] = begin + num_changed
    return num_changed, hash_changed(base, base_hash, to_set, changed)
