"""Parts of the vocabulary that masks take at once.

Where a configuration goes round on a set of atoms, every token made of those atoms is legal: such a *slice* is set by
one row, and only the others are walked. The others come as several tries, because a subtree can be taken or left as a
whole only where its tokens are alike: words, tokens with characters beyond ASCII, and the rest.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.rows import packed_row
from infernix.matching.trie import TokenTrie

# A part smaller than this share of the tokens is not worth tries of the others: words, the commonest kind, are taken
# by the subtree anyway.
MIN_SHARE = 1 / 4
DEFAULT_SLICE_BYTES = 64 << 20
# Where iterations are counted, tokens of up to so many characters are taken: the largest figure that fits.
CHARACTER_STEPS = (1 << 30, 32, 8)

# Making a slice takes as long as some ten rows without it. Where another may have to go for it, it is made only for
# the request with this number, or slices that do not fit beside each other would be made again for every row.
CROWDED_REQUESTS = 10
MAX_COUNTED_REQUESTS = 1 << 12

# What is remembered of a part that is too small.
_ENTRY_BYTES = 200

_WORD_ATOMS = int(
    np.bitwise_or.reduce(np.int64(1) << ATOM_OF_ASCII[[c for c in range(128) if chr(c).isalnum() or chr(c) == "_"]])
)
_ASCII_ATOMS = (1 << NUM_ASCII_ATOMS) - 1


def split_by_kind(trie: TokenTrie) -> tuple[TokenTrie, ...]:
    """Words with at most one space before them; tokens that are not ASCII; all others."""
    space = 1 << int(ATOM_OF_ASCII[ord(" ")])
    first_bytes = np.append(trie.flat, np.uint8(0))[trie.ends[:-1]]
    second_bytes = np.append(trie.flat, np.uint8(0))[np.minimum(trie.ends[:-1] + 1, len(trie.flat))]
    one_space = (first_bytes == ord(" ")) & ((second_bytes != ord(" ")) | (np.diff(trie.ends) == 1))
    has_space = trie.token_atoms & space != 0
    # A space further on is no part of a word, but so rare in otherwise plain tokens that it does no harm here.
    words = (trie.token_atoms & ~(_WORD_ATOMS | space) == 0) & (~has_space | one_space)
    beyond = trie.token_atoms & ~_ASCII_ATOMS != 0
    parts = (words, beyond, ~words & ~beyond)
    return tuple(trie.only(part) for part in parts if part.any())


@dataclass(frozen=True, slots=True)
class Slice:
    """row: uint32, the mask row of the tokens in the slice; others: the tries of all others."""

    row: NDArray[np.uint32]
    others: tuple[TokenTrie, ...]

    @property
    def num_bytes(self) -> int:
        """Memory of the row and the tries."""
        return self.row.nbytes + sum(trie.num_bytes for trie in self.others)


class SliceStore:
    """Slices of one vocabulary, worked out once each and shared by all its grammars.

    Keeps up to `max_bytes` (but the last one in any case); what was not used for the longest time goes first.
    """

    def __init__(self, trie: TokenTrie, num_tokens: int, max_bytes: int = DEFAULT_SLICE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._trie = trie
        self._num_tokens = num_tokens
        self._max_characters = int(trie.num_characters.max(initial=0))
        self._slices: OrderedDict[tuple[int, int], Slice | None] = OrderedDict()
        # Requests for slices that were not made.
        self._num_requests: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()

    def find(self, atoms: int, num_left: int) -> Slice | None:
        """The tokens made of `atoms`, up to about `num_left` characters long.

        None where that is too few, or where the store is full and the slice is not in demand so far.
        """
        if atoms == 0 or num_left < CHARACTER_STEPS[-1]:
            return None
        if num_left >= self._max_characters:
            step = CHARACTER_STEPS[0]
        else:
            step = next(step for step in CHARACTER_STEPS if step <= num_left)
        key = (atoms, step)
        with self._lock:
            if key in self._slices:
                self._slices.move_to_end(key)
                return self._slices[key]
            if not self._is_worth_making(key):
                return None
        # Without the lock, so that nobody waits for another's slice; two threads may make the same one.
        part = self._make(atoms, step)
        with self._lock:
            if key not in self._slices:
                self._slices[key] = part
                self.num_bytes += _ENTRY_BYTES if part is None else part.num_bytes
                while self.num_bytes > self.max_bytes and len(self._slices) > 1:
                    _, dropped = self._slices.popitem(last=False)
                    self.num_bytes -= _ENTRY_BYTES if dropped is None else dropped.num_bytes
        return part

    def _is_worth_making(self, key: tuple[int, int]) -> bool:
        """Counts a request for a slice that is not there."""
        # No slice takes much more than all tokens do.
        if self.num_bytes + self._trie.num_bytes <= self.max_bytes:
            return True
        num_requests = self._num_requests.pop(key, 0) + 1
        if num_requests >= CROWDED_REQUESTS:
            return True
        if len(self._num_requests) >= MAX_COUNTED_REQUESTS:
            self._num_requests.clear()
        self._num_requests[key] = num_requests
        return False

    def prepare(self, atoms: int) -> None:
        """Works the slice of a loop without bound out beforehand, so that no mask has to wait for it."""
        self.find(atoms, CHARACTER_STEPS[0])

    def _make(self, atoms: int, max_characters: int) -> Slice | None:
        trie = self._trie
        taken = (trie.token_atoms & ~np.int64(atoms) == 0) & (trie.num_characters <= max_characters)
        if not len(taken) or taken.mean() < MIN_SHARE:
            return None
        legal = np.zeros(self._num_tokens, np.bool_)
        legal[trie.token_ids[taken]] = True
        return Slice(packed_row(legal), split_by_kind(trie.only(~taken)))
