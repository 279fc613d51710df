"""A sample of the function-calling requests, and the rules by which they are converted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.shared_data import shared_data
from tests.conformance.bfcl import NoSuchValue, converted, expected_arguments, ordered
from tests.conformance.tools import run


def test_expected_calls_of_a_sample_are_accepted() -> None:
    tally = run(shared_data("bfcl"), sample=36)
    assert tally.failed == []
    assert tally.accepted + sum(tally.excluded.values()) == tally.requests == 10
    assert sum(tally.excluded.values()) <= 1
    assert tally.strict >= 5
    assert tally.calls > 40


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "float", "description": "d", "default": 1}, {"type": "number"}),
        ({"type": "any", "optional": True}, {}),
        ({"type": "tuple", "items": {"type": "long"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "HashMap"}, {"type": "object"}),
        (
            {"type": "dict", "properties": {"a": {"type": "String", "format": "x"}}, "required": ["a", "b"]},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
        ({"type": "array", "enum": ["a"]}, {"type": "array", "items": {"enum": ["a"]}}),
        ({"type": "integer", "enum": ["1", 2, True]}, {"type": "integer", "enum": [2]}),
        ({"type": "boolean", "enum": ["yes"]}, {"type": "boolean"}),
    ],
)
def test_schemas_of_the_dialect(schema: Any, expected: Any) -> None:
    assert converted(schema) == expected


def test_every_listed_value_comes_once() -> None:
    schema = converted(
        {
            "type": "dict",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "integer"},
                "c": {"type": "dict", "properties": {"x": {"type": "float"}, "y": {"type": "string"}}},
            },
            "required": ["a"],
        }
    )
    expected = {"a": ["u", "v", "", 3], "b": ["", 1.0], "c": [{"y": ["", "p"], "x": [1, 2]}]}
    calls = expected_arguments(schema, expected)
    assert calls == [{"a": "u", "c": {"x": 1}}, {"a": "v", "b": 1.0, "c": {"y": "p", "x": 2}}]
    assert json.dumps(ordered(schema, calls[1])) == '{"a": "v", "b": 1, "c": {"x": 2, "y": "p"}}'


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ({"a": [1]}, "not of the declared type"),
        ({"a": ["z"]}, "not in the enum"),
        ({"a": ["x"], "q": [1]}, "not declared"),
        ({}, "required argument"),
    ],
)
def test_what_is_excluded(expected: Any, reason: str) -> None:
    schema = converted({"type": "dict", "properties": {"a": {"type": "string", "enum": ["x", "y"]}}, "required": ["a"]})
    with pytest.raises(NoSuchValue, match=reason):
        expected_arguments(schema, expected)
