"""Packed mask rows: which tokens are legal after a configuration.

A row has ceil(V / 32) words; bit b of word w is token 32 * w + b, and bits past the vocabulary are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.matching.forest import Forest
from infernix.matching.plans import VocabularyPlan
from infernix.matching.rows import DEFAULT_ROW_BYTES, ListedWords, RowStore, listed_words, packed_row
from infernix.matching.slices import DEFAULT_SLICE_BYTES, SliceStore, forest_by_kind
from infernix.matching.trie import TokenTrie, build_trie
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.matching.ways import Way

MAX_TERMINAL_BYTES = 1 << 26


class VocabularyIndex:
    """What masks need of a vocabulary, worked out once and shared by all its grammars."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        row_bytes: int = DEFAULT_ROW_BYTES,
        slice_bytes: int = DEFAULT_SLICE_BYTES,
    ) -> None:
        """row_bytes and slice_bytes bound what the two stores keep."""
        self.vocabulary = vocabulary
        self.rows = RowStore(vocabulary.num_mask_words, row_bytes)
        self._slice_bytes = slice_bytes

    @cached_property
    def trie(self) -> TokenTrie:
        """The byte trie of the text tokens."""
        return build_trie(self.vocabulary)

    @cached_property
    def _eos_words(self) -> ListedWords:
        return listed_words(packed_row(self.vocabulary.classes == TokenClass.EOS))

    @cached_property
    def text_bytes(self) -> NDArray[np.uint8]:
        """The bytes of all text tokens one after the other."""
        # A copy, because a read-only buffer is another type to a compiled kernel.
        return np.frombuffer(b"".join(self._texts), np.uint8).copy()

    @cached_property
    def text_begins(self) -> list[int]:
        """Where each token's bytes begin in `text_bytes`, and the end; a token that is no text has none."""
        return [0, *accumulate(map(len, self._texts))]

    @property
    def _texts(self) -> Iterator[bytes]:
        classes = self.vocabulary.classes.tolist()
        for data, token_class in zip(self.vocabulary.token_bytes, classes, strict=True):
            yield data if token_class == TokenClass.TEXT else b""

    @cached_property
    def plan(self) -> VocabularyPlan:
        """What the plans of all grammars begin with."""
        return VocabularyPlan(self.text_bytes, self._begins_of_texts, self._eos_words, self.whole_way)

    @cached_property
    def _begins_of_texts(self) -> NDArray[np.int64]:
        return np.array(self.text_begins, np.int64)

    @cached_property
    def can_step(self) -> bytes:
        """By token: 1 where it can lead anywhere, 0 for EOS and NEVER."""
        classes = self.vocabulary.classes
        return bytes(int(token_class in (TokenClass.TEXT, TokenClass.CONTROL)) for token_class in classes.tolist())

    @cached_property
    def forest(self) -> Forest:
        """The same tokens in tries of tokens that are alike."""
        return forest_by_kind(self.trie, np.ones(len(self.trie.token_ids), np.bool_))

    @cached_property
    def whole_way(self) -> Way:
        """A walk over all of them."""
        return Way(self.forest, self.forest.whole, self.rows.no_tokens)

    @property
    def has_slices(self) -> bool:
        """Whether anything was worked out yet that `slices` counts."""
        return "slices" in self.__dict__

    @cached_property
    def slices(self) -> SliceStore:
        """Parts of the vocabulary that configurations take as a whole."""
        return SliceStore(self.trie, self.forest, self.vocabulary.num_tokens, self._slice_bytes)

    def members(self, token_set: ir.TokenSet) -> NDArray[np.bool_]:
        """The tokens that a token terminal takes, bool [num_tokens]; ids outside the vocabulary are nobody's."""
        classes = self.vocabulary.classes
        listed = np.zeros(self.vocabulary.num_tokens, np.bool_)
        listed[[token for token in token_set.ids if token < self.vocabulary.num_tokens]] = True
        usable: NDArray[np.bool_]
        if token_set.excluded:
            usable = (classes == TokenClass.TEXT) & ~listed
        else:
            usable = listed & (classes != TokenClass.EOS) & (classes != TokenClass.NEVER)
        return usable


class TokenTerminals:
    """A grammar's token terminals under a vocabulary.

    membership: uint8 [num_sets, num_tokens], whether a set takes a token; rows: the same as mask rows. Raises
    ConstraintTooLarge where the former would take more than MAX_TERMINAL_BYTES.
    """

    def __init__(self, token_sets: tuple[ir.TokenSet, ...], index: VocabularyIndex) -> None:
        num_bytes = len(token_sets) * index.vocabulary.num_tokens
        if num_bytes > MAX_TERMINAL_BYTES:
            raise ConstraintTooLarge(
                f"{len(token_sets)} different token terminals take {num_bytes} bytes with this vocabulary, above"
                f" MAX_TERMINAL_BYTES = {MAX_TERMINAL_BYTES}"
            )
        members = [index.members(token_set) for token_set in token_sets]
        self.membership: NDArray[np.uint8] = (
            np.stack(members).astype(np.uint8) if members else np.zeros((0, 0), np.uint8)
        )
        self.rows = [packed_row(legal) for legal in members]

    @property
    def num_bytes(self) -> int:
        """Memory of both."""
        return self.membership.nbytes + sum(row.nbytes for row in self.rows)
