"""Loops that are entered: tokens by what is left of them behind characters of a set, also behind a space.

Where a name may begin, nearly every letter leads to the same place: inside a name. What goes on from there is known
by one walk over what is left of the tokens behind their letters; only the first letters that lead elsewhere as well,
such as those of keywords, are walked for themselves. Half of all words begin with a space, so the same is
made ready for tokens that go on with the characters behind one space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.forest import FIRST_CHILD, LAST_CHILD, Forest
from infernix.matching.loop_entering import (
    BEHIND_LOOP,
    BEHIND_SPACE,
    BEHIND_SPACED_LOOP,
    ENTERS_LOOP,
    ENTERS_SPACED_LOOP,
    FROM_HERE,
    SPACE,
    SUFFIXES_FROM_HERE,
)
from infernix.matching.row_kinds import LOOP_ENTERED, PROBES
from infernix.matching.rows import BaseRow, row_of_tokens
from infernix.matching.trie import TokenTrie
from infernix.matching.ways import Way

# A loop on none of these is not found by the probes.
PROBE_ATOMS = int(np.bitwise_or.reduce(np.int64(1) << ATOM_OF_ASCII[list(PROBES)]))


class Entry:
    """What masks need where a loop on a set is entered.

    rows: the mask rows of the tokens made of the set, of those that begin with a space before, and of both. suffixes:
    what is left of the others that begin so. parts: int64 [num_parts, 3], first node of `forest`, that of all tokens,
    node after the last one, and what they are, as `loop_entering` takes them.
    """

    def __init__(
        self,
        whole: BaseRow,
        spaced: BaseRow,
        forest: Forest,
        suffixes: Forest,
        parts: NDArray[np.int64],
    ) -> None:
        self.rows = whole, spaced, BaseRow(whole.words | spaced.words)
        self.suffixes = suffixes
        self.parts = parts
        self._ways = tuple(Way(forest, parts, row, LOOP_ENTERED, suffixes=suffixes) for row in self.rows)

    def way(self, is_entered: bool, is_entered_behind_space: bool) -> Way:
        """To the row of a configuration that characters of the set lead into the loop, or a space and such."""
        return self._ways[is_entered + 2 * is_entered_behind_space - 1]

    @property
    def num_bytes(self) -> int:
        """Memory of all arrays."""
        return sum(row.num_bytes for row in self.rows) + self.suffixes.num_bytes + self.parts.nbytes


def find_entry(trie: TokenTrie, forest: Forest, atoms: int, num_tokens: int, min_share: float) -> Entry | None:
    """None where less than `min_share` of the tokens are made of the set, one that `can_be_entered`.

    forest: that of all tokens.
    """
    first_bytes = trie.flat[trie.ends[:-1]]
    has_space = (first_bytes == ord(" ")).astype(np.int64)
    prefixes = trie.prefixes(atoms, trie.ends[:-1] + has_space)
    begins_so = prefixes.num_bytes > 0
    is_whole = begins_so & (prefixes.num_bytes + has_space == np.diff(trie.ends))
    if not len(is_whole) or is_whole.mean() < min_share:
        return None
    whole, spaced = (
        BaseRow(row_of_tokens(trie.token_ids[is_whole & (has_space == wanted)], num_tokens)) for wanted in range(2)
    )
    prefixes.num_bytes[begins_so] += has_space[begins_so]
    suffixes = trie.suffixes(prefixes, np.where(begins_so & ~is_whole, has_space, -1))
    parts = [(*group, kind) for group, kind in zip(_groups(suffixes), (BEHIND_LOOP, BEHIND_SPACED_LOOP), strict=False)]
    begins_set = np.zeros(256, np.bool_)
    begins_set[:128] = (atoms >> ATOM_OF_ASCII) & 1
    is_space = np.arange(256) == ord(" ")
    num_roots = int(forest.root_begins[-1])
    parts += _ranges(forest, 0, num_roots, begins_set, ENTERS_LOOP)
    parts += _ranges(forest, 0, num_roots, ~begins_set & ~is_space, FROM_HERE)
    for first, last, _ in _ranges(forest, 0, num_roots, is_space, SPACE):
        for node in range(first, last):
            parts.append((node, node + 1, SPACE))
            children = int(forest.nodes[node, FIRST_CHILD]), int(forest.nodes[node, LAST_CHILD])
            parts += _ranges(forest, *children, begins_set, ENTERS_SPACED_LOOP)
            parts += _ranges(forest, *children, ~begins_set, BEHIND_SPACE)
    return Entry(whole, spaced, forest, suffixes, np.array(parts, np.int64).reshape(-1, 3))


def entry_of_slice(row: BaseRow, suffixes: Forest, forest: Forest, atoms: int) -> Entry:
    """The same for a set of any characters, from a slice's row and suffixes; nothing is made ready behind a space."""
    begins_set = np.zeros(256, np.bool_)
    begins_set[:128] = (atoms >> ATOM_OF_ASCII) & 1
    # A few characters beyond ASCII may be missing from the set. Their tokens have no prefix, so they come from here.
    begins_set[0xC2:0xF5] = atoms >> NUM_ASCII_ATOMS != 0
    parts = [(*group, kind) for group, kind in zip(_groups(suffixes), (SUFFIXES_FROM_HERE, BEHIND_LOOP), strict=False)]
    parts += _ranges(forest, 0, int(forest.root_begins[-1]), begins_set, ENTERS_LOOP)
    return Entry(row, BaseRow(np.zeros_like(row.words)), forest, suffixes, np.array(parts, np.int64).reshape(-1, 3))


def _groups(suffixes: Forest) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last, _ in suffixes.by_group]


def _ranges(forest: Forest, first: int, last: int, chosen: NDArray[np.bool_], kind: int) -> list[tuple[int, int, int]]:
    """Neighbouring nodes whose bytes are chosen: bool [256]."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen[forest.node_bytes[first:last]], [False]])))
    return [(first + begin, first + end, kind) for begin, end in edges.reshape(-1, 2).tolist()]
