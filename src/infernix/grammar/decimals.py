"""Number text as deterministic automata over ASCII bytes: integer ranges, ranges of decimals, any JSON number.

`infernix.grammar.binary64` finds the first and the last decimal of a range; here they are compared with the text,
digit by digit, as it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias

from infernix.grammar.acyclic import END, NOTHING, AcyclicGraph, Node
from infernix.grammar.binary64 import (
    GREATEST_MAGNITUDE,
    LEAST_MAGNITUDE,
    MAX_SIGNIFICANT_DIGITS,
    Magnitude,
)
from infernix.grammar.binary64 import INT64_MAX as INT64_MAX
from infernix.grammar.binary64 import INT64_MIN as INT64_MIN
from infernix.grammar.ir import Automaton

MAX_LEADING_FRACTION_ZEROS = 16
MAX_FREE_EXPONENT = 290
"""Any number of at most 17 digits before and 33 behind its point stays normal in binary64 with this exponent."""

_MAX_EXPONENT_DIGITS = 3
_MAX_CACHED_AUTOMATA = 128
_DIGITS = "0123456789"

MagnitudeRange: TypeAlias = tuple[Magnitude, Magnitude]
_Digits: TypeAlias = Callable[[int, int, int], Node]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers between two limits, by the ways to write them; None where there is no number of a kind.

    `integers` are the first and the last of those without point and exponent, `positive` and `negative` the smallest
    and the largest magnitude of the others, `zero` tells whether 0 is among the numbers.
    """

    integers: tuple[int, int] | None
    positive: MagnitudeRange | None
    negative: MagnitudeRange | None
    zero: bool

    @property
    def is_empty(self) -> bool:
        """Whether no number can be written."""
        return self.integers is None and self.positive is None and self.negative is None and not self.zero


FINITE_NUMBERS = NumberRange(
    (INT64_MIN, INT64_MAX), (LEAST_MAGNITUDE, GREATEST_MAGNITUDE), (LEAST_MAGNITUDE, GREATEST_MAGNITUDE), zero=True
)


@lru_cache(_MAX_CACHED_AUTOMATA)
def integer_range(low: int, high: int) -> Automaton:
    """The integers low..high, both included, as `-?(0|[1-9][0-9]*)` without `-0`.

    The number of states grows with the number of digits, not with the range. ValueError if the range is empty.
    """
    if low > high:
        raise ValueError(f"the range {low}..{high} is empty")
    graph = AcyclicGraph()
    return graph.automaton(_integers(graph, low, high))


@lru_cache(_MAX_CACHED_AUTOMATA)
def number_range(numbers: NumberRange) -> Automaton:
    """The numbers of a range, in the spellings below; ValueError if the range is empty.

    - an integer of `integers` without point and exponent;
    - a plain decimal without exponent: at least one digit on both sides of the point, at most 17 significant ones
      (zeros before the first other digit do not count, trailing ones do), at most 16 zeros directly after `0.`;
    - a scientific decimal: one digit other than 0, then perhaps a point and up to 16 digits, then an exponent of one
      to three digits, leading zeros included;
    - for zero, `0` or `0.0` with up to 16 zeros behind the point, and those with an exponent of -290..290; with or
      without a minus.
    """
    if numbers.is_empty:
        raise ValueError("the range is empty")
    graph = AcyclicGraph()
    return graph.automaton(_numbers(graph, numbers))


@cache
def json_number() -> Automaton:
    """The text of a JSON number (RFC 8259, section 6) that is finite in binary64: all spellings of `number_range` and

    - an exponent of -290..290 behind any plain decimal, and behind an integer of up to 17 digits.

    No text overflows, and none but zero becomes zero. The shortest text of every binary64 value (as Python's `repr` or
    JavaScript's `String` write it) is included, except JavaScript's integers of 19 to 21 digits beyond 64 bits, which
    have a scientific form.
    """
    graph = AcyclicGraph()
    free = _freely_scaled(graph)
    return graph.automaton(graph.union(_numbers(graph, FINITE_NUMBERS), graph.union(free, graph.node({"-": free}))))


def _numbers(graph: AcyclicGraph, numbers: NumberRange) -> Node:
    zero = _zeros(graph) if numbers.zero else NOTHING
    sides = []
    for magnitudes in (numbers.positive, numbers.negative):
        sides.append(graph.union(zero, _magnitudes(graph, *magnitudes) if magnitudes else NOTHING))
    positive, negative = sides
    decimals = graph.union(positive, graph.node({"-": negative}))
    return graph.union(decimals, _integers(graph, *numbers.integers)) if numbers.integers else decimals


def _zeros(graph: AcyclicGraph) -> Node:
    """`0`, `0.0`, `0.00`, … and the same with an exponent."""
    exponent = _exponent(graph, -MAX_FREE_EXPONENT, MAX_FREE_EXPONENT)
    fraction = NOTHING
    for _ in range(MAX_LEADING_FRACTION_ZEROS):
        fraction = graph.node({"0": fraction, **exponent}, accepting=True)
    return graph.node({"0": graph.node({".": graph.node({"0": fraction}), **exponent}, accepting=True)})


def _freely_scaled(graph: AcyclicGraph) -> Node:
    """Positive decimals of at most 17 significant digits, point anywhere, with an exponent of -290..290."""
    exponent = _exponent(graph, -MAX_FREE_EXPONENT, MAX_FREE_EXPONENT)
    fraction = whole = graph.node(exponent)
    for _ in range(MAX_SIGNIFICANT_DIGITS - 1):
        point = graph.node(dict.fromkeys(_DIGITS, fraction))
        whole = graph.node({**dict.fromkeys(_DIGITS, whole), ".": point, **exponent})
        fraction = graph.node({**dict.fromkeys(_DIGITS, fraction), **exponent})
    leading = NOTHING
    for _ in range(MAX_LEADING_FRACTION_ZEROS + 1):
        leading = graph.node({"0": leading, **dict.fromkeys(_DIGITS[1:], fraction)})
    return graph.node({**dict.fromkeys(_DIGITS[1:], whole), "0": graph.node({".": leading})})


def _integers(graph: AcyclicGraph, low: int, high: int) -> Node:
    positive = _positive_integers(graph, str(max(low, 1)), str(high)) if high >= 1 else NOTHING
    negative = _positive_integers(graph, str(max(-high, 1)), str(-low)) if low <= -1 else NOTHING
    zero = END if low <= 0 <= high else NOTHING
    return graph.union(positive, graph.node({"-": negative, "0": zero}))


# In what follows `to_low` and `to_high` compare the first `count` significant digits, those that are read, with as many
# of the lower and of the upper limit: -1 below, 0 equal, 1 above.


def _positive_integers(graph: AcyclicGraph, low: str, high: str) -> Node:
    """The integers between two positive ones, all as digits that do not begin with 0."""

    @cache
    def digits(count: int, to_low: int, to_high: int) -> Node:
        if count > len(high) or (count == len(high) and to_high > 0):
            return NOTHING
        follow = _follow(digits, low, high, count, to_low, to_high)
        return graph.node(follow, accepting=count > len(low) or (count == len(low) and to_low >= 0))

    return graph.node(_first(digits, low, high))


def _magnitudes(graph: AcyclicGraph, low: Magnitude, high: Magnitude) -> Node:
    """The decimals low..high, plain or scientific, without integers; see `number_range`."""

    @cache
    def scale(is_below_low: bool, is_above_high: bool) -> dict[str, Node]:
        return _exponent(graph, low.exponent + is_below_low, high.exponent - is_above_high)

    def scaled(count: int, to_low: int, to_high: int) -> dict[str, Node]:
        """The exponents that bring digits d.ddd, now complete, between the limits."""
        return scale(to_low < 0 or (to_low == 0 and count < len(low.digits)), to_high > 0)

    def more(digits: _Digits, count: int, to_low: int, to_high: int) -> dict[str, Node]:
        if count == MAX_SIGNIFICANT_DIGITS:
            return {}
        return _follow(digits, low.digits, high.digits, count, to_low, to_high)

    @cache
    def scientific(count: int, to_low: int, to_high: int) -> Node:
        return graph.node({**more(scientific, count, to_low, to_high), **scaled(count, to_low, to_high)})

    @cache
    def plain(count: int, to_low: int, to_high: int) -> Node:
        if to_low < 0 or to_high > 0:
            return NOTHING
        is_high_enough = to_low > 0 or count >= len(low.digits)
        return graph.node(more(plain, count, to_low, to_high), accepting=is_high_enough)

    def placed(exponent: int, to_low: int, to_high: int) -> tuple[int, int]:
        """The same comparisons, now that the first digit is known to count 10**exponent."""
        return (
            to_low if exponent == low.exponent else 1 if exponent > low.exponent else -1,
            to_high if exponent == high.exponent else 1 if exponent > high.exponent else -1,
        )

    @cache
    def whole(count: int, to_low: int, to_high: int) -> Node:
        if count > 1 and count - 1 > high.exponent:
            return NOTHING
        point = graph.node(more(plain, count, *placed(count - 1, to_low, to_high)))
        moves = more(whole, count, to_low, to_high)
        if count == 1:
            point = graph.union(point, graph.node(more(scientific, count, to_low, to_high)))
            moves |= scaled(count, to_low, to_high)
        return graph.node({**moves, ".": point})

    leading = NOTHING
    for exponent in range(-MAX_LEADING_FRACTION_ZEROS - 1, 0):

        def fraction(count: int, to_low: int, to_high: int, exponent: int = exponent) -> Node:
            return plain(count, *placed(exponent, to_low, to_high))

        leading = graph.node({"0": leading, **_first(fraction, low.digits, high.digits)})
    return graph.node({**_first(whole, low.digits, high.digits), "0": graph.node({".": leading})})


def _first(digits: _Digits, low: str, high: str) -> dict[str, Node]:
    """The moves over a first significant digit."""
    moves = _follow(digits, low, high, 0, 0, 0)
    del moves["0"]
    return moves


def _follow(digits: _Digits, low: str, high: str, count: int, to_low: int, to_high: int) -> dict[str, Node]:
    """The moves over one more digit: what follows is `digits` of the new count and comparisons."""
    if to_low and to_high:
        return dict.fromkeys(_DIGITS, digits(count + 1, to_low, to_high))
    low_digit, high_digit = low[count : count + 1] or "0", high[count : count + 1] or "0"
    return {
        digit: digits(
            count + 1,
            to_low or (digit > low_digit) - (digit < low_digit),
            to_high or (digit > high_digit) - (digit < high_digit),
        )
        for digit in _DIGITS
    }


def _exponent(graph: AcyclicGraph, least: int, most: int) -> dict[str, Node]:
    """The moves over an exponent of least..most, written with one to three digits; none if there is none."""
    positive = _short_integers(graph, max(least, 0), most)
    negative = _short_integers(graph, max(-most, 0), -least)
    exponent = graph.union(positive, graph.node({"+": positive, "-": negative}))
    return {"e": exponent, "E": exponent}


def _short_integers(graph: AcyclicGraph, low: int, high: int) -> Node:
    """The integers low..high (low >= 0) in one to three digits, leading zeros included."""

    @cache
    def padded(num_digits: int, low: int, high: int) -> Node:
        """Those of exactly this many digits."""
        if low > high:
            return NOTHING
        if num_digits == 0:
            return END
        size = 10 ** (num_digits - 1)
        ranges = {
            digit: (max(low - size * int(digit), 0), min(high - size * int(digit), size - 1)) for digit in _DIGITS
        }
        return graph.node({digit: padded(num_digits - 1, *part) for digit, part in ranges.items()})

    node = NOTHING
    for num_digits in range(1, _MAX_EXPONENT_DIGITS + 1):
        node = graph.union(node, padded(num_digits, low, min(high, 10**num_digits - 1)))
    return node
