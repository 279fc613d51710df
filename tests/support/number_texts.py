"""The published spellings of numbers and what it means to keep a bound, said with regular expressions and fractions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

INT64 = range(-(2**63), 2**63)
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_LARGEST = Fraction(repr(1.7976931348623157e308))
_SMALLEST = Fraction(repr(5e-324))


@cache
def is_integer_text(text: str) -> bool:
    """Digits alone, within 64 bits; or `-0`."""
    return re.fullmatch(r"-?(0|[1-9][0-9]*)", text, re.ASCII) is not None and int(text) in INT64


def is_decimal_text(text: str, *, free: bool = False) -> bool:
    """A point or an exponent, at most 17 digits, finite; `free`: an exponent up to 290 behind any digits."""
    found = NUMBER.fullmatch(text)
    if not found:
        return False
    whole, fraction, exponent = found.groups()
    digits = (whole + (fraction or "")).lstrip("0")
    if len(digits) > 17 or (fraction is None and exponent is None):
        return False
    if fraction is not None and whole == "0" and len(fraction) - len(fraction.lstrip("0")) > 16:
        return False
    if exponent is not None:
        if len(exponent.lstrip("+-")) > 3:
            return False
        is_scientific = whole != "0" and len(whole) == 1
        is_free = (free or not digits) and abs(int(exponent)) <= 290
        if not (is_scientific or is_free):
            return False
    return not digits or _SMALLEST <= abs(Fraction(text)) <= _LARGEST


@dataclass(frozen=True)
class Limit:
    """One bound keyword and its value."""

    keyword: str
    value: Fraction

    def holds(self, number: Fraction, bound: Fraction | None = None) -> bool:
        """Whether `number` is on the right side of the value, or of `bound`."""
        bound = self.value if bound is None else bound
        match self.keyword:
            case "minimum":
                return number >= bound
            case "exclusiveMinimum":
                return number > bound
            case "maximum":
                return number <= bound
        return number < bound

    def is_kept_by(self, text: str) -> bool:
        """Whether the number keeps this bound as it is written, as it is read and as it is written again."""
        written, read, written_again = _readings(text)
        if is_integer_text(text):
            return self.holds(written)
        return self.holds(written) and self.holds(read, self._bound_as_read) and self.holds(written_again)

    @cached_property
    def _bound_as_read(self) -> Fraction:
        is_integer = self.value.denominator == 1 and int(self.value) in INT64
        return self.value if is_integer else Fraction(float(self.value))


@cache
def _readings(text: str) -> tuple[Fraction, Fraction, Fraction]:
    read = float(text)
    return Fraction(text), Fraction(read), Fraction(repr(read))
