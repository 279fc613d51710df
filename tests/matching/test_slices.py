"""Slices of a vocabulary against a plain reading of its tokens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.matching import beginnings
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.forest import FIRST_TOKEN, LAST_TOKEN, Forest
from infernix.matching.masks import VocabularyIndex
from infernix.matching.slices import MIN_SHARE, forest_by_kind
from support.vocabularies import text_vocabulary

TEXTS = (
    *("a", "ab", "a1", " a", "  a", " a b", "_x", ".a", "a."),
    *("é", "aé", "在", "abcabcabc", "1", " ", ", ", '"a', "b", "c", "dd"),
)


@pytest.fixture(scope="module")
def index() -> VocabularyIndex:
    return VocabularyIndex(text_vocabulary(list(TEXTS)))


def texts_in(forest: Forest) -> list[set[str]]:
    """The tokens by group."""
    groups = []
    for begin, end in pairwise(forest.root_begins.tolist()):
        roots = forest.nodes[begin:end]
        groups.append(
            {TEXTS[forest.token_ids[entry]] for root in roots for entry in range(root[FIRST_TOKEN], root[LAST_TOKEN])}
        )
    return groups


def texts_of(row: NDArray[np.uint32]) -> set[str]:
    return {text for token, text in enumerate(TEXTS) if row[0] >> token & 1}


def atoms_in(characters: str) -> int:
    atoms = 0
    for character in characters:
        atoms |= 1 << int(ATOM_OF_ASCII[ord(character)])
    return atoms


def test_tokens_are_split_into_words_others_and_those_beyond_ascii(index: VocabularyIndex) -> None:
    words, beyond, others = texts_in(forest_by_kind(index.trie, np.ones(len(TEXTS), np.bool_)))
    assert words == {"a", "ab", "a1", " a", " a b", "_x", "abcabcabc", "1", " ", "b", "c", "dd"}
    assert beyond == {"é", "aé", "在"}
    assert others == {"  a", ".a", "a.", ", ", '"a'}


def test_a_slice_and_its_others_are_the_whole_vocabulary(index: VocabularyIndex) -> None:
    # "a" and "b" are in one atom with the letters up to "f".
    part = index.slices.find(atoms_in("a"), 1 << 30)
    assert part is not None
    taken = texts_of(part.row.words)
    assert taken == {"a", "ab", "abcabcabc", "b", "c", "dd"}
    assert set().union(*texts_in(part.others)) == set(TEXTS) - taken
    assert part.suffixes is not None
    without, behind = texts_in(part.suffixes)
    assert behind == {"a1", "a b", "aé", "a."} & set(TEXTS)
    assert without == set(TEXTS) - taken - behind


def test_a_slice_by_number_of_characters(index: VocabularyIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "MAX_LEFT_OUT", 0)
    part = index.slices.find_counted(atoms_in("a"))
    assert part is not None
    for num_left, taken in (
        (0, set()),
        (1, {"a", "b", "c"}),
        (2, {"a", "b", "c", "ab", "dd"}),
        (8, {"a", "b", "c", "ab", "dd"}),
        (9, {"a", "b", "c", "ab", "dd", "abcabcabc"}),
        (1 << 30, {"a", "b", "c", "ab", "dd", "abcabcabc"}),
    ):
        assert texts_of(part.tokens.up_to(num_left).row.words) == taken
    assert part.tokens.up_to(3) is part.tokens.up_to(8)
    assert part.way(3) is part.way(8)
    without, behind = texts_in(part.suffixes)
    assert behind == {"a1", "aé", "a."}
    assert without == set(TEXTS) - behind - texts_of(part.tokens.up_to(9).row.words)
    assert index.slices.find_counted(atoms_in("~")) is None


@pytest.mark.parametrize(("num_left", "long_ones"), [(1 << 30, True), (40, True), (32, True), (8, False), (9, True)])
def test_a_counted_loop_takes_only_what_surely_fits(index: VocabularyIndex, num_left: int, long_ones: bool) -> None:
    # The longest token has nine characters.
    part = index.slices.find(atoms_in("a"), num_left)
    assert part is not None
    token = TEXTS.index("abcabcabc")
    assert bool(part.row.words[0] >> token & 1) == long_ones


def test_what_is_too_small_to_be_of_use_is_no_slice(index: VocabularyIndex) -> None:
    assert index.slices.find(0, 1 << 30) is None
    assert index.slices.find(atoms_in("a"), 7) is None
    assert 1 / len(TEXTS) < MIN_SHARE
    assert index.slices.find(atoms_in("~"), 1 << 30) is None


def test_slices_are_worked_out_once(index: VocabularyIndex) -> None:
    first = index.slices.find(atoms_in("a"), 1 << 30)
    assert index.slices.find(atoms_in("a"), 1 << 30) is first
    assert first is not None
