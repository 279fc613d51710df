"""Counts far from both bounds share a row; the row is what it would be without that."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, ConfigurationTable, Vocabulary, analysis
from infernix.matching.masks import VocabularyIndex
from infernix.matching.network import build_network
from infernix.matching.vocabulary import TokenClass
from support.plain_rows import description_of
from support.vocabularies import text_vocabulary

WORDS = ("aa", "aaa", "aaaaaaa", "ab", "ba", "abab", "aab", "xa", "aax", "aaax", "a,", ",a", "]]", "[[", "x,x", "b,b,b")
CUT = (b"\xc3", b"\xa9", b"a\xc3", b"\xa9a", b"\xe5\x9c", b"\xa8aaa", b"aaaaa\xe5", b"\xc3(")
VOCABULARY = text_vocabulary([*"abxy[],é在", *WORDS, "éé", "aéa", "在é", *CUT], control=["<tool>"])
A, B, X = ir.text("a"), ir.text("b"), ir.text("x")
LETTER = character_class([(ord(letter), ord(letter)) for letter in "abé在"])
A_OR_TWO = ir.choice(A, ir.text("aa"))
COMMA = ir.text(",")


@pytest.fixture(autouse=True)
def _small_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that would be small enough to be written out are counted all the same."""
    monkeypatch.setattr(analysis, "MAX_EXPANDED_EDGES", 0)


def counted(body: ir.Expression, minimum: int, maximum: int | None, *around: ir.Expression) -> ir.Grammar:
    before, after = around or (ir.EMPTY, X)
    return ir.Grammar.of(ir.sequence(before, ir.Repeat(body, minimum, maximum), after))


def recursive(make: Callable[[ir.RuleReference], ir.Expression]) -> ir.Grammar:
    builder = ir.GrammarBuilder()
    rule = builder.declare("root")
    builder.define(rule, make(rule))
    return builder.build(rule)


GRAMMARS = {
    "class_of_characters": counted(LETTER, 20, 45),
    "nothing_behind_it": counted(LETTER, 20, 45, ir.EMPTY, ir.EMPTY),
    "maximum_alone": counted(LETTER, 0, 40),
    "minimum_alone": counted(LETTER, 30, None),
    "minimum_of_one": counted(LETTER, 1, None),
    "exact": counted(A, 33, 33),
    "bounds_within_a_token": counted(A, 2, 4),
    "bounds_within_a_token_apart": counted(A, 20, 22),
    "the_same_letter_behind_it": counted(A, 15, 40, A, ir.text("aab")),
    "two_lengths": counted(A_OR_TWO, 12, 30),
    "two_lengths_without_maximum": counted(A_OR_TWO, 15, None, B, ir.text("ax")),
    "body_may_be_empty": counted(ir.optional(A), 25, 50),
    "body_of_several_tokens": counted(ir.sequence(A, ir.optional(B), COMMA), 12, 24),
    "nested": counted(ir.sequence(ir.Repeat(A, 15, 30), B), 12, 30),
    "nested_without_border": counted(ir.Repeat(A, 2, 20), 3, 25),
    "nested_minimum": counted(ir.sequence(ir.Repeat(A, 12, None), COMMA), 14, None),
    "nested_three_times": counted(ir.sequence(ir.Repeat(ir.sequence(ir.Repeat(A, 0, 20), B), 0, 20), COMMA), 0, 20),
    "two_side_by_side": ir.Grammar.of(ir.sequence(ir.Repeat(A, 10, 30), ir.Repeat(LETTER, 10, 30), X)),
    "two_that_overlap": ir.Grammar.of(
        ir.choice(ir.sequence(ir.Repeat(A, 20, 40), X), ir.sequence(ir.Repeat(ir.text("aa"), 9, 25), B))
    ),
    "recursion_inside": recursive(
        lambda s: ir.sequence(ir.text("["), ir.Repeat(ir.sequence(ir.choice(s, A, X), COMMA), 0, 30), ir.text("]"))
    ),
    "left_recursion_around": recursive(lambda s: ir.choice(ir.sequence(s, ir.Repeat(A, 12, 24), B), X)),
    "tokens_inside": counted(ir.choice(ir.TokenSet((VOCABULARY.num_tokens - 2,)), A), 14, 30),
}


class BothWays:
    """A grammar with clamped counts and without: to a vocabulary with endless tokens no bound is far away."""

    def __init__(self, grammar: ir.Grammar, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.clamping = CompiledGrammar(grammar, VocabularyIndex(vocabulary)).epoch
        self.plain = CompiledGrammar(grammar, VocabularyIndex(vocabulary)).epoch
        self.plain.table = ConfigurationTable(build_network(grammar), max_token_bytes=1 << 40)
        self.places = (self.clamping.table.start, self.plain.table.start)
        self.num_clamped = 0

    def legal(self) -> list[int]:
        """The legal tokens here, the same in three ways: with clamping, without, and token by token."""
        clamping, plain = self.places
        self.num_clamped += description_of(self.clamping, clamping)[0] != clamping
        assert description_of(self.plain, plain)[0] == plain
        row, expected = self.clamping.row(clamping).words(), self.plain.row(plain).words()
        assert row is not None
        assert expected is not None
        assert row.tolist() == expected.tolist()
        legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        assert legal == [
            token
            for token, token_class in enumerate(self.vocabulary.classes)
            if (
                self.clamping.may_end(clamping)
                if token_class == TokenClass.EOS
                else self.clamping.step(clamping, token) != DEAD
            )
        ]
        return legal

    def accept(self, token: int) -> None:
        self.places = (self.clamping.step(self.places[0], token), self.plain.step(self.places[1], token))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", GRAMMARS)
def test_rows_are_the_same_with_clamping_and_without(name: str, seed: int) -> None:
    rng = Random(f"{name} {seed}")
    ways = BothWays(GRAMMARS[name], VOCABULARY)
    # Short steps see every count, and what ends a loop is put off: both bounds come into reach.
    weights = {token: (6 if data in (b"a", b"b") else 1 if data in (b"x", b"]") else 2) for token, data in tokens()}
    for _ in range(150):
        legal = [token for token in ways.legal() if VOCABULARY.classes[token] != TokenClass.EOS]
        if not legal:
            break
        ways.accept(rng.choices(legal, [weights.get(token, 2) for token in legal])[0])


def tokens() -> list[tuple[int, bytes]]:
    return [(token, data) for token, data in enumerate(VOCABULARY.token_bytes) if data]


@pytest.mark.parametrize(
    ("name", "letter", "num_steps"),
    [
        ("class_of_characters", "é", 45),
        ("class_of_characters", "a", 45),
        ("nothing_behind_it", "在", 45),
        ("maximum_alone", "b", 40),
        ("minimum_alone", "a", 60),
        ("exact", "a", 33),
        ("bounds_within_a_token_apart", "a", 22),
        ("the_same_letter_behind_it", "a", 43),
        ("two_lengths", "a", 60),
        ("two_that_overlap", "a", 50),
        ("two_side_by_side", "a", 60),
        ("body_may_be_empty", "a", 50),
    ],
)
def test_every_count_from_the_first_to_the_last(name: str, letter: str, num_steps: int) -> None:
    ways = BothWays(GRAMMARS[name], VOCABULARY)
    token = VOCABULARY.token_bytes.index(letter.encode())
    for _ in range(num_steps):
        assert token in ways.legal()
        ways.accept(token)
    ways.legal()
    # With a row of its own for every count, nothing would have been shared.
    if name != "body_may_be_empty":
        assert ways.num_clamped > 3


@pytest.mark.parametrize("maximum", [100, 1_000_000, None])
def test_rows_do_not_grow_with_the_bound(maximum: int | None) -> None:
    grammar = counted(LETTER, 60, maximum)
    ways = BothWays(grammar, VOCABULARY)
    rows = set()
    for _ in range(100):
        ways.legal()
        rows.add(id(ways.clamping.row(ways.places[0])))
        ways.accept(0)
    longest = max(map(len, VOCABULARY.token_bytes))
    assert len(rows) <= 2 * longest + 4


def test_bounds_next_to_the_longest_token() -> None:
    """The longest token is what counts can be told apart by: one byte nearer or farther must not matter."""
    for length in (1, 2, 3, 4, 7):
        vocabulary = text_vocabulary(["a", "a" * length, "x", "a" * (length - 1) + "x"])
        for minimum in range(2 * length + 3):
            for maximum in (minimum, minimum + 1, minimum + length, minimum + length + 1, 3 * length + 4, None):
                if maximum is not None and maximum < minimum:
                    continue
                ways = BothWays(counted(A, minimum, maximum), vocabulary)
                for _ in range(3 * length + 6):
                    legal = ways.legal()
                    if 0 not in legal:
                        break
                    ways.accept(0)
