"""Tokens by what they begin with: those that begin with characters of a small set, such as white space.

Nearly half of a vocabulary begins with a space, and hundreds of tokens are nothing but white space. Where a run or a
loop goes on such characters alone, the latter are set by one row, and the others are walked from behind their
beginning. Few beginnings are made of a small set, so they are places in the forest of all tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.forest import FIRST_CHILD, LAST_CHILD, Forest
from infernix.matching.rows import BaseRow, row_of_tokens
from infernix.matching.trie import TokenTrie
from infernix.matching.ways import TokensUpTo, Way

MAX_BEGINNINGS = 1 << 12
# More tokens than these are not left out one by one.
MAX_LEFT_OUT = 128
# The numbers of characters that tokens are taken up to where it matters how long they are, the largest first.
CHARACTER_STEPS = (1 << 30, 32, 8)


class TokensByLength:
    """The mask rows of some tokens with up to so many characters, and ways that begin with them, kept once made."""

    def __init__(self, trie: TokenTrie, chosen: NDArray[np.bool_], num_tokens: int) -> None:
        """chosen: bool by entry."""
        entries = np.flatnonzero(chosen)
        entries = entries[np.argsort(trie.num_characters[entries], kind="stable")]
        num_characters = trie.num_characters[entries]
        self._by_length = trie.token_ids[entries]
        self._num_tokens = num_tokens
        self.max_characters = int(num_characters.max(initial=0))
        counts = np.bincount(num_characters, minlength=self.max_characters + 1)
        self._num_by_length: NDArray[np.int64] = np.cumsum(counts, dtype=np.int64)
        self._kept: dict[int, TokensUpTo] = {}
        self._ways: dict[tuple[int, int], Way] = {}

    def up_to(self, num_left: int) -> TokensUpTo:
        """Those with up to `num_left` characters; or with more, where few of these are too long, to be left out."""
        num_left = min(num_left, self.max_characters)
        longest = next((step for step in reversed(CHARACTER_STEPS) if step >= num_left), num_left)
        longest = min(longest, self.max_characters)
        if self._num_by_length[longest] - self._num_by_length[num_left] > MAX_LEFT_OUT:
            longest = num_left
        # The longest that there is up to this length.
        longest = int(np.searchsorted(self._num_by_length, self._num_by_length[longest]))
        tokens = self._kept.get(longest)
        if tokens is None:
            row = BaseRow(row_of_tokens(self._by_length[: self._num_by_length[longest]], self._num_tokens))
            fewest = self._num_by_length[longest] - MAX_LEFT_OUT
            min_left = int(np.searchsorted(self._num_by_length, fewest)) if fewest > 0 else 0
            tokens = TokensUpTo(row, min_left, longest, self._by_length, self._num_by_length)
            self._kept[longest] = tokens
        return tokens

    def way(
        self,
        num_left: int,
        kind: int,
        forest: Forest,
        parts: NDArray[np.int64],
        max_characters: int = 0,
        reach: int = 0,
    ) -> Way:
        """To the row of those with up to `num_left` characters and of what can follow besides; see `Way`.

        The other arguments depend on `kind` alone.
        """
        tokens = self.up_to(num_left)
        key = kind, tokens.max_characters
        way = self._ways.get(key)
        if way is None:
            way = self._ways[key] = Way(forest, parts, tokens.row, kind, max_characters, reach, tokens=tokens)
        return way

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays and of all rows that there can be."""
        row_bytes = (self._num_tokens + 31) // 32 * 4
        num_rows = 1 + np.count_nonzero(np.diff(self._num_by_length))
        return self._by_length.nbytes + self._num_by_length.nbytes + int(num_rows) * row_bytes


class Beginnings:
    """The tokens made of a small set, by length, and where the others go on behind characters of the set.

    parts: int64 [num_parts, 3], nodes of `forest`, that of all tokens, as `row_filling` takes them.
    """

    def __init__(self, tokens: TokensByLength, forest: Forest, parts: NDArray[np.int64]) -> None:
        self.tokens = tokens
        self.parts = parts
        self._forest = forest

    def way(self, kind: int, num_left: int) -> Way:
        """To the row of a configuration that has room for num_left characters of the set; kind: RUN or ENDLESS_LOOP."""
        return self.tokens.way(num_left, kind, self._forest, self.parts)

    @property
    def num_bytes(self) -> int:
        """Memory of all arrays."""
        return self.tokens.num_bytes + self.parts.nbytes


def share_of_beginnings(trie: TokenTrie, atoms: int) -> float:
    """The share of the tokens that begin with a character of `atoms`; 0 where not all of those are ASCII."""
    if atoms >> NUM_ASCII_ATOMS or not len(trie.token_ids):
        return 0.0
    return float(_bytes_of(atoms)[trie.flat[trie.ends[:-1]]].mean())


def find_beginnings(trie: TokenTrie, forest: Forest, atoms: int, num_tokens: int) -> Beginnings | None:
    """None where there are too many; `atoms` are ASCII, `forest` holds all tokens."""
    in_set = _bytes_of(atoms)
    parts: list[tuple[int, int, int]] = []
    pending = [(0, int(forest.root_begins[-1]), 0)]
    for first, last, position in pending:
        places = np.flatnonzero(in_set[forest.node_bytes[first:last]]) + first
        for begin, end in zip([first, *(places + 1).tolist()], [*places.tolist(), last], strict=True):
            if begin < end:
                parts.append((begin, end, position))
        for children in forest.nodes[places][:, [FIRST_CHILD, LAST_CHILD]].tolist():
            if children[0] < children[1]:
                pending.append((children[0], children[1], position + 1))
        if len(pending) > MAX_BEGINNINGS:
            return None
    tokens = TokensByLength(trie, trie.token_atoms & ~np.int64(atoms) == 0, num_tokens)
    return Beginnings(tokens, forest, np.array(parts, np.int64).reshape(-1, 3))


def _bytes_of(atoms: int) -> NDArray[np.bool_]:
    """By byte, whether it is a character of `atoms`."""
    found = np.zeros(256, np.bool_)
    found[:128] = (atoms >> ATOM_OF_ASCII) & 1
    return found
