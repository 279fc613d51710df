"""Small schemas in which each keyword matters, alone and beside others, in the dialects that spell it differently, each
with a valid value."""

from __future__ import annotations

import json

from tests.conformance.cases import Instance, SchemaCase

_DRAFT_04 = "http://json-schema.org/draft-04/schema#"
_DRAFT_06 = "http://json-schema.org/draft-06/schema#"
_DRAFT_07 = "http://json-schema.org/draft-07/schema#"
_DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"

_TREE = {"type": "object", "properties": {"n": {"type": "integer"}, "c": {"items": {"$ref": "#"}}}, "required": ["n"]}

_SCHEMAS: dict[str, object] = {
    "type": {"type": "string"},
    "type, several": {"type": ["integer", "null", "array"]},
    "const": {"properties": {"a": {"const": {"k": [1, "é"]}}}, "required": ["a"], "additionalProperties": False},
    "enum": {"enum": ["red", "green", 1, True, None, {"a": 1}]},
    "minimum": {"type": "integer", "minimum": -3},
    "maximum": {"type": "integer", "maximum": 1000},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 9},
    "exclusiveMaximum": {"type": "integer", "exclusiveMaximum": -9},
    "minimum of a number": {"type": "number", "minimum": 0.1},
    "maximum of a number": {"type": "number", "maximum": 1e-3, "minimum": -1e21},
    "exclusiveMinimum of a number": {"type": "number", "exclusiveMinimum": 0},
    "exclusiveMaximum of a number": {"type": "number", "exclusiveMaximum": 100, "minimum": 0},
    "exclusive bounds, draft 4": {
        **{"$schema": _DRAFT_04, "type": "number", "minimum": 0, "maximum": 10},
        **{"exclusiveMinimum": True, "exclusiveMaximum": True},
    },
    "minLength": {"type": "string", "minLength": 3},
    "maxLength": {"type": "string", "maxLength": 4},
    "pattern": {"type": "string", "pattern": "^[A-Z][a-z]+$"},
    "pattern, searched": {"type": "string", "pattern": "a.c"},
    "pattern and length": {"type": "string", "pattern": "^\\w+-\\d{2,}$", "minLength": 5, "maxLength": 9},
    "properties": {"properties": {"a": {"type": "boolean"}, "b": False}},
    "required": {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"]},
    "additionalProperties: false": {"properties": {"a": {}}, "type": "object", "additionalProperties": False},
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2}},
    "items": {"type": "array", "items": {"type": "integer"}},
    "items: false": {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
    "minItems": {"type": "array", "minItems": 2},
    "maxItems": {"type": "array", "maxItems": 3},
    "prefixItems": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "minItems": 2},
    "items list, draft 7": {
        **{"$schema": _DRAFT_07, "type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}},
    },
    "additionalItems: false": {
        **{"$schema": _DRAFT_2019, "type": "array", "items": [{"type": "string"}, {}], "additionalItems": False},
    },
    "$ref": {"properties": {"a": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"type": "string"}}, "required": ["a"]},
    "$ref with siblings": {"$ref": "#/$defs/x", "maximum": 5, "$defs": {"x": {"type": "integer", "minimum": 3}}},
    "$ref, recursive": _TREE,
    "definitions, draft 6": {
        **{"$schema": _DRAFT_06, "items": {"$ref": "#/definitions/x"}, "type": "array"},
        "definitions": {"x": {"const": "x"}},
    },
    "allOf": {"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 8}]},
    "allOf of objects": {
        "type": "object",
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 0}, "b": {"type": "string"}}, "additionalProperties": {"type": "null"}},
        ],
    },
    "anyOf": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer", "minimum": 5}, {"type": "null"}]},
    "anyOf beside properties": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "additionalProperties": False,
    },
    "oneOf": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "null"}}]},
    "oneOf with a discriminator": {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": kind}, "v": {"type": kind}},
                "required": ["kind", "v"],
            }
            for kind in ("string", "integer")
        ]
    },
    "everyday": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "mail": {"type": ["string", "null"], "pattern": "^[^@ ]+@[^@ ]+$"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
}

# A value that is valid, and near to one that is not.
_VALUES: dict[str, object] = {
    "type": "x",
    "type, several": [1],
    "const": {"a": {"k": [1, "é"]}},
    "enum": {"a": 1},
    "minimum": -3,
    "maximum": 1000,
    "exclusiveMinimum": 10,
    "exclusiveMaximum": -10,
    "minimum of a number": 0.1,
    "maximum of a number": 0.001,
    "exclusiveMinimum of a number": 1e-300,
    "exclusiveMaximum of a number": 99.5,
    "exclusive bounds, draft 4": 9.5,
    "minLength": "abc",
    "maxLength": "😀bcd",
    "pattern": "Abc",
    "pattern, searched": "xabcx",
    "pattern and length": "ab-1234",
    "properties": {"a": True},
    "required": {"a": None, "b": 1},
    "additionalProperties: false": {"a": [1]},
    "additionalProperties": {"k": "vv"},
    "items": [1, 2],
    "items: false": [None],
    "minItems": ["a", 1],
    "maxItems": [1, 2, 3],
    "prefixItems": ["a", True, 1],
    "items list, draft 7": ["a", None],
    "additionalItems: false": ["a", 1],
    "$ref": {"a": "x"},
    "$ref with siblings": 4,
    "$ref, recursive": {"n": 1, "c": [{"n": 2}]},
    "definitions, draft 6": ["x"],
    "allOf": 5,
    "allOf of objects": {"a": 3, "b": "x", "c": None},
    "anyOf": "ab",
    "anyOf beside properties": {"b": "x"},
    "oneOf": [None],
    "oneOf with a discriminator": {"kind": "integer", "v": 3},
    "everyday": {"name": "Ada", "age": 36, "mail": "ada@example.com", "tags": ["a", "b"]},
}

KEYWORD_CASES = tuple(
    SchemaCase(name, json.dumps(schema), (Instance(_VALUES[name], True, "near a limit"),))
    for name, schema in _SCHEMAS.items()
)
