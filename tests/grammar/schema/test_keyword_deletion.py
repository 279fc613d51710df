"""Each keyword has its effect wherever it stands: without it the language is another one.

A bound that is dropped in silence compiles to the same grammar as no bound (outlines-core#147, #261). So for every
enforced keyword, in every kind of schema object that it can stand in, at every kind of place that such an object can
have: one text that only the schema without the keyword admits, and one that both admit. A keyword that is not enforced
is refused at all these places.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.build import build_grammar
from infernix.grammar.schema.keywords import ENFORCED, REFUSED
from infernix.options import OutputConstraint
from support.compiled_language import CompiledLanguage

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Case:
    """A schema object, the keyword in it, a text it admits, and one that it refuses because of the keyword alone."""

    keyword: str
    schema: dict[str, Any]
    admitted: str
    refused: str
    dialect: str = DRAFT_2020

    def __str__(self) -> str:
        return f"{self.keyword} {json.dumps(self.schema)}"[:100]


def on_types(keyword: str, value: Any, types: list[Any], admitted: str, refused: str, **beside: Any) -> list[Case]:
    """The keyword on nodes of each of `types` (None: no `type` at all), with `beside` beside it."""
    schemas = [beside if name is None else {"type": name, **beside} for name in types]
    return [Case(keyword, {**schema, keyword: value}, admitted, refused) for schema in schemas]


ON_INTEGERS = ["integer", "number", ["integer", "null"], ["string", "number"], None]
ON_NUMBERS = ["number", ["number", "null"], ["integer", "number"], None]
ON_STRINGS = ["string", ["string", "null"], None]
ON_ARRAYS = ["array", ["array", "string"], None]
ON_OBJECTS = ["object", ["object", "null"], None]
ANY_OF = [{"type": "object", "required": ["a"]}, {"type": "array", "minItems": 1}, {"const": "x"}]
DECLARED = {"properties": {"a": {"type": "integer"}}}
FINITE = {"enum": [1, 5, 9, "a", "abc", [], [1], {}, {"a": 1}, {"b": 1}]}

CASES = [
    # On each type of value, alone and among others.
    *on_types("minimum", 5, ON_INTEGERS, "5", "4"),
    *on_types("minimum", 0.5, ON_NUMBERS, "0.5", "0.25"),
    *on_types("minimum", 5, ["integer", "number", None], "7", "4", maximum=9),
    *on_types("maximum", 5, ON_INTEGERS, "5", "6"),
    *on_types("maximum", 0.5, ON_NUMBERS, "0.5", "0.75"),
    *on_types("exclusiveMinimum", 5, ON_INTEGERS, "6", "5"),
    *on_types("exclusiveMinimum", 0, ON_NUMBERS, "0.1", "0"),
    *on_types("exclusiveMinimum", 5, ["integer", "number", None], "6", "5", minimum=5),
    *on_types("exclusiveMaximum", 5, ON_INTEGERS, "4", "5"),
    *on_types("exclusiveMaximum", 1, ON_NUMBERS, "0.9", "1"),
    *on_types("minLength", 2, ON_STRINGS, '"ab"', '"a"'),
    *on_types("minLength", 2, ON_STRINGS, '"ab"', '"a"', pattern="a"),
    *on_types("maxLength", 2, ON_STRINGS, '"ab"', '"abc"'),
    *on_types("maxLength", 2, ON_STRINGS, '"ab"', '"abc"', pattern="^a"),
    *on_types("pattern", "^a+$", ON_STRINGS, '"aa"', '"ab"'),
    *on_types("pattern", "a", ON_STRINGS, '"bab"', '"bbb"', minLength=2, maxLength=3),
    *on_types("minItems", 2, ON_ARRAYS, "[1,2]", "[1]"),
    *on_types("minItems", 2, ON_ARRAYS, '["a",2]', '["a"]', prefixItems=[{"type": "string"}]),
    *on_types("maxItems", 1, ON_ARRAYS, "[1]", "[1,2]"),
    *on_types("maxItems", 1, ON_ARRAYS, '["a"]', '["a",1]', prefixItems=[{"type": "string"}, {}]),
    *on_types("items", {"type": "null"}, ON_ARRAYS, "[null]", "[1]"),
    *on_types("items", {"type": "null"}, ON_ARRAYS, "[1,null]", "[1,2]", prefixItems=[{}]),
    *on_types("items", False, ON_ARRAYS, "[1]", "[1,2]", prefixItems=[{}]),
    *on_types("prefixItems", [{}, {"type": "null"}], ON_ARRAYS, "[1,null,2]", "[1,2]"),
    *on_types("prefixItems", [{"type": "integer"}], ON_ARRAYS, '[1,"a"]', '["a"]', items={"minimum": 0}),
    *on_types("properties", {"a": {"type": "null"}}, ON_OBJECTS, '{"a":null}', '{"a":1}'),
    *on_types("properties", {"a": False}, ON_OBJECTS, '{"b":1}', '{"a":1}'),
    *on_types("properties", {"a": {"const": 1}}, ON_OBJECTS, '{"a":1}', '{"a":2}', required=["a"]),
    *on_types("required", ["a"], ON_OBJECTS, '{"a":1}', "{}"),
    *on_types("required", ["a"], ON_OBJECTS, '{"a":1}', '{"b":1}', properties={"a": {"type": "integer"}, "b": {}}),
    *on_types("required", ["z"], ON_OBJECTS, '{"z":1}', "{}", additionalProperties={"type": "integer"}),
    *on_types("additionalProperties", False, ON_OBJECTS, '{"a":1}', '{"a":1,"b":1}', **DECLARED),
    *on_types("additionalProperties", {"type": "null"}, ON_OBJECTS, '{"b":null}', '{"b":1}'),
    *on_types("additionalProperties", {"type": "null"}, ON_OBJECTS, '{"a":1,"b":null}', '{"a":1,"b":1}', **DECLARED),
    *on_types("const", 5, ["integer", "number", ["integer", "null"], None], "5", "6"),
    *on_types("const", {"a": [1]}, ON_OBJECTS, '{"a":[1]}', '{"a":[2]}'),
    *on_types("enum", ["a", "b"], ON_STRINGS, '"b"', '"c"'),
    *on_types("enum", [[1], []], ON_ARRAYS, "[1]", "[2]"),
    *on_types("enum", ["aa", "b"], ON_STRINGS, '"aa"', '"aaa"', pattern="a|b", minLength=1),
    *on_types("allOf", [{"minimum": 2}, {"maximum": 3}], ON_INTEGERS, "3", "4"),
    *on_types("allOf", [{"required": ["a"]}], ON_OBJECTS, '{"a":1}', "{}", **DECLARED),
    *on_types("anyOf", ANY_OF, ON_OBJECTS, '{"a":1}', "{}"),
    *on_types("anyOf", ANY_OF, ON_ARRAYS, "[1]", "[]"),
    *on_types("anyOf", ANY_OF, ON_STRINGS, '"x"', '"y"'),
    *on_types("oneOf", ANY_OF, ON_OBJECTS, '{"a":1}', "{}"),
    *on_types("oneOf", ANY_OF, ON_ARRAYS, "[1]", "[]", maxItems=2),
    *on_types("oneOf", ANY_OF, ON_STRINGS, '"x"', '"y"'),
    *on_types("$ref", "#/definitions/five", ON_INTEGERS, "5", "6"),
    *on_types("$ref", "#/definitions/five", ["integer", "number", None], "5", "4", minimum=3),
    # Beside finite values, which the other keywords filter.
    Case("type", {**FINITE, "type": "string"}, '"a"', "1"),
    Case("minimum", {**FINITE, "minimum": 5}, "5", "1"),
    Case("maximum", {**FINITE, "maximum": 5}, "5", "9"),
    Case("exclusiveMinimum", {**FINITE, "exclusiveMinimum": 1}, "5", "1"),
    Case("exclusiveMaximum", {**FINITE, "exclusiveMaximum": 9}, "5", "9"),
    Case("minLength", {**FINITE, "minLength": 2}, '"abc"', '"a"'),
    Case("maxLength", {**FINITE, "maxLength": 2}, '"a"', '"abc"'),
    Case("pattern", {**FINITE, "pattern": "c"}, '"abc"', '"a"'),
    Case("minItems", {**FINITE, "minItems": 1}, "[1]", "[]"),
    Case("maxItems", {**FINITE, "maxItems": 0}, "[]", "[1]"),
    Case("items", {**FINITE, "items": {"type": "string"}}, "[]", "[1]"),
    Case("prefixItems", {**FINITE, "prefixItems": [False]}, "[]", "[1]"),
    Case("properties", {**FINITE, "properties": {"a": {"minimum": 2}}}, '{"b":1}', '{"a":1}'),
    Case("required", {**FINITE, "required": ["b"]}, '{"b":1}', '{"a":1}'),
    Case("additionalProperties", {**FINITE, **DECLARED, "additionalProperties": False}, '{"a":1}', '{"b":1}'),
    Case("const", {**FINITE, "const": 5}, "5", "9"),
    Case("enum", FINITE, "9", "8"),
    Case("allOf", {**FINITE, "allOf": [{"type": "integer"}, {"maximum": 5}]}, "5", "9"),
    Case("anyOf", {**FINITE, "anyOf": [{"type": "array"}, {"minLength": 2, "type": "string"}]}, '"abc"', '"a"'),
    Case("oneOf", {**FINITE, "oneOf": [{"type": "integer"}, {"maximum": 5, "type": "number"}]}, "9", "5"),
    Case("$ref", {**FINITE, "$ref": "#/definitions/five"}, "5", "9"),
    # `type` alone and in lists.
    Case("type", {"type": "integer"}, "1", "1.5"),
    Case("type", {"type": "number"}, "1.5", "null"),
    Case("type", {"type": "string"}, '"a"', "1"),
    Case("type", {"type": "boolean"}, "true", "null"),
    Case("type", {"type": "null"}, "null", "false"),
    Case("type", {"type": "array"}, "[]", "{}"),
    Case("type", {"type": "object"}, "{}", "[]"),
    Case("type", {"type": ["null", "array", "string", "number", "object"]}, "1", "true"),
    Case("type", {"type": "integer", "minimum": 2}, "2", "2.5"),
    Case("type", {"type": "object", "required": ["a"]}, '{"a":1}', "1"),
    # The same words in other dialects.
    Case("minimum", {"type": "number", "minimum": 5}, "5", "4", DRAFT_04),
    Case("exclusiveMinimum", {"type": "number", "minimum": 5, "exclusiveMinimum": True}, "5.5", "5", DRAFT_04),
    Case("exclusiveMaximum", {"maximum": 5, "exclusiveMaximum": True}, "4", "5", DRAFT_04),
    Case("items", {"items": [{"type": "string"}, {"type": "null"}]}, '["a",null,1]', '["a",1]', DRAFT_07),
    Case("additionalItems", {"items": [{}], "additionalItems": False}, "[1]", "[1,2]", DRAFT_04),
    Case("additionalItems", {"items": [{}], "additionalItems": {"type": "null"}}, "[1,null]", "[1,2]", DRAFT_07),
    Case("additionalItems", {"type": "array", "items": [{}], "additionalItems": False}, "[1]", "[1,2]", DRAFT_2019),
    Case("additionalItems", {**FINITE, "items": [], "additionalItems": False}, "[]", "[1]", DRAFT_2019),
    Case("$ref", {"$ref": "#/definitions/five"}, "5", "6", DRAFT_07),
]  # fmt: skip

NEVER: dict[str, Any] = {"enum": []}

# Where a schema object can stand, in all dialects, and the text around its value.
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[str], str]]] = {
    "root": (lambda schema: schema, str),
    "property": (lambda schema: {"properties": {"p": schema}}, lambda text: f'{{"p":{text}}}'),
    "required property": (
        lambda schema: {"type": "object", "properties": {"o": {}, "p": schema, "q": {}}, "required": ["p"]},
        lambda text: f'{{"p":{text},"q":1}}',
    ),
    "other members": (lambda schema: {"additionalProperties": schema}, lambda text: f'{{"p":{text}}}'),
    "undeclared required member": (
        lambda schema: {"required": ["p"], "additionalProperties": schema},
        lambda text: f'{{"p":{text}}}',
    ),
    "member declared by another branch": (
        lambda schema: {"allOf": [{"properties": {"p": {}}}, {"additionalProperties": schema}]},
        lambda text: f'{{"p":{text}}}',
    ),
    "elements": (lambda schema: {"items": schema}, lambda text: f"[{text},{text}]"),
    "allOf": (lambda schema: {"allOf": [{}, schema]}, str),
    "anyOf": (lambda schema: {"anyOf": [NEVER, schema]}, str),
    "oneOf": (lambda schema: {"oneOf": [schema, NEVER]}, str),
    "allOf in oneOf in anyOf": (lambda schema: {"anyOf": [{"oneOf": [{"allOf": [schema]}]}, NEVER]}, str),
    "reference": (lambda schema: {"$ref": "#/definitions/inner", "definitions": {"inner": schema}}, str),
    "recursion": (
        lambda schema: {"properties": {"down": {"$ref": "#"}, "p": schema}, "additionalProperties": False},
        lambda text: f'{{"down":{{"down":{{"p":{text}}}}}}}',
    ),
}


def document(schema: Any, place: str, dialect: str) -> str:
    wrapped = PLACES[place][0](schema)
    definitions = {**wrapped.get("definitions", {}), "five": {"type": "number", "minimum": 5, "maximum": 5}}
    return json.dumps({"$schema": dialect, **wrapped, "definitions": definitions})


def test_every_enforced_keyword_has_cases() -> None:
    assert {case.keyword for case in CASES} == ENFORCED
    assert all(case.keyword in case.schema for case in CASES)


@pytest.mark.parametrize("place", PLACES)
def test_the_language_with_a_keyword_is_not_the_one_without(place: str) -> None:
    wrap = PLACES[place][1]
    wrong = []
    for case in CASES:
        deleted = {keyword: value for keyword, value in case.schema.items() if keyword != case.keyword}
        with_keyword = CompiledLanguage(document(case.schema, place, case.dialect))
        without = CompiledLanguage(document(deleted, place, case.dialect))
        admitted, refused = wrap(case.admitted), wrap(case.refused)
        if (admitted in with_keyword, refused in with_keyword) != (True, False):
            wrong.append(f"with {case}")
        if (admitted in without, refused in without) != (True, True):
            wrong.append(f"without {case}")
    assert wrong == []


# A value with which each keyword would have an effect, and what it needs beside it.
NOT_ENFORCED: dict[str, tuple[Any, dict[str, Any]]] = {
    "$dynamicRef": ("#five", {}),
    "$recursiveRef": ("#", {}),
    "contains": ({"type": "null"}, {}),
    "contentEncoding": ("base64", {"type": "string"}),
    "contentMediaType": ("application/json", {"type": "string"}),
    "contentSchema": ({"type": "object"}, {}),
    "dependencies": ({"a": ["b"]}, {"type": "object"}),
    "dependentRequired": ({"a": ["b"]}, {"type": "object"}),
    "dependentSchemas": ({"a": {"required": ["b"]}}, {}),
    "else": ({"type": "null"}, {"if": {}}),
    "format": ("date", {"type": "string", "minLength": 1}),
    "if": ({"type": "null"}, {"then": False}),
    "maxContains": (1, {"contains": {}}),
    "maxProperties": (1, {"type": "object"}),
    "minContains": (2, {"contains": {}}),
    "minProperties": (1, {"type": "object", "properties": {"a": {}}}),
    "multipleOf": (2, {"type": "integer", "minimum": 1}),
    "not": ({"type": "null"}, {}),
    "patternProperties": ({"^a": {"type": "null"}}, {"additionalProperties": False}),
    "propertyNames": ({"maxLength": 1}, {}),
    "then": ({"type": "null"}, {"if": {}}),
    "unevaluatedItems": (False, {"prefixItems": [{}]}),
    "unevaluatedProperties": (False, {"properties": {}}),
    "uniqueItems": (True, {"type": "array", "maxItems": 2}),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_keyword_that_is_not_enforced_is_refused(place: str) -> None:
    assert NOT_ENFORCED.keys() == REFUSED
    examples = {**NOT_ENFORCED, "minimun": (5, {"type": "integer"}), "nullable": (True, {"type": "string"})}
    for keyword, (value, beside) in examples.items():
        for dialect in (DRAFT_2020, DRAFT_2019, DRAFT_07):
            text = document({keyword: value, **beside}, place, dialect)
            with pytest.raises(UnsupportedJsonSchema) as caught:
                build_grammar(OutputConstraint.json_schema(text))
            # Where two keywords need each other, either may be the one that is named.
            assert str(caught.value.pointer).rpartition("/")[2] in (keyword, *beside), text
