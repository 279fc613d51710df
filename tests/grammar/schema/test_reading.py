"""A document becomes clauses: each keyword with its place, each place one subschema, complaints in document order."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema.clause_reader import MAX_COUNT
from infernix.grammar.schema.clauses import Clauses, Subschema
from infernix.grammar.schema.nodes import Bound
from infernix.grammar.schema.reading import Document, read_document
from infernix.grammar.schema.source import JsonNumber, parse_source


def read(document: Any) -> Document:
    return read_document(parse_source(document if isinstance(document, str) else json.dumps(document)), frozenset())


def root_clauses(document: Any) -> Clauses:
    result = read(document)
    return result.clauses(result.root)


def refused_at(document: Any) -> str:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        read(document)
    return raised.value.pointer


def pointers(subschemas: tuple[Subschema, ...] | None) -> list[str]:
    assert subschemas is not None
    return [subschema.place.pointer for subschema in subschemas]


def test_an_empty_schema_asserts_nothing() -> None:
    document = read({})
    assert document.clauses(document.root) == Clauses(document.root.place)
    assert document.root.place.pointer == ""
    assert read(True).root.value is True
    assert read(False).root.value is False


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("string", {"string"}),
        (["null", "integer"], {"null", "integer"}),
        (["integer", "number"], {"number"}),
        ("number", {"number"}),
        (["object", "array", "string", "number", "boolean", "null"], None),
        (
            ["object", "array", "string", "integer", "boolean", "null"],
            {"object", "array", "string", "integer", "boolean", "null"},
        ),
    ],
)
def test_types(types: Any, expected: set[str] | None) -> None:
    assert root_clauses({"type": types}).types == (None if expected is None else frozenset(expected))


def test_finite_values_keep_order_and_spelling() -> None:
    clauses = root_clauses('{"enum":[1.0,{"b":1,"a":[null]},true],"const":1}')
    assert [values.values for values in clauses.finite] == [
        (JsonNumber("1.0"), {"b": JsonNumber("1"), "a": [None]}, True),
        (JsonNumber("1"),),
    ]
    assert [values.place.pointer for values in clauses.finite] == ["/enum", "/const"]
    assert list(clauses.finite[0].values[1]) == ["b", "a"]  # type: ignore[arg-type]
    assert root_clauses({"enum": []}).finite[0].values == ()


def test_limits_have_their_places() -> None:
    clauses = root_clauses(
        '{"minLength":2.0,"maxLength":3,"minItems":0,"maxItems":9,"minimum":-0,"exclusiveMaximum":1e2,"pattern":"^a"}'
    )
    counts = (clauses.min_length, clauses.max_length, clauses.min_items, clauses.max_items)
    assert [(limit.count, limit.place.pointer) for limit in counts if limit is not None] == [
        (2, "/minLength"),
        (3, "/maxLength"),
        (0, "/minItems"),
        (9, "/maxItems"),
    ]
    assert [(limit.bound, limit.place.pointer) for limit in clauses.lower + clauses.upper] == [
        (Bound(Fraction(0), exclusive=False), "/minimum"),
        (Bound(Fraction(100), exclusive=True), "/exclusiveMaximum"),
    ]
    assert [(pattern.text, pattern.place.pointer) for pattern in clauses.patterns] == [("^a", "/pattern")]


def test_parts_of_objects_arrays_and_compositions() -> None:
    clauses = root_clauses(
        {
            "properties": {"b": {}, "a/c": False},
            "required": ["a/c", "z"],
            "additionalProperties": {"type": "null"},
            "prefixItems": [{}, True],
            "items": {},
            "allOf": [{}],
            "anyOf": [{}, {}],
            "oneOf": [True],
        }
    )
    assert {name: schema.place.pointer for name, schema in clauses.properties.items()} == {
        "b": "/properties/b",
        "a/c": "/properties/a~1c",
    }
    assert list(clauses.properties) == ["b", "a/c"]
    assert [(name.name, name.place.pointer) for name in clauses.required] == [
        ("a/c", "/required/0"),
        ("z", "/required/1"),
    ]
    assert clauses.additional is not None
    assert clauses.items is not None
    assert pointers((clauses.additional, clauses.items)) == ["/additionalProperties", "/items"]
    assert pointers(clauses.prefix) == ["/prefixItems/0", "/prefixItems/1"]
    assert pointers(clauses.all_of) == ["/allOf/0"]
    assert pointers(clauses.any_of) == ["/anyOf/0", "/anyOf/1"]
    assert pointers(clauses.one_of) == ["/oneOf/0"]


def test_one_subschema_for_a_place_however_it_is_reached() -> None:
    document = read(
        {
            "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/%24defs/x"}, "c": {"$ref": "#"}},
            "additionalProperties": {"$ref": "#/properties/a"},
            "$defs": {"x": {"type": "null"}},
        }
    )
    root = document.clauses(document.root)
    first, second, third = (document.clauses(schema).reference for schema in root.properties.values())
    assert first is second
    assert third is document.root
    assert root.additional is not None
    assert document.clauses(root.additional).reference is root.properties["a"]
    assert first is not None
    assert document.clauses(first).types == frozenset({"null"})


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"minimum": 10**309}, "/minimum"),
        ('{"maximum":1e400}', "/maximum"),
        ('{"exclusiveMinimum":0.1000000000000000001}', "/exclusiveMinimum"),
        ({"const": 18446744073709551615}, "/const"),
        ({"enum": [1, {"a": [2**63]}]}, "/enum/1/a/0"),
        ({"enum": [{"a": [2**63]}, 2**64]}, "/enum/0/a/0"),
        ('{"const":[1,1e20]}', "/const/1"),
        ('{"const":-1e400}', "/const"),
        ({"maxItems": 18446744073709551615}, "/maxItems"),
        ({"maxLength": MAX_COUNT + 1}, "/maxLength"),
    ],
)
def test_numbers_that_cannot_be_kept(document: Any, pointer: str) -> None:
    assert refused_at(document) == pointer
    source = document if isinstance(document, str) else json.dumps(document)
    assert read(f'{{"$defs":{{"unused":{source}}},"default":{source}}}').root.value


def test_what_nothing_refers_to_may_be_unsupported() -> None:
    unused = {"format": "date", "$ref": "other.json", "not": {}, "vendor": 1, "items": {"$ref": "#/$defs/none"}}
    document = {"$defs": {"unused": unused, "used": {"$ref": "#/$defs/last"}, "last": {"uniqueItems": True}}}
    assert read(document).root.value
    assert refused_at({**document, "$ref": "#/$defs/used"}) == "/$defs/last/uniqueItems"
    assert refused_at({**document, "$ref": "#/$defs/unused"}) == "/$defs/unused/format"


def test_what_cannot_occur_is_checked_all_the_same() -> None:
    assert refused_at({"properties": {"a": {"enum": [], "format": "x"}}}) == "/properties/a/format"
    assert refused_at({"type": "string", "items": {"not": {}}}) == "/items/not"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (
            {"properties": {"a": {"items": {"not": {}}}, "b": {"if": {}, "then": {}}}, "format": "x"},
            "/properties/a/items/not",
        ),
        ({"format": "x", "properties": {"a": {"not": {}}}}, "/format"),
        ({"$ref": "#/$defs/b", "$defs": {"a": {"not": {}}, "b": {"$ref": "#/$defs/a", "format": "x"}}}, "/$defs/a/not"),
        ({"const": 2**64, "format": "x"}, "/const"),
        ({"anyOf": [{"$ref": "http://x"}, {"format": "x"}]}, "/anyOf/0/$ref"),
    ],
)
def test_the_first_complaint_in_document_order_is_reported(document: Any, pointer: str) -> None:
    assert refused_at(document) == pointer


def test_long_names_above_many_places() -> None:
    """The pointers of all places together would be gigabytes here; only those that are reported are written out."""
    inner = {"properties": {f"n{index}": {"required": ["x"]} for index in range(5000)}}
    document = read({"properties": {"a" * 500_000: inner}})
    assert len(document.clauses(document.clauses(document.root).properties["a" * 500_000]).properties) == 5000
    inner["properties"]["n"] = {"format": "x"}  # type: ignore[dict-item]
    assert refused_at({"properties": {"a" * 500_000: inner}}).endswith("aaa/properties/n/format")


def test_deep_schemas_and_long_chains_of_references() -> None:
    depth = 120
    deep = read('{"items":' * depth + "{}" + "}" * depth)
    subschema = deep.root
    for _ in range(depth):
        items = deep.clauses(subschema).items
        assert items is not None
        subschema = items
    assert deep.clauses(subschema) == Clauses(subschema.place)
    chain = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(3000)}
    document = read({"$ref": "#/$defs/d0", "$defs": {**chain, "d3000": {"type": "null"}}})
    subschema = document.root
    for _ in range(3001):
        target = document.clauses(subschema).reference
        assert target is not None
        subschema = target
    assert document.clauses(subschema).types == frozenset({"null"})


def test_another_dialect_below_the_root() -> None:
    other = {"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": True, "minimum": 1}
    assert read({"$defs": {"unused": other}}).root.value
    assert refused_at({"items": other}) == "/items/$schema"
    assert refused_at({"items": {**other, "items": 1, "$ref": 2}}) == "/items/$schema"
    with pytest.raises(InvalidJsonSchema):
        read({"items": {**other, "$schema": 4}})
