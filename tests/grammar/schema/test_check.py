"""Every complaint names its place: pointer tables for malformed, unsupported and unsatisfiable schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import ConstraintTooLarge, InvalidJsonSchema, UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema import parse_json_schema
from infernix.grammar.schema.keywords import ANNOTATIONS, ASSERTIONS, DEFINITIONS, UNSUPPORTED
from support.schema_language import SchemaLanguage, check_language

DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def compile_document(document: Any, **options: Any) -> None:
    parse_json_schema(json.dumps(document), **options)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
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
        ({"enum": {}}, "/enum"),
        ({"minLength": -1}, "/minLength"),
        ({"minLength": 1.5}, "/minLength"),
        ({"maxLength": "3"}, "/maxLength"),
        ({"minItems": True}, "/minItems"),
        ({"maxItems": None}, "/maxItems"),
        ({"minimum": "1"}, "/minimum"),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum"),
        ({"$ref": 1}, "/$ref"),
        ({"$ref": "#/$defs/none"}, "/$ref"),
        ({"$ref": "#/$defs/%"}, "/$ref"),
        ({"properties": {"a": {"$ref": "#/properties/b"}}}, "/properties/a/$ref"),
        ({"$ref": "#/title", "title": "x"}, "/$ref"),
        ({"$defs": []}, "/$defs"),
        ({"definitions": {"a": 1}}, "/definitions/a"),
        ({"$defs": {"a": {"type": "x"}}}, "/$defs/a/type"),
        ({"$schema": 1}, "/$schema"),
        ({"$id": 1}, "/$id"),
    ],
)
def test_documents_that_are_no_schema(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidJsonSchema) as raised:
        compile_document(document)
    assert raised.value.pointer == pointer
    assert str(raised.value).endswith(f" at {pointer or '/'}")


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"properties": {"a": {"pattern": "x"}}}, "/properties/a/pattern"),
        ({"items": {"anyOf": [{}]}}, "/items/anyOf"),
        ({"additionalProperties": {"format": "date"}}, "/additionalProperties/format"),
        ({"$defs": {"unused": {"not": {}}}}, "/$defs/unused/not"),
        ({"type": "number", "minimum": 0}, "/minimum"),
        ({"minimum": 0}, "/minimum"),
        ({"type": ["integer", "number"], "exclusiveMaximum": 0}, "/exclusiveMaximum"),
        ({"type": "integer", "minimum": 18446744073709551615}, "/minimum"),
        ({"type": "integer", "minimum": 1e20}, "/minimum"),
        ({"type": "integer", "maximum": -1e20}, "/maximum"),
        ({"type": "integer", "exclusiveMinimum": 9223372036854775807}, "/exclusiveMinimum"),
        ({"const": 18446744073709551615}, "/const"),
        ({"enum": [1, {"a": [2**63]}]}, "/enum/1/a/0"),
        ({"const": 1e20}, "/const"),
        ({"maxItems": 18446744073709551615}, "/maxItems"),
        ({"maxLength": 2**31}, "/maxLength"),
        ({"$ref": "#name"}, "/$ref"),
        ({"$ref": "https://example.com/x.json"}, "/$ref"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}, "type": "string"}, "/type"),
        ({"minLength": 1, "$ref": "#/$defs/a", "$defs": {"a": {}}}, "/minLength"),
        ({"$schema": DRAFT_07, "$ref": "#/definitions/a", "definitions": {"a": {}}, "type": "string"}, "/type"),
        ({"$schema": DRAFT_07, "items": [{}]}, "/items"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, "/$schema"),
        ({"$schema": "https://example.com/mine"}, "/$schema"),
        ({"properties": {"a": {"$id": "https://example.com/a"}}}, "/properties/a/$id"),
        ({"properties": {"a": {"$schema": DRAFT_07}}}, "/properties/a/$schema"),
        # The unsupported keyword is found although the property could not occur anyway.
        ({"properties": {"a": {"enum": [], "pattern": "x"}}}, "/properties/a/pattern"),
    ],
)
def test_assertions_that_would_not_be_enforced(document: Any, pointer: str) -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        compile_document(document)
    assert raised.value.pointer == pointer


@pytest.mark.parametrize("keyword", sorted(UNSUPPORTED))
def test_every_other_keyword_of_the_specification_is_refused(keyword: str) -> None:
    with pytest.raises(UnsupportedJsonSchema, match="is not supported") as raised:
        compile_document({"type": "object", "properties": {"a": {keyword: {}}}})
    assert raised.value.pointer == f"/properties/a/{keyword}"


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("minLenght", "did you mean 'minLength'?"),
        ("propertys", "did you mean 'properties'?"),
        ("require", "did you mean 'required'?"),
        ("Enum", "did you mean 'enum'?"),
        ("exclusiveminimum", "did you mean 'exclusiveMinimum'?"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_a_hint(keyword: str, hint: str) -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        compile_document({"items": {keyword: 3}})
    assert raised.value.pointer == f"/items/{keyword}"
    assert hint in str(raised.value)


def test_an_unknown_keyword_is_refused_without_a_hint() -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        compile_document({"k" * 100_000: 1})
    assert "did you mean" not in str(raised.value)
    assert len(raised.value.message.partition(" at /")[0]) < 100


def test_annotations_do_not_change_the_language() -> None:
    plain = SchemaLanguage({"type": "integer", "minimum": 0})
    annotated = SchemaLanguage(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.com/root",
            "title": 1,
            "description": ["not", "checked"],
            "default": "x",
            "examples": [{"type": "nonsense"}],
            "$comment": None,
            "readOnly": True,
            "writeOnly": False,
            "deprecated": True,
            "x-order": {"pattern": 3},
            "type": "integer",
            "minimum": 0,
        }
    )
    assert annotated.grammar == plain.grammar


def test_numbers_in_annotations_may_be_anything() -> None:
    parse_json_schema('{"type":"string","default":1e999,"examples":[99999999999999999999],"x-n":0.1000000000000000001}')


def test_keywords_are_of_one_class_each() -> None:
    classes = [ASSERTIONS, ANNOTATIONS, DEFINITIONS, UNSUPPORTED]
    assert sum(map(len, classes)) == len(frozenset().union(*classes))


def test_the_caller_can_ignore_what_would_be_refused() -> None:
    document = {"type": "string", "format": "date", "vendor": 1, "pattern": "^x"}
    with pytest.raises(UnsupportedJsonSchema):
        compile_document(document, ignore_keywords=frozenset({"format", "vendor"}))
    ignored = SchemaLanguage(document, ignore_keywords=frozenset({"format", "vendor", "pattern"}))
    assert ignored.grammar == SchemaLanguage({"type": "string"}).grammar


def test_enforced_keywords_cannot_be_ignored() -> None:
    names = frozenset({"type", "maxLength", "$ref", "$id"})
    document = {"type": "string", "maxLength": 1}
    assert SchemaLanguage(document, ignore_keywords=names).grammar == SchemaLanguage(document).grammar
    with pytest.raises(UnsupportedJsonSchema):
        compile_document({"items": {"$id": "a"}}, ignore_keywords=names)


def test_values_and_names_are_not_keywords() -> None:
    check_language(
        {
            "type": "object",
            "properties": {
                "pattern": {"const": {"format": "x", "type": "nonsense", "$ref": "#/none"}},
                "$ref": {"type": "null"},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        ['{"pattern":{"format":"x","type":"nonsense","$ref":"#/none"},"$ref":null}'],
        ['{"pattern":{}}', '{"pattern":{"format":"x"}}'],
    )


@pytest.mark.parametrize(
    "identifier",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
    ],
)
def test_known_dialects(identifier: str) -> None:
    document = {"$schema": identifier, "type": "null", "definitions": {"a": {"$schema": identifier}}}
    check_language(document, ["null"], ["1"])


@pytest.mark.parametrize("opening", ['{"items":', '{"properties":{"a":', '{"const":[', '{"allOf":[', "["])
def test_ten_thousand_levels_end_in_one_error(opening: str) -> None:
    with pytest.raises(ConstraintTooLarge, match="MAX_SCHEMA_DEPTH"):
        parse_json_schema(opening * 10_000)


def test_long_names_above_many_places() -> None:
    """The pointers of all places together would be gigabytes here; only those that are reported are written out."""
    inner = {"type": "object", "properties": {f"n{index}": {} for index in range(5000)}, "additionalProperties": False}
    document = {"type": "object", "properties": {"a" * 500_000: inner}, "additionalProperties": False}
    compile_document(document)
    inner["properties"] = {"n": {"pattern": "x"}}
    with pytest.raises(UnsupportedJsonSchema) as raised:
        compile_document(document)
    assert raised.value.pointer.endswith("aaa/properties/n/pattern")


def test_the_first_complaint_in_document_order_is_reported() -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        compile_document(
            {"properties": {"a": {"items": {"not": {}}}, "b": {"pattern": "x"}}, "additionalProperties": {"if": {}}}
        )
    assert raised.value.pointer == "/properties/a/items/not"


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
