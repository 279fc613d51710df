"""Parts of the vocabulary that masks take at once.

Where a configuration goes round on a set of atoms, every token made of those atoms is legal: such a *slice* is set by
one row, and only the others are walked. The others come in several tries, because a subtree can be taken or left as a
whole only where its tokens are alike: words, tokens with characters beyond ASCII, and the rest.

Where nothing else is going on beside the loop (see `loop_walk`), it does not matter what a token begins with as long as
that is made of the atoms: the others are walked without it then, which brings most of them together.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.beginnings import (
    CHARACTER_STEPS,
    Beginnings,
    TokensByLength,
    find_beginnings,
    share_of_beginnings,
)
from infernix.matching.entries import Entry, entry_of_slice, find_entry
from infernix.matching.forest import Forest
from infernix.matching.row_kinds import COUNTED_LOOP, ENDLESS_LOOP, EXACT_STRETCH, can_be_entered
from infernix.matching.rows import BaseRow, row_of_tokens
from infernix.matching.trie import Prefixes, TokenTrie
from infernix.matching.ways import Way

# A part smaller than this share of the tokens is not worth tries of the others: words, the commonest kind, are taken
# by the subtree anyway.
MIN_SHARE = 1 / 4
# The same where a loop is entered: nothing but those that begin so is kept then.
MIN_ENTRY_SHARE = 1 / 16
DEFAULT_SLICE_BYTES = 64 << 20

# Making a slice takes as long as some ten rows without it. Where another may have to go for it, it is made only for
# the request with this number, or slices that do not fit beside each other would be made again for every row.
CROWDED_REQUESTS = 10
# What helps where a loop is entered is made in the time of some ten rows as well, and not all loops are entered often.
ENTRY_REQUESTS = 4
MAX_COUNTED_REQUESTS = 1 << 12

# Instead of a number of characters: the slice by all numbers.
_COUNTED = -1
# The same place for the tokens that begin with such characters.
_BEGINNINGS = -2
_ENTRY = -3
_EXACT = -4
# What is remembered of a part that is too small.
_ENTRY_BYTES = 200

_WORD_ATOMS = int(
    np.bitwise_or.reduce(np.int64(1) << ATOM_OF_ASCII[[c for c in range(128) if chr(c).isalnum() or chr(c) == "_"]])
)
_ASCII_ATOMS = (1 << NUM_ASCII_ATOMS) - 1


def forest_by_kind(trie: TokenTrie, chosen: NDArray[np.bool_]) -> Forest:
    """Some of the tokens: words with at most one space before them; tokens that are not ASCII; all others.

    chosen: bool by entry.
    """
    space = 1 << int(ATOM_OF_ASCII[ord(" ")])
    first_bytes = np.append(trie.flat, np.uint8(0))[trie.ends[:-1]]
    second_bytes = np.append(trie.flat, np.uint8(0))[np.minimum(trie.ends[:-1] + 1, len(trie.flat))]
    one_space = (first_bytes == ord(" ")) & ((second_bytes != ord(" ")) | (np.diff(trie.ends) == 1))
    has_space = trie.token_atoms & space != 0
    # A space further on is no part of a word, but so rare in otherwise plain tokens that it does no harm here.
    words = (trie.token_atoms & ~(_WORD_ATOMS | space) == 0) & (~has_space | one_space)
    beyond = trie.token_atoms & ~_ASCII_ATOMS != 0
    kinds = np.where(words, 0, np.where(beyond, 1, 2))
    return trie.grouped(np.where(chosen, kinds, -1))


class Slice:
    """row: the mask row of the tokens in the slice.

    others: all others; suffixes: the others without the characters of the slice that they begin with, in group 0 those
    that have none, in group 1 the rest; None where the slice has a bound.

    way_past_loop: where nothing goes on but an endless loop, None without suffixes; way: where something else does.
    """

    def __init__(self, row: BaseRow, others: Forest, suffixes: Forest | None) -> None:
        self.row = row
        self.others = others
        self.suffixes = suffixes
        self.way = Way(others, others.whole, row)
        self.way_past_loop = Way(suffixes, suffixes.by_group, row, ENDLESS_LOOP) if suffixes is not None else None

    @property
    def num_bytes(self) -> int:
        """Memory of the row and the forests."""
        return self.row.num_bytes + self.others.num_bytes + (0 if self.suffixes is None else self.suffixes.num_bytes)


class CountedSlice:
    """A slice for loops near their bound, where the number of characters matters.

    suffixes: as those of a `Slice`, group g being the tokens that begin with g characters of the slice.
    """

    def __init__(self, trie: TokenTrie, prefixes: Prefixes, num_tokens: int) -> None:
        is_whole = prefixes.num_bytes == np.diff(trie.ends)
        self.suffixes = trie.suffixes(prefixes, np.where(is_whole, -1, prefixes.num_characters))
        self.tokens = TokensByLength(trie, is_whole, num_tokens)
        self._max_other_bytes = int(np.diff(trie.ends)[~is_whole].max(initial=0))

    def way(self, num_left: int) -> Way:
        """To the row where nothing goes on but a loop that has room for num_left characters."""
        longest, reach = self.tokens.max_characters, self._max_other_bytes
        return self.tokens.way(num_left, COUNTED_LOOP, self.suffixes, self.suffixes.by_group, longest, reach)

    @property
    def num_bytes(self) -> int:
        """Memory of the forest and of all rows that there can be."""
        return self.suffixes.num_bytes + self.tokens.num_bytes


class ExactSlice:
    """A slice for stretches, of which the number of characters is all that matters: its tokens by length.

    others: as those of a `Slice`.
    """

    def __init__(self, tokens: TokensByLength, others: Forest) -> None:
        self.tokens = tokens
        self.others = others

    def way(self, num_left: int) -> Way:
        """To the row where tokens of the slice can follow that have up to num_left characters, and no others of it."""
        return self.tokens.way(num_left, EXACT_STRETCH, self.others, self.others.whole)

    @property
    def num_bytes(self) -> int:
        """Memory of the forest and of all rows that there can be."""
        return self.others.num_bytes + self.tokens.num_bytes


Part = Slice | CountedSlice | ExactSlice | Beginnings | Entry


class SliceUser(Protocol):
    """Somebody who keeps slices, or ways that are made of them."""

    def forget_slices(self) -> None:
        """Lets go of all of them, so that dropped ones take no memory."""
        ...


class SliceStore:
    """Slices of one vocabulary, worked out once each and shared by all its grammars.

    Keeps up to `max_bytes` (but the last one in any case); what was not used for the longest time goes first.
    """

    def __init__(self, trie: TokenTrie, forest: Forest, num_tokens: int, max_bytes: int = DEFAULT_SLICE_BYTES) -> None:
        """forest: that of all tokens, as masks walk it."""
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._trie = trie
        self._forest = forest
        self._num_tokens = num_tokens
        self._max_characters = int(trie.num_characters.max(initial=0))
        self._slices: OrderedDict[tuple[int, int], Part | None] = OrderedDict()
        # Requests for slices that were not made.
        self._num_requests: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self.num_put_off = 0
        """How often a slice was not made because it is not in demand so far."""
        self._users: WeakSet[SliceUser] = WeakSet()

    def add_user(self, user: SliceUser) -> None:
        """Tells somebody, for as long as it lives, when slices are dropped."""
        with self._lock:
            self._users.add(user)

    def find(self, atoms: int, num_left: int) -> Slice | None:
        """The tokens made of `atoms`, up to about `num_left` characters long: to the largest step that fits.

        None where that is too few, or where the store is full and the slice is not in demand so far.
        """
        if atoms == 0 or num_left < CHARACTER_STEPS[-1]:
            return None
        if num_left >= self._max_characters:
            step = CHARACTER_STEPS[0]
        else:
            step = next(step for step in CHARACTER_STEPS if step <= num_left)
        part = self._find((atoms, step))
        assert part is None or isinstance(part, Slice)
        return part

    def find_counted(self, atoms: int) -> CountedSlice | None:
        """The tokens made of `atoms` by their number of characters; None as for `find`."""
        part = self._find((atoms, _COUNTED)) if atoms != 0 else None
        assert part is None or isinstance(part, CountedSlice)
        return part

    def find_exact(self, atoms: int) -> ExactSlice | None:
        """The tokens made of `atoms` by their number of characters, and all others; None as for `find`."""
        part = self._find((atoms, _EXACT)) if atoms != 0 else None
        assert part is None or isinstance(part, ExactSlice)
        return part

    def find_beginnings(self, atoms: int) -> Beginnings | None:
        """The tokens that begin with characters of a small set; None as for `find`, or where the set is not small."""
        part = self._find((atoms, _BEGINNINGS)) if atoms != 0 else None
        assert part is None or isinstance(part, Beginnings)
        return part

    def find_entry(self, atoms: int) -> Entry | None:
        """What masks need where a loop on `atoms` is entered; None as for `find`, and for the first requests."""
        part = self._find((atoms, _ENTRY)) if atoms != 0 else None
        assert part is None or isinstance(part, Entry)
        return part

    def _find(self, key: tuple[int, int]) -> Part | None:
        with self._lock:
            if key in self._slices:
                self._slices.move_to_end(key)
                return self._slices[key]
            if not self._is_worth_making(key):
                self.num_put_off += 1
                return None
        # Without the lock, so that nobody waits for another's slice; two threads may make the same one.
        part = self._make(*key)
        users: list[SliceUser] = []
        with self._lock:
            if key not in self._slices:
                self._slices[key] = part
                self.num_bytes += _ENTRY_BYTES if part is None else part.num_bytes
                while self.num_bytes > self.max_bytes and len(self._slices) > 1:
                    _, dropped = self._slices.popitem(last=False)
                    self.num_bytes -= _ENTRY_BYTES if dropped is None else dropped.num_bytes
                    users = list(self._users)
        for user in users:
            user.forget_slices()
        return part

    def _is_worth_making(self, key: tuple[int, int]) -> bool:
        """Counts a request for a slice that is not there."""
        # No slice takes much more than all tokens do.
        is_crowded = self.num_bytes + self._trie.num_bytes > self.max_bytes
        if not is_crowded and key[1] != _ENTRY:
            return True
        num_requests = self._num_requests.pop(key, 0) + 1
        if num_requests >= (CROWDED_REQUESTS if is_crowded else ENTRY_REQUESTS):
            return True
        if len(self._num_requests) >= MAX_COUNTED_REQUESTS:
            self._num_requests.clear()
        self._num_requests[key] = num_requests
        return False

    def prepare(self, atoms: int, is_counted: bool) -> None:
        """Works the slices of a loop out beforehand, so that no mask has to wait for them."""
        if self.find(atoms, CHARACTER_STEPS[0]) is None:
            self.find_beginnings(atoms)
        if is_counted:
            self.find_counted(atoms)

    def prepare_stretch(self, atoms: int, exact_atoms: int) -> None:
        """The same for a stretch on `atoms` with an exact one on `exact_atoms` beside it."""
        if self.find_exact(exact_atoms) is None:
            for num_characters in CHARACTER_STEPS:
                self.find(atoms, num_characters)

    def _make(self, atoms: int, max_characters: int) -> Part | None:
        trie = self._trie
        if max_characters == _ENTRY:
            if can_be_entered(atoms):
                return find_entry(trie, self._forest, atoms, self._num_tokens, MIN_ENTRY_SHARE)
            part = self.find(atoms, CHARACTER_STEPS[0])
            if part is None or part.suffixes is None:
                return None
            return entry_of_slice(part.row, part.suffixes, self._forest, atoms)
        if max_characters == _BEGINNINGS:
            if share_of_beginnings(trie, atoms) < MIN_SHARE:
                return None
            return find_beginnings(trie, self._forest, atoms, self._num_tokens)
        taken = trie.token_atoms & ~np.int64(atoms) == 0
        if max_characters > 0:
            taken &= trie.num_characters <= max_characters
        if not len(taken) or taken.mean() < MIN_SHARE:
            return None
        if max_characters == _EXACT:
            return ExactSlice(TokensByLength(trie, taken, self._num_tokens), forest_by_kind(trie, ~taken))
        if max_characters == _COUNTED:
            return CountedSlice(trie, trie.prefixes(atoms), self._num_tokens)
        suffixes = None
        if max_characters == CHARACTER_STEPS[0]:
            prefixes = trie.prefixes(atoms)
            suffixes = trie.suffixes(prefixes, np.where(taken, -1, np.minimum(prefixes.num_bytes, 1)))
        return Slice(
            BaseRow(row_of_tokens(trie.token_ids[taken], self._num_tokens)), forest_by_kind(trie, ~taken), suffixes
        )
