"""The byte trie of a vocabulary's text tokens, in preorder, with what whole subtrees consist of.

Besides its byte, every node knows the atoms (see `atoms`) that its subtree is made of, so that a walk can take or
skip a subtree without looking inside: `below` counts from behind the node, `cover` from the root.
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
DEPTH = 1  # bytes from the root, 1 for the first level
END = 2  # the node after the subtree
FIRST_TOKEN = 3  # first entry of token_ids; the next node's entry ends the range
MAX_CHARACTERS_BELOW = 4  # most characters of a token from behind the node on, an unfinished one counted
NUM_COLUMNS = 5
# Columns of `atoms`, sets of atoms as 64-bit words.
BELOW = 0
COVER = 1


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """The root has no row.

    nodes: int32 [num_nodes + 1, NUM_COLUMNS], the last row a sentinel; atoms: int64 [num_nodes + 1, 2];
    token_ids: int32, ids by node; token_atoms: int64, by entry of token_ids, the atoms of the whole token.
    """

    nodes: NDArray[np.int32]
    atoms: NDArray[np.int64]
    token_ids: NDArray[np.int32]
    token_atoms: NDArray[np.int64]
    max_token_bytes: int
    max_token_characters: int


def build_trie(vocabulary: Vocabulary) -> TokenTrie:
    """All TEXT tokens with at least one byte; tokens with equal bytes share a node."""
    entries = sorted(
        (data, token)
        for token, (data, token_class) in enumerate(
            zip(vocabulary.token_bytes, vocabulary.classes.tolist(), strict=True)
        )
        if token_class == TokenClass.TEXT and data
    )
    lengths = np.fromiter((len(data) for data, _ in entries), np.int64, len(entries))
    ends = np.zeros(len(entries) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    flat = np.frombuffer(b"".join(data for data, _ in entries) + b"\0", np.uint8).copy()
    max_token_bytes = int(lengths.max(initial=0))
    scratch = np.zeros((6, max_token_bytes + 2), np.int64)
    nodes = np.zeros((_count_nodes(flat, ends) + 1, NUM_COLUMNS), np.int32)
    atoms = np.zeros((len(nodes), 2), np.int64)
    token_atoms = np.zeros(len(entries), np.int64)
    max_characters = _fill_nodes(flat, ends, ATOM_OF_ASCII, nodes, atoms, token_atoms, scratch)
    return TokenTrie(
        nodes,
        atoms,
        np.array([token for _, token in entries], np.int32),
        token_atoms,
        max_token_bytes,
        int(max_characters),
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
def _fill_nodes(
    flat: NDArray[np.uint8],
    ends: NDArray[np.int64],
    atom_of_ascii: NDArray[np.int64],
    nodes: NDArray[np.int32],
    atoms: NDArray[np.int64],
    token_atoms: NDArray[np.int64],
    scratch: NDArray[np.int64],
) -> int:
    """Writes all rows; returns the most characters of a token.

    scratch rows: the node path, and per byte position of the current token the atoms and characters from there on.
    """
    path = scratch[0]
    suffix_atoms = scratch[1]
    suffix_characters = scratch[2]
    num_nodes = 0
    path_length = 0
    max_characters = 0
    for entry in range(len(ends) - 1):
        begin = int(ends[entry])
        length = int(ends[entry + 1]) - begin
        shared = _num_shared(flat, ends, entry)
        for depth in range(shared, path_length):
            nodes[path[depth], END] = num_nodes
        path_length = min(path_length, shared)
        for depth in range(shared, length):
            nodes[num_nodes, BYTE] = flat[begin + depth]
            nodes[num_nodes, DEPTH] = depth + 1
            nodes[num_nodes, FIRST_TOKEN] = entry
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
        max_characters = max(max_characters, int(suffix_characters[0]))
        for depth in range(length):
            node = path[depth]
            atoms[node, BELOW] |= suffix_atoms[depth + 1]
            atoms[node, COVER] |= suffix_atoms[0]
            if suffix_characters[depth + 1] > nodes[node, MAX_CHARACTERS_BELOW]:
                nodes[node, MAX_CHARACTERS_BELOW] = suffix_characters[depth + 1]
    for depth in range(path_length):
        nodes[path[depth], END] = num_nodes
    nodes[num_nodes, END] = num_nodes
    nodes[num_nodes, FIRST_TOKEN] = len(ends) - 1
    return max_characters
