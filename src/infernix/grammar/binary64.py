"""Which decimals of at most 17 significant digits keep a bound, before and after rounding to binary64.

Both tests are monotone: the decimals that keep a lower bound are all those from a least one on. That least decimal
is found here, and the greatest one for an upper bound; texts can then be compared with it digit by digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

MAX_SIGNIFICANT_DIGITS = 17
"""As many decimal digits tell any two binary64 values apart (IEEE 754-2019, section 5.12.2)."""


@dataclass(frozen=True, slots=True, order=True)
class Magnitude:
    """A positive decimal d.ddd * 10**exponent: `digits` without the point, 1 to 17, the first and the last not 0.

    Compared by value: by exponent, then digit by digit.
    """

    exponent: int
    digits: str

    @classmethod
    def of(cls, value: Fraction) -> Magnitude:
        """`value` > 0, which must have at most 17 significant digits."""
        exponent = _decimal_exponent(value)
        scaled = value / _power_of_ten(exponent - MAX_SIGNIFICANT_DIGITS + 1)
        if scaled.denominator != 1:
            raise ValueError(f"{value} has more than {MAX_SIGNIFICANT_DIGITS} significant digits")
        return cls(exponent, str(scaled.numerator).rstrip("0"))


LEAST_MAGNITUDE = Magnitude(-324, "5")
GREATEST_MAGNITUDE = Magnitude(308, "17976931348623157")
"""The shortest texts of the smallest and the largest positive binary64 value."""


def least_magnitude(bound: Fraction, *, exclusive: bool) -> Magnitude | None:
    """The least decimal that keeps the lower bound `bound` > 0 (None: no finite one does).

    A decimal v keeps a bound if v does, and the binary64 value nearest to v does, and the shortest text of that value
    does: the number as it is written, as it is read, and as it is written again. Where the value as it is read is
    compared, the bound too is taken as it would be read: exactly if it is a signed 64-bit integer, else as binary64.
    So 0.3 keeps the bound 0.3, though the binary64 value of either is less.
    """
    value = _value_at_least(bound, exclusive)
    if value is None:
        return None
    previous = math.nextafter(value, 0.0)
    threshold = max(bound, (Fraction(previous) + Fraction(value)) / 2)
    step = _grid_step(threshold)
    candidate = -(-threshold // step) * step
    # At most one step more, where a tie is rounded away from `value` or the bound excludes itself.
    while float(candidate) < value or (exclusive and candidate == bound):
        candidate += _grid_step(candidate)
    return max(Magnitude.of(candidate), LEAST_MAGNITUDE)


def greatest_magnitude(bound: Fraction, *, exclusive: bool) -> Magnitude | None:
    """The greatest decimal that keeps the upper bound `bound` > 0 (None: no positive one does); as above."""
    value = _value_at_most(bound, exclusive)
    if value == 0.0:
        return None
    following = math.nextafter(value, math.inf)
    if following == math.inf:
        threshold = min(bound, Fraction(value))
    else:
        threshold = min(bound, (Fraction(value) + Fraction(following)) / 2)
    step = _grid_step(threshold)
    candidate = threshold // step * step
    while _rounded(candidate) > value or (exclusive and candidate == bound):
        # Below a power of ten the grid is ten times finer.
        candidate -= _grid_step(candidate * Fraction(10**MAX_SIGNIFICANT_DIGITS - 1, 10**MAX_SIGNIFICANT_DIGITS))
    return min(Magnitude.of(candidate), GREATEST_MAGNITUDE)


def _value_at_least(bound: Fraction, exclusive: bool) -> float | None:
    """The least binary64 value that keeps a lower bound when compared with it and when written as its shortest text."""
    as_read = _as_read(bound)
    value = _rounded(bound)

    def keeps(candidate: float) -> bool:
        exact, written = Fraction(candidate), Fraction(repr(candidate))
        return exact > as_read and written > bound if exclusive else exact >= as_read and written >= bound

    while value != math.inf and not keeps(value):
        value = math.nextafter(value, math.inf)
    if value == math.inf:
        return None
    while value > 0 and keeps(previous := math.nextafter(value, 0.0)):
        value = previous
    return value


def _value_at_most(bound: Fraction, exclusive: bool) -> float:
    """The greatest binary64 value that keeps an upper bound when compared with it and when written; 0 if none does."""
    as_read = _as_read(bound)
    value = min(_rounded(bound), math.nextafter(math.inf, 0.0))

    def keeps(candidate: float) -> bool:
        exact, written = Fraction(candidate), Fraction(repr(candidate))
        return exact < as_read and written < bound if exclusive else exact <= as_read and written <= bound

    while value > 0 and not keeps(value):
        value = math.nextafter(value, 0.0)
    while (following := math.nextafter(value, math.inf)) != math.inf and keeps(following):
        value = following
    return value


def _as_read(bound: Fraction) -> Fraction | float:
    """What a parser makes of a bound; inf compares as it should with a Fraction."""
    return bound if bound.denominator == 1 and bound <= INT64_MAX else _rounded(bound)


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _decimal_exponent(value: Fraction) -> int:
    """The e with 10**e <= value < 10**(e + 1), for value > 0."""
    # By the lengths of numerator and denominator in bits, then exactly: 643 / 2136 is just below log10(2).
    exponent = (value.numerator.bit_length() - value.denominator.bit_length()) * 643 // 2136
    while _power_of_ten(exponent) > value:
        exponent -= 1
    while _power_of_ten(exponent + 1) <= value:
        exponent += 1
    return exponent


def _grid_step(value: Fraction) -> Fraction:
    """The distance of decimals of 17 significant digits at `value` > 0."""
    return _power_of_ten(_decimal_exponent(value) - MAX_SIGNIFICANT_DIGITS + 1)


def _power_of_ten(exponent: int) -> Fraction:
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)
