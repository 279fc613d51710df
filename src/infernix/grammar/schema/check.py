"""The source check: is the value of each keyword of the form that the dialect gives it?

Only schema positions are walked: what stands inside `const`, `enum`, `default` and `examples` are values, and the
names inside `properties` and `$defs` are not keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from infernix.errors import InvalidJsonSchema
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.keywords import COUNTS, DEFINITIONS, NUMBER_BOUNDS
from infernix.grammar.schema.pointers import Place, parse_reference
from infernix.grammar.schema.source import JsonNumber, JsonValue

TYPE_NAMES = ("object", "array", "string", "integer", "number", "boolean", "null")

Schema: TypeAlias = "bool | dict[str, JsonValue]"
Container: TypeAlias = "dict[str, JsonValue] | list[JsonValue]"

ONE_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
SCHEMA_LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAP = DEFINITIONS | {"dependentSchemas", "patternProperties", "properties"}


CONTAINERS = ONE_SCHEMA | SCHEMA_LIST | SCHEMA_MAP | {"items", "dependencies"}
"""Keywords that schemas stand inside."""


@dataclass(frozen=True, slots=True)
class InnerSchema:
    """What must be a schema: the list or object that holds it and its index or name there (the document: None)."""

    container: Container | None
    step: str
    value: JsonValue
    place: Place


def inner_schemas(schema: dict[str, JsonValue], keyword: str) -> tuple[Container, Iterable[tuple[str, JsonValue]]]:
    """The schemas directly inside the checked `keyword`, in document order, with their index or name in what holds
    them; a single one is held by `schema`."""
    value = schema[keyword]
    if keyword in ONE_SCHEMA or (keyword == "items" and not isinstance(value, list)):
        return schema, ((keyword, value),)
    if isinstance(value, list) and (keyword in SCHEMA_LIST or keyword == "items"):
        return value, ((str(index), item) for index, item in enumerate(value))
    if isinstance(value, dict) and keyword in SCHEMA_MAP:
        return value, value.items()
    if isinstance(value, dict) and keyword == "dependencies":
        return value, ((name, item) for name, item in value.items() if not isinstance(item, list))
    return schema, ()


def check_is_schema(value: object, place: Place, dialect: Dialect) -> None:
    """Raises InvalidJsonSchema unless `value`, which must be a schema, is one by its type."""
    if isinstance(value, dict):
        return
    if not isinstance(value, bool):
        raise InvalidJsonSchema("a schema is an object or a boolean", place.pointer)
    if not dialect.has_boolean_schemas and place.steps[-1:] not in (("additionalProperties",), ("additionalItems",)):
        raise InvalidJsonSchema(f"a schema is an object in {dialect.label}", place.pointer)


def check_keyword(schema: dict[str, JsonValue], keyword: str, place: Place, dialect: Dialect) -> None:
    """Checks the value of a word of the dialect in the schema object at `place`, but not the schemas inside it.

    Raises InvalidJsonSchema at the exact place.
    """
    value = schema[keyword]
    if type(value) is _FORMS.get(keyword) or (keyword == "type" and isinstance(value, str) and value in TYPE_NAMES):
        return
    check = _CHECKS.get(keyword)
    if check is not None:
        check(value, place.at(keyword), dialect)
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and dialect.has_boolean_bounds:
        bound = keyword.removeprefix("exclusive").lower()
        if bound not in schema:
            raise InvalidJsonSchema(
                f"{keyword!r} needs {bound!r} beside it in {dialect.label}", place.at(keyword).pointer
            )


def _malformed(place: Place, must_be: str) -> InvalidJsonSchema:
    return InvalidJsonSchema(f"{place.steps[-1]!r} must be {must_be}", place.pointer)


def _check_type(value: JsonValue, place: Place, dialect: Dialect) -> None:
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
    if not isinstance(value, str) or value not in TYPE_NAMES:
        shown = f"{value[:40]!r} is not a type" if isinstance(value, str) else "a type is a string"
        raise InvalidJsonSchema(f"{shown}; types are {', '.join(TYPE_NAMES)}", place.pointer)


def _check_reference(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, str):
        raise _malformed(place, "a string")
    try:
        parse_reference(value)
    except ValueError as error:
        raise InvalidJsonSchema(f"malformed reference: {error}", place.pointer) from None


def _check_names(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, list):
        raise _malformed(place, "an array of names")
    seen: set[str] = set()
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise InvalidJsonSchema("a name is a string", place.at(str(index)).pointer)
        if name in seen:
            raise InvalidJsonSchema(f"the name {name[:40]!r} comes twice", place.at(str(index)).pointer)
        seen.add(name)


def _check_items(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if isinstance(value, list) and not dialect.has_item_arrays:
        raise InvalidJsonSchema("'items' must be one schema; positions are 'prefixItems' in 2020-12", place.pointer)


def _check_count(value: JsonValue, place: Place, dialect: Dialect) -> None:
    number = value.value if isinstance(value, JsonNumber) else None
    if not isinstance(value, JsonNumber) or (number is not None and (number.denominator != 1 or number < 0)):
        raise _malformed(place, "a non-negative integer")


def _check_number(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, JsonNumber):
        raise _malformed(place, "a number")


def _check_exclusive(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if dialect.has_boolean_bounds:
        _check_boolean(value, place, dialect)
    else:
        _check_number(value, place, dialect)


def _check_multiple(value: JsonValue, place: Place, dialect: Dialect) -> None:
    _check_number(value, place, dialect)
    assert isinstance(value, JsonNumber)
    if value.value is not None and value.value <= 0:
        raise _malformed(place, "above zero")


def _check_string(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, str):
        raise _malformed(place, "a string")


def _check_boolean(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, bool):
        raise _malformed(place, "a boolean")


def _check_array(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, list):
        raise _malformed(place, "an array")


def _check_schemas(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, list) or not value:
        raise _malformed(place, "an array of at least one schema")


def _check_object(value: JsonValue, place: Place, dialect: Dialect) -> None:
    if not isinstance(value, dict):
        raise _malformed(place, "an object")


def _check_dependencies(value: JsonValue, place: Place, dialect: Dialect) -> None:
    """`dependencies` holds arrays of names or schemas, `dependentRequired` arrays only."""
    _check_object(value, place, dialect)
    assert isinstance(value, dict)
    for name, item in value.items():
        if isinstance(item, list) or place.steps[-1] == "dependentRequired":
            _check_names(item, place.at(name), dialect)


_CHECKS: dict[str, Callable[[JsonValue, Place, Dialect], None]] = {
    "type": _check_type,
    "enum": _check_array,
    "$ref": _check_reference,
    "required": _check_names,
    "items": _check_items,
    "uniqueItems": _check_boolean,
    "multipleOf": _check_multiple,
    "dependencies": _check_dependencies,
    "dependentRequired": _check_dependencies,
    **dict.fromkeys(SCHEMA_MAP, _check_object),
    **dict.fromkeys(SCHEMA_LIST, _check_schemas),
    **dict.fromkeys(COUNTS | {"minProperties", "maxProperties", "minContains", "maxContains"}, _check_count),
    **dict.fromkeys(NUMBER_BOUNDS & {"minimum", "maximum"}, _check_number),
    **dict.fromkeys(NUMBER_BOUNDS - {"minimum", "maximum"}, _check_exclusive),
    **dict.fromkeys(
        ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"), _check_string
    ),
    **dict.fromkeys(("pattern", "format", "contentEncoding", "contentMediaType"), _check_string),
}

# Keywords of which a value of this type, and no subtype of it, passes the check whatever the dialect.
_FORMS: dict[str, type] = {
    "enum": list,
    "minimum": JsonNumber,
    "maximum": JsonNumber,
    "pattern": str,
    **dict.fromkeys(SCHEMA_MAP, dict),
}
