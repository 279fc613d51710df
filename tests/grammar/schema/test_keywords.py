"""Every keyword is enforced, only describes, is ignored at the caller's wish, or is refused at its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import InvalidOptions, UnsupportedJsonSchema
from infernix.grammar.schema.clauses import Clauses
from infernix.grammar.schema.keywords import DEFINITIONS, DESCRIPTIONS, ENFORCED, NAMES, REFUSED, SPECIFIED
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.source import parse_source
from infernix.grammar.schema.vendors import VENDOR_ANNOTATIONS

# A value for each refused word with which it would have an effect.
EFFECTIVE: dict[str, Any] = {
    "$dynamicRef": "#a",
    "$recursiveRef": "#",
    "contains": {},
    "contentEncoding": "base64",
    "contentMediaType": "application/json",
    "contentSchema": {},
    "dependencies": {"a": ["b"]},
    "dependentRequired": {"a": ["b"]},
    "dependentSchemas": {"a": {}},
    "else": False,
    "format": "date",
    "if": {},
    "maxContains": 1,
    "maxProperties": 1,
    "minContains": 2,
    "minProperties": 1,
    "multipleOf": 2,
    "not": {"type": "null"},
    "patternProperties": {"^a": {}},
    "propertyNames": {"maxLength": 1},
    "then": False,
    "unevaluatedItems": False,
    "unevaluatedProperties": False,
    "uniqueItems": True,
}
PARTNERS = {"else": "if", "then": "if", "if": "then", "minContains": "contains", "maxContains": "contains"}


def read(document: Any, *ignored: str) -> Clauses:
    read_document_ = read_document(parse_source(json.dumps(document)), frozenset(ignored))
    return read_document_.clauses(read_document_.root)


def refusal(document: Any, *ignored: str) -> UnsupportedJsonSchema:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        read(document, *ignored)
    return raised.value


def test_keywords_are_of_one_class_each() -> None:
    classes = [ENFORCED, DESCRIPTIONS, DEFINITIONS, NAMES, REFUSED, {"$schema", "$id", "id"}]
    assert sum(map(len, classes)) == len(SPECIFIED)
    assert SPECIFIED & VENDOR_ANNOTATIONS.keys() == {"id"}
    assert EFFECTIVE.keys() == REFUSED


@pytest.mark.parametrize("keyword", sorted(REFUSED))
def test_what_is_not_enforced_is_refused(keyword: str) -> None:
    schema = {keyword: EFFECTIVE[keyword]}
    if keyword in PARTNERS:
        schema[PARTNERS[keyword]] = EFFECTIVE[PARTNERS[keyword]]
    error = refusal({"properties": {"a": schema}})
    assert error.pointer == f"/properties/a/{keyword}"
    assert "is not supported" in str(error)


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("minLenght", "did you mean 'minLength'?"),
        ("minlength", "did you mean 'minLength'?"),
        ("propertys", "did you mean 'properties'?"),
        ("require", "did you mean 'required'?"),
        ("Enum", "did you mean 'enum'?"),
        ("exclusiveminimum", "did you mean 'exclusiveMinimum'?"),
        ("decription", "did you mean 'description'?"),
        ("type:", "did you mean 'type'?"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_a_hint(keyword: str, hint: str) -> None:
    error = refusal({"items": {keyword: 3}})
    assert error.pointer == f"/items/{keyword}"
    assert hint in str(error)


def test_an_unknown_keyword_is_refused_without_a_hint() -> None:
    error = refusal({"k" * 100_000: 1})
    assert "did you mean" not in str(error)
    assert len(error.message.partition(" at /")[0]) < 100


def test_descriptions_have_no_effect_and_are_not_checked() -> None:
    descriptions = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/root",
        "title": 1,
        "description": ["not", "checked"],
        "default": "x",
        "examples": [{"type": "nonsense"}],
        "$comment": None,
        "readOnly": True,
        "writeOnly": False,
        "deprecated": True,
        "$anchor": "here",
        "$dynamicAnchor": "there",
        "$recursiveAnchor": True,
        "$vocabulary": {},
        "x-order": {"pattern": 3},
    }
    assert descriptions.keys() >= DESCRIPTIONS | NAMES
    assert read(descriptions) == Clauses(Place())
    assert read({"items": {name: value for name, value in descriptions.items() if name != "$id"}}).items is not None


def test_vendor_annotations_have_no_effect() -> None:
    assert read(dict.fromkeys(VENDOR_ANNOTATIONS, "text")) == Clauses(Place())
    assert all(count > 0 for count in VENDOR_ANNOTATIONS.values())


@pytest.mark.parametrize("keyword", ["name", "version", "id", "links", "alias"])
def test_a_property_beside_properties_is_no_annotation(keyword: str) -> None:
    error = refusal({"type": "object", keyword: {"type": "string"}})
    assert error.pointer == f"/{keyword}"


@pytest.mark.parametrize("keyword", ["nullable", "optional", "unique", "min", "strictProperties"])
def test_vendor_words_that_restrict_are_refused(keyword: str) -> None:
    assert refusal({keyword: True}).pointer == f"/{keyword}"


def test_numbers_in_descriptions_may_be_anything() -> None:
    text = '{"default":1e999,"examples":[99999999999999999999],"x-n":0.1000000000000000001,"example":-1e999}'
    document = read_document(parse_source(text), frozenset())
    assert document.clauses(document.root) == Clauses(Place())


def test_the_caller_can_ignore_what_would_be_refused() -> None:
    document = {"type": "string", "format": "date", "vendor": {"type": 1}, "not": {"type": "null"}}
    assert refusal(document, "format", "vendor").pointer == "/not"
    assert read(document, "format", "vendor", "not") == read({"type": "string"})


def test_what_is_ignored_may_be_malformed_but_can_be_referred_to() -> None:
    document = {"$ref": "#/components/a", "components": {"a": {"type": "null"}, "b": 1}}
    assert refusal(document).pointer == "/components"
    clauses = read(document, "components")
    assert clauses.reference is not None
    assert clauses.reference.place.pointer == "/components/a"


def test_an_identity_can_be_ignored() -> None:
    document = {"$defs": {"a": {"$id": "https://example.com/a", "type": "null"}}, "$ref": "#/$defs/a"}
    assert refusal(document).pointer == "/$defs/a/$id"
    assert read(document, "$id").reference is not None


@pytest.mark.parametrize("keyword", sorted(ENFORCED | DEFINITIONS | {"$schema"}))
def test_enforced_keywords_cannot_be_ignored(keyword: str) -> None:
    with pytest.raises(InvalidOptions, match="cannot be ignored") as raised:
        read({}, "format", keyword)
    assert raised.value.field == "ignore_keywords"
    assert repr(keyword) in raised.value.reason
