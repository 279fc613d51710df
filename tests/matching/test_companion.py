"""A companion follows the matcher through its whole transaction and clears bits on its own copy of a row."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.grammar.gbnf import parse_gbnf
from infernix.matching import CompiledGrammar, Matcher, compile_grammar
from infernix.matching.vocabulary import Vocabulary
from support.vocabularies import text_vocabulary

# Names of one or two letters, each closed by a comma; merged tokens close one name and go on with the next.
TEXTS = ("a", "b", ",", "ab", "a,", "b,", ",a", ",b,", "a,b,", "b,a,")


class NoNameTwice:
    """No name may be closed a second time."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def start(self) -> tuple[frozenset[bytes], bytes]:
        return frozenset(), b""

    def after(self, state: Hashable, token: int) -> tuple[frozenset[bytes], bytes] | None:
        assert isinstance(state, tuple)
        used, name = state
        for byte in self._vocabulary.token_bytes[token]:
            if byte != ord(","):
                name += bytes([byte])
            elif name in used:
                return None
            else:
                used, name = used | {name}, b""
        return used, name

    def clear(self, state: Hashable, row: NDArray[np.int32]) -> None:
        for token in range(self._vocabulary.num_tokens):
            if self.after(state, token) is None:
                row[token >> 5] &= ~(1 << (token & 31))


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return text_vocabulary(list(TEXTS))


@pytest.fixture(scope="module")
def grammar(vocabulary: Vocabulary) -> CompiledGrammar:
    return compile_grammar(parse_gbnf('root ::= name+\nname ::= [ab] [ab]? ","'), vocabulary)


def legal_texts(matcher: Matcher, vocabulary: Vocabulary) -> set[str]:
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    matcher.fill(row)
    return {text for token, text in enumerate(TEXTS) if row[0] >> token & 1}


def test_bits_of_used_names_are_cleared(vocabulary: Vocabulary, grammar: CompiledGrammar) -> None:
    matcher = grammar.new_matcher(NoNameTwice(vocabulary))
    assert legal_texts(matcher, vocabulary) == {"a", "b", "ab", "a,", "b,", "a,b,", "b,a,"}
    assert matcher.accept(TEXTS.index("a,"))
    # "b,a," is legal for the grammar and closes a used name inside the token.
    assert legal_texts(matcher, vocabulary) == {"a", "b", "ab", "b,"}
    assert not matcher.accept(TEXTS.index("b,a,"))
    assert matcher.accept(TEXTS.index("b"))
    assert legal_texts(matcher, vocabulary) == {"a", "b", ",", ",a", "a,", "b,", "a,b,"}


def test_another_matcher_of_the_grammar_sees_the_whole_row(vocabulary: Vocabulary, grammar: CompiledGrammar) -> None:
    strict, free = grammar.new_matcher(NoNameTwice(vocabulary)), grammar.new_matcher()
    for matcher in (strict, free):
        assert matcher.accept(TEXTS.index("a,"))
    legal_texts(strict, vocabulary)
    assert legal_texts(free, vocabulary) == {"a", "b", "ab", "a,", "b,", "a,b,", "b,a,"}


def test_a_position_is_dead_when_clearing_leaves_nothing(vocabulary: Vocabulary) -> None:
    short = compile_grammar(parse_gbnf('root ::= "a,a,"'), vocabulary)
    matcher = short.new_matcher(NoNameTwice(vocabulary))
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    assert matcher.accept(TEXTS.index("a,"))
    assert matcher.accept(TEXTS.index("a"))
    assert not matcher.fill(row)
    assert not row.any()


def test_looking_ahead_clears_along_the_chain(vocabulary: Vocabulary, grammar: CompiledGrammar) -> None:
    matcher = grammar.new_matcher(NoNameTwice(vocabulary))
    drafts = [TEXTS.index(text) for text in ("a,", "b", ",b,")]
    rows = np.zeros((len(drafts) + 1, vocabulary.num_mask_words), np.int32)
    ahead = matcher.look_ahead(drafts, rows)
    # The last draft closes "b" twice: its own position is ready, the one behind it cannot be reached.
    assert ahead.num_ready == 3
    assert ahead.dead_positions == 0
    assert rows[1][0] >> TEXTS.index("a,") & 1 == 0
    assert rows[2][0] >> TEXTS.index(",b,") & 1 == 0
    assert legal_texts(matcher, vocabulary) == {"a", "b", "ab", "a,", "b,", "a,b,", "b,a,"}


def test_the_transaction_takes_the_companion_along(vocabulary: Vocabulary, grammar: CompiledGrammar) -> None:
    matcher = grammar.new_matcher(NoNameTwice(vocabulary))
    first = legal_texts(matcher, vocabulary)
    mark = matcher.mark()
    assert matcher.accept(TEXTS.index("a,b,"))
    assert "a," not in legal_texts(matcher, vocabulary)
    matcher.rollback(mark)
    assert legal_texts(matcher, vocabulary) == first
    assert matcher.preview([TEXTS.index("a,"), TEXTS.index("b,a,")]) == 1
    matcher.discard()
    assert legal_texts(matcher, vocabulary) == first
    assert matcher.preview([TEXTS.index("a,")]) == 1
    matcher.confirm()
    assert legal_texts(matcher, vocabulary) == first - {"a,", "a,b,", "b,a,"}
    assert matcher.accept(vocabulary.num_tokens - 1)
    assert matcher.is_terminated
