"""Assertions that admit everything are accepted, and only those; the oracle is the meaning in the specification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.clauses import Clauses
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.source import parse_source

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def read(document: Any) -> Clauses:
    result = read_document(parse_source(json.dumps(document)), frozenset())
    return result.clauses(result.root)


@pytest.mark.parametrize(
    "document",
    [
        {"uniqueItems": False},
        {"minProperties": 0},
        {"minProperties": 0.0},
        {"not": False},
        {"propertyNames": True},
        {"propertyNames": {}},
        {"propertyNames": {"title": "any name"}},
        {"unevaluatedItems": True},
        {"unevaluatedProperties": {"$comment": "x", "x-y": 1}},
        {"patternProperties": {}},
        {"dependentSchemas": {}},
        {"dependentRequired": {}},
        {"dependencies": {}},
        {"additionalItems": True},
        {"additionalItems": False},
        {"contains": {"type": "null"}, "minContains": 0},
        {"minContains": 3},
        {"maxContains": 0},
        {"minContains": 0},
        {"if": {"type": "string"}},
        {"then": False},
        {"else": {"not": {}}},
        {"then": False, "else": False},
        {**DRAFT_07, "additionalItems": {"not": {}}},
    ],
)
def test_assertions_that_admit_everything(document: Any) -> None:
    assert read(document) == Clauses(Place())


@pytest.mark.parametrize(
    ("document", "keyword"),
    [
        ({"uniqueItems": True}, "uniqueItems"),
        ({"minProperties": 1}, "minProperties"),
        ({"maxProperties": 0}, "maxProperties"),
        ({"not": {}}, "not"),
        ({"not": True}, "not"),
        ({"propertyNames": False}, "propertyNames"),
        ({"propertyNames": {"type": "string"}}, "propertyNames"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"patternProperties": {"a": {}}, "additionalProperties": False}, "patternProperties"),
        ({"additionalItems": False, "prefixItems": [{}]}, "additionalItems"),
        ({"contains": {}}, "contains"),
        ({"contains": {}, "minContains": 1}, "contains"),
        ({"contains": {}, "minContains": 0, "maxContains": 2}, "contains"),
        ({**DRAFT_07, "contains": {}, "minContains": 0}, "contains"),
        ({"if": {}, "else": False}, "if"),
        ({"then": False, "if": {}}, "then"),
    ],
)
def test_assertions_with_an_effect_are_refused(document: Any, keyword: str) -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        read(document)
    assert raised.value.pointer == f"/{keyword}"
