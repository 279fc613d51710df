"""The source check: every keyword of one schema object is well formed and will be enforced, or the place is named.

Only schema positions are walked: what stands inside `const`, `enum`, `default` and `examples` are values, and the
names inside `properties` and `$defs` are not keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.decimals import INT64_MAX, INT64_MIN
from infernix.grammar.schema.keywords import DEFINITIONS, NUMBER_BOUNDS, Dialect, KeywordRules
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonNumber, JsonValue

TYPE_NAMES = ("object", "array", "string", "integer", "number", "boolean", "null")
MAX_COUNT = 2**31 - 1

Schema: TypeAlias = "bool | dict[str, JsonValue]"


def read_rules(document: JsonValue, ignored: frozenset[str]) -> KeywordRules:
    """The keyword rules of a whole document, by its `$schema` (2020-12 where there is none)."""
    if not isinstance(document, dict) or "$schema" not in document:
        return KeywordRules(ignored=ignored)
    identifier = document["$schema"]
    place = Place().at("$schema")
    if not isinstance(identifier, str):
        raise InvalidJsonSchema("'$schema' must be a string", place.pointer)
    dialect = Dialect.of_identifier(identifier)
    if dialect is None:
        raise UnsupportedJsonSchema(f"the dialect {identifier[:100]!r} is not supported", place.pointer)
    return KeywordRules(dialect, ignored)


def as_schema(value: JsonValue, place: Place) -> Schema:
    """`value` as the schema that must stand at `place`."""
    if not isinstance(value, bool | dict):
        raise InvalidJsonSchema("a schema is an object or a boolean", place.pointer)
    return value


def check_schema(schema: dict[str, JsonValue], place: Place, rules: KeywordRules) -> None:
    """Checks the keywords of `schema` itself, not those of its subschemas.

    Raises InvalidJsonSchema for a malformed keyword, UnsupportedJsonSchema for one that would not be enforced.
    """
    for keyword, value in schema.items():
        keyword_place = place.at(keyword)
        if rules.asserts(keyword, keyword_place):
            _CHECKS[keyword](value, keyword_place, rules)
        elif keyword in DEFINITIONS and not isinstance(value, dict):
            raise InvalidJsonSchema(f"{keyword!r} must be an object", keyword_place.pointer)
    _check_identity(schema, place, rules)
    if "$ref" in schema:
        for keyword in schema:
            if keyword != "$ref" and rules.asserts(keyword, place.at(keyword)):
                raise UnsupportedJsonSchema(f"{keyword!r} beside '$ref' is not supported", place.at(keyword).pointer)


def subschemas(schema: dict[str, JsonValue]) -> Iterator[tuple[str, ...]]:
    """The steps from a checked schema object to each schema directly inside it, in document order."""
    for keyword, value in schema.items():
        if keyword in ("items", "additionalProperties"):
            yield (keyword,)
        elif keyword == "properties" or keyword in DEFINITIONS:
            assert isinstance(value, dict)
            for name in value:
                yield keyword, name


def exact_count(value: JsonValue, place: Place) -> int:
    """A count such as `minLength`: 0..2**31 - 1, also when written `2.0`."""
    number = value.exact(place) if isinstance(value, JsonNumber) else None
    if number is None or number.denominator != 1 or number < 0:
        raise InvalidJsonSchema(f"{place.steps[-1]!r} must be a non-negative integer", place.pointer)
    if number > MAX_COUNT:
        raise UnsupportedJsonSchema(f"{place.steps[-1]!r} is more than {MAX_COUNT}", place.pointer)
    return int(number)


def type_names(schema: dict[str, JsonValue]) -> tuple[str, ...]:
    """The types that a checked schema object allows, all where it names none; `number` includes `integer`."""
    named = schema.get("type", list(TYPE_NAMES))
    names = {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)}
    if "number" in names:
        names.discard("integer")
    return tuple(name for name in TYPE_NAMES if name in names)


def _check_type(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if not isinstance(value, list):
        _check_type_name(value, place)
        return
    if not value:
        raise InvalidJsonSchema("'type' must name at least one type", place.pointer)
    for index, name in enumerate(value):
        _check_type_name(name, place.at(str(index)))
        if name in value[:index]:
            raise InvalidJsonSchema(f"the type {name!r} comes twice", place.at(str(index)).pointer)


def _check_type_name(value: JsonValue, place: Place) -> None:
    if value not in TYPE_NAMES:
        shown = f"{value[:40]!r} is not a type" if isinstance(value, str) else "a type is a string"
        raise InvalidJsonSchema(f"{shown}; types are {', '.join(TYPE_NAMES)}", place.pointer)


def _check_literals(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    """`enum`, or `const` as a list of one: every number in it must be exact."""
    if place.steps[-1] == "enum" and not isinstance(value, list):
        raise InvalidJsonSchema("'enum' must be an array", place.pointer)
    pending: list[tuple[JsonValue, Place]] = [(value, place)]
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


def _check_reference(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if not isinstance(value, str):
        raise InvalidJsonSchema("'$ref' must be a string", place.pointer)


def _check_properties(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if not isinstance(value, dict):
        raise InvalidJsonSchema("'properties' must be an object", place.pointer)


def _check_required(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if not isinstance(value, list):
        raise InvalidJsonSchema("'required' must be an array of names", place.pointer)
    seen: set[str] = set()
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidJsonSchema("a required name is a string", place.at(str(index)).pointer)
        if name in seen:
            raise InvalidJsonSchema(f"the name {name[:40]!r} is required twice", place.at(str(index)).pointer)
        seen.add(name)


def _check_items(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if isinstance(value, list):
        if rules.dialect is Dialect.DRAFT_07:
            raise UnsupportedJsonSchema("an array of schemas in 'items' is not supported", place.pointer)
        raise InvalidJsonSchema("'items' must be one schema; positions are 'prefixItems' in 2020-12", place.pointer)


def _check_count(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    exact_count(value, place)


def _check_bound(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    if not isinstance(value, JsonNumber):
        raise InvalidJsonSchema(f"{place.steps[-1]!r} must be a number", place.pointer)
    value.exact(place)


def _check_nothing(value: JsonValue, place: Place, rules: KeywordRules) -> None:
    """A subschema: checked where it is visited."""


def _check_identity(schema: dict[str, JsonValue], place: Place, rules: KeywordRules) -> None:
    for keyword in ("$id", "$schema"):
        value = schema.get(keyword, "")
        if not isinstance(value, str):
            raise InvalidJsonSchema(f"{keyword!r} must be a string", place.at(keyword).pointer)
    if place.parent is None:
        return
    if "$id" in schema:
        raise UnsupportedJsonSchema("'$id' below the root is not supported", place.at("$id").pointer)
    identifier = schema.get("$schema")
    if isinstance(identifier, str) and Dialect.of_identifier(identifier) is not rules.dialect:
        raise UnsupportedJsonSchema("another dialect below the root is not supported", place.at("$schema").pointer)


_CHECKS: dict[str, Callable[[JsonValue, Place, KeywordRules], None]] = {
    "type": _check_type,
    "const": _check_literals,
    "enum": _check_literals,
    "$ref": _check_reference,
    "properties": _check_properties,
    "required": _check_required,
    "additionalProperties": _check_nothing,
    "items": _check_items,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _check_count),
    **dict.fromkeys(NUMBER_BOUNDS, _check_bound),
}
