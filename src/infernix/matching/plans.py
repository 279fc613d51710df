"""Plans: what the kernel behind mask rows is given of the vocabulary, and which way it takes to which kind of row.

One array of numbers for each table of configurations, with the addresses of everything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.addresses import address_of
from infernix.matching.jit import inner
from infernix.matching.ways import WAY_WIDTH, Way

Plan = NDArray[np.int64]

# What the array begins with: addresses and lengths.
TEXT_BYTES = 0
NUM_TEXT_BYTES = 1
TEXT_BEGINS = 2  # by token, and the end; a token that is no text has no bytes
NUM_TOKENS = 3
END_WORDS = 4  # of the row of the EOS tokens, those that are not zero
END_PLACES = 5
NUM_END_WORDS = 6
# The tokens that can follow beside those of a counted loop, in a configuration far from its bound: that or DEAD, and in
# how many words.
OTHERS_OF = 7
NUM_OTHERS = 8
REMEMBERS_OTHERS = 9
HAS_WORDS = 10  # whether some loop is on words
# Where they are, and the words.
OTHERS = 11
MAX_OTHERS = 512
# Open addressing: key + 1 or 0, and the way.
CHOICES = OTHERS + 2 * MAX_OTHERS
NUM_CHOICES = 256
WAYS = CHOICES + 2 * NUM_CHOICES
MAX_WAYS = 64
PLAN_LENGTH = WAYS + MAX_WAYS * WAY_WIDTH

NOTHING_KNOWN = 0  # the kind of rows without a loop or run, where no loop can be entered
NO_WAY = -1
IS_ENTERED = -2  # instead of a way: that depends on the loops that the configuration enters
_MIX = 0x1B873593CC9E2D51
_MASK63 = 0x7FFFFFFFFFFFFFFF
_CHOICE_SHIFT = 55  # leaves 8 bits for NUM_CHOICES


def _first_slot(key: int) -> int:
    """Where the search for a key begins."""
    return ((key * _MIX) & _MASK63) >> _CHOICE_SHIFT


_first_slot_in_kernel = inner(_first_slot)


@inner
def chosen_way(plan: Plan, key: int) -> int:
    """The number of the way that was chosen for a kind of row, or NO_WAY."""
    slot = _first_slot_in_kernel(key)
    while plan[CHOICES + 2 * slot] != 0:
        if plan[CHOICES + 2 * slot] == key + 1:
            return int(plan[CHOICES + 2 * slot + 1])
        slot = (slot + 1) % NUM_CHOICES
    return NO_WAY


class VocabularyPlan:
    """What all plans of a vocabulary begin with."""

    def __init__(
        self,
        text_bytes: NDArray[np.uint8],
        text_begins: NDArray[np.int64],
        end: tuple[NDArray[np.uint32], NDArray[np.int64]],
        whole: Way,
    ) -> None:
        """end: the words of the row of the EOS tokens that are not zero, and their places.

        whole: the way by which all tokens are walked, that to rows of which nothing else is known.
        """
        self.numbers: Plan = np.zeros(PLAN_LENGTH, np.int64)
        header = self.numbers
        header[TEXT_BYTES], header[NUM_TEXT_BYTES] = address_of(text_bytes, np.uint8), len(text_bytes)
        header[TEXT_BEGINS], header[NUM_TOKENS] = address_of(text_begins, np.int64), len(text_begins) - 1
        header[END_WORDS], header[END_PLACES] = address_of(end[0], np.uint32), address_of(end[1], np.int64)
        header[NUM_END_WORDS] = len(end[0])
        header[WAYS : WAYS + WAY_WIDTH] = whole.numbers
        header[CHOICES] = NOTHING_KNOWN + 1
        self.whole = whole
        self._kept = (text_bytes, text_begins, end)


class Plans:
    """Ways by number, and the number of the way by kind of row."""

    def __init__(self, vocabulary: VocabularyPlan, *, has_words: bool, counts: bool, has_terminals: bool) -> None:
        """has_words, counts: whether some loop is on words, and whether some is counted.

        has_terminals: whether there are token terminals. No way is to be chosen then, because rows need more than ways;
        else rows that differ in nothing but the tokens of a counted loop are made of each other.
        """
        self.numbers: Plan = vocabulary.numbers.copy()
        self.numbers[HAS_WORDS] = has_words
        self.numbers[REMEMBERS_OTHERS] = counts and not has_terminals
        self.max_depth = vocabulary.whole.max_depth
        """How far walks go down."""
        self._vocabulary = vocabulary
        self._ways: list[Way] = [vocabulary.whole]
        self._numbers: dict[int, int] = {id(vocabulary.whole): 0}
        # By key, where it stands among the choices.
        self._slots: dict[int, int] = {NOTHING_KNOWN: 0}
        self._has_terminals = has_terminals
        if has_terminals:
            self.numbers[CHOICES:WAYS] = 0

    def way(self, number: int) -> Way:
        """A way by its number."""
        return self._ways[number]

    def number_of(self, way: Way) -> int:
        """The number of a way, valid until another way is added."""
        number = self._numbers.get(id(way))
        if number is None:
            if len(self._ways) == MAX_WAYS:
                self.forget()
            number = self._numbers[id(way)] = len(self._ways)
            self._ways.append(way)
            begin = WAYS + WAY_WIDTH * number
            self.numbers[begin : begin + WAY_WIDTH] = way.numbers
            self.max_depth = max(self.max_depth, way.max_depth)
        return number

    def choose(self, key: int, way: Way | None) -> None:
        """Takes a way for all rows of a kind, or IS_ENTERED for None; key: as `row_making` makes it."""
        number = IS_ENTERED if way is None else self.number_of(way)
        slot = self._slots.get(key)
        if slot is None:
            if 2 * len(self._slots) >= NUM_CHOICES:
                self._forget_choices()
            slot = _first_slot(key)
            while slot in self._slots.values():
                slot = (slot + 1) % NUM_CHOICES
            self._slots[key] = slot
            self.numbers[CHOICES + 2 * slot] = key + 1
        self.numbers[CHOICES + 2 * slot + 1] = number

    def forget(self) -> None:
        """Lets go of all ways but the first, as when their slices are dropped."""
        del self._ways[1:]
        self._numbers = {id(self._ways[0]): 0}
        self._forget_choices()

    def _forget_choices(self) -> None:
        if self._has_terminals:
            return
        self.numbers[CHOICES:WAYS] = self._vocabulary.numbers[CHOICES:WAYS]
        self._slots = {NOTHING_KNOWN: 0}
