"""`const` and `enum`, filtered by their siblings; `$ref` and recursion."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.grammar.schema import parse_json_schema
from support.schema_language import SchemaLanguage, check_language


def test_scalars_have_one_spelling() -> None:
    check_language(
        {"enum": ["a", "é", None, True, 1, -2.5]},
        ['"a"', '"é"', "null", "true", "1", "-2.5"],
        ['"\\u0061"', "false", "1.0", "-2.50", "0", ' "a"', ""],
    )


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        ("1.0", "1"),
        ("1e2", "100"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0.50", "0.5"),
        ("12.5e-1", "1.25"),
        ("1e-7", "1e-07"),
        ("9223372036854775807", "9223372036854775807"),
        ('"\\u0041\\/\\u000a\\u001F"', '"A/\\n\\u001f"'),
        ('"\\ud83d\\ude00"', '"😀"'),
        ('"a</think>b<tool_call>"', '"a</think>b<tool_call>"'),
    ],
)
def test_canonical_spellings(source: str, spelling: str) -> None:
    language = SchemaLanguage(f'{{"const":{source}}}')
    assert spelling in language
    assert json.loads(spelling) == json.loads(source)
    assert (source in language) == (source == spelling)


def test_multi_byte_characters_stand_for_themselves() -> None:
    language = SchemaLanguage({"enum": ["在线", "离线"]})
    assert '"在线"' in language
    assert '"离线"' in language
    assert '"\\u5728\\u7ebf"' not in language
    assert language.begins('"在'.encode()[:3])


def test_containers_keep_their_order_and_admit_whitespace() -> None:
    document = {"const": {"b": [1, {}, []], "a b": "x y"}}
    inside = [
        '{"b":[1,{},[]],"a b":"x y"}',
        '{ "b" : [ 1 , { } , [ ] ] , "a b" : "x y" }',
        json.dumps(document["const"], indent=4),
    ]
    outside = [
        '{"a b":"x y","b":[1,{},[]]}',
        '{"b":[1,{},[]],"a b":"xy"}',
        '{"b":[1,{},[]]}',
        '{"b":[1],"a b":"x y"}',
        '{"b":[1,{},[]],"ab":"x y"}',
    ]
    check_language(document, inside, [*outside, "{" + " " * 33 + inside[0][1:]])


def test_values_that_are_equal_but_ordered_differently_are_both_kept() -> None:
    check_language({"enum": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}, ['{"a":1,"b":2}', '{"b":2,"a":1}'], ["{}"])


def test_values_with_the_same_spelling_are_one() -> None:
    assert SchemaLanguage('{"enum":[1,1.0,10e-1,1]}').grammar == SchemaLanguage({"enum": [1]}).grammar


def test_true_and_one_are_different() -> None:
    check_language({"enum": [[True], [0]]}, ["[true]", "[0]"], ["[1]", "[false]"])
    check_language({"const": 1, "enum": [True, 1.0]}, ["1"], ["true"])


MIXED = [None, True, 0, 1, 1.5, -3, "", "ab", "日本語", [], [1], [1, 2], {}, {"a": 1}, {"a": "x", "b": 2}]


@pytest.mark.parametrize(
    ("siblings", "remaining"),
    [
        ({}, MIXED),
        ({"type": "integer"}, [0, 1, -3]),
        ({"type": "number"}, [0, 1, 1.5, -3]),
        ({"type": ["string", "null"]}, [None, "", "ab", "日本語"]),
        ({"type": "number", "minimum": 1}, [1, 1.5]),
        ({"type": "number", "exclusiveMinimum": 1}, [1.5]),
        ({"type": "number", "exclusiveMaximum": 1.5, "minimum": 0}, [0, 1]),
        ({"type": "integer", "maximum": 0.5}, [0, -3]),
        ({"type": "string", "minLength": 2, "maxLength": 2}, ["ab"]),
        ({"type": "string", "maxLength": 3, "minLength": 3}, ["日本語"]),
        ({"type": "array", "minItems": 1, "maxItems": 1}, [[1]]),
        ({"type": "array", "items": {"type": "integer", "maximum": 1}}, [[], [1]]),
        ({"type": "object", "required": ["a"]}, [{"a": 1}, {"a": "x", "b": 2}]),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}]),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, [{}, {"a": 1}]),
        ({"type": "object", "additionalProperties": {"type": "string"}}, [{}]),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/s"}}}, [{}, {"a": "x", "b": 2}]),
        ({"type": "object", "properties": {"a": {"const": 1.0}}}, [{}, {"a": 1}]),
        ({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}, [{}]),
        (
            {"minLength": 1, "minItems": 1, "required": ["b"]},
            [None, True, 0, 1, 1.5, -3, "ab", "日本語", [1], [1, 2], {"a": "x", "b": 2}],
        ),
    ],
)
def test_candidates_are_filtered_by_their_siblings(siblings: dict[str, Any], remaining: list[Any]) -> None:
    document = {"$defs": {"s": {"type": "string"}}, "enum": MIXED, **siblings}
    language = SchemaLanguage(document)
    for value in MIXED:
        expected = any(type(value) is type(kept) and value == kept for kept in remaining)
        assert (json.dumps(value, ensure_ascii=False) in language) == expected, value
        if expected:
            assert json.dumps(value, ensure_ascii=False) in SchemaLanguage({**document, "enum": MIXED, "const": value})


TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["value"],
    "additionalProperties": False,
}


def test_trees() -> None:
    check_language(
        TREE,
        [
            '{"value":1}',
            '{"value":1,"children":[]}',
            '{"value":1,"children":[{"value":2,"children":[{"value":3}]},{"value":4}]}',
        ],
        ["{}", '{"value":1,"children":[1]}', '{"value":1,"children":[{"children":[]}]}', '{"children":[]}'],
    )


def test_mutual_recursion_through_definitions() -> None:
    document = {
        "$ref": "#/$defs/even",
        "$defs": {
            "even": {"type": "array", "items": {"$ref": "#/$defs/odd"}, "maxItems": 1},
            "odd": {"type": "array", "items": {"$ref": "#/$defs/even"}, "minItems": 1, "maxItems": 1},
        },
    }
    check_language(document, ["[]", "[[[]]]", "[[[[[]]]]]"], ["[[]]", "[[[[]]]]", "[[],[]]"])


def test_a_recursive_schema_that_can_end() -> None:
    document = {
        "type": ["object", "null"],
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"],
        "additionalProperties": False,
    }
    check_language(document, ["null", '{"next":null}', '{"next":{"next":null}}'], ["{}", '{"next":{}}'])


def test_a_definition_used_twice_is_one_rule() -> None:
    def num_rules(count: int) -> int:
        properties = {f"p{index}": {"$ref": "#/$defs/point"} for index in range(count)}
        point = {
            "type": "object",
            "properties": {"x": {"type": "integer", "minimum": 0}},
            "required": ["x"],
            "additionalProperties": False,
        }
        document = {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
            "$defs": {"point": point},
        }
        return len(SchemaLanguage(document).grammar.rules)

    assert num_rules(2) == num_rules(100)


@pytest.mark.parametrize(
    ("reference", "definitions"),
    [
        ("#/$defs/a~1b", {"$defs": {"a/b": {"type": "null"}}}),
        ("#/$defs/a~0b", {"$defs": {"a~b": {"type": "null"}}}),
        ("#/$defs/a%25b%22", {"$defs": {'a%b"': {"type": "null"}}}),
        ("#/definitions/%E5%9F%8E", {"definitions": {"城": {"type": "null"}}}),
        ("#/$defs/城", {"$defs": {"城": {"type": "null"}}}),
        ("#/$defs/a/properties/b/items", {"$defs": {"a": {"properties": {"b": {"items": {"type": "null"}}}}}}),
        ("#/$defs//$defs/", {"$defs": {"": {"$defs": {"": {"type": "null"}}}}}),
        ("#/$defs/a", {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": {"type": "null"}}}),
        ("#/x-shared/0", {"x-shared": [{"type": "null"}]}),
    ],
)
def test_targets_of_references(reference: str, definitions: dict[str, Any]) -> None:
    check_language({"$ref": reference, **definitions}, ["null"], ["1", "{}", "[]"])


def test_annotations_beside_a_reference() -> None:
    document = {"$ref": "#/$defs/a", "description": "x", "default": 3, "x-y": 1, "$defs": {"a": {"type": "null"}}}
    check_language(document, ["null"], ["3"])


def test_a_cycle_of_references_makes_only_itself_impossible() -> None:
    document = {
        "$defs": {"A": {"$ref": "#/$defs/A"}},
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A"}, "y": {"type": "null"}},
        "additionalProperties": False,
    }
    check_language(document, ["{}", '{"y":null}'], ['{"x":1}', '{"x":null,"y":null}'])


def test_a_long_chain_of_references() -> None:
    definitions: dict[str, Any] = {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(3000)}
    definitions["d3000"] = {"type": "null"}
    check_language({"$ref": "#/$defs/d0", "$defs": definitions}, ["null"], ["1"])


def test_a_long_chain_of_required_members() -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/d{index + 1}"}}, "required": ["n"]}
        for index in range(1500)
    }
    definitions["d1500"] = {"type": "null"}
    grammar = parse_json_schema(json.dumps({"$ref": "#/$defs/d0", "$defs": definitions}))
    assert len(grammar.rules) > 1500


@pytest.mark.parametrize("opening", ['{"items":', '{"properties":{"a":', '{"type":"array","minItems":1,"items":'])
def test_schemas_as_deep_as_the_bound_allows(opening: str) -> None:
    closing = "}" * opening.count("{")
    times = 255 // opening.count("{")
    language = SchemaLanguage(opening * times + "{}" + closing * times)
    assert ("[" * 5 in language) is False
    assert language.begins("[" * 5)


def test_a_value_as_deep_as_the_bound_allows() -> None:
    value = "[" * 200 + "]" * 200
    siblings = '"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}'
    document = f'{{"const":{value},{siblings}}}'
    language = SchemaLanguage(document)
    assert value in language
    assert value[1:-1] not in language
