"""A store of slices that is full makes only those that are asked for again and again."""

from __future__ import annotations

import pytest

from infernix.matching import slices
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.masks import VocabularyIndex
from infernix.matching.slices import CROWDED_REQUESTS, SliceStore
from support.vocabularies import text_vocabulary

UNCOUNTED = 1 << 30
LETTERS, DIGITS = (1 << int(ATOM_OF_ASCII[ord(character)]) for character in "a1")


def new_store(max_bytes: int) -> SliceStore:
    vocabulary = text_vocabulary(["a", "b", "ab", "1", "2", "12", "-", "--"])
    index = VocabularyIndex(vocabulary)
    return SliceStore(index.trie, index.forest, vocabulary.num_tokens, max_bytes)


def test_with_room_a_slice_is_made_at_once() -> None:
    assert new_store(1 << 20).find(LETTERS, UNCOUNTED) is not None


def test_without_room_it_takes_demand() -> None:
    store = new_store(1)
    for _ in range(CROWDED_REQUESTS - 1):
        assert store.find(LETTERS, UNCOUNTED) is None
    assert store.num_bytes == 0
    made = store.find(LETTERS, UNCOUNTED)
    assert made is not None
    # Another one has to be in demand itself, and until then takes nothing from this one.
    assert store.find(DIGITS, UNCOUNTED) is None
    assert store.find(LETTERS, UNCOUNTED) is made


def test_requests_are_counted_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_COUNTED_REQUESTS", 2)
    store = new_store(1)
    for atoms in range(1, 50):
        store.find(atoms, UNCOUNTED)
        assert len(store._num_requests) <= 2
