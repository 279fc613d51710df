"""Equal schemas that are read once: the same languages, and errors that name the right one of several places."""

from __future__ import annotations

import json
from random import Random
from typing import Any, ClassVar

import pytest

from infernix.errors import ConstraintError, InvalidJsonSchema, UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema import lower, parse_json_schema, prove_exclusive, read_document
from infernix.grammar.schema.equal_schemas import schema_key
from infernix.grammar.schema.reduction import Reducer
from infernix.grammar.schema.source import parse_source
from support.recognizer import Recognizer

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


def key(schema: Any) -> Any:
    document = parse_source(json.dumps(schema))
    assert isinstance(document, dict)
    return schema_key(document)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"], "minLength": 1},
        {"enum": [1, "a", None, True]},
        {"type": "array", "items": {"type": "number", "maximum": 1.5}},
        {"type": "array", "items": False},
        POINT,
        {"properties": {"a": {"const": 1}, "b": True}, "additionalProperties": {"type": "null"}},
        {"$ref": "#/$defs/a", "minLength": 1},
    ],
)
def test_descriptions_make_no_difference(schema: dict[str, Any]) -> None:
    assert key(schema) is not None
    assert key({"title": "t", **schema, "description": "d", "default": [{}]}) == key(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{}]},
        {"const": {"a": 1}},
        {"enum": [[1]]},
        {"format": "date"},
        {"$id": "x"},
        {"unknown": 1},
        {"items": {"items": {}}},
        {"properties": {"a": POINT}},
        {"items": [{}]},
        {"properties": {"a": {"not": {}}}},
    ],
)
def test_what_says_more_has_no_key(schema: dict[str, Any]) -> None:
    assert key(schema) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": True}, {"const": 1}),
        ({"const": 1}, {"const": 1.0}),
        ({"const": "1"}, {"const": 1}),
        ({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}),
        ({"const": None}, {"enum": [None]}),
        ({"minimum": 1}, {"maximum": 1}),
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}),
        ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}),
        ({"properties": {"a": True}}, {"properties": {"a": False}}),
        ({"items": {"type": "null"}}, {"additionalProperties": {"type": "null"}}),
    ],
)
def test_what_says_something_else_has_another_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("document", "error", "pointer"),
    [
        (
            {"properties": {"a": {"type": "null"}, "b": {"allOf": [{"type": "string"}, {"type": "null"}]}}},
            None,
            "",
        ),
        (
            {
                "properties": {"a": {"type": "null"}, "b": {"allOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["b"],
                "type": "object",
            },
            UnsatisfiableJsonSchema,
            "/properties/b/allOf/1/type",
        ),
        (
            {"$defs": {"unused": {"pattern": "("}}, "properties": {"a": {"type": "string", "pattern": "("}}},
            InvalidJsonSchema,
            "/properties/a/pattern",
        ),
        (
            {
                "properties": {
                    "a": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                    "b": {"oneOf": [{"type": "integer"}, {"type": "integer"}]},
                }
            },
            UnsupportedJsonSchema,
            "/properties/b/oneOf",
        ),
        (
            {"$defs": {"x": {"minimum": 1, "maximum": 0, "type": "number"}}, "prefixItems": [{"$ref": "#/$defs/x"}],
             "items": {"minimum": 1, "maximum": 0, "type": "number"}, "minItems": 2, "type": "array"},
            UnsatisfiableJsonSchema,
            "/$defs/x/minimum",
        ),
        (
            {
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
                "properties": {"x": {"$ref": "#/$defs/a"}},
                "required": ["x"],
                "type": "object",
            },
            UnsatisfiableJsonSchema,
            "/$defs/a/$ref",
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/a"}}, "$defs": {}},
            InvalidJsonSchema,
            "/properties/a/$ref",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_right_place(document: Any, error: type[ConstraintError] | None, pointer: str) -> None:
    if error is None:
        parse_json_schema(json.dumps(document))
        return
    with pytest.raises(error) as raised:
        parse_json_schema(json.dumps(document))
    assert raised.value.pointer == pointer  # type: ignore[attr-defined]


def outcome(text: str, *, shares_equal: bool) -> Recognizer | tuple[type, str]:
    try:
        reducer = Reducer(read_document(parse_source(text), frozenset(), shares_equal=shares_equal))
        reducer.run()
        prove_exclusive(reducer)
        return Recognizer(lower(reducer.graph))
    except ConstraintError as error:
        return type(error), str(error)


class RepetitiveDocuments:
    """Schemas and values out of so few different parts that most of them come several times."""

    POOL: tuple[Any, ...] = (
        {"type": "integer"},
        {"type": "string", "maxLength": 2},
        {"enum": [1, "a", None]},
        {"const": "a"},
        {"type": "array", "items": {"type": "integer"}},
        POINT,
        {"type": ["integer", "object"], "minimum": 2},
        {"$ref": "#/$defs/point"},
        {"$ref": "#/$defs/tree"},
        {"$ref": "#/$defs/itself", "minimum": 2},
        True,
    )
    DEFINITIONS: ClassVar[dict[str, Any]] = {
        "point": POINT,
        "tree": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/point"}]}},
        "itself": {"anyOf": [{"$ref": "#/$defs/itself"}, {"$ref": "#/$defs/tree"}, {"type": ["integer", "string"]}]},
    }
    VALUES: tuple[Any, ...] = (1, 3, "a", "abc", None, [1], ["a"], {"x": 1}, {}, {"x": "a"}, True)

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def schema(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.choice(("pool", "pool", "allOf", "anyOf", "oneOf", "object", "array")) if depth else "pool"
        match kind:
            case "pool":
                return rng.choice(self.POOL)
            case "object":
                names = rng.sample("abc", rng.randint(1, 3))
                properties = {name: self.schema(depth - 1) for name in names}
                return {
                    "type": "object",
                    "properties": properties,
                    "required": names[:1],
                    "additionalProperties": False,
                }
            case "array":
                return {"type": "array", "prefixItems": [self.schema(depth - 1)], "items": self.schema(depth - 1)}
        return {kind: [self.schema(depth - 1) for _ in range(rng.randint(1, 3))]}

    def value(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.choice(("plain", "object", "array")) if depth else "plain"
        if kind == "object":
            return {name: self.value(depth - 1) for name in rng.sample("abcx", rng.randint(0, 3))}
        if kind == "array":
            return [self.value(depth - 1) for _ in range(rng.randint(0, 3))]
        return rng.choice(self.VALUES)


def test_languages_and_errors_are_those_of_schemas_read_one_by_one() -> None:
    num_grammars = num_errors = num_members = 0
    for seed in range(250):
        documents = RepetitiveDocuments(seed)
        schema = documents.schema(3)
        if schema is True:
            continue
        text = json.dumps({**schema, "$defs": documents.DEFINITIONS})
        expected = outcome(text, shares_equal=False)
        if isinstance(expected, tuple):
            with pytest.raises(expected[0]) as raised:
                parse_json_schema(text)
            assert str(raised.value) == expected[1]
            num_errors += 1
            continue
        found = outcome(text, shares_equal=True)
        assert isinstance(found, Recognizer), text
        num_grammars += 1
        for _ in range(12):
            value = json.dumps(documents.value(2)).encode()
            assert found.matches(value) == expected.matches(value), (text, value)
            num_members += found.matches(value)
    assert num_grammars > 50
    assert num_errors > 30
    assert num_members > 50
