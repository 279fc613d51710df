"""Integer ranges and number text against exact arithmetic on strings."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
import sys
from fractions import Fraction

import pytest

from infernix.grammar.binary64 import GREATEST_MAGNITUDE, Magnitude
from infernix.grammar.decimals import (
    FINITE_NUMBERS,
    INT64_MAX,
    INT64_MIN,
    NumberRange,
    integer_range,
    json_number,
    number_range,
)
from infernix.grammar.ir import Automaton
from support.automaton_texts import AutomatonTexts
from support.number_texts import is_decimal_text, is_integer_text

ALPHABET = "-+.0123456789eE"


LIMITS = [-1234, -1000, -999, -101, -100, -99, -11, -10, -9, -2, -1, 0, 1, 2, 9, 10, 11, 99, 100, 101, 999, 1000, 1234]


@pytest.mark.parametrize("low", LIMITS)
def test_small_ranges_hold_exactly_their_integers(low: int) -> None:
    for high in LIMITS:
        if low <= high:
            assert AutomatonTexts(integer_range(low, high)).up_to(6) == {str(value) for value in range(low, high + 1)}


@pytest.mark.parametrize("seed", range(4))
def test_large_ranges_at_their_limits(seed: int) -> None:
    generator = random.Random(seed)

    def draw() -> int:
        return generator.choice([INT64_MIN, INT64_MAX, generator.randrange(-(10 ** generator.randint(1, 18)), 10**18)])

    for _ in range(40):
        low, high = sorted((draw(), draw()))
        language = AutomatonTexts(integer_range(low, high))
        near = {limit + step for limit in (low, high) for step in (-10, -1, 0, 1, 10)}
        powers = {sign * 10**power + step for sign in (1, -1) for power in range(19) for step in (-1, 0, 1)}
        inside = generator.randint(low, high)
        for value in near | powers | {0, inside}:
            assert (str(value) in language) == (low <= value <= high), (low, high, value)


@pytest.mark.parametrize("text", ["", "-", "-0", "00", "01", "-01", "+1", "1.0", "1e2", " 1", "1 ", "٣"])
def test_other_spellings_are_no_integers(text: str) -> None:
    assert text not in AutomatonTexts(integer_range(INT64_MIN, INT64_MAX))


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "10000000000000000000"])
def test_64_bits_are_the_limit(text: str) -> None:
    assert text not in AutomatonTexts(integer_range(INT64_MIN, INT64_MAX))


def test_the_size_does_not_depend_on_the_range() -> None:
    for low, high in [(INT64_MIN, INT64_MAX), (-1, 10**18), (123456789012345678, 987654321098765432)]:
        assert integer_range(low, high).num_states < 60
        assert len(integer_range(low, high).edges) < 130


def test_an_empty_range_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match=r"2\.\.1 is empty"):
        integer_range(2, 1)


def is_number_text(text: str) -> bool:
    """The documented rule of `json_number`, said with a regular expression and exact arithmetic."""
    return is_integer_text(text) or is_decimal_text(text, free=True)


def test_number_text_of_up_to_four_characters() -> None:
    texts = ("".join(letters) for length in range(5) for letters in itertools.product(ALPHABET, repeat=length))
    assert AutomatonTexts(json_number()).up_to(4) == set(filter(is_number_text, texts))


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
    free, bounded = AutomatonTexts(json_number()), AutomatonTexts(number_range(FINITE_NUMBERS))
    texts = [random_number_text(generator) for _ in range(1000)]
    assert [text for text in texts if (text in free) != is_number_text(text)] == []
    plain = [text for text in texts if (text in bounded) != (is_integer_text(text) or is_decimal_text(text))]
    assert plain == []
    assert len(list(filter(is_number_text, texts))) > 100


def test_no_number_text_overflows_or_vanishes() -> None:
    generator = random.Random(5)
    language = AutomatonTexts(json_number())
    for _ in range(1000):
        text = language.draw(generator)
        value = float(text)
        assert math.isfinite(value)
        is_zero = not any(digit in "123456789" for digit in re.split("[eE]", text)[0])
        assert (value == 0.0) == is_zero, text
        if abs(value) >= sys.float_info.min:
            assert abs(Fraction(value) / Fraction(text) - 1) < Fraction(1, 2**52), text


@pytest.mark.parametrize("automaton", [json_number(), number_range(FINITE_NUMBERS)], ids=["any", "range"])
def test_the_shortest_text_of_a_binary64_value_is_a_number_text(automaton: Automaton) -> None:
    generator = random.Random(6)
    values = [struct.unpack("<d", generator.randbytes(8))[0] for _ in range(500)]
    values += [generator.uniform(-1e6, 1e6) for _ in range(300)] + [generator.random() * 10**-k for k in range(320)]
    values += [0.0, -0.0, 1e307, 1e-307, 0.1, 1e16, 123456789012345680.0, 2.0**53, 5e-324, -1e-310]
    values += [sys.float_info.max, -sys.float_info.max, sys.float_info.min]
    language = AutomatonTexts(automaton)
    assert [value for value in values if math.isfinite(value) and repr(value) not in language] == []


@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e400", "1.8e308", "1.7976931348623158e308", "1e-400", "4e-324", "1e999", "0.1e309", "1e0308", "01.0"],
)
def test_what_is_not_finite_or_vanishes_is_no_number_text(text: str) -> None:
    assert text not in AutomatonTexts(json_number())
    assert text not in AutomatonTexts(number_range(FINITE_NUMBERS))


def test_the_range_of_all_numbers_has_fewer_spellings_than_any_number() -> None:
    """An exponent behind other digits than d.ddd is free only where nothing is compared."""
    free, bounded = AutomatonTexts(json_number()), AutomatonTexts(number_range(FINITE_NUMBERS))
    assert bounded.up_to(4) < free.up_to(4)
    for text in ["12e3", "0.5e1", "12.5e-3"]:
        assert text in free
        assert text not in bounded


@pytest.mark.parametrize(
    "numbers",
    [
        NumberRange((-3, 12), None, None, zero=False),
        NumberRange(None, (Magnitude(-1, "25"), Magnitude(1, "3")), None, zero=False),
        NumberRange(None, None, (Magnitude(0, "1"), Magnitude(0, "1")), zero=False),
        NumberRange(None, None, None, zero=True),
        NumberRange((0, 0), (Magnitude(2, "1"), GREATEST_MAGNITUDE), None, zero=False),
    ],
)
def test_each_kind_of_number_by_itself(numbers: NumberRange) -> None:
    def belongs(text: str) -> bool:
        value = Fraction(text)
        if is_integer_text(text) and text != "-0" and numbers.integers is not None:
            low, high = numbers.integers
            return low <= value <= high
        if value == 0:
            return numbers.zero
        limits = numbers.positive if value > 0 else numbers.negative
        return (
            is_decimal_text(text) and limits is not None and limits[0] <= Magnitude.of(abs(Fraction(text))) <= limits[1]
        )

    texts = ("".join(letters) for length in range(5) for letters in itertools.product(ALPHABET, repeat=length))
    spelled = {text for text in texts if is_integer_text(text) or is_decimal_text(text)}
    assert AutomatonTexts(number_range(numbers)).up_to(4) == set(filter(belongs, spelled))
    assert not numbers.is_empty


def test_a_range_without_numbers_is_empty() -> None:
    nothing = NumberRange(None, None, None, zero=False)
    assert nothing.is_empty
    with pytest.raises(ValueError, match="the range is empty"):
        number_range(nothing)
