"""Rows of counted loops near their bound that are made of the last such row, against rows by walks alone."""

from __future__ import annotations

import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, analysis, slices
from infernix.matching import rows as rows_module
from infernix.matching.masks import VocabularyIndex
from infernix.matching.plans import MAX_OTHERS, OTHERS_OF
from support.plain_rows import note_kinds, plain_epoch
from support.vocabularies import text_vocabulary

# Tokens of letters are longer than all others, so that there are counts out of reach of these alone.
LONGEST = 14
TEXTS = [
    *'abcxy12"!',
    *("a" * length for length in range(2, LONGEST + 1)),
    *("ab", "ba", "caa", "abcabcabc", 'a"', 'aa"', "ax", "ay", "aax", 'b"x', '"x', '"y', "x1", "x2", "a!", "y2", "bx"),
]
VOCABULARY = text_vocabulary(TEXTS)
LETTER = character_class([(ord("a"), ord("f"))])


def word(*bounds: int) -> ir.Expression:
    return ir.Repeat(LETTER, *bounds)


def two_callers() -> ir.Grammar:
    """One rule, called from two places, with what follows in the caller."""
    builder = ir.GrammarBuilder()
    root, name = builder.declare("root"), builder.declare("name")
    # Calls itself, so that it is not copied into its callers.
    builder.define(name, ir.sequence(word(0, 15), ir.optional(ir.sequence(ir.text("!"), name))))
    builder.define(
        root,
        ir.choice(
            ir.sequence(ir.text("1"), name, ir.text("x")),
            ir.sequence(ir.text("2"), name, ir.text("y")),
        ),
    )
    return builder.build(root)


def callers_beside_the_loop() -> ir.Grammar:
    """Behind two texts the same state waits beside the loop, for two callers."""
    builder = ir.GrammarBuilder()
    root, rest = builder.declare("root"), builder.declare("rest")
    builder.define(rest, ir.choice(ir.text("x"), ir.sequence(ir.text("!"), rest, ir.text("!"))))
    builder.define(
        root,
        ir.choice(
            ir.sequence(word(0, 15), ir.text('"')),
            ir.sequence(ir.text("aaaab"), rest, ir.text("1")),
            ir.sequence(ir.text("aaaac"), rest, ir.text("2")),
        ),
    )
    return builder.build(root)


# By name a grammar and texts of it.
CASES = {
    "up to the bound": (ir.Grammar.of(ir.sequence(word(0, 15), ir.text('"'))), ["a" * 15 + '"', "ababab"]),
    "two loops on one set": (
        ir.Grammar.of(
            ir.choice(
                ir.sequence(ir.text("1"), word(0, 15), ir.text("x")),
                ir.sequence(ir.text("2"), word(0, 16), ir.text("y")),
            )
        ),
        ["1" + "a" * 12, "2" + "a" * 14, "1aaa", "2aaaaaaa"],
    ),
    "two callers": (two_callers(), ["1aaaaa", "2aaaaa", "1aaa!aaaa", "2aaa!aaa"]),
    "a minimum": (ir.Grammar.of(ir.sequence(word(8, 16), ir.text('"x'))), ["a" * 12, "abcabcaa"]),
    "something beside the loop": (
        ir.Grammar.of(
            ir.choice(
                ir.sequence(word(0, 15), ir.text('"')),
                ir.text("aaaabx"),
                ir.text("aaaacy"),
                ir.sequence(ir.text("aaacax")),
            )
        ),
        ["aaaab", "aaaac", "aaacaaa", "aaaabaa"],
    ),
    "callers beside the loop": (callers_beside_the_loop(), ["aaaab", "aaaac", "aaaaba"]),
}


@pytest.fixture(autouse=True)
def _small_loops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MAX_EXPANDED_EDGES", 0)
    monkeypatch.setattr(rows_module, "_WORDS_PER_CHANGED_WORD", 1)


def check(index: VocabularyIndex, grammar: ir.Grammar, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Compares all rows along the texts, twice; returns how often others were remembered."""
    epoch, plain = CompiledGrammar(grammar, index).epoch, plain_epoch(grammar, index, monkeypatch)
    # That also compares the rows' hashes.
    note_kinds(epoch, monkeypatch)
    remembered = set()
    for text in [*texts, *reversed(texts)]:
        places = [epoch.table.start, plain.table.start]
        for byte in [*text.encode(), None]:
            found, wanted = epoch.row(places[0]).words(), plain.row(places[1]).words()
            assert found is not None
            assert wanted is not None
            assert found.tolist() == wanted.tolist(), text
            assert epoch._plans is not None
            remembered.add(int(epoch._plans.numbers[OTHERS_OF]))
            if byte is not None:
                places = [each.table.step_byte(place, byte) for each, place in zip((epoch, plain), places, strict=True)]
                assert DEAD not in places
    return len(remembered - {DEAD})


@pytest.mark.parametrize("min_share", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_a_walk_over_whole_tokens(name: str, min_share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no slice is made for the loop's set."""
    monkeypatch.setattr(slices, "MIN_SHARE", min_share)
    num_remembered = check(VocabularyIndex(VOCABULARY), *CASES[name], monkeypatch)
    assert (num_remembered > 0) == (min_share == 0)


@pytest.mark.parametrize("num_others", [MAX_OTHERS, MAX_OTHERS + 1])
def test_no_more_words_are_remembered_than_there_is_room_for(num_others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MIN_SHARE", 0)
    # Each in a word of its own, with tokens between them that no text has.
    others = ['"' + chr(0x4E00 + number) for number in range(num_others)]
    fillers = [b"\xff" + bytes([number]) for number in range(31)]
    letters = ["a" * length for length in range(1, LONGEST + 1)]
    vocabulary = text_vocabulary([*(token for other in others for token in (other, *fillers)), *letters])
    end = ir.sequence(ir.text('"'), character_class([(0x4E00, 0x9FFF)]))
    grammar = ir.Grammar.of(ir.sequence(word(0, LONGEST), end))
    index = VocabularyIndex(vocabulary)
    remembered = check(index, grammar, ["a" * 8], monkeypatch)
    assert (remembered > 0) == (num_others == MAX_OTHERS)
