"""Tries of tokens, level by level, with what whole subtrees consist of: what the walks behind mask rows go through.

The children of a node stand side by side, because a walk looks at all of them and mostly leaves at once; their bytes
are apart from everything else, because that is all it looks at then. Besides, every node knows the atoms (see `atoms`)
that its subtree is made of, so that a walk can take a subtree without looking inside, and the range of its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import (
    ATOM_OF_ASCII,
    BROKEN_ATOM,
    LINE_SEPARATOR_ATOM,
    NON_ASCII_ATOM,
    WIDE_SPACE_ATOM,
)
from infernix.matching.jit import inner, kernel

# Columns of `nodes`.
FIRST_CHILD = 0
LAST_CHILD = 1  # the node after the last child
FIRST_TOKEN = 2  # first entry of the subtree
NEXT_TOKEN = 3  # the entry after those that end at the node itself
LAST_TOKEN = 4  # the entry after the subtree's
MAX_CHARACTERS_BELOW = 5  # most characters of a token from behind the node on, an unfinished one counted
ATOMS_BELOW = 6  # the atoms of the subtree behind the node, as bits: two columns, the low word first
NUM_COLUMNS = 8
# Columns of the rows in preorder from which they are made.
_BYTE = 0
_DEPTH = 1  # bytes from the root, 1 for the first level
_END = 2  # the node after the subtree
_FIRST_TOKEN = 3
_MAX_CHARACTERS_BELOW = 4
_NUM_CHILDREN = 5
_NUM_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class Forest:
    """A trie for each of several groups of tokens. Entries are the tokens by group, in byte order.

    node_bytes: uint8 [num_nodes]; nodes: int32 [num_nodes, NUM_COLUMNS]. The roots have no rows; the children of group
    g's are the nodes root_begins[g] .. root_begins[g + 1] - 1. token_ids: int32, by entry.
    whole and by_group: int64 [n, 3], all roots in one part and in one for each group, as `row_filling` takes them.
    """

    node_bytes: NDArray[np.uint8]
    nodes: NDArray[np.int32]
    root_begins: NDArray[np.int64]
    token_ids: NDArray[np.int32]
    whole: NDArray[np.int64]
    by_group: NDArray[np.int64]
    max_token_bytes: int

    @property
    def num_bytes(self) -> int:
        """Memory of all arrays."""
        small = self.root_begins.nbytes + self.whole.nbytes + self.by_group.nbytes
        return self.node_bytes.nbytes + self.nodes.nbytes + self.token_ids.nbytes + small


def build_forest(
    flat: NDArray[np.uint8], lengths: NDArray[np.int64], token_ids: NDArray[np.int32], groups: NDArray[np.int64]
) -> tuple[Forest, NDArray[np.int64], NDArray[np.int32]]:
    """The forest of entries whose bytes follow each other in `flat`, in ascending order of (group, bytes).

    Beside it, by entry, the atoms that it is made of (as bits) and the number of its characters. Groups are numbered
    from 0; entries of one group with equal bytes share a node.
    """
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    max_token_bytes = int(lengths.max(initial=0))
    scratch = np.zeros((3, max_token_bytes + 2), np.int64)
    rows = np.zeros((_count_nodes(flat, ends, groups) + 1, _NUM_COLUMNS), np.int32)
    atoms_below = np.zeros(len(rows), np.int64)
    token_atoms = np.zeros(len(lengths), np.int64)
    num_characters = np.zeros(len(lengths), np.int32)
    _fill_rows(flat, ends, groups, ATOM_OF_ASCII, rows, atoms_below, token_atoms, num_characters, scratch)
    # Preorder keeps a node's children in order; a stable sort by depth puts them side by side.
    depths = rows[:-1, _DEPTH]
    # Sixteen bits are sorted several times faster than thirty-two.
    order = np.argsort(depths.astype(np.uint16) if max_token_bytes < 1 << 16 else depths, kind="stable")
    num_roots = int((depths == 1).sum())
    nodes = np.zeros((len(order), NUM_COLUMNS), np.int32)
    nodes[:, LAST_CHILD] = num_roots + np.cumsum(rows[order, _NUM_CHILDREN])
    nodes[:, FIRST_CHILD] = nodes[:, LAST_CHILD] - rows[order, _NUM_CHILDREN]
    nodes[:, FIRST_TOKEN] = rows[order, _FIRST_TOKEN]
    nodes[:, NEXT_TOKEN] = rows[order + 1, _FIRST_TOKEN]
    nodes[:, LAST_TOKEN] = rows[rows[order, _END], _FIRST_TOKEN]
    nodes[:, MAX_CHARACTERS_BELOW] = rows[order, _MAX_CHARACTERS_BELOW]
    nodes[:, ATOMS_BELOW] = (atoms_below[order] & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    nodes[:, ATOMS_BELOW + 1] = atoms_below[order] >> 32
    groups_of_roots = groups[nodes[:num_roots, FIRST_TOKEN]]
    num_groups = int(groups.max(initial=0)) + 1
    root_begins = np.searchsorted(groups_of_roots, np.arange(num_groups + 1)).astype(np.int64)
    whole = np.array([[0, num_roots, 0]], np.int64)
    by_group = np.stack([root_begins[:-1], root_begins[1:], np.arange(num_groups)], axis=1)
    node_bytes = rows[order, _BYTE].astype(np.uint8)
    forest = Forest(node_bytes, nodes, root_begins, token_ids, whole, by_group, max_token_bytes)
    return forest, token_atoms, num_characters


@inner
def _num_shared(flat: NDArray[np.uint8], ends: NDArray[np.int64], groups: NDArray[np.int64], entry: int) -> int:
    """Bytes that an entry has in common with the one before it in its group."""
    if entry == 0 or groups[entry] != groups[entry - 1]:
        return 0
    begin = ends[entry]
    previous = ends[entry - 1]
    longest = min(begin - previous, ends[entry + 1] - begin)
    shared = 0
    while shared < longest and flat[previous + shared] == flat[begin + shared]:
        shared += 1
    return int(shared)


@kernel
def _count_nodes(flat: NDArray[np.uint8], ends: NDArray[np.int64], groups: NDArray[np.int64]) -> int:
    num_nodes = 0
    for entry in range(len(ends) - 1):
        num_nodes += ends[entry + 1] - ends[entry] - _num_shared(flat, ends, groups, entry)
    return int(num_nodes)


@inner
def read_character(flat: NDArray[np.uint8], begin: int, end: int, atom_of_ascii: NDArray[np.int64]) -> tuple[int, int]:
    """Length in bytes and atom of the character at `begin`, up to `end` (Unicode Standard, table 3-7)."""
    lead = int(flat[begin])
    if lead < 0x80:
        return 1, int(atom_of_ascii[lead])
    low, high, length = 0x80, 0xBF, 0
    if 0xC2 <= lead <= 0xDF:
        length = 2
    elif 0xE0 <= lead <= 0xEF:
        length = 3
        if lead == 0xE0:
            low = 0xA0
        elif lead == 0xED:
            high = 0x9F
    elif 0xF0 <= lead <= 0xF4:
        length = 4
        if lead == 0xF0:
            low = 0x90
        elif lead == 0xF4:
            high = 0x8F
    else:
        return 1, BROKEN_ATOM
    code = lead & (0xFF >> (length + 1))
    for offset in range(1, length):
        if begin + offset == end:
            return offset, NON_ASCII_ATOM
        byte = int(flat[begin + offset])
        if byte < low or byte > high:
            return 1, BROKEN_ATOM
        low, high = 0x80, 0xBF
        code = (code << 6) | (byte & 0x3F)
    if code == 0x2028 or code == 0x2029:
        return length, LINE_SEPARATOR_ATOM
    if (
        code == 0xA0
        or code == 0x1680
        or 0x2000 <= code <= 0x200A
        or code == 0x202F
        or code == 0x205F
        or code == 0x3000
        or code == 0xFEFF
    ):
        return length, WIDE_SPACE_ATOM
    return length, NON_ASCII_ATOM


@kernel
def _fill_rows(
    flat: NDArray[np.uint8],
    ends: NDArray[np.int64],
    groups: NDArray[np.int64],
    atom_of_ascii: NDArray[np.int64],
    rows: NDArray[np.int32],
    atoms_below: NDArray[np.int64],
    token_atoms: NDArray[np.int64],
    num_characters: NDArray[np.int32],
    scratch: NDArray[np.int64],
) -> None:
    """Writes all rows in preorder.

    scratch rows: the node path, and per byte position of the current token the atoms and characters from there on.
    """
    path = scratch[0]
    suffix_atoms = scratch[1]
    suffix_characters = scratch[2]
    num_nodes = 0
    path_length = 0
    for entry in range(len(ends) - 1):
        begin = int(ends[entry])
        length = int(ends[entry + 1]) - begin
        shared = _num_shared(flat, ends, groups, entry)
        for depth in range(shared, path_length):
            rows[path[depth], _END] = num_nodes
        path_length = min(path_length, shared)
        for depth in range(shared, length):
            rows[num_nodes, _BYTE] = flat[begin + depth]
            rows[num_nodes, _DEPTH] = depth + 1
            rows[num_nodes, _FIRST_TOKEN] = entry
            if depth > 0:
                rows[path[depth - 1], _NUM_CHILDREN] += 1
            path[depth] = num_nodes
            num_nodes += 1
        path_length = length
        for position in range(length + 1):
            suffix_atoms[position] = 1 << BROKEN_ATOM
            suffix_characters[position] = 0
        position = 0
        while position < length:
            num_bytes, atom = read_character(flat, begin + position, begin + length, atom_of_ascii)
            suffix_atoms[position] = 1 << atom
            # The length of the character, until the sums below replace it.
            suffix_characters[position] = -num_bytes
            position += num_bytes
        suffix_atoms[length] = 0
        for position in range(length - 1, -1, -1):
            if suffix_characters[position] < 0:
                following = position - suffix_characters[position]
                suffix_atoms[position] |= suffix_atoms[following]
                suffix_characters[position] = 1 + suffix_characters[following]
        token_atoms[entry] = suffix_atoms[0]
        num_characters[entry] = suffix_characters[0]
        for depth in range(length):
            node = path[depth]
            atoms_below[node] |= suffix_atoms[depth + 1]
            if suffix_characters[depth + 1] > rows[node, _MAX_CHARACTERS_BELOW]:
                rows[node, _MAX_CHARACTERS_BELOW] = suffix_characters[depth + 1]
    for depth in range(path_length):
        rows[path[depth], _END] = num_nodes
    rows[num_nodes, _END] = num_nodes
    rows[num_nodes, _FIRST_TOKEN] = len(ends) - 1
