"""Bounded memory: tables are left behind for fresh ones, rows are dropped and made again."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.matching import Matcher, Vocabulary
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.masks import VocabularyIndex
from infernix.matching.rows import RowStore
from infernix.matching.vocabulary import TokenClass
from infernix.options import OutputConstraint
from support.made_rows import kept_row
from support.random_grammars import ALPHABET, fixed_grammars
from support.vocabularies import byte_vocabulary, nasty_vocabulary, random_vocabulary

TINY_TABLE_BYTES = 30_000


def mask_of(matcher: Matcher, vocabulary: Vocabulary) -> list[int]:
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    matcher.fill(row)
    return row.tolist()


def legal_tokens(row: list[int]) -> list[int]:
    return [32 * word + bit for word, bits in enumerate(row) for bit in range(32) if bits >> bit & 1]


@pytest.mark.parametrize("name", fixed_grammars())
def test_a_matcher_does_not_notice_that_it_moves(name: str) -> None:
    grammar = fixed_grammars()[name]
    rng = Random(name)
    vocabulary = random_vocabulary(rng, ALPHABET)
    index = VocabularyIndex(vocabulary)
    still = CompiledGrammar(grammar, index).new_matcher()
    compiled = CompiledGrammar(grammar, index, table_bytes=0)
    moving = compiled.new_matcher()
    for _ in range(60):
        row = mask_of(still, vocabulary)
        assert mask_of(moving, vocabulary) == row
        assert moving.may_end == still.may_end
        going_on = [token for token in legal_tokens(row) if vocabulary.classes[token] != TokenClass.EOS]
        if not going_on:
            break
        token = rng.choice(going_on)
        # A limit of nothing, set again after each move, makes every token move.
        compiled.epoch.limit_bytes = 0
        assert still.accept(token)
        assert moving.accept(token)


def test_matchers_of_different_epochs_go_on_side_by_side() -> None:
    vocabulary = byte_vocabulary()
    index = VocabularyIndex(vocabulary)
    compiled = CompiledGrammar(build_grammar(OutputConstraint.json_object()), index, TINY_TABLE_BYTES)
    waiting = compiled.new_matcher()
    for byte in b'{"a": [':
        assert waiting.accept(byte)
    before = mask_of(waiting, vocabulary)
    old_table = compiled.configurations
    busy = compiled.new_matcher()
    for byte in b'{"x": ' + b"[" * 500 + b"1" + b"]" * 500 + b"}":
        assert busy.accept(byte)
    assert compiled.configurations is not old_table
    assert mask_of(waiting, vocabulary) == before
    assert all(waiting.accept(byte) for byte in b"1]}")
    assert waiting.may_end
    assert busy.may_end


def test_moving_waits_for_the_committed_position() -> None:
    vocabulary = byte_vocabulary()
    compiled = CompiledGrammar(
        build_grammar(OutputConstraint.json_object()), VocabularyIndex(vocabulary), TINY_TABLE_BYTES
    )
    matcher = compiled.new_matcher()
    mark = matcher.mark()
    for byte in b'{"x": ' + b"[" * 300:
        assert matcher.accept(byte)
    matcher.rollback(mark)
    assert matcher.preview(list(b'{"x": ' + b"[" * 300)) == 306
    matcher.discard()
    assert matcher.preview(list(b'{"x": 1}')) == 8
    matcher.confirm()
    assert matcher.may_end


def test_memory_stays_flat_over_a_long_text() -> None:
    vocabulary = byte_vocabulary()
    compiled = CompiledGrammar(
        build_grammar(OutputConstraint.json_object()), VocabularyIndex(vocabulary), table_bytes=1 << 20
    )
    matcher = compiled.new_matcher()
    rng = Random(5)
    text = bytearray(b'{"k": [')
    while len(text) < 100_000:
        depth = rng.randrange(1, 60)
        text += b"[" * depth + b'{"a": "xyz", "b": 12}' + b"]" * depth + b", "
    sizes = []
    for position, byte in enumerate(text):
        assert matcher.accept(byte)
        if position % 10_000 == 0:
            sizes.append(compiled.num_bytes)
    print(f"table bytes every 10,000 tokens: {sizes}")
    assert max(sizes) <= 2 << 20


def test_a_counted_string_takes_the_same_memory_wherever_its_bound_is() -> None:
    sizes = {}
    vocabulary = byte_vocabulary()
    for bound in (1_000, 1_000_000_000):
        compiled = CompiledGrammar(
            build_grammar(OutputConstraint.json_schema({"type": "string", "maxLength": bound})),
            VocabularyIndex(vocabulary),
            table_bytes=1 << 18,
        )
        matcher = compiled.new_matcher()
        rows = set()
        assert matcher.accept(ord('"'))
        for _ in range(990):
            assert matcher.accept(ord("x"))
            rows.add(tuple(mask_of(matcher, vocabulary)))
        sizes[bound] = (compiled.num_bytes, len(rows))
    assert sizes[1_000] == sizes[1_000_000_000]


def test_rows_are_kept_by_content_and_dropped_by_age() -> None:
    # Short rows are kept whole, but for the empty one.
    measured = RowStore(num_mask_words=2)
    sizes = [kept_row(measured, [content, 0]).num_bytes for content in range(4)]
    store = RowStore(num_mask_words=2, max_bytes=measured.num_bytes)
    rows = [kept_row(store, [content, 0]) for content in range(4)]
    assert kept_row(store, [2, 0]) is rows[2]
    assert [row.number for row in rows] == [0, 1, 2, 3]
    assert [row.is_empty for row in rows] == [True, False, False, False]
    rows[0].last_used = store.clock + 1
    store.pin(rows[1])
    new = kept_row(store, [9, 9])
    # Of the three unpinned rows the two oldest went; the used and the pinned one stayed.
    assert [row.content is None for row in rows] == [False, False, True, True]
    assert new.number in {rows[2].number, rows[3].number}
    assert store.num_rows == 3
    assert store.num_bytes == sizes[0] + store.no_tokens.num_bytes + 2 * sizes[1]
    store.unpin(rows[1])


def test_a_dropped_row_is_made_again() -> None:
    vocabulary = nasty_vocabulary()
    index = VocabularyIndex(vocabulary)
    index.rows = RowStore(vocabulary.num_mask_words, max_bytes=0)
    free = VocabularyIndex(vocabulary)
    grammar = build_grammar(OutputConstraint.json_object())
    matchers = [CompiledGrammar(grammar, which).new_matcher() for which in (index, free)]
    rng = Random(3)
    for _ in range(200):
        rows = [mask_of(matcher, vocabulary) for matcher in matchers]
        assert rows[0] == rows[1]
        token = rng.choice(legal_tokens(rows[0]))
        if vocabulary.classes[token] == TokenClass.EOS:
            matchers = [CompiledGrammar(grammar, which).new_matcher() for which in (index, free)]
            continue
        assert all(matcher.accept(token) for matcher in matchers)
    assert index.rows.num_rows <= 2


def test_a_language_of_one_text_needs_one_row_a_position() -> None:
    vocabulary = byte_vocabulary()
    index = VocabularyIndex(vocabulary)
    matcher = CompiledGrammar(ir.Grammar.of(ir.text("abc")), index).new_matcher()
    for byte in b"abc":
        assert legal_tokens(mask_of(matcher, vocabulary)) == [byte]
        assert matcher.accept(byte)
    assert matcher.may_end
