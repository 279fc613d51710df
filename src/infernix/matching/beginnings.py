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
from infernix.matching.row_buffer import MAX_LISTED_WORDS
from infernix.matching.rows import packed_row
from infernix.matching.trie import TokenTrie

MAX_BEGINNINGS = 1 << 12


class TokensByLength:
    """The mask rows of some tokens with up to so many characters, kept once they were asked for."""

    def __init__(self, trie: TokenTrie, chosen: NDArray[np.bool_], num_tokens: int) -> None:
        """chosen: bool by entry."""
        entries = np.flatnonzero(chosen)
        entries = entries[np.argsort(trie.num_characters[entries], kind="stable")]
        self._token_ids = trie.token_ids[entries]
        self._num_characters = trie.num_characters[entries]
        self._num_tokens = num_tokens
        self.max_characters = int(self._num_characters.max(initial=0))
        self._rows: dict[int, tuple[NDArray[np.uint32], NDArray[np.int64]]] = {}

    def row(self, num_left: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The mask row of those that have up to `num_left` characters, uint32 [num_mask_words], and an empty array.

        Where few of its words are not zero, these alone, and their places, int64.
        """
        num_left = min(num_left, self.max_characters)
        row = self._rows.get(num_left)
        if row is None:
            # The longest that there is up to this length decides.
            num_taken = int(np.searchsorted(self._num_characters, num_left, side="right"))
            longest = int(self._num_characters[num_taken - 1]) if num_taken else 0
            row = self._rows.get(longest)
            if row is None:
                row = self._rows[longest] = self._make_row(num_taken)
            self._rows[num_left] = row
        return row

    def _make_row(self, num_taken: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        legal = np.zeros(self._num_tokens, np.bool_)
        legal[self._token_ids[:num_taken]] = True
        words = packed_row(legal)
        places = np.flatnonzero(words)
        return (words[places], places) if len(places) <= MAX_LISTED_WORDS else (words, places[:0].copy())

    @property
    def num_bytes(self) -> int:
        """Memory of the arrays and of all rows that there can be."""
        num_rows = 1 + len(np.unique(self._num_characters))
        row_bytes = (self._num_tokens + 31) // 32 * 4 + 8 * MAX_LISTED_WORDS
        return self._token_ids.nbytes + self._num_characters.nbytes + num_rows * row_bytes


class Beginnings:
    """The tokens made of a small set, by length, and where the others go on behind characters of the set.

    parts: int64 [num_parts, 3], nodes of the forest of all tokens, as `row_filling` takes them.
    """

    def __init__(self, tokens: TokensByLength, parts: NDArray[np.int64]) -> None:
        self.tokens = tokens
        self.parts = parts

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
    return Beginnings(tokens, np.array(parts, np.int64).reshape(-1, 3))


def _bytes_of(atoms: int) -> NDArray[np.bool_]:
    """By byte, whether it is a character of `atoms`."""
    found = np.zeros(256, np.bool_)
    found[:128] = (atoms >> ATOM_OF_ASCII) & 1
    return found
