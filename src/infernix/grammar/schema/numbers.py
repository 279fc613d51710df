"""Integers and numbers -> ir, and which numbers a node holds."""

from __future__ import annotations

import math
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from infernix.grammar.binary64 import INT64_MAX, INT64_MIN, greatest_magnitude, least_magnitude
from infernix.grammar.decimals import FINITE_NUMBERS, MagnitudeRange, NumberRange, integer_range, number_range
from infernix.grammar.ir import NOTHING, Expression
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import Bound, IntegerNode, NumberNode


class Emptiness(Enum):
    """Why no number can be generated."""

    UNSATISFIABLE = "no number lies between the bounds"
    UNPUBLISHABLE = "no number between the bounds can be written as a 64-bit integer or in 17 digits of binary64"


def lower_integer(node: IntegerNode, rules: JsonRules) -> Expression:
    """The integers of the range, without point, exponent and `-0`."""
    if (node.low, node.high) == (INT64_MIN, INT64_MAX):
        return rules.integer
    return integer_range(node.low, node.high)


def lower_number(node: NumberNode, rules: JsonRules) -> Expression:
    """The numbers of a node that keep its bounds as they are written, as they are read (an integer exactly, all else
    as binary64) and as they are written again; `infernix.grammar.decimals.number_range` says which spellings.

    Nothing at all where `number_emptiness` tells a reason.
    """
    if node == NumberNode():
        return rules.number
    numbers = publishable_numbers(node)
    return NOTHING if numbers.is_empty else number_range(numbers)


def admits_number(node: NumberNode, number: Fraction) -> bool:
    """Whether `number` keeps the bounds, exactly."""
    lower, upper = node.lower, node.upper
    if lower is not None and (number < lower.value or (lower.exclusive and number == lower.value)):
        return False
    return upper is None or not (number > upper.value or (upper.exclusive and number == upper.value))


def number_emptiness(node: NumberNode) -> Emptiness | None:
    """Whether the range has no number at all, or none that can be written; None if it has one that can."""
    lower, upper = node.lower, node.upper
    if lower is not None and upper is not None:
        is_point = lower.value == upper.value and not (lower.exclusive or upper.exclusive)
        if lower.value >= upper.value and not is_point:
            return Emptiness.UNSATISFIABLE
    return Emptiness.UNPUBLISHABLE if publishable_numbers(node).is_empty else None


def integer_limits(node: NumberNode) -> tuple[int, int] | None:
    """The first and the last signed 64-bit integer within the bounds; None if there is none."""
    low, high = INT64_MIN, INT64_MAX
    if node.lower is not None:
        value = node.lower.value
        low = max(low, math.floor(value) + 1 if node.lower.exclusive else math.ceil(value))
    if node.upper is not None:
        value = node.upper.value
        high = min(high, math.ceil(value) - 1 if node.upper.exclusive else math.floor(value))
    return (low, high) if low <= high else None


@lru_cache(1024)
def publishable_numbers(node: NumberNode) -> NumberRange:
    """The numbers within the bounds that can be written; see `infernix.grammar.binary64.least_magnitude`."""
    return NumberRange(
        integers=integer_limits(node),
        positive=_positive_range(node.lower, node.upper),
        negative=_positive_range(_mirrored(node.upper), _mirrored(node.lower)),
        zero=admits_number(node, Fraction(0)),
    )


def _mirrored(bound: Bound | None) -> Bound | None:
    return None if bound is None else Bound(-bound.value, bound.exclusive)


def _positive_range(lower: Bound | None, upper: Bound | None) -> MagnitudeRange | None:
    assert FINITE_NUMBERS.positive is not None
    low, high = FINITE_NUMBERS.positive
    if lower is not None and lower.value > 0:
        least = least_magnitude(lower.value, exclusive=lower.exclusive)
        if least is None:
            return None
        low = least
    if upper is not None:
        greatest = greatest_magnitude(upper.value, exclusive=upper.exclusive) if upper.value > 0 else None
        if greatest is None:
            return None
        high = greatest
    return (low, high) if low <= high else None
