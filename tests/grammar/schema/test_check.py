"""Every malformed keyword is found at its place, wherever a schema stands; so is a schema that no value satisfies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import ConstraintTooLarge, InvalidJsonSchema, UnsatisfiableJsonSchema
from infernix.grammar.schema import parse_json_schema
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.source import parse_source

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_06 = "http://json-schema.org/draft-06/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"


def compile_document(document: Any) -> None:
    parse_json_schema(json.dumps(document))


def refused_at(document: Any) -> str:
    with pytest.raises(InvalidJsonSchema) as raised:
        read_document(parse_source(json.dumps(document)), frozenset())
    assert str(raised.value).endswith(f" at {raised.value.pointer or '/'}")
    return raised.value.pointer


MALFORMED = [
    (1, ""),
    ("string", ""),
    ([], ""),
    (None, ""),
    ({"type": "strin"}, "/type"),
    ({"type": 1}, "/type"),
    ({"type": []}, "/type"),
    ({"type": ["string", "text"]}, "/type/1"),
    ({"type": ["string", "string"]}, "/type/1"),
    ({"type": ["string", {}]}, "/type/1"),
    ({"properties": []}, "/properties"),
    ({"properties": {"foo": "bar"}}, "/properties/foo"),
    ({"properties": {"a/b": {"type": "x"}}}, "/properties/a~1b/type"),
    ({"required": "a"}, "/required"),
    ({"required": True}, "/required"),
    ({"required": ["a", 1]}, "/required/1"),
    ({"required": ["a", "b", "a"]}, "/required/2"),
    ({"additionalProperties": 1}, "/additionalProperties"),
    ({"additionalProperties": None}, "/additionalProperties"),
    ({"items": 1}, "/items"),
    ({"items": [{}]}, "/items"),
    ({"items": {"items": []}}, "/items/items"),
    ({"prefixItems": {}}, "/prefixItems"),
    ({"prefixItems": []}, "/prefixItems"),
    ({"prefixItems": [{}, 1]}, "/prefixItems/1"),
    ({"allOf": []}, "/allOf"),
    ({"anyOf": {}}, "/anyOf"),
    ({"oneOf": [{}, {"type": "x"}]}, "/oneOf/1/type"),
    ({"enum": {}}, "/enum"),
    ({"minLength": -1}, "/minLength"),
    ({"minLength": 1.5}, "/minLength"),
    ({"maxLength": "3"}, "/maxLength"),
    ({"minItems": True}, "/minItems"),
    ({"maxItems": None}, "/maxItems"),
    ({"minimum": "1"}, "/minimum"),
    ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
    ({"pattern": 1}, "/pattern"),
    ({"$ref": 1}, "/$ref"),
    ({"$ref": "#/$defs/%"}, "/$ref"),
    ({"$defs": []}, "/$defs"),
    ({"definitions": {"a": 1}}, "/definitions/a"),
    ({"$defs": {"a": {"type": "x"}}}, "/$defs/a/type"),
    ({"$defs": {"unused": {"$ref": "#/~2"}}}, "/$defs/unused/$ref"),
    ({"$schema": 1}, "/$schema"),
    ({"$id": 1}, "/$id"),
    ({"$anchor": 1}, "/$anchor"),
    # Keywords that are refused where they are well formed.
    ({"not": 1}, "/not"),
    ({"if": {"then": []}}, "/if/then"),
    ({"contains": {"type": 1}}, "/contains/type"),
    ({"uniqueItems": 1}, "/uniqueItems"),
    ({"multipleOf": 0}, "/multipleOf"),
    ({"multipleOf": "1"}, "/multipleOf"),
    ({"format": 1}, "/format"),
    ({"minProperties": -1}, "/minProperties"),
    ({"patternProperties": {"a": []}}, "/patternProperties/a"),
    ({"dependentRequired": {"a": {}}}, "/dependentRequired/a"),
    ({"dependentRequired": {"a": ["b", "b"]}}, "/dependentRequired/a/1"),
    ({"dependencies": {"a": [1]}}, "/dependencies/a/0"),
    ({"dependencies": {"a": {"type": 1}}}, "/dependencies/a/type"),
    # Drafts of their own.
    ({"$schema": DRAFT_04, "minimum": 1, "exclusiveMinimum": 1}, "/exclusiveMinimum"),
    ({"$schema": DRAFT_04, "exclusiveMinimum": True}, "/exclusiveMinimum"),
    ({"$schema": DRAFT_04, "minimum": 1, "exclusiveMaximum": False}, "/exclusiveMaximum"),
    ({"$schema": DRAFT_04, "properties": {"a": True}}, "/properties/a"),
    ({"$schema": DRAFT_04, "id": 1}, "/id"),
    ({"$schema": DRAFT_06, "exclusiveMaximum": True}, "/exclusiveMaximum"),
    ({"$schema": DRAFT_07, "items": [{}, 1]}, "/items/1"),
    ({"$schema": DRAFT_07, "items": [{}], "additionalItems": 1}, "/additionalItems"),
    ({"$schema": DRAFT_2019_09, "items": [{"minLength": -1}]}, "/items/0/minLength"),
]


@pytest.mark.parametrize(("document", "pointer"), MALFORMED)
def test_documents_that_are_no_schema(document: Any, pointer: str) -> None:
    assert refused_at(document) == pointer


def test_malformed_definitions_are_found_though_nothing_refers_to_them() -> None:
    for document, pointer in MALFORMED:
        if isinstance(document, dict) and pointer not in ("/$schema", "/$id", "/id"):
            nested = {"$defs": {"unused": {name: value for name, value in document.items() if name != "$schema"}}}
            if "$schema" in document:
                nested["$schema"] = document["$schema"]
            assert refused_at(nested) == f"/$defs/unused{pointer}"


@pytest.mark.parametrize(
    "document",
    [
        {"enum": [{"type": 1}, {"$ref": 1}], "const": {"properties": []}},
        {"default": {"type": 1}, "examples": [{"type": 1}]},
        {"properties": {"type": {}, "$ref": {}, "enum": {"type": "string"}}},
        {"x-own": {"type": 1}},
        {"$schema": DRAFT_04, "additionalProperties": False, "items": [{}], "additionalItems": True},
        {"$schema": DRAFT_04, "$defs": {"a": {"prefixItems": 1, "if": 1}}},
        {"$schema": DRAFT_07, "$defs": {"a": {"prefixItems": 1, "dependentSchemas": 1, "$anchor": 1}}},
    ],
)
def test_only_words_of_the_dialect_in_schema_positions_are_checked(document: Any) -> None:
    read_document(parse_source(json.dumps(document)), frozenset())


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"properties": {"a": {"items": {"type": 1}}, "b": 1}, "required": 1}, "/properties/a/items/type"),
        ({"required": 1, "properties": {"a": 1}}, "/required"),
        ({"anyOf": [{"not": {"type": 1}}, {}], "type": 1}, "/anyOf/0/not/type"),
        # Malformed anywhere comes before unsupported.
        ({"format": "date", "$defs": {"a": 1}}, "/$defs/a"),
    ],
)
def test_the_first_malformed_keyword_is_reported(document: Any, pointer: str) -> None:
    assert refused_at(document) == pointer


@pytest.mark.parametrize("opening", ['{"items":', '{"properties":{"a":', '{"const":[', '{"allOf":[', "["])
def test_ten_thousand_levels_end_in_one_error(opening: str) -> None:
    with pytest.raises(ConstraintTooLarge, match="MAX_SCHEMA_DEPTH"):
        parse_json_schema(opening * 10_000)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (False, ""),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "/minLength"),
        ({"type": "array", "minItems": 1, "maxItems": 0}, "/minItems"),
        ({"type": "array", "minItems": 1, "items": False}, "/items"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "/minimum"),
        ({"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3}, "/exclusiveMinimum"),
        ({"type": "integer", "minimum": 0.1, "maximum": 0.9}, "/minimum"),
        ({"enum": []}, "/enum"),
        ({"type": "string", "enum": [1, None]}, "/enum"),
        ({"const": "ab", "maxLength": 1}, "/const"),
        ({"const": 1, "enum": [2, 3]}, "/const"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "/required/0"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "/properties/a"),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object", "properties": {"b": {"enum": []}}, "required": ["b"]}},
                "required": ["a"],
            },
            "/properties/a/properties/b/enum",
        ),
        ({"type": "object", "required": ["a"], "additionalProperties": {"enum": []}}, "/additionalProperties/enum"),
        ({"$ref": "#"}, "/$ref"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "/$defs/A/$ref"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}, "/$defs/A/$ref"),
        ({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}, ""),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, ""),
        (
            {
                "type": ["array", "object"],
                "minItems": 1,
                "items": False,
                "required": ["a"],
                "additionalProperties": False,
            },
            "",
        ),
    ],
)
def test_schemas_that_no_value_satisfies(document: Any, pointer: str) -> None:
    with pytest.raises(UnsatisfiableJsonSchema) as raised:
        compile_document(document)
    assert raised.value.pointer == pointer
