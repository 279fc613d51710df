"""Slices of a vocabulary against a plain reading of its tokens."""

from __future__ import annotations

import numpy as np
import pytest

from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.masks import VocabularyIndex
from infernix.matching.slices import MIN_SHARE, split_by_kind
from infernix.matching.trie import TokenTrie
from support.vocabularies import text_vocabulary

TEXTS = (
    *("a", "ab", "a1", " a", "  a", " a b", "_x", ".a", "a."),
    *("é", "aé", "在", "abcabcabc", "1", " ", ", ", '"a', "b", "c", "dd"),
)


@pytest.fixture(scope="module")
def index() -> VocabularyIndex:
    return VocabularyIndex(text_vocabulary(list(TEXTS)))


def texts_in(trie: TokenTrie) -> set[str]:
    return {TEXTS[token] for token in trie.token_ids.tolist()}


def atoms_in(characters: str) -> int:
    atoms = 0
    for character in characters:
        atoms |= 1 << int(ATOM_OF_ASCII[ord(character)])
    return atoms


def test_tokens_are_split_into_words_others_and_those_beyond_ascii(index: VocabularyIndex) -> None:
    words, beyond, others = map(texts_in, split_by_kind(index.trie))
    assert words == {"a", "ab", "a1", " a", " a b", "_x", "abcabcabc", "1", " ", "b", "c", "dd"}
    assert beyond == {"é", "aé", "在"}
    assert others == {"  a", ".a", "a.", ", ", '"a'}


def test_a_slice_and_its_others_are_the_whole_vocabulary(index: VocabularyIndex) -> None:
    # "a" and "b" are in one atom with the letters up to "f".
    part = index.slices.find(atoms_in("a"), 1 << 30)
    assert part is not None
    taken = {text for token, text in enumerate(TEXTS) if part.row[0] >> token & 1}
    assert taken == {"a", "ab", "abcabcabc", "b", "c", "dd"}
    others: set[str] = set().union(*map(texts_in, part.others))
    assert others == set(TEXTS) - taken


@pytest.mark.parametrize(("num_left", "long_ones"), [(1 << 30, True), (40, True), (32, True), (8, False), (9, True)])
def test_a_counted_loop_takes_only_what_surely_fits(index: VocabularyIndex, num_left: int, long_ones: bool) -> None:
    # The longest token has nine characters.
    part = index.slices.find(atoms_in("a"), num_left)
    assert part is not None
    token = TEXTS.index("abcabcabc")
    assert bool(part.row[0] >> token & 1) == long_ones


def test_what_is_too_small_to_be_of_use_is_no_slice(index: VocabularyIndex) -> None:
    assert index.slices.find(0, 1 << 30) is None
    assert index.slices.find(atoms_in("a"), 7) is None
    assert 1 / len(TEXTS) < MIN_SHARE
    assert index.slices.find(atoms_in("~"), 1 << 30) is None


def test_slices_are_worked_out_once(index: VocabularyIndex) -> None:
    first = index.slices.find(atoms_in("a"), 1 << 30)
    assert index.slices.find(atoms_in("a"), 1 << 30) is first
    assert isinstance(first.row if first else None, np.ndarray)
