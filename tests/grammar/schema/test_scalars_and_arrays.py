"""Types, strings, integers, numbers and arrays."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from typing import Any

import pytest

from infernix.grammar import ir
from infernix.grammar.schema import json_object_grammar, parse_json_schema
from support.recognizer import Recognizer
from support.schema_language import SchemaLanguage, check_language

SAMPLES = {
    "object": ["{}", '{"a":[1]}'],
    "array": ["[]", '[1,"x",{}]'],
    "string": ['""', '"a\\n\\u0041é"'],
    "integer": ["0", "-1", "9223372036854775807"],
    "number": ["0.5", "-1e5", "1.0"],
    "boolean": ["true", "false"],
    "null": ["null"],
}


@pytest.mark.parametrize(
    "types", [*([name] for name in SAMPLES), ["string", "null"], ["integer", "number"], [*SAMPLES]]
)
def test_types(types: list[str]) -> None:
    allowed = {*types, *(["integer"] if "number" in types else [])}
    inside = [text for name in allowed for text in SAMPLES[name]]
    outside = [text for name in SAMPLES.keys() - allowed for text in SAMPLES[name]]
    check_language({"type": types}, inside, [*outside, "", "nul", "True"])
    if len(types) == 1:
        check_language({"type": types[0]}, inside, outside)


@pytest.mark.parametrize("document", [True, {}, {"title": "anything"}, {"$ref": "#/$defs/a", "$defs": {"a": True}}])
def test_any_value(document: Any) -> None:
    check_language(document, [text for texts in SAMPLES.values() for text in texts], ["", "{", "x", " 1", "1 "])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r", "\ufeff"])
def test_no_whitespace_stands_before_or_after_the_whole_value(name: str, space: str) -> None:
    texts = SAMPLES[name]
    for document in ({"type": name}, {"const": json.loads(texts[0])}, {}):
        around = [space + texts[0], texts[0] + space]
        check_language(document, [texts[0]], around)


def test_an_assertion_speaks_of_its_own_type_only() -> None:
    others = ["1", "0.5", "null", "true", "[]", "{}"]
    check_language({"minLength": 2}, ['"ab"', *others], ['"a"', '""'])
    check_language({"maxItems": 1}, ["[]", "[1]", '"abc"', "{}", "1"], ["[1,2]"])
    check_language({"required": ["a"]}, ['{"a":1}', "[]", '""', "1", "null"], ["{}"])
    check_language(
        {"type": ["string", "null"], "maxLength": 1, "minimum": 5, "minItems": 3}, ['"a"', "null"], ['"ab"', "[]", "7"]
    )
    check_language({"type": "array", "minLength": 2, "required": ["a"]}, ["[]"], ["{}"])


def test_length_counts_unicode_characters() -> None:
    inside = ['"ab"', '"é😀"', '"\\n\\\\"', '"\\u0000\\u001f"', '"\\"\\""', '"日本語"', '"/\x7f"']
    outside = ['""', '"a"', '"😀"', '"abcd"', '"\\n"', '"\\u0061b"', '"\\ud83d\\ude00a"', '"\\/a"', '"ab', '"a"b"']
    check_language({"type": "string", "minLength": 2, "maxLength": 3}, inside, outside)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 2), (1, 1), (2, None), (3, 5)])
def test_length_bounds(low: int, high: int | None) -> None:
    document = {"type": "string", "minLength": low, **({} if high is None else {"maxLength": high})}
    language = SchemaLanguage(document)
    for length in range(8):
        assert (json.dumps("x" * length) in language) == (low <= length and (high is None or length <= high))


def test_a_lower_length_bound_of_zero_is_no_bound() -> None:
    assert SchemaLanguage({"type": "string", "minLength": 0}).grammar == SchemaLanguage({"type": "string"}).grammar
    assert '"\\u0061"' in SchemaLanguage({"type": "string", "minLength": 0.0})


def test_the_size_of_a_counted_string_does_not_depend_on_its_bounds() -> None:
    def shape(low: int, high: int) -> tuple[ir.Expression, ...]:
        grammar = parse_json_schema(json.dumps({"type": "string", "minLength": low, "maxLength": high}))
        assert len(grammar.rules) == 1
        body = grammar.rules[0].body
        assert isinstance(body, ir.Sequence)
        opening, repeat, closing = body.items
        assert isinstance(repeat, ir.Repeat)
        assert (repeat.minimum, repeat.maximum) == (low, high)
        assert opening == closing == ir.Literal(b'"')
        return opening, repeat.body, closing

    assert shape(1, 2) == shape(50_000, 2**31 - 1)


BOUND_VALUES = ["-10", "-5", "-1", "-0.5", "0", "0.5", "1", "2", "5", "10", "1e1", "99.5"]
INTEGER_TEXTS = [str(value) for value in range(-120, 121)]


@pytest.mark.parametrize("value", BOUND_VALUES)
@pytest.mark.parametrize("keyword", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
def test_integer_bounds_fold_exactly(keyword: str, value: str) -> None:
    language = SchemaLanguage(f'{{"type":"integer","{keyword}":{value}}}')
    bound = Fraction(value)
    for text in INTEGER_TEXTS:
        number = int(text)
        holds = {
            "minimum": number >= bound,
            "maximum": number <= bound,
            "exclusiveMinimum": number > bound,
            "exclusiveMaximum": number < bound,
        }[keyword]
        assert (text in language) == holds, (keyword, value, text)


def test_all_four_integer_bounds_hold_together() -> None:
    for low, exclusive_low, high, exclusive_high in itertools.product([-2, 0, 1], [-2, 0, 1], [3, 12], [3, 12]):
        language = SchemaLanguage(
            {
                "type": "integer",
                "minimum": low,
                "exclusiveMinimum": exclusive_low,
                "maximum": high,
                "exclusiveMaximum": exclusive_high,
            }
        )
        for value in range(-5, 15):
            expected = low <= value <= high and exclusive_low < value < exclusive_high
            assert (str(value) in language) == expected


def test_integers_have_one_spelling() -> None:
    outside = ["-0", "1.0", "1e2", "00", "01", "+1", "9223372036854775808", "1 ", "0x1", "1_0"]
    check_language({"type": "integer"}, ["0", "-9223372036854775808", "100"], outside)
    check_language(
        {"type": "integer", "minimum": 9223372036854775807}, ["9223372036854775807"], ["1", "9223372036854775806"]
    )


def test_numbers() -> None:
    inside = ["0", "-0", "-0.0", "1.5", "-2.25e-3", "1E+5", "9223372036854775807", "1e307", "0.1"]
    outside = ["", "-", ".5", "1.", "1e", "01", "1e400", "0x1", "NaN", "1.2.3", "--1", "1.234567890123456789"]
    check_language({"type": "number"}, inside, outside)


@pytest.mark.parametrize(("low", "high"), [(0, None), (1, None), (0, 0), (0, 1), (1, 1), (2, 4), (3, 3)])
def test_item_counts(low: int, high: int | None) -> None:
    document = {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": low,
        **({} if high is None else {"maxItems": high}),
    }
    language = SchemaLanguage(document)
    for count in range(7):
        expected = low <= count and (high is None or count <= high)
        assert (json.dumps([7] * count) in language) == expected
        assert (json.dumps([7] * count, indent=2) in language) == expected


def test_items_apply_to_every_element() -> None:
    document = {"type": "array", "items": {"type": ["integer", "array"], "items": {"type": "null"}}}
    check_language(
        document, ["[]", "[1]", "[1,[null,null],2]"], ["[null]", "[1,null]", "[[1]]", "[,]", "[1,]", "[1 2]", "[1"]
    )


def test_items_that_no_value_satisfies_leave_the_empty_array() -> None:
    check_language({"type": "array", "items": False}, ["[]", "[ ]"], ["[1]", "[[]]"])
    check_language({"type": "array", "items": {"enum": []}, "maxItems": 5}, ["[]"], ["[null]"])


def test_an_array_of_any_items_with_a_lower_bound() -> None:
    check_language({"type": "array", "minItems": 1}, ["[1]", '["x",{}]'], ["[]", "[ ]"])


def test_the_largest_counts() -> None:
    check_language({"type": "array", "maxItems": 2**31 - 1}, ["[]", "[1,2]"], ["{}"])


def test_a_json_object_is_what_type_object_allows() -> None:
    expected = Recognizer(json_object_grammar())
    language = SchemaLanguage({"type": "object"})
    for text in [*itertools.chain(*SAMPLES.values()), '{"a":{"b":[]}}', '{"a"}', "{ }", " {}"]:
        assert (text in language) == expected.matches(text.encode())


def test_a_pretty_printed_answer_is_in_the_language() -> None:
    document = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "point": {"const": {"x": 1, "y": []}},
        },
        "required": ["name", "tags", "point"],
        "additionalProperties": False,
    }
    language = SchemaLanguage(document)
    value = {"name": "Ada", "tags": ["a", "b"], "point": {"x": 1, "y": []}}
    for indent in (None, 0, 1, 2, 4, "\t"):
        assert json.dumps(value, indent=indent) in language
