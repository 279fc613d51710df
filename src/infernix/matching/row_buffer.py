"""A mask row in the making, with a list of the words that were touched while these are few.

Most rows have few words that are not zero. To know which spares reading and clearing all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching.jit import inner

# More words than this are not listed.
MAX_LISTED_WORDS = 512


@dataclass(frozen=True, slots=True)
class RowBuffer:
    """words: uint32 [num_mask_words]. places: int64, the number of listed words, then where they are.

    The words that are not zero are listed, once each; or the number is that of the room in the list + 1, and none is.
    """

    words: NDArray[np.uint32]
    places: NDArray[np.int64]

    def add(self, word: int, bits: np.uint32) -> None:
        """Sets some bits of a word."""
        if self.words[word] == 0:
            num_listed = min(int(self.places[0]) + 1, len(self.places))
            self.places[0] = num_listed
            if num_listed < len(self.places):
                self.places[num_listed] = word
        self.words[word] |= bits

    def add_row(self, row: NDArray[np.uint32]) -> None:
        """Sets the bits of a whole row."""
        self.places[0] = len(self.places)
        np.bitwise_or(self.words, row, out=self.words)


@inner
def note_word(places: NDArray[np.int64], word: int) -> None:
    """Lists a word that is about to be set."""
    num_listed = places[0]
    if num_listed + 1 < len(places):
        places[num_listed + 1] = word
        places[0] = num_listed + 1
    else:
        places[0] = len(places)


@inner
def forget_words(places: NDArray[np.int64]) -> None:
    """Lists nothing any more, as words may become zero again."""
    places[0] = len(places)


@inner
def clear_row(row: NDArray[np.uint32], places: NDArray[np.int64]) -> None:
    """Sets all words to zero."""
    if places[0] < len(places):
        for i in range(1, places[0] + 1):
            row[places[i]] = 0
    else:
        for word in range(len(row)):
            row[word] = 0
    places[0] = 0


@inner
def begin_row(
    base: NDArray[np.uint32], base_places: NDArray[np.int64], row: NDArray[np.uint32], places: NDArray[np.int64]
) -> None:
    """Makes the row what a base is: nothing; a whole row; or words by their places, where there are any."""
    if len(base) == len(row) and len(base_places) == 0:
        # Not as a slice: memset and memcpy may write past the caches, where the bits are wanted next.
        for word in range(len(row)):
            row[word] = base[word]
        places[0] = len(places)
        return
    clear_row(row, places)
    for i in range(len(base_places)):
        word = base_places[i]
        note_word(places, word)
        row[word] = base[i]


@inner
def add_base(base: NDArray[np.uint32], row: NDArray[np.uint32], places: NDArray[np.int64]) -> None:
    """Sets the bits of a whole row, or of nothing."""
    for word in range(len(base)):
        row[word] |= base[word]
    if len(base) > 0:
        places[0] = len(places)
