"""Schemas that are written out several times are one rule."""

from __future__ import annotations

from typing import Any

from support.schema_language import SchemaLanguage, check_language

POINT = {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}, "u": {"enum": ["m", "km"]}}}


def num_rules(document: Any) -> int:
    return len(SchemaLanguage(document).grammar.rules)


def test_equal_schemas_are_one_rule() -> None:
    def line(count: int) -> dict[str, Any]:
        points = {f"p{index}": {"type": "array", "items": POINT} for index in range(count)}
        return {"type": "object", "properties": points, "required": [*points]}

    assert num_rules(line(2)) == num_rules(line(20))
    check_language(line(2), ['{"p0":[{"x":1}],"p1":[{"x":2,"u":"km"}]}'], ['{"p0":[],"p1":[{"x":-1}]}'])


def test_equal_unions_are_one_rule() -> None:
    union = {"anyOf": [POINT, {"type": "null"}, {"type": "array", "items": POINT}]}
    assert num_rules({"prefixItems": [union, union, union]}) == num_rules({"prefixItems": [union, True, union]})


def test_different_schemas_stay_different() -> None:
    other = {**POINT, "required": ["x"]}
    document = {"type": "object", "properties": {"a": POINT, "b": other, "c": {"enum": [{"x": 1}]}}}
    check_language(
        document, ['{"a":{}}', '{"a":{},"b":{"x":1},"c":{"x":1}}'], ['{"a":{},"b":{}}', '{"c":{}}', '{"c":{"x":2}}']
    )
    swapped = {"type": "object", "properties": dict(reversed(POINT["properties"].items()))}
    check_language(
        {"prefixItems": [POINT, swapped], "type": "array"},
        ['[{"x":1,"u":"m"},{"u":"m","x":1}]'],
        ['[{"u":"m","x":1},{"u":"m","x":1}]', '[{"x":1,"u":"m"},{"x":1,"u":"m"}]'],
    )


def test_recursive_schemas_are_left_alone() -> None:
    document = {
        "$defs": {name: {"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in ("a", "b")},
        "prefixItems": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}],
        "type": "array",
    }
    check_language(document, ["[[[]],[[],[]],[[[]]]]"], ["[[1]]", "[[],[[2]]]"])
