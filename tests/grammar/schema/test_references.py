"""References lead to schemas of the same document, or say why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.source import parse_source

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"

NESTED = {"a": {"definitions": {"b": {}}}}


def follow(document: Any, *ignored: str) -> str:
    """Where the `$ref` of the property `p` leads, or of the root if there is no such property."""
    result = read_document(parse_source(json.dumps(document)), frozenset(ignored))
    clauses = result.clauses(result.root)
    clauses = result.clauses(clauses.properties["p"]) if "p" in clauses.properties else clauses
    assert clauses.reference is not None
    return clauses.reference.place.pointer


def refer(reference: str, **keywords: Any) -> dict[str, Any]:
    return {**keywords, "properties": {"p": {"$ref": reference}, **keywords.get("properties", {})}}


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (refer("#"), ""),
        (refer(""), ""),
        (refer("#/properties/p"), "/properties/p"),
        (refer("#/$defs/a%25~01~1b", **{"$defs": {"a%~1/b": {}}}), "/$defs/a%~01~1b"),
        (refer("#/$defs/%E5%9F%8E", **{"$defs": {"城": True}}), "/$defs/城"),
        (refer("#/allOf/1/items", allOf=[{}, {"items": {}}]), "/allOf/1/items"),
        (refer("#/prefixItems/0", prefixItems=[{}]), "/prefixItems/0"),
        (refer("#/items/1", items=[{}, {}], **{"$schema": DRAFT_07}), "/items/1"),
        (refer("#/definitions/a/definitions/b", definitions=NESTED), "/definitions/a/definitions/b"),
        (refer("#/$defs/n/not", **{"$defs": {"n": {"not": {}}}}), "/$defs/n/not"),
        (refer("#/x-shared/a/b", **{"x-shared": {"a": {"b": {}}}}), "/x-shared/a/b"),
        (refer("#/x-shared/1", **{"x-shared": [1, False]}), "/x-shared/1"),
    ],
)
def test_local_references(document: Any, pointer: str) -> None:
    assert follow(document) == pointer


@pytest.mark.parametrize(
    ("identity", "reference", "is_own"),
    [
        ("https://example.com/a.json", "https://example.com/a.json#/$defs/d", True),
        ("https://example.com/a.json#", "https://example.com/a.json#/$defs/d", True),
        ("https://example.com/a.json", "a.json#/$defs/d", True),
        ("https://example.com/a.json", "/a.json#/$defs/d", True),
        ("https://example.com/x/a.json", "/a.json#/$defs/d", False),
        ("https://example.com/a.json", "b.json#/$defs/d", False),
        ("https://example.com/a.json", "http://example.com/a.json#/$defs/d", False),
        ("urn:example:a", "urn:example:a#/$defs/d", True),
        ("urn:example:a", "urn:example:b#/$defs/d", False),
        ("a.json", "a.json#/$defs/d", True),
        # A relative identity starts from where the document was found, and the reference from there once more.
        ("x/a.json", "x/a.json#/$defs/d", False),
        ("https://example.com/a.json", "http://[#/$defs/d", False),
        ("https://example.com/a.json", "https://example.com/a.json#anchor", False),
    ],
)
def test_references_by_the_documents_own_identity(identity: str, reference: str, is_own: bool) -> None:
    document = {"$id": identity, **refer(reference, **{"$defs": {"d": {}}})}
    if is_own:
        assert follow(document) == "/$defs/d"
        assert follow({**document, "$schema": DRAFT_04, "id": document["$id"]}) == "/$defs/d"
        return
    with pytest.raises(UnsupportedJsonSchema) as raised:
        follow(document)
    assert raised.value.pointer == "/properties/p/$ref"


@pytest.mark.parametrize(
    "document",
    [
        refer("#/$defs/none"),
        refer("#/properties/q"),
        refer("#/properties"),
        refer("#/$defs", **{"$defs": {"a": {}}}),
        refer("#/allOf", allOf=[{}]),
        refer("#/allOf/01", allOf=[{}, {}]),
        refer("#/allOf/-", allOf=[{}, {}]),
        refer("#/items/0", items={}),
        refer("#/properties/a/x", properties={"a": True}),
        refer("#/x-own/a", **{"x-own": {"a": "text"}}),
        refer("#/x-own", **{"x-own": [{}]}),
        refer("#/%"),
        {"$id": "https://example.com/a", **refer("https://example.com/a#/%zz")},
    ],
)
def test_references_that_lead_to_no_schema(document: Any) -> None:
    with pytest.raises(InvalidJsonSchema) as raised:
        follow(document)
    assert raised.value.pointer == "/properties/p/$ref"


@pytest.mark.parametrize(
    "document",
    [
        refer("#/const/a", const={"a": {}}),
        refer("#/enum/0", enum=[{}]),
        refer("#/default", default={}),
        refer("#/examples/0", examples=[{}]),
        refer("#/title", title="x"),
        refer("#/required/0", required=["p"]),
        refer("#name", **{"$anchor": "name"}),
        refer("other.json"),
        refer("other.json#/a"),
        refer("https://example.com/x.json"),
        refer("#/$defs/a/items", **{"$defs": {"a": {"$id": "https://example.com/a", "items": {}}}}),
        refer("#/$defs/a/items", **{"$defs": {"a": {"$schema": DRAFT_07, "items": {}}}}),
        refer("#/$defs/a/items", **{"$schema": DRAFT_04, "$defs": {"a": {"id": "#a", "items": {}}}}),
    ],
)
def test_references_that_are_not_followed(document: Any) -> None:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        follow(document)
    assert raised.value.pointer == "/properties/p/$ref"


def test_a_schema_that_only_a_reference_reaches_is_checked() -> None:
    shared = {"ok": {"type": "null"}, "bad": {"items": {"type": "nul"}}, "vague": {"format": "date"}}
    assert follow(refer("#/x-s/ok", **{"x-s": shared})) == "/x-s/ok"
    with pytest.raises(InvalidJsonSchema) as invalid:
        follow(refer("#/x-s/bad", **{"x-s": shared}))
    assert invalid.value.pointer == "/x-s/bad/items/type"
    with pytest.raises(UnsupportedJsonSchema) as unsupported:
        follow(refer("#/x-s/vague", **{"x-s": shared}))
    assert unsupported.value.pointer == "/x-s/vague/format"


def test_a_property_named_ref_is_no_reference() -> None:
    result = read_document(parse_source('{"properties":{"$ref":{"type":"null"}}}'), frozenset())
    clauses = result.clauses(result.root)
    assert clauses.reference is None
    assert list(clauses.properties) == ["$ref"]
