"""Failures reported against other engines that a compiler of schemas can have: each with its whole kind.

The references are public reports, reduced; what is tested is what is right, which is not always what was done about
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from support.compiled_language import CompiledLanguage
from support.number_texts import Limit, is_decimal_text, is_integer_text

VALUES: list[Any] = [
    *[None, True, False, 0, 1, 2, 3, 7, -1, 1.5, "", "a", "b", "ab", "xbz", [], [1], ["a"], [1, "a"], ["a", 1], [1, 2]],
    *[["a", "b", 3], {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"b": "x"}, {"c": 1}, {"a": 1, "b": 1}, {"a": 1, "c": "x"}],
    *[{"a": "x", "b": 2}, {"b": 1, "c": None}, {"a": 1, "b": 2, "c": 3}, {"a": {"a": 1}}, {"a": [1]}],
]


def check_against_validator(schema: Any) -> list[Any]:
    """Asserts that the language and a validator agree on VALUES; returns the valid ones."""
    validator = Draft202012Validator(schema)
    valid = [value for value in VALUES if validator.is_valid(value)]
    try:
        language = CompiledLanguage(schema)
    except UnsatisfiableJsonSchema:
        assert valid == [], schema
        return valid
    assert [value for value in VALUES if language.admits(value)] == valid, schema
    return valid


class TestCostOfBounds:
    """A `maxLength` made every mask 300 times slower, or ran into a limit of rules (xgrammar#852, llama.cpp#25746)."""

    LIMITS = (1_000, 100_000, 2**31 - 1)

    @staticmethod
    def figures(schema: Any, text: str) -> tuple[int, int]:
        """The size of a compiled grammar and how many configurations it takes to follow `text`."""
        grammar = CompiledLanguage(schema).grammar
        assert grammar.new_matcher().accept_bytes(text.encode())
        return grammar.num_bytes, grammar.configurations.num_configurations

    @pytest.mark.parametrize(
        ("part", "text"),
        [
            ({"type": "string", "maxLength": None}, '"' + 400 * "é\\n"),
            ({"type": "string", "minLength": None}, '"' + 400 * "é\\n"),
            ({"type": "string", "minLength": 3, "maxLength": None}, '"' + 400 * "a"),
            ({"type": "string", "pattern": "^[a-z]+$", "maxLength": None}, '"' + 400 * "a"),
            ({"type": "array", "items": {"type": "integer"}, "maxItems": None}, "[1" + 400 * ",2"),
            ({"type": "array", "items": {"type": "integer"}, "minItems": None}, "[1" + 400 * ",2"),
            ({"type": "array", "prefixItems": [{"type": "null"}], "maxItems": None}, "[null" + 400 * ",2"),
        ],
    )
    def test_the_size_does_not_grow_with_a_bound(self, part: dict[str, Any], text: str) -> None:
        tools = [
            {
                "type": "object",
                "properties": {"tool": {"const": f"tool{index}"}, "content": {"$ref": "#/$defs/content"}},
                "required": ["tool", "content"],
            }
            for index in range(20)
        ]
        for schema, prefix in (
            ({"$ref": "#/$defs/content"}, ""),
            ({"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/content"}}}, "[[], ["),
            ({"oneOf": tools}, '{"tool":"tool7","content":'),
        ):
            found = {
                self.figures({**schema, "$defs": {"content": {**part, keyword: limit}}}, prefix + text)
                for keyword in part
                if part[keyword] is None
                for limit in self.LIMITS
            }
            assert len(found) == 1, schema

    def test_the_bound_holds_however_large_it_is(self) -> None:
        schema = {"type": "object", "properties": {"content": {"type": "string", "maxLength": 100_000}}}
        text = '{"content":"%s"}'
        language = CompiledLanguage(schema)
        assert text % (50_000 * "é\\t") in language
        assert text % (50_000 * "é\\t" + "x") not in language
        nested = {"type": "array", "maxItems": 2_000, "items": {"type": "array", "maxItems": 2_000}}
        assert "[" + ",".join(2_000 * ["[]"]) + "]" in CompiledLanguage(nested)
        assert "[" + ",".join(2_001 * ["[]"]) + "]" not in CompiledLanguage(nested)
        assert "[[" + ",".join(2_001 * ["1"]) + "]]" not in CompiledLanguage(nested)

    def test_an_error_names_the_tool_and_the_keyword(self) -> None:
        content = {"type": "string", "pattern": "a[bc]d", "maxLength": 100_000}
        tools = [{"properties": {"text": {"type": "string"}}}, {"properties": {"content": content}}]
        with pytest.raises(UnsupportedJsonSchema, match="MAX_AUTOMATON_LENGTH") as caught:
            CompiledLanguage({"anyOf": tools})
        assert caught.value.pointer == "/anyOf/1/properties/content/pattern"


SIBLINGS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": ["integer", "string", "null"]},
    {"enum": [1, "a", {"a": 1}, [1]]},
    {"const": {"a": 1}},
    {"minimum": 2},
    {"maximum": 1.5},
    {"exclusiveMinimum": 1},
    {"exclusiveMaximum": 3},
    {"minLength": 2},
    {"maxLength": 1},
    {"pattern": "b"},
    {"minItems": 1},
    {"maxItems": 1},
    {"items": {"type": "integer"}},
    {"prefixItems": [{"type": "string"}]},
    {"properties": {"a": {"type": "integer"}}},
    {"required": ["a"]},
    {"properties": {"a": {}, "b": {"type": "integer"}}, "additionalProperties": False},
    {"additionalProperties": {"type": "integer"}},
    {"allOf": [{"type": ["object", "string"]}, {"maxLength": 2}]},
    {"anyOf": [{"required": ["a"]}, {"minLength": 1}]},
    {"$ref": "#/$defs/sibling"},
]

COMPOSITIONS: list[dict[str, Any]] = [
    {"anyOf": [{"required": ["b"]}, {"type": "string", "minLength": 1}]},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"type": ["array", "number"]}]},
    {"anyOf": [{"type": "object"}, True]},
    {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "integer"}, {"type": ["string", "array"]}]},
    {"oneOf": [{"type": "number", "minimum": 3}, {"type": "number", "maximum": 2}, {"type": "object"}]},
    {"allOf": [{"type": ["object", "integer", "string"]}, {"required": ["b"]}, {"maximum": 2}]},
    {"allOf": [{"properties": {"b": {"type": "integer"}}}, {"items": {"type": "string"}}]},
    {"$ref": "#/$defs/target"},
]

DEFINITIONS = {
    "sibling": {"type": ["object", "number"], "properties": {"c": {"type": "string"}}},
    "target": {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"minimum": 2}]},
}


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=json.dumps)
def test_siblings_of_a_composition_hold_beside_it(composition: dict[str, Any]) -> None:
    """`anyOf` beside `properties` and `additionalProperties: false` let any JSON value through (xgrammar#858)."""
    for sibling in SIBLINGS:
        if not sibling.keys() & composition.keys():
            # The order of keywords makes no difference.
            for schema in ({**sibling, **composition}, {**composition, **sibling}):
                check_against_validator({**schema, "$defs": DEFINITIONS})
                check_against_validator({"allOf": [schema], "$defs": DEFINITIONS})


@pytest.mark.parametrize(
    ("schema", "smallest"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}),
        ({"type": "object", "required": ["a", "b"]}, {"a": 1, "b": 1}),
        ({"required": ["a"], "additionalProperties": {"type": "integer"}}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "x"}),
        ({"type": "object"}, {"a": [1]}),
        ({"type": "array", "minItems": 1}, [1]),
        ({"type": "array", "minItems": 2}, [1, "a"]),
        ({"type": "array", "maxItems": 2}, ["a", 1]),
        ({"type": "array"}, ["a", "b", 3]),
        ({"properties": {}}, {"a": 1, "b": 2, "c": 3}),
        ({"properties": {"a": {"type": "array", "minItems": 1}}, "required": ["a"]}, {"a": [1]}),
        ({"properties": {"a": {"type": "object", "required": ["a"]}}, "required": ["a"]}, {"a": {"a": 1}}),
        ({"prefixItems": [{"type": "string"}, {}], "minItems": 2}, ["a", 1]),
    ],
)
def test_a_container_without_shape_is_not_the_empty_one(schema: Any, smallest: Any) -> None:
    """`{"type":"object","required":["a"]}` let `{}` through and refused `{"a":1}` (xgrammar#104)."""
    assert smallest in check_against_validator(schema)


BOUNDS = ["-10", "-5", "-1", "-0.5", "0", "0.5", "1", "2", "5", "10"]
BOUND_KEYWORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]


@cache
def short_texts(schema: str) -> frozenset[str]:
    """All texts of at most three characters; `test_numbers` goes further with the same bounds."""
    return CompiledLanguage(schema).up_to(3)


class TestNumberBounds:
    """`exclusiveMinimum: 0` could not say 0.1, `minimum: 2` let 1 through, 1..5 let 5.7 through (xgrammar PR 661)."""

    @pytest.mark.parametrize("number_type", ["integer", "number"])
    @pytest.mark.parametrize("keyword", BOUND_KEYWORDS)
    def test_every_short_text(self, keyword: str, number_type: str) -> None:
        free = short_texts(f'{{"type":"{number_type}"}}')
        assert {text for text in free if not is_integer_text(text) and not is_decimal_text(text, free=True)} == set()
        for bound in BOUNDS:
            limit = Limit(keyword, Fraction(bound))
            expected = {
                text for text in free if limit.is_kept_by(text) and (is_integer_text(text) or is_decimal_text(text))
            }
            found = short_texts(f'{{"type":"{number_type}","{keyword}":{bound}}}')
            assert found == expected, (keyword, bound)

    @pytest.mark.parametrize("number_type", ["integer", "number"])
    def test_two_bounds_are_both_kept(self, number_type: str) -> None:
        for lower, upper in product(BOUND_KEYWORDS[::2], BOUND_KEYWORDS[1::2]):
            for low, high in pairwise(BOUNDS):
                schema = f'{{"type":"{number_type}","{lower}":{low},"{upper}":{high}}}'
                each = [f'{{"type":"{number_type}","{lower}":{low}}}', f'{{"type":"{number_type}","{upper}":{high}}}']
                expected = short_texts(each[0]) & short_texts(each[1])
                try:
                    assert short_texts(schema) == expected, schema
                except UnsatisfiableJsonSchema:
                    assert not expected, schema


NAMES = ["a", "ab", "é", 'q"\\', "b\n", "", "日本"]


def spellings(name: str) -> Iterator[str]:
    """Ways to write a name in JSON."""
    yield json.dumps(name, ensure_ascii=False)
    yield json.dumps(name)
    units = [f"{unit:04x}" for unit in memoryview(name.encode("utf-16-le")).cast("H")]
    yield '"' + "".join(f"\\u{unit}" for unit in units) + '"'
    yield '"' + "".join(f"\\u{unit.upper()}" for unit in units) + '"'


@pytest.mark.parametrize("additional", [None, True, {"type": "string"}, {}, {"enum": ["bad", "other"]}])
@pytest.mark.parametrize("required", [[], ["b\n"], NAMES])
def test_a_declared_name_never_passes_for_another(additional: Any, required: list[str]) -> None:
    """`{"b":"bar","a":"BAD"}`: a declared property behind its place counted as an additional one (guidance#1039)."""
    declared: dict[str, Any] = {name: {"const": "good"} for name in NAMES}
    schema: dict[str, Any] = {"type": "object", "properties": declared, "required": required}
    if additional is not None:
        schema["additionalProperties"] = additional
    split = {name: {"type": "object", "properties": {name: {"const": "good"}}} for name in NAMES}
    merged = {**{key: schema[key] for key in schema if key != "properties"}, "allOf": list(split.values())}
    good = [json.dumps(name, ensure_ascii=False) + ':"good"' for name in NAMES]
    languages = [CompiledLanguage(schema)]
    if additional is None:
        languages.append(CompiledLanguage(merged))
    for language in languages:
        assert "{" + ",".join([*good, '"other":"other"', '"a\\u0020":"bad"']) + "}" not in language
        assert "{" + ",".join([*good, '"other":"other"', '"a ":"bad"']) + "}" in language
        for name in NAMES:
            before = [member for member in good if member != json.dumps(name, ensure_ascii=False) + ':"good"']
            for spelling in spellings(name):
                assert "{" + ",".join([*good, f'{spelling}:"bad"']) + "}" not in language
                assert "{" + ",".join([*before, f'{spelling}:"bad"']) + "}" not in language
                assert f'{{{spelling}:"bad"}}' not in language


def test_a_property_that_cannot_be_is_no_additional_one() -> None:
    for impossible in (
        False,
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"enum": []},
        {"$ref": "#/properties/a"},
    ):
        language = CompiledLanguage({"type": "object", "properties": {"a": impossible, "b": {}}})
        assert '{"b":1,"c":2}' in language
        assert '{"b":1,"a":2}' not in language
        assert '{"a":2}' not in language
