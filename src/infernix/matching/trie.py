"""The text tokens of a vocabulary in byte order, and forests of some of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.forest import Forest, build_forest, read_character
from infernix.matching.jit import kernel
from infernix.matching.vocabulary import TokenClass, Vocabulary


@dataclass(frozen=True, slots=True)
class Prefixes:
    """How far tokens begin with characters of some atoms, by entry: bytes and characters."""

    num_bytes: NDArray[np.int64]
    num_characters: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenTrie:
    """All tokens in one trie. Entries are the tokens in byte order.

    By entry: token_ids int32; token_atoms int64, the atoms of the token, as bits; num_characters int32.
    flat[ends[e] : ends[e + 1]] are the bytes of entry e.
    """

    forest: Forest
    token_atoms: NDArray[np.int64]
    num_characters: NDArray[np.int32]
    flat: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """Token ids by entry."""
        return self.forest.token_ids

    @property
    def max_token_bytes(self) -> int:
        """Length of the longest token."""
        return self.forest.max_token_bytes

    @property
    def num_bytes(self) -> int:
        """Memory of all arrays."""
        arrays = (self.token_atoms, self.num_characters, self.flat, self.ends)
        return self.forest.num_bytes + sum(array.nbytes for array in arrays)

    def grouped(self, groups: NDArray[np.int64]) -> Forest:
        """The forest of the tokens by group, groups: int64 by entry, -1 for tokens that are left out."""
        order = np.argsort(groups, kind="stable")
        order = order[np.searchsorted(groups[order], 0) :]
        begins, lengths = self.ends[order], np.diff(self.ends)[order]
        return _forest_of_parts(self, order, begins, lengths, groups[order])

    def prefixes(self, atoms: int, begins: NDArray[np.int64] | None = None) -> Prefixes:
        """The longest beginnings of the tokens that are made of whole characters of `atoms`.

        begins: int64, by entry, where the tokens are read from instead of their beginning.
        """
        found = np.zeros((2, len(self.ends) - 1), np.int64)
        begins = self.ends[:-1].copy() if begins is None else begins
        _measure_prefixes(self.flat, begins, self.ends, ATOM_OF_ASCII, atoms, found)
        return Prefixes(found[0], found[1])

    def suffixes(self, prefixes: Prefixes, groups: NDArray[np.int64]) -> Forest:
        """The forest by group of what is left of the tokens behind their prefixes.

        groups: int64 by entry, -1 for tokens that are left out, among them all of which nothing is left.
        """
        chosen = np.flatnonzero(groups >= 0)
        begins, ends = self.ends[chosen] + prefixes.num_bytes[chosen], self.ends[chosen + 1]
        data = self.flat.tobytes()
        texts = [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        order = np.lexsort((np.array([ranks[text] for text in texts], np.int64), groups[chosen]))
        return _forest_of_parts(self, chosen[order], begins[order], (ends - begins)[order], groups[chosen[order]])


def _forest_of_parts(
    trie: TokenTrie,
    entries: NDArray[np.int64],
    begins: NDArray[np.int64],
    lengths: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Forest:
    """The forest of the parts flat[begin : begin + length] of tokens, which are in order already."""
    starts = np.cumsum(lengths) - lengths
    places = np.repeat(begins - starts, lengths) + np.arange(int(lengths.sum()))
    return build_forest(trie.flat[places], lengths, trie.token_ids[entries], groups)[0]


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
    token_ids = np.array([token for _, token in entries], np.int32)
    forest, token_atoms, num_characters = build_forest(flat, lengths, token_ids, np.zeros(len(entries), np.int64))
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return TokenTrie(forest, token_atoms, num_characters, flat, ends)


@kernel
def _measure_prefixes(
    flat: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    atom_of_ascii: NDArray[np.int64],
    atoms: int,
    found: NDArray[np.int64],
) -> None:
    """found: [2, number of entries], bytes and characters of the longest beginnings made of `atoms`."""
    for entry in range(len(ends) - 1):
        position = int(begins[entry])
        num_characters = 0
        while position < ends[entry + 1]:
            num_bytes, atom = read_character(flat, position, int(ends[entry + 1]), atom_of_ascii)
            if (atoms >> atom) & 1 == 0:
                break
            position += num_bytes
            num_characters += 1
        found[0, entry] = position - begins[entry]
        found[1, entry] = num_characters
