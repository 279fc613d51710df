"""Mask rows in their short form hold the same words."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.grammar.json_values import json_object_grammar
from infernix.matching import CompiledGrammar, rows
from infernix.matching.masks import VocabularyIndex
from infernix.matching.rows import MAX_SPARSE_WORDS, RowStore
from support.row_buffers import row_buffer
from support.vocabularies import byte_vocabulary

NUM_WORDS = 1_003


def row_with(num_words: int, places: list[int], rng: Random) -> NDArray[np.uint32]:
    row = np.zeros(num_words, np.uint32)
    for place in places:
        row[place] = rng.choice([1, 0x80000000, 0xFFFFFFFF])
    return row


@pytest.mark.parametrize("num_set", [0, 1, 2, MAX_SPARSE_WORDS - 1, MAX_SPARSE_WORDS])
def test_few_words_are_kept_by_their_places(num_set: int) -> None:
    rng = Random(num_set)
    store = RowStore(NUM_WORDS)
    for _ in range(5):
        row = row_with(NUM_WORDS, rng.sample(range(NUM_WORDS), num_set), rng)
        expected = row.view(np.int32).copy()
        kept = store.intern(row_buffer(store, row))
        assert kept.sparse is not None
        rebuilt = np.zeros(NUM_WORDS, np.int32)
        rebuilt[kept.sparse[0]] = kept.sparse[1]
        assert rebuilt.tolist() == expected.tolist()
        assert kept.words is not None
        assert kept.words.tolist() == expected.tolist()
        assert kept.is_empty == (num_set == 0)


@pytest.mark.parametrize("place", [0, 7, 8, 999, 1_000, 1_002])
def test_every_place_is_found(place: int) -> None:
    store = RowStore(NUM_WORDS)
    kept = store.intern(row_buffer(store, row_with(NUM_WORDS, [place], Random(0))))
    assert kept.sparse is not None
    assert kept.sparse[0].tolist() == [place]


@pytest.mark.parametrize("num_words", [1, 3, 8, 40, NUM_WORDS])
def test_a_row_of_many_words_has_no_short_form(num_words: int) -> None:
    most = min(MAX_SPARSE_WORDS, num_words // 4)
    for num_set in range(num_words + 1):
        store = RowStore(num_words)
        kept = store.intern(row_buffer(store, row_with(num_words, list(range(num_set)), Random(0))))
        assert (kept.sparse is None) == (num_set > most)
        assert kept.is_empty == (num_set == 0)


def test_memory_counts_the_short_form_and_a_dropped_row_gives_it_back() -> None:
    store = RowStore(NUM_WORDS, max_bytes=0)  # room for two rows
    rows = [store.intern(row_buffer(store, row_with(NUM_WORDS, [place], Random(0)))) for place in range(3)]
    assert [row.sparse is None for row in rows] == [row.words is None for row in rows]
    assert rows[0].sparse is None
    held = [part for row in rows for part in row.sparse or ()]
    assert held
    assert store.num_bytes >= sum(part.nbytes for part in held) + store.num_rows * NUM_WORDS * 4


def test_a_row_is_written_whole_and_only_into_its_own_length() -> None:
    """Both forms clear what the buffer held before."""
    vocabulary = byte_vocabulary(map("".join, product("abcdefghijklmnopqrst", repeat=3)))
    epoch = CompiledGrammar(json_object_grammar(), VocabularyIndex(vocabulary)).epoch
    is_sparse = set()
    configuration = epoch.table.start
    for byte in b'{"a':
        row = epoch.row(configuration)
        assert row.words is not None
        is_sparse.add(row.sparse is not None)
        target = np.full(vocabulary.num_mask_words, -1, np.int32)
        assert epoch.copy_row(configuration, target)
        assert target.tolist() == row.words.tolist()
        for wrong in (vocabulary.num_mask_words - 1, vocabulary.num_mask_words + 1):
            with pytest.raises(ValueError, match=r"words|broadcast"):
                epoch.copy_row(configuration, np.zeros(wrong, np.int32))
        configuration = epoch.step(configuration, byte)
    assert is_sparse == {False, True}


@pytest.mark.parametrize("num_words", [NUM_WORDS - 1, NUM_WORDS])
def test_every_word_of_a_full_row_counts_in_its_hash(num_words: int) -> None:
    rng = Random(num_words)
    row = np.array([rng.getrandbits(32) for _ in range(num_words)], np.uint32)
    store = RowStore(num_words)
    contents = [row]
    for place in range(num_words):
        changed = row.copy()
        changed[place] ^= np.uint32(1 << rng.randrange(32))
        contents.append(changed)
    swapped = row.copy()
    swapped[[0, 1]] = row[[1, 0]]
    digests = set()
    for content in [*contents, swapped]:
        buffer = row_buffer(store, content)
        digests.add(rows._digest(buffer.words, buffer.places))
    assert len(digests) == num_words + 2
