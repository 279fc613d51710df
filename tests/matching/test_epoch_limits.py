"""What a grammar's tables may take, whoever comes late and however long the given text is."""

from __future__ import annotations

import pytest

from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.unicode import character_class
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.masks import VocabularyIndex
from infernix.options import OutputConstraint
from support.vocabularies import byte_vocabulary

# Every letter makes a configuration of its own.
LETTERS = ir.Grammar.of(ir.Repeat(character_class([(ord("a"), ord("z"))]), 0, 1_000_000_000))
TABLE_BYTES = 1 << 17


def test_latecomers_do_not_raise_the_limit() -> None:
    compiled = CompiledGrammar(LETTERS, VocabularyIndex(byte_vocabulary()), TABLE_BYTES)
    waiting = [compiled.new_matcher() for _ in range(12)]
    assert all(matcher.accept(ord("a")) for matcher in waiting)
    first, runner = compiled.epoch, compiled.new_matcher()
    while compiled.epoch is first:
        assert runner.accept(ord("a"))
    # Each comes when the table is more than half full, which is when a limit of twice its size would be a larger one.
    while waiting:
        assert runner.accept(ord("a"))
        epoch = compiled.epoch
        if 0.6 * epoch.limit_bytes < epoch.num_bytes < 0.9 * epoch.limit_bytes:
            assert waiting.pop().accept(ord("a"))
    assert compiled.epoch.limit_bytes <= 2 * TABLE_BYTES


def test_a_given_text_may_be_longer_than_a_table_has_room_for() -> None:
    compiled = CompiledGrammar(LETTERS, VocabularyIndex(byte_vocabulary()), TABLE_BYTES)
    matcher = compiled.new_matcher()
    assert matcher.accept_bytes(b"a" * 200_000)
    assert compiled.num_bytes < 100 * 200_000
    assert matcher.may_end


@pytest.mark.parametrize("num_bytes", [10, 200_000])
def test_a_given_text_that_leaves_the_language_changes_nothing(num_bytes: int) -> None:
    compiled = CompiledGrammar(LETTERS, VocabularyIndex(byte_vocabulary()), TABLE_BYTES)
    matcher = compiled.new_matcher()
    assert matcher.accept(ord("a"))
    assert not matcher.accept_bytes(b"a" * num_bytes + b"!")
    assert matcher.accept_bytes(b"b" * 10)
    assert matcher.may_end


def test_a_given_text_goes_on_from_table_to_table() -> None:
    compiled = CompiledGrammar(
        build_grammar(OutputConstraint.json_object()), VocabularyIndex(byte_vocabulary()), table_bytes=1
    )
    matcher = compiled.new_matcher()
    text = b'{"a": ' + b'[1, {"b": "c"}, ' * 4_000
    assert matcher.accept_bytes(text)
    assert matcher.accept_bytes(b"2" + b"]" * 4_000)
    assert not matcher.may_end
    assert matcher.accept_bytes(b"}")
    assert matcher.may_end
