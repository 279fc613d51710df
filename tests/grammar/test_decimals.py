"""Integer ranges and number text against exact arithmetic on strings."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from fractions import Fraction
from functools import lru_cache

import pytest

from infernix.grammar.decimals import INT64_MAX, INT64_MIN, explore, integer_range, json_number
from infernix.grammar.ir import Automaton

INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE][+-]?([0-9]+))?", re.ASCII)


@lru_cache(maxsize=4)
def moves(automaton: Automaton) -> dict[tuple[int, str], int]:
    table: dict[tuple[int, str], int] = {}
    for source, low, high, target in automaton.edges:
        for byte in range(low, high + 1):
            assert (source, chr(byte)) not in table, "not deterministic"
            table[source, chr(byte)] = target
    return table


def accepts(automaton: Automaton, text: str) -> bool:
    table = moves(automaton)
    state: int | None = 0
    for character in text:
        state = None if state is None else table.get((state, character))
    return state in automaton.accepting


def language(automaton: Automaton, max_length: int) -> set[str]:
    """All texts of at most `max_length` characters."""
    found: set[str] = set()
    states = {("", 0)}
    for _ in range(max_length + 1):
        found |= {text for text, state in states if state in automaton.accepting}
        states = {
            (text + chr(byte), target)
            for text, state in states
            for source, low, high, target in automaton.edges
            if source == state
            for byte in range(low, high + 1)
        }
    return found


LIMITS = [-1234, -1000, -999, -101, -100, -99, -11, -10, -9, -2, -1, 0, 1, 2, 9, 10, 11, 99, 100, 101, 999, 1000, 1234]


@pytest.mark.parametrize("low", LIMITS)
def test_small_ranges_hold_exactly_their_integers(low: int) -> None:
    for high in LIMITS:
        if low <= high:
            assert language(integer_range(low, high), 6) == {str(value) for value in range(low, high + 1)}


@pytest.mark.parametrize("seed", range(4))
def test_large_ranges_at_their_limits(seed: int) -> None:
    generator = random.Random(seed)

    def draw() -> int:
        return generator.choice([INT64_MIN, INT64_MAX, generator.randrange(-(10 ** generator.randint(1, 18)), 10**18)])

    for _ in range(40):
        low, high = sorted((draw(), draw()))
        automaton = integer_range(low, high)
        near = {limit + step for limit in (low, high) for step in (-10, -1, 0, 1, 10)}
        powers = {sign * 10**power + step for sign in (1, -1) for power in range(19) for step in (-1, 0, 1)}
        inside = generator.randint(low, high)
        for value in near | powers | {0, inside}:
            assert accepts(automaton, str(value)) == (low <= value <= high), (low, high, value)


@pytest.mark.parametrize("text", ["", "-", "-0", "00", "01", "-01", "+1", "1.0", "1e2", " 1", "1 ", "٣"])
def test_other_spellings_are_no_integers(text: str) -> None:
    assert not accepts(integer_range(INT64_MIN, INT64_MAX), text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "10000000000000000000"])
def test_64_bits_are_the_limit(text: str) -> None:
    assert not accepts(integer_range(INT64_MIN, INT64_MAX), text)


def test_the_size_does_not_depend_on_the_range() -> None:
    for low, high in [(INT64_MIN, INT64_MAX), (-1, 10**18), (123456789012345678, 987654321098765432)]:
        assert integer_range(low, high).num_states < 150
        assert len(integer_range(low, high).edges) < 500


def test_an_empty_range_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match=r"2\.\.1 is empty"):
        integer_range(2, 1)


def test_states_that_lead_nowhere_are_left_out() -> None:
    chain = explore(
        0, lambda state, character: min(state + 1, 9) if character == "a" else 7, lambda state: state == 2, "ab"
    )
    assert chain.num_states == 3
    assert language(chain, 9) == {"aa"}


def is_number_text(text: str) -> bool:
    """The documented rule of `json_number`, said with a regular expression and exact arithmetic."""
    found = NUMBER.fullmatch(text)
    if not found:
        return False
    whole, fraction, exponent_digits = found.groups()
    if fraction is None and exponent_digits is None:
        return text == "-0" or INT64_MIN <= int(text) <= INT64_MAX
    digits = (whole + (fraction or "")).lstrip("0")
    if len(digits) > 17:
        return False
    if whole == "0" and fraction and len(fraction) - len(fraction.lstrip("0")) > 16:
        return False
    if exponent_digits is None:
        return True
    limit = 307 if len(whole) == 1 and whole != "0" else 290
    return len(exponent_digits) <= 3 and int(exponent_digits) <= limit


def test_number_text_of_up_to_four_characters() -> None:
    automaton = json_number()
    texts = ("".join(letters) for n in range(5) for letters in itertools.product("-+.0192eE", repeat=n))
    wrong = [text for text in texts if accepts(automaton, text) != is_number_text(text)]
    assert wrong == []


def random_number_text(generator: random.Random) -> str:
    def digits(most: int) -> str:
        return "".join(generator.choices("0123456789", [4, 1, 2, 1, 1, 1, 1, 1, 1, 4], k=generator.randint(1, most)))

    text = generator.choice(["", "-"]) + generator.choice(["0", digits(3), digits(20)])
    text += generator.choice(["", "." + digits(4), "." + digits(20), "." + "0" * generator.randint(1, 18) + digits(18)])
    exponent = generator.choice([digits(2), digits(4), str(generator.randint(280, 312))])
    return text + generator.choice(["", generator.choice("eE") + generator.choice(["", "+", "-"]) + exponent])


@pytest.mark.parametrize("seed", range(3))
def test_longer_number_text_keeps_the_documented_rule(seed: int) -> None:
    generator = random.Random(seed)
    automaton = json_number()
    texts = [random_number_text(generator) for _ in range(400)]
    wrong = [text for text in texts if accepts(automaton, text) != is_number_text(text)]
    assert wrong == []
    assert any(map(is_number_text, texts))


def test_no_number_text_overflows_or_vanishes() -> None:
    generator = random.Random(5)
    automaton = json_number()
    edges: dict[int, list[tuple[int, int, int]]] = {}
    for source, low, high, target in automaton.edges:
        edges.setdefault(source, []).append((low, high, target))
    for _ in range(1000):
        state, text = 0, ""
        while state not in automaton.accepting or (generator.random() < 0.9 and state in edges):
            low, high, state = generator.choice(edges[state])
            text += chr(generator.choice([low, high]))
        value = float(text)
        assert math.isfinite(value)
        is_zero = not any(digit in "123456789" for digit in re.split("[eE]", text)[0])
        assert (value == 0.0) == is_zero, text
        if not is_zero:
            assert abs(Fraction(value) / Fraction(text) - 1) < Fraction(1, 2**52), text


def test_the_shortest_text_of_a_binary64_value_is_a_number_text() -> None:
    generator = random.Random(6)
    automaton = json_number()
    values = [struct.unpack("<d", generator.randbytes(8))[0] for _ in range(500)]
    values += [generator.uniform(-1e6, 1e6) for _ in range(300)] + [generator.random() * 10**-k for k in range(30)]
    values += [0.0, -0.0, 1e307, 1e-307, 0.1, 1e16, 123456789012345680.0, 2.0**53]
    values = [value for value in values if math.isfinite(value) and (value == 0 or 1e-307 <= abs(value) < 1e308)]
    assert [repr(value) for value in values if not accepts(automaton, repr(value))] == []
    assert len(values) > 700
