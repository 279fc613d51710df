"""Enforced keywords of one schema object -> its clauses, in the terms of 2020-12."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.decimals import INT64_MAX, INT64_MIN
from infernix.grammar.schema.check import TYPE_NAMES
from infernix.grammar.schema.clauses import (
    Clauses,
    FiniteValues,
    LocatedBound,
    LocatedCount,
    RequiredName,
    Subschema,
)
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.nodes import Bound, Pattern
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonNumber, JsonValue

MAX_COUNT = 2**31 - 1

_FIELDS = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "allOf": "all_of",
    "anyOf": "any_of",
    "oneOf": "one_of",
}


# Values that may be, or hold, numbers.
_TO_LOOK_AT = (JsonNumber, list, dict)
_ONE_TYPE = {name: frozenset({name}) for name in TYPE_NAMES}

# Up to here binary64 holds every integer.
_EXACT_INTEGERS = 2**53


class ClauseReader:
    """Collects the clauses of the schema object `schema` at `place`, one checked keyword after the other."""

    def __init__(self, schema: dict[str, JsonValue], place: Place, dialect: Dialect) -> None:
        self._schema = schema
        self._place = place
        self._dialect = dialect
        self._fields: dict[str, Any] = {}

    def clauses(self) -> Clauses:
        """What has been collected."""
        return Clauses(self._place, **self._fields)

    def read(self, keyword: str, inner: Sequence[Subschema]) -> None:
        """Adds an enforced keyword other than `$ref`; `inner` are the schemas directly inside it.

        Raises UnsupportedJsonSchema for a number that reading as a 64-bit integer or as binary64 would change (a bound
        may be an integer of any size up to the largest binary64), or for a count above MAX_COUNT.
        """
        value = self._schema[keyword]
        match keyword:
            case "type":
                self._set("types", _types(value))
                return
            case "properties":
                assert isinstance(value, dict)
                self._set("properties", dict(zip(value, inner, strict=True)))
                return
            case "additionalProperties":
                self._set("additional", inner[0])
                return
        place = self._place.at(keyword)
        match keyword:
            case "const":
                self._append("finite", _finite_values([value], place, [(value, place)]))
            case "enum":
                assert isinstance(value, list)
                numbers_or_parts: list[tuple[JsonValue, Place]] = [
                    (item, place.at(str(index))) for index, item in enumerate(value) if isinstance(item, _TO_LOOK_AT)
                ]
                self._append("finite", _finite_values(value, place, numbers_or_parts))
            case "minimum" | "exclusiveMinimum":
                self._read_bound("lower", keyword, value, place)
            case "maximum" | "exclusiveMaximum":
                self._read_bound("upper", keyword, value, place)
            case "minLength" | "maxLength" | "minItems" | "maxItems":
                self._set(_FIELDS[keyword], _count(value, place))
            case "pattern":
                assert isinstance(value, str)
                self._append("patterns", Pattern(value, place))
            case "required":
                assert isinstance(value, list)
                names = [RequiredName(name, place, i) for i, name in enumerate(value) if isinstance(name, str)]
                self._set("required", tuple(names))
            case "items" if isinstance(value, list):
                self._set("prefix", tuple(inner))
            case "prefixItems":
                self._set("prefix", tuple(inner))
            case "items" | "additionalItems":
                self._set("items", inner[0])
            case "allOf" | "anyOf" | "oneOf":
                self._set(_FIELDS[keyword], tuple(inner))
            case _:
                raise AssertionError(keyword)

    def refer(self, target: Subschema) -> None:
        """Adds `$ref`, which leads to `target`."""
        self._set("reference", target)

    def _set(self, name: str, value: object) -> None:
        self._fields[name] = value

    def _append(self, name: str, value: object) -> None:
        self._fields[name] = (*self._fields.get(name, ()), value)

    def _read_bound(self, name: str, keyword: str, value: JsonValue, place: Place) -> None:
        is_exclusive = keyword.startswith("exclusive")
        if self._dialect.has_boolean_bounds:
            if is_exclusive:
                return
            is_exclusive = self._schema.get(f"exclusive{keyword.capitalize()}") is True
        assert isinstance(value, JsonNumber)
        exact = value.value
        is_among_integers = exact is not None and _EXACT_INTEGERS < abs(exact) <= 2**63
        # Integers are compared exactly here, and most parsers read this bound as the nearest binary64.
        if is_among_integers and not value.is_plain_integer and exact != Fraction(float(value.text)):
            raise UnsupportedJsonSchema(f"reading the number {value} as binary64 changes its value", place.pointer)
        wide = value.wide_integer
        bound = Bound(value.exact(place), is_exclusive) if wide is None else _wide_bound(wide, is_exclusive, name)
        self._append(name, LocatedBound(bound, place))


def _wide_bound(integer: int, is_exclusive: bool, name: str) -> Bound:
    """An integer outside signed 64 bits as a "lower" or "upper" bound: it holds as it is written and as binary64.

    Where binary64 rounds it outwards, no number is read as the integer itself, so an exclusive bound says the same
    as an inclusive one and keeps what is read as the rounded value out. Where it is rounded inwards, the rounded value
    of an exclusive bound is excluded too.
    """
    rounded = int(float(integer))
    inwards = rounded - integer if name == "lower" else integer - rounded
    return Bound(Fraction(rounded if is_exclusive and inwards > 0 else integer), is_exclusive or inwards < 0)


def _types(value: JsonValue) -> frozenset[str] | None:
    """The names in `type`; `number` includes `integer`. None if all are there."""
    if isinstance(value, str):
        return _ONE_TYPE[value]
    assert isinstance(value, list)
    names = {name for name in value if isinstance(name, str)}
    if "number" in names:
        names.discard("integer")
    return None if names == set(TYPE_NAMES) - {"integer"} else frozenset(names)


def _count(value: JsonValue, place: Place) -> LocatedCount:
    assert isinstance(value, JsonNumber)
    count = value.exact(place)
    if count > MAX_COUNT:
        raise UnsupportedJsonSchema(f"{place.steps[-1]!r} is more than {MAX_COUNT}", place.pointer)
    return LocatedCount(int(count), place)


def _finite_values(values: list[JsonValue], place: Place, located: list[tuple[JsonValue, Place]]) -> FiniteValues:
    """`values`. Every number among those that are `located`, or inside them, must be exact."""
    pending = located[::-1]
    while pending:
        item, item_place = pending.pop()
        if isinstance(item, JsonNumber):
            number = item.exact(item_place)
            if number.denominator == 1 and not INT64_MIN <= number <= INT64_MAX:
                raise UnsupportedJsonSchema(f"the integer {item} is outside signed 64-bit", item_place.pointer)
        elif isinstance(item, list):
            pending.extend((part, item_place.at(str(index))) for index, part in reversed(list(enumerate(item))))
        elif isinstance(item, dict):
            pending.extend((part, item_place.at(name)) for name, part in reversed(item.items()))
    return FiniteValues(tuple(values), place)
