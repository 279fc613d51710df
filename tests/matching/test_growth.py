"""Recursion and repetition of every kind cost what the grammar needs and no more, however long the text is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest

from infernix.errors import ConstraintTooLarge
from infernix.grammar.gbnf import parse_gbnf
from infernix.matching import DEAD, ConfigurationTable, arena

# Per grammar: an endless text of which every prefix can go on, and how much may be stored for each byte of it.
FLAT = {
    "doubling": ('root ::= s\ns ::= s s | "a"', itertools.cycle(b"a")),
    "tripling": ('root ::= s\ns ::= s s s | s s | "a" | ""', itertools.cycle(b"a")),
    "empty or a": ('root ::= ("" | "a")*', itertools.cycle(b"a")),
    "sums": ('root ::= e\ne ::= e "+" e | e "*" e | "(" e ")" | "a"', itertools.cycle(b"a+a*")),
    "units": ('root ::= a\na ::= b | "x" a\nb ::= a | "y"', itertools.cycle(b"x")),
}
LINEAR = {
    "two ends": ('root ::= s\ns ::= "a" s "x" | "a" s "y" | ""', itertools.cycle(b"a")),
    "palindromes": ('root ::= s\ns ::= "a" s "a" | "b" s "b" | "a" | "b" | ""', itertools.cycle(b"ab")),
    "optional a": ('root ::= ("a"?){0,5000}', itertools.cycle(b"a")),
    "one or two": ('root ::= ("a" | "aa"){0,5000}', itertools.cycle(b"a")),
    "mutual left": (
        'root ::= p\np ::= p "a" q | "x"\nq ::= q "b" p | "y"',
        itertools.chain(b"x", itertools.cycle(b"aybx")),
    ),
    "left and prefix": (
        'root ::= e\ne ::= e "+" t | t\nt ::= t "." c | c\nc ::= "n" | c "[" e "]" | "-" e',
        itertools.cycle(b"n+-"),
    ),
}


def sizes_after(source: str, text: Iterator[int], lengths: Iterable[int]) -> list[tuple[int, int]]:
    """Configurations and frame pairs stored after so many bytes."""
    table = ConfigurationTable.of(parse_gbnf(source))
    configuration = table.start
    sizes = []
    position = 0
    for length in lengths:
        for byte in itertools.islice(text, length - position):
            configuration = table.step_byte(configuration, byte)
            assert configuration != DEAD
        position = length
        sizes.append((table.num_configurations, int(table._control[arena.COUNT + arena.PAIRS])))
    return sizes


@pytest.mark.parametrize("name", FLAT)
def test_regular_recursion_is_flat(name: str) -> None:
    early, late = sizes_after(*FLAT[name], (100, 2_000))
    assert late == early


@pytest.mark.parametrize("name", LINEAR)
def test_nesting_and_ambiguity_are_linear(name: str) -> None:
    (_, _), (configurations, pairs), (later_configurations, later_pairs) = sizes_after(
        *LINEAR[name], (600, 1_200, 2_400)
    )
    assert later_configurations <= 2 * configurations
    assert later_pairs <= 2 * pairs


def test_a_grammar_that_needs_more_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "MAX_ARENA_BYTES", 1 << 22)
    with pytest.raises(ConstraintTooLarge, match=r"would take \d+ bytes, the bound is 4194304"):
        sizes_after('root ::= s\ns ::= "a" s s | ""', itertools.cycle(b"a"), (5_000,))
