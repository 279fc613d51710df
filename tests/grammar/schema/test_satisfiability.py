"""Schemas without a value: the place that is at fault, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema
from infernix.grammar.schema import parse_json_schema
from support.schema_language import check_language

NULL, STRING = {"type": "null"}, {"type": "string"}


@pytest.mark.parametrize(
    ("document", "pointer", "reason"),
    [
        ({"allOf": [NULL, STRING]}, "/allOf/1/type", "no type is allowed"),
        ({"allOf": [{}, False]}, "/allOf/1", "the schema is false"),
        ({"anyOf": [False]}, "/anyOf/0", "the schema is false"),
        ({"anyOf": [False, {"enum": []}]}, "", "no alternative admits a value (the schema is false at /anyOf/0)"),
        ({"oneOf": [False, {"enum": []}]}, "", "no alternative admits a value"),
        ({"type": "string", "anyOf": [NULL, {"type": "integer"}]}, "", "no alternative admits a value"),
        ({"type": "string", "allOf": [{"minLength": 3}, {"maxLength": 2}]}, "/allOf/0/minLength", "above 'maxLength'"),
        ({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "/allOf/0/pattern", "no string"),
        ({"type": "string", "pattern": "^aaa$", "maxLength": 2}, "/pattern", "no string"),
        ({"type": "array", "allOf": [{"minItems": 3}, {"maxItems": 2}]}, "/allOf/0/minItems", "above 'maxItems'"),
        ({"type": "number", "allOf": [{"minimum": 3}, {"maximum": 2}]}, "/allOf/0/minimum", "no number lies"),
        (
            {"type": "integer", "allOf": [{"exclusiveMinimum": 1}, {"maximum": 1}]},
            "/allOf/0/exclusiveMinimum",
            "no int",
        ),
        ({"type": "array", "minItems": 2, "prefixItems": [{}, False]}, "/prefixItems/1", "the schema is false"),
        ({"type": "array", "minItems": 2, "prefixItems": [{}], "items": False}, "/items", "the schema is false"),
        (
            {"type": "object", "allOf": [{"required": ["a"]}, {"additionalProperties": False}]},
            "/allOf/0/required/0",
            "'a' is required, but not declared",
        ),
        (
            {"type": "object", "properties": {"a": NULL}, "allOf": [{"properties": {"a": STRING}, "required": ["a"]}]},
            "/allOf/0/properties/a/type",
            "no type is allowed",
        ),
        ({"allOf": [{"enum": [1, 2]}, {"enum": [3]}]}, "/allOf/0/enum", "no value of 'enum' satisfies"),
        ({"enum": [1, "a"], "anyOf": [NULL, {"const": 2}]}, "/enum", "no value of 'enum' satisfies"),
        ({"const": "a", "pattern": "^b"}, "/const", "no value of 'const' satisfies"),
        ({"enum": []}, "/enum", "'enum' is empty"),
        ({"allOf": [{"$ref": "#"}]}, "/allOf", "leads back to itself"),
        (
            {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
            "",
            "no alternative admits a value",
        ),
        (
            {"type": "object", "allOf": [{"required": ["n"]}, {"properties": {"n": {"$ref": "#"}}}]},
            "",
            "another one of its own kind, without end",
        ),
    ],
)
def test_the_place_and_the_reason(document: Any, pointer: str, reason: str) -> None:
    with pytest.raises(UnsatisfiableJsonSchema) as raised:
        parse_json_schema(json.dumps(document))
    assert raised.value.pointer == pointer
    assert reason in raised.value.message


def test_recursion_that_can_end_in_one_alternative() -> None:
    chain = {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"], "additionalProperties": False}
    document = {"anyOf": [chain, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"const": 0}]}
    check_language(document, ["0", '{"n":[0,{"n":0}]}'], ["[]", "{}", "1"])


def test_impossible_parts_are_left_out_of_alternatives() -> None:
    """Both branches are objects of their own; what makes the first one impossible lies two references below."""
    document = {
        "$defs": {"a": {"type": "object", "properties": {"n": {"$ref": "#/$defs/a"}}, "required": ["n"]}},
        "anyOf": [
            {"type": "object", "properties": {"v": {"$ref": "#/$defs/a"}}, "required": ["v"]},
            {"type": "object", "properties": {"v": NULL}, "required": ["v"]},
        ],
    }
    check_language(document, ['{"v":null}'], ['{"v":{}}', '{"v":{"n":{}}}'])
