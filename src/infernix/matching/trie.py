"""The byte trie of a vocabulary's text tokens, level by level, with what whole subtrees consist of.

The children of a node stand side by side, because a walk looks at all of them and mostly leaves at once. Besides its
byte, every node knows the atoms (see `atoms`) that its subtree is made of, so that a walk can take a subtree without
looking inside, and the range of its tokens.
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
from infernix.matching.vocabulary import TokenClass, Vocabulary

# Columns of `nodes`.
BYTE = 0
FIRST_CHILD = 1  # the following node's first child ends the children
FIRST_TOKEN = 2  # first entry of the subtree
NEXT_TOKEN = 3  # the entry after those that end at the node itself
LAST_TOKEN = 4  # the entry after the subtree's
MAX_CHARACTERS_BELOW = 5  # most characters of a token from behind the node on, an unfinished one counted
NUM_COLUMNS = 6
# Columns of the rows in preorder from which they are made.
_BYTE = 0
_DEPTH = 1  # bytes from the root, 1 for the first level
_END = 2  # the node after the subtree
_FIRST_TOKEN = 3
_MAX_CHARACTERS_BELOW = 4
_NUM_CHILDREN = 5


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """The root has no row; its children are nodes 0 .. num_roots - 1. Entries are the tokens in byte order.

    nodes: int32 [num_nodes + 1, NUM_COLUMNS], the last row a sentinel; atoms_below: int64 [num_nodes], the atoms of
    the subtree behind the node, as bits. By entry: token_ids int32; token_atoms int64, the atoms of the token;
    num_characters int32. flat[ends[e] : ends[e + 1]] are the bytes of entry e.
    """

    nodes: NDArray[np.int32]
    num_roots: int
    atoms_below: NDArray[np.int64]
    token_ids: NDArray[np.int32]
    token_atoms: NDArray[np.int64]
    num_characters: NDArray[np.int32]
    flat: NDArray[np.uint8]
    ends: NDArray[np.int64]
    max_token_bytes: int

    @property
    def num_bytes(self) -> int:
        """Memory of all arrays."""
        arrays = (self.nodes, self.atoms_below, self.token_ids, self.token_atoms, self.num_characters, self.flat)
        return sum(array.nbytes for array in arrays) + self.ends.nbytes

    def only(self, entries: NDArray[np.bool_]) -> TokenTrie:
        """The trie of some of the tokens."""
        lengths = np.diff(self.ends)
        return _trie_of(self.flat[np.repeat(entries, lengths)], lengths[entries], self.token_ids[entries])


def build_trie(vocabulary: Vocabulary) -> TokenTrie:
    """All TEXT tokens with at least one byte; tokens with equal bytes share a node."""
    entries = sorted(
        (data, token)
        for token, (data, token_class) in enumerate(
            zip(vocabulary.token_bytes, vocabulary.classes.tolist(), strict=True)
        )
        if token_class == TokenClass.TEXT and data
    )
    # A copy, because a read-only buffer is another type to a compiled kernel.
    flat = np.frombuffer(b"".join(data for data, _ in entries), np.uint8).copy()
    lengths = np.fromiter((len(data) for data, _ in entries), np.int64, len(entries))
    return _trie_of(flat, lengths, np.array([token for _, token in entries], np.int32))


def _trie_of(flat: NDArray[np.uint8], lengths: NDArray[np.int64], token_ids: NDArray[np.int32]) -> TokenTrie:
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    max_token_bytes = int(lengths.max(initial=0))
    scratch = np.zeros((3, max_token_bytes + 2), np.int64)
    rows = np.zeros((_count_nodes(flat, ends) + 1, NUM_COLUMNS), np.int32)
    atoms_below = np.zeros(len(rows), np.int64)
    token_atoms = np.zeros(len(lengths), np.int64)
    num_characters = np.zeros(len(lengths), np.int32)
    _fill_rows(flat, ends, ATOM_OF_ASCII, rows, atoms_below, token_atoms, num_characters, scratch)
    # Preorder keeps a node's children in order; a stable sort by depth puts them side by side.
    depths = rows[:-1, _DEPTH]
    # Sixteen bits are sorted several times faster than thirty-two.
    order = np.argsort(depths.astype(np.uint16) if max_token_bytes < 1 << 16 else depths, kind="stable")
    num_roots = int((rows[:-1, _DEPTH] == 1).sum())
    nodes = np.zeros_like(rows)
    nodes[:-1, BYTE] = rows[order, _BYTE]
    nodes[0, FIRST_CHILD] = num_roots
    nodes[1:, FIRST_CHILD] = num_roots + np.cumsum(rows[order, _NUM_CHILDREN])
    nodes[:-1, FIRST_TOKEN] = rows[order, _FIRST_TOKEN]
    nodes[:-1, NEXT_TOKEN] = rows[order + 1, _FIRST_TOKEN]
    nodes[:-1, LAST_TOKEN] = rows[rows[order, _END], _FIRST_TOKEN]
    nodes[:-1, MAX_CHARACTERS_BELOW] = rows[order, _MAX_CHARACTERS_BELOW]
    return TokenTrie(
        nodes,
        num_roots,
        atoms_below[order],
        token_ids,
        token_atoms,
        num_characters,
        flat,
        ends,
        max_token_bytes,
    )


@inner
def _num_shared(flat: NDArray[np.uint8], ends: NDArray[np.int64], entry: int) -> int:
    """Bytes that an entry has in common with the one before it."""
    if entry == 0:
        return 0
    begin = ends[entry]
    previous = ends[entry - 1]
    longest = min(begin - previous, ends[entry + 1] - begin)
    shared = 0
    while shared < longest and flat[previous + shared] == flat[begin + shared]:
        shared += 1
    return int(shared)


@kernel
def _count_nodes(flat: NDArray[np.uint8], ends: NDArray[np.int64]) -> int:
    num_nodes = 0
    for entry in range(len(ends) - 1):
        num_nodes += ends[entry + 1] - ends[entry] - _num_shared(flat, ends, entry)
    return int(num_nodes)


@inner
def _read_character(flat: NDArray[np.uint8], begin: int, end: int, atom_of_ascii: NDArray[np.int64]) -> tuple[int, int]:
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
        shared = _num_shared(flat, ends, entry)
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
            num_bytes, atom = _read_character(flat, begin + position, begin + length, atom_of_ascii)
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
