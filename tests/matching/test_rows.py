"""Mask rows kept as differences from others hold the same words."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.grammar.json_values import json_object_grammar
from infernix.matching import CompiledGrammar
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_digest import digest_row
from infernix.matching.row_making import BEGIN, DIGEST, NUM_CHANGED
from infernix.matching.rows import MAX_CHANGED_WORDS, BaseRow, MaskRow, RowStore
from infernix.matching.ways import Way
from support.made_rows import kept_row
from support.vocabularies import byte_vocabulary, text_vocabulary

NUM_WORDS = 3_003
BITS = (1, 0x80000000, 0xFFFFFFFF)


def changed(row: NDArray[np.uint32], places: list[int], rng: Random) -> NDArray[np.uint32]:
    """The row with other words at some places."""
    row = row.copy()
    for place in places:
        row[place] ^= rng.choice(BITS)
    return row


def random_row(num_words: int, rng: Random) -> NDArray[np.uint32]:
    return np.array([rng.getrandbits(32) for _ in range(num_words)], np.uint32)


@pytest.mark.parametrize("num_changed", [0, 1, 2, MAX_CHANGED_WORDS - 1, MAX_CHANGED_WORDS, MAX_CHANGED_WORDS + 1])
@pytest.mark.parametrize("is_empty_base", [True, False])
def test_few_words_that_differ_are_kept_by_their_places(num_changed: int, is_empty_base: bool) -> None:
    rng = Random(num_changed)
    store = RowStore(NUM_WORDS)
    base = store.no_tokens if is_empty_base else BaseRow(random_row(NUM_WORDS, rng))
    for _ in range(5):
        row = changed(base.words, rng.sample(range(NUM_WORDS), num_changed), rng)
        kept = kept_row(store, row, base)
        words = kept.words()
        assert words is not None
        assert words.tolist() == row.view(np.int32).tolist()
        assert (kept.base is base) == (num_changed <= MAX_CHANGED_WORDS)
        assert kept.is_empty == (num_changed == 0 and is_empty_base)
        assert kept_row(store, row, base) is kept


def test_a_row_of_which_nothing_is_left_is_empty() -> None:
    rng = Random(1)
    words = np.zeros(NUM_WORDS, np.uint32)
    words[[3, 5]] = 7
    base = BaseRow(words)
    for left, is_empty in (([], True), ([3], False), ([5], False)):
        row = np.zeros(NUM_WORDS, np.uint32)
        row[left] = 7
        assert kept_row(RowStore(NUM_WORDS), row, base).is_empty == is_empty
    full = BaseRow(random_row(NUM_WORDS, rng))
    assert kept_row(RowStore(NUM_WORDS), np.zeros(NUM_WORDS, np.uint32), full).is_empty


def test_a_row_is_the_same_whatever_it_differs_from() -> None:
    rng = Random(2)
    store = RowStore(NUM_WORDS)
    first = BaseRow(random_row(NUM_WORDS, rng))
    row = changed(first.words, [5, 9], rng)
    second = BaseRow(changed(row, [7, 2_000], rng))
    far = BaseRow(random_row(NUM_WORDS, rng))
    kept = kept_row(store, row, first)
    assert kept_row(store, row, second) is kept
    assert kept_row(store, row, far) is kept
    assert kept_row(store, row, store.no_tokens) is kept
    other = kept_row(store, changed(row, [9], rng), first)
    assert other is not kept
    assert store.num_rows == 2


@pytest.mark.parametrize("num_words", [1, 3, 8, 40, NUM_WORDS])
def test_a_row_of_many_words_is_kept_whole(num_words: int) -> None:
    most = min(MAX_CHANGED_WORDS, num_words // 4)
    for num_set in range(0, num_words + 1, 1 + num_words // 200):
        store = RowStore(num_words)
        row = np.zeros(num_words, np.uint32)
        row[:num_set] = 1
        kept = kept_row(store, row)
        assert (kept.base is None) == (num_set > most)
        assert kept.is_empty == (num_set == 0)


def test_memory_counts_rows_and_their_bases_while_they_are_used() -> None:
    rng = Random(3)
    store = RowStore(NUM_WORDS)
    base = BaseRow(random_row(NUM_WORDS, rng))
    row_bytes = 4 * NUM_WORDS

    def held(rows: list[MaskRow]) -> int:
        return sum(array.nbytes for row in rows for array in (row.content or ())[1:] if array is not None)

    rows = [kept_row(store, changed(base.words, rng.sample(range(NUM_WORDS), 100), rng), base) for _ in range(3)]
    assert row_bytes + held(rows) <= store.num_bytes <= row_bytes + held(rows) + 3 * 1_000
    before = store.num_bytes
    whole = kept_row(store, random_row(NUM_WORDS, rng))
    assert whole.base is None
    assert store.num_bytes >= before + row_bytes
    assert base.num_rows == 3
    while store.num_rows:
        store._drop_oldest()
    assert [row.content for row in rows] == [None] * 3
    assert [row.words() for row in rows] == [None] * 3
    assert base.num_rows == 0
    assert store.num_bytes == 0


class TestWritingOut:
    """A row that differs in many words becomes a whole one."""

    def make(self, max_bytes: int = 1 << 30) -> tuple[RowStore, BaseRow, NDArray[np.uint32], MaskRow]:
        rng = Random(4)
        store, base = RowStore(NUM_WORDS, max_bytes), BaseRow(random_row(NUM_WORDS, rng))
        kept_row(store, changed(base.words, [1], rng), base)
        words = changed(base.words, rng.sample(range(2, NUM_WORDS), 200), rng)
        return store, base, words, kept_row(store, words, base)

    @staticmethod
    def is_whole(row: MaskRow) -> bool:
        return row.content is not None and row.content[0] is not None and row.content[1] is None

    def test_it_is_the_same_row_and_counted(self) -> None:
        store, base, words, row = self.make()
        assert row.is_long
        assert not self.is_whole(row)
        before, row_before = store.num_bytes, row.num_bytes
        store.write_out(row)
        assert self.is_whole(row)
        assert not row.is_long
        found = row.words()
        assert found is not None
        assert found.tolist() == words.view(np.int32).tolist()
        assert store.num_bytes - before == row.num_bytes - row_before >= 4 * NUM_WORDS
        assert kept_row(store, words, base) is row
        assert kept_row(store, words, BaseRow(words)) is row
        while store.num_rows:
            store._drop_oldest()
        assert store.num_bytes == 0

    def test_it_pushes_nothing_out(self) -> None:
        num_bytes = self.make()[0].num_bytes
        store, _, _, row = self.make(num_bytes + 4 * NUM_WORDS)
        store.write_out(row)
        assert not self.is_whole(row)
        # Not tried at every use.
        assert not row.is_long
        assert (store.num_rows, store.num_bytes) == (2, num_bytes)

    def test_a_row_that_is_dropped_stays_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before, or by another thread while it is read."""
        store, _, _, row = self.make()
        read = MaskRow.words

        def read_and_drop(row: MaskRow) -> NDArray[np.int32] | None:
            words = read(row)
            while store.num_rows:
                store._drop_oldest()
            return words

        monkeypatch.setattr(MaskRow, "words", read_and_drop)
        for _ in range(2):
            store.write_out(row)
            assert row.content is None
            assert not row.is_long
            assert store.num_bytes == 0

    def test_a_dropped_row_is_not_long(self) -> None:
        store, _, _, row = self.make()
        while store.num_rows:
            store._drop_oldest()
        assert not row.is_long


def test_with_no_room_at_all_two_rows_are_kept() -> None:
    store = RowStore(NUM_WORDS, max_bytes=0)
    rows = [kept_row(store, np.arange(NUM_WORDS) == place) for place in range(1, 4)]
    assert [row.content is None for row in rows] == [True, False, False]


def test_a_row_is_written_whole_and_only_into_its_own_length() -> None:
    """Both forms clear what the buffer held before."""
    vocabulary = byte_vocabulary(map("".join, product("abcdefghijklmnopqrst", repeat=3)))
    epoch = CompiledGrammar(json_object_grammar(), VocabularyIndex(vocabulary)).epoch
    is_whole = set()
    configuration = epoch.table.start
    for byte in b'{"a':
        row = epoch.row(configuration)
        words = row.words()
        assert words is not None
        assert row.content is not None
        is_whole.add(row.content[0] is not None)
        target = np.full(vocabulary.num_mask_words, -1, np.int32)
        assert epoch.copy_row(configuration, target)
        assert target.tolist() == words.tolist()
        for wrong in (vocabulary.num_mask_words - 1, vocabulary.num_mask_words + 1):
            with pytest.raises(ValueError, match="words"):
                epoch.copy_row(configuration, np.zeros(wrong, np.int32))
        configuration = epoch.step(configuration, byte)
    assert is_whole == {False, True}


@pytest.mark.parametrize("num_words", [NUM_WORDS - 1, NUM_WORDS])
def test_every_word_of_a_row_counts_in_its_hash(num_words: int) -> None:
    rng = Random(num_words)
    row = random_row(num_words, rng)
    contents = [row]
    for place in range(num_words):
        other = row.copy()
        other[place] ^= np.uint32(1 << rng.randrange(32))
        contents.append(other)
    swapped = row.copy()
    swapped[[0, 1]] = row[[1, 0]]
    assert len({digest_row(content) for content in [*contents, swapped]}) == num_words + 2


@pytest.mark.parametrize("num_tokens", [60, 4_000, 40_000])
def test_a_finished_row_is_its_base_with_what_was_added(num_tokens: int) -> None:
    """With few and with many words that differ, and the hash is that of the whole row."""
    rng = Random(num_tokens)
    index = VocabularyIndex(text_vocabulary(["a"] * num_tokens))
    epoch = CompiledGrammar(json_object_grammar(), index).epoch
    store, plans = index.rows, epoch._begin_plans()
    num_words = store.num_mask_words
    seen = set()
    for num_added in (0, 1, 2, num_words // 8, num_words // 4, num_words):
        for base in (store.no_tokens, BaseRow(random_row(num_words, rng) & random_row(num_words, rng))):
            places = np.array(sorted(rng.sample(range(num_words), num_added)), np.int64)
            added = np.array([rng.choice(BITS) for _ in places], np.uint32)
            expected = base.words.copy()
            expected[places] |= added
            buffer = store.take_buffer()
            way = Way(index.forest, index.forest.whole[:0], base)
            (columns,), _ = epoch.table.make_rows(plans, buffer, epoch.table.start, way=way, added=(added, places))
            made = buffer.made_row(columns[NUM_CHANGED], columns[BEGIN])
            seen.add(isinstance(made, tuple))
            found = base.words.copy() if isinstance(made, tuple) else made
            if isinstance(made, tuple):
                assert len(set(made[1].tolist())) == len(made[1]) <= store.max_changed_words
                assert (base.words[made[1]] != made[0]).all()
                found[made[1]] = made[0]
            assert found.tolist() == expected.tolist()
            assert columns[DIGEST] == digest_row(expected)
            store.give_back(buffer)
    assert seen == {True, False}
