"""JSON values of a schema's `const` and `enum`: their numbers, and when two values are equal."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonNumber, JsonValue


def number_value(number: JsonNumber) -> Fraction:
    """The value of a number that the source check found exact."""
    return number.exact(Place())


def equality_key(value: JsonValue) -> Hashable:
    """Equal for equal values: numbers by value, objects whatever the order of their members (2020-12, 4.2.2)."""
    if isinstance(value, JsonNumber):
        return "number", number_value(value)
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(equality_key(item))
        return "array", tuple(items)
    if isinstance(value, dict):
        members = set()
        for name, item in value.items():
            members.add((name, equality_key(item)))
        return "object", frozenset(members)
    return type(value).__name__, value
