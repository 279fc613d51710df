"""The first and the last decimal that keeps a bound, against the definition at the decimals next to it."""

from __future__ import annotations

import math
import random
import struct
from decimal import Context, Decimal
from fractions import Fraction

import pytest

from infernix.grammar.binary64 import (
    GREATEST_MAGNITUDE,
    LEAST_MAGNITUDE,
    Magnitude,
    greatest_magnitude,
    least_magnitude,
)
from support.number_texts import Limit

GRID = Context(prec=17, Emin=-400, Emax=400)

BOUNDS = [
    *["0.1", "0.3", "0.5", "1", "2", "3", "5", "9", "10", "99.5", "123456.789", "1e-7", "1e22", "1e23", "9e22"],
    *["0.12345678901234568", "9.999999999999998", "4503599627370496.5", "9007199254740991", "9007199254740993"],
    *["9007199254740995", "18014398509481983", "1152921504606846976", "1152921504606846977", "1152921504606847000"],
    *["9223372036854775807", "9223372036854776000", "1e300", "1e308", "2.2250738585072014e-308", "1e-310"],
]


def text_of(magnitude: Magnitude) -> str:
    return f"{magnitude.digits[0]}.{magnitude.digits[1:] or '0'}e{magnitude.exponent}"


def random_bounds(seed: int, count: int) -> list[str]:
    generator = random.Random(seed)
    values = [abs(struct.unpack("<d", generator.randbytes(8))[0]) for _ in range(count)]
    integers = [str(generator.randrange(2 ** generator.randint(1, 63))) for _ in range(count)]
    return [repr(value) for value in values if math.isfinite(value)] + [text for text in integers if text != "0"]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_the_extreme_decimals_keep_the_bound_and_the_next_ones_do_not(seed: int, exclusive: bool) -> None:
    for text in [*BOUNDS, *random_bounds(seed, 200)]:
        bound = Fraction(text)
        least = least_magnitude(bound, exclusive=exclusive)
        assert least is not None
        lower = Limit("exclusiveMinimum" if exclusive else "minimum", bound)
        assert lower.is_kept_by(text_of(least)), text
        assert not lower.is_kept_by(f"{GRID.next_minus(Decimal(text_of(least))):.16e}"), text

        greatest = greatest_magnitude(bound, exclusive=exclusive)
        assert greatest is not None
        upper = Limit("exclusiveMaximum" if exclusive else "maximum", bound)
        assert upper.is_kept_by(text_of(greatest)), text
        assert not upper.is_kept_by(f"{GRID.next_plus(Decimal(text_of(greatest))):.16e}"), text


def test_a_bound_is_kept_by_itself() -> None:
    """Also where the nearest binary64 value is on the other side, as of 0.3 below and of 0.1 above."""
    for text in ["0.1", "0.3", "2.675", "1e23", "1e300"]:
        itself = Magnitude.of(Fraction(text))
        assert least_magnitude(Fraction(text), exclusive=False) == itself
        assert greatest_magnitude(Fraction(text), exclusive=False) == itself


def test_decimals_that_round_to_an_excluded_bound_are_excluded() -> None:
    assert least_magnitude(Fraction(9), exclusive=True) == Magnitude(0, "90000000000000009")
    assert greatest_magnitude(Fraction(9), exclusive=True) == Magnitude(0, "89999999999999991")
    assert greatest_magnitude(Fraction("0.1"), exclusive=True) == Magnitude(-2, "99999999999999998")
    # 9007199254740993 is halfway between two binary64 values and read as the lower one.
    assert least_magnitude(Fraction(9007199254740993), exclusive=False) == Magnitude.of(Fraction("9007199254740993.1"))


def test_the_ends_of_binary64() -> None:
    largest, smallest = Fraction("1.7976931348623157e308"), Fraction("5e-324")
    assert least_magnitude(largest, exclusive=False) == GREATEST_MAGNITUDE == Magnitude.of(largest)
    assert least_magnitude(largest, exclusive=True) is None
    assert least_magnitude(Fraction(10) ** 400, exclusive=False) is None
    assert greatest_magnitude(Fraction(10) ** 400, exclusive=False) == GREATEST_MAGNITUDE
    assert greatest_magnitude(smallest, exclusive=False) == LEAST_MAGNITUDE == Magnitude.of(smallest)
    assert greatest_magnitude(smallest, exclusive=True) is None
    assert least_magnitude(Fraction(1, 10**400), exclusive=True) == LEAST_MAGNITUDE
    assert greatest_magnitude(Fraction(1, 10**400), exclusive=False) is None


def test_magnitudes_compare_by_value() -> None:
    texts = ["1e-300", "0.015", "0.1", "0.12", "0.2", "1", "1.0000000000000001", "9.9", "10", "11", "1e300"]
    magnitudes = [Magnitude.of(Fraction(text)) for text in texts]
    assert sorted(magnitudes) == magnitudes
    with pytest.raises(ValueError, match="more than 17 significant digits"):
        Magnitude.of(Fraction(1, 3))
