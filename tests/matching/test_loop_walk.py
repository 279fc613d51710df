"""Loops with nothing beside them: their rows by suffixes against rows by whole tokens."""

from __future__ import annotations

from random import Random

import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, analysis, slices
from infernix.matching.masks import VocabularyIndex
from infernix.matching.row_kinds import COUNTED_LOOP, ENDLESS_LOOP
from support.plain_rows import note_kinds, plain_epoch
from support.vocabularies import text_vocabulary

_RNG = Random(5)
VOCABULARY = text_vocabulary(
    [
        *'ab0 x,]"',
        *("".join(_RNG.choices('ab0x,]" é', k=_RNG.randint(2, 9))) for _ in range(300)),
        *("a" * length for length in range(2, 14)),
        *("b" * length + "x" for length in range(1, 13)),
    ]
)
LETTER = character_class([(ord("a"), ord("f"))])
LETTER_OR_DIGIT = character_class([(ord("a"), ord("f")), (ord("0"), ord("9"))])
NOT_QUOTE = character_class([(ord('"'), ord('"'))], negated=True)


@pytest.fixture(autouse=True)
def _small_loops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    monkeypatch.setattr(analysis, "MAX_EXPANDED_EDGES", 0)


def quoted(body: ir.Expression, minimum: int, maximum: int | None, end: ir.Expression | None = None) -> ir.Grammar:
    loop = ir.Repeat(body, minimum, maximum)
    return ir.Grammar.of(ir.sequence(ir.text('"'), loop, ir.text('"') if end is None else end))


# By name the grammar, a text of it, and the ways that rows along the text are expected to be worked out.
FAR, NEAR, PLAIN = "far from bounds", "near a bound", "otherwise"
CASES = {
    "without bounds": (quoted(NOT_QUOTE, 0, None), '"a0 é,]b"', {FAR, PLAIN}),
    "bounds out of reach": (quoted(NOT_QUOTE, 0, 1000), '"a0 é,]b"', {FAR, PLAIN}),
    "minimum out of reach": (quoted(NOT_QUOTE, 500, 1000), '"a0 é,]b', {FAR, PLAIN}),
    "bounds in reach": (quoted(NOT_QUOTE, 3, 9), '"a0 é,]baa"', {NEAR, PLAIN}),
    "the last two": (quoted(LETTER, 0, 17), '"' + "a" * 17 + '"', {FAR, NEAR, PLAIN}),
    "minimum without maximum": (quoted(LETTER, 4, None), '"aabbab"', {FAR, NEAR, PLAIN}),
    "another loop behind it": (quoted(LETTER, 0, None, ir.Repeat(LETTER, 0, None)), '"aabb', {FAR, PLAIN}),
    "another loop behind the count": (
        quoted(LETTER, 5, 5, ir.Repeat(LETTER_OR_DIGIT, 0, None)),
        '"aabbab0',
        {FAR, PLAIN},
    ),
    "a letter behind it": (quoted(LETTER, 2, 6, ir.text("ax")), '"aabbax', {PLAIN}),
    "two at once": (
        ir.Grammar.of(ir.choice(ir.Repeat(LETTER, 0, 9), ir.Repeat(LETTER_OR_DIGIT, 0, 30))),
        "aabba0a",
        {FAR, PLAIN},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_a_walk_over_whole_tokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar, text, expected_ways = CASES[name]
    index = VocabularyIndex(VOCABULARY)
    epoch, plain = CompiledGrammar(grammar, index).epoch, plain_epoch(grammar, index, monkeypatch)
    configurations = [epoch.table.start, plain.table.start]
    kinds = note_kinds(epoch, monkeypatch)
    for byte in [*text.encode(), None]:
        found, wanted = epoch.row(configurations[0]).words(), plain.row(configurations[1]).words()
        assert found is not None
        assert wanted is not None
        assert found.tolist() == wanted.tolist()
        if byte is not None:
            configurations = [
                table.step_byte(configuration, byte)
                for table, configuration in zip((epoch.table, plain.table), configurations, strict=True)
            ]
            assert DEAD not in configurations
    ways = {ENDLESS_LOOP: FAR, COUNTED_LOOP: NEAR}
    assert {ways.get(kind, PLAIN) for kind in kinds} == expected_ways
