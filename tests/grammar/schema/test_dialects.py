"""Each draft is recognised by its name and read with its own meaning, into the same clauses."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.clauses import Clauses
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.nodes import Bound
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.source import parse_source

IDENTIFIERS = {
    Dialect.DRAFT_04: "http://json-schema.org/draft-04/schema",
    Dialect.DRAFT_06: "http://json-schema.org/draft-06/schema",
    Dialect.DRAFT_07: "http://json-schema.org/draft-07/schema",
    Dialect.DRAFT_2019_09: "https://json-schema.org/draft/2019-09/schema",
    Dialect.DRAFT_2020_12: "https://json-schema.org/draft/2020-12/schema",
}
WITH_ITEM_ARRAYS = [dialect for dialect in Dialect if dialect is not Dialect.DRAFT_2020_12]
WITH_LONE_REFERENCES = [Dialect.DRAFT_04, Dialect.DRAFT_06, Dialect.DRAFT_07]


def read(dialect: Dialect, **keywords: Any) -> Clauses:
    document = read_document(parse_source(json.dumps({"$schema": IDENTIFIERS[dialect], **keywords})), frozenset())
    return document.clauses(document.root)


def refused_at(dialect: Dialect, **keywords: Any) -> str:
    with pytest.raises(UnsupportedJsonSchema) as raised:
        read(dialect, **keywords)
    return raised.value.pointer


@pytest.mark.parametrize("dialect", Dialect)
def test_a_dialect_by_its_identifier(dialect: Dialect) -> None:
    name = IDENTIFIERS[dialect].partition("://")[2]
    for identifier in (f"http://{name}", f"https://{name}", f"http://{name}#", f"https://{name}#"):
        assert Dialect.of_identifier(identifier) is dialect


@pytest.mark.parametrize(
    "identifier",
    [
        "",
        "#",
        "http://json-schema.org/schema#",
        "http://json-schema.org/draft-03/schema#",
        "http://json-schema.org/draft-07/schema##",
        "http://json-schema.org/draft-07/schema/",
        "HTTP://json-schema.org/draft-07/schema",
        "ftp://json-schema.org/draft-07/schema",
        "https://http://json-schema.org/draft-07/schema#x",
        "https://example.com/mine",
    ],
)
def test_other_dialects_are_refused(identifier: str) -> None:
    assert Dialect.of_identifier(identifier) is None
    with pytest.raises(UnsupportedJsonSchema) as raised:
        read_document({"$schema": identifier}, frozenset())
    assert raised.value.pointer == "/$schema"


def test_labels_are_those_of_the_specifications() -> None:
    assert [dialect.label for dialect in Dialect] == ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]


def test_a_schema_without_a_dialect_is_2020_12() -> None:
    document = read_document({"prefixItems": [True]}, frozenset())
    assert len(document.clauses(document.root).prefix) == 1


def test_boolean_bounds_sharpen_the_others_in_draft_04() -> None:
    clauses = read(Dialect.DRAFT_04, minimum=1, exclusiveMinimum=True, maximum=2.5, exclusiveMaximum=False)
    assert [limit.bound for limit in clauses.lower] == [Bound(Fraction(1), exclusive=True)]
    assert [limit.bound for limit in clauses.upper] == [Bound(Fraction(5, 2), exclusive=False)]
    assert clauses.lower[0].place.pointer == "/minimum"


@pytest.mark.parametrize("dialect", [dialect for dialect in Dialect if dialect is not Dialect.DRAFT_04])
def test_bounds_of_their_own_since_draft_06(dialect: Dialect) -> None:
    clauses = read(dialect, minimum=1, exclusiveMinimum=0, exclusiveMaximum=9)
    assert [limit.bound for limit in clauses.lower] == [Bound(Fraction(1), False), Bound(Fraction(0), True)]
    assert [limit.bound for limit in clauses.upper] == [Bound(Fraction(9), True)]
    assert clauses.upper[0].place.pointer == "/exclusiveMaximum"


@pytest.mark.parametrize("dialect", WITH_ITEM_ARRAYS)
def test_arrays_in_items_before_2020_12(dialect: Dialect) -> None:
    clauses = read(dialect, items=[{"type": "null"}, {}], additionalItems={"type": "string"})
    assert [schema.place.pointer for schema in clauses.prefix] == ["/items/0", "/items/1"]
    assert clauses.items is not None
    assert clauses.items.place.pointer == "/additionalItems"


@pytest.mark.parametrize("dialect", Dialect)
def test_additional_items_need_an_array_in_items(dialect: Dialect) -> None:
    clauses = read(dialect, items={"type": "string"}, additionalItems={"format": "ignored as well"})
    assert clauses.prefix == ()
    assert clauses.items is not None
    assert clauses.items.place.pointer == "/items"
    assert read(dialect, additionalItems=False).items is None


def test_prefix_items_are_of_2020_12() -> None:
    clauses = read(Dialect.DRAFT_2020_12, prefixItems=[{}, {}], items=False)
    assert len(clauses.prefix) == 2
    assert clauses.items is not None
    assert clauses.items.value is False
    for dialect in WITH_ITEM_ARRAYS:
        assert refused_at(dialect, prefixItems=[{}]) == "/prefixItems"
    assert refused_at(Dialect.DRAFT_2020_12, prefixItems=[{}], additionalItems=False) == "/additionalItems"


def test_const_came_with_draft_06() -> None:
    assert refused_at(Dialect.DRAFT_04, const=1) == "/const"
    assert read(Dialect.DRAFT_06, const="a").finite[0].values == ("a",)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("container", ["$defs", "definitions"])
def test_both_containers_of_definitions_are_known_everywhere(dialect: Dialect, container: str) -> None:
    definitions = {container: {"a": {"type": "null"}, "unused": {"format": "date"}}}
    clauses = read(dialect, properties={"p": {"$ref": f"#/{container}/a"}}, **definitions)
    assert clauses.properties["p"].place.pointer == "/properties/p"


@pytest.mark.parametrize("dialect", WITH_LONE_REFERENCES)
def test_assertions_beside_a_reference_are_refused_before_2019_09(dialect: Dialect) -> None:
    definitions = {"definitions": {"a": {}}, "title": "described", "description": "", "x-own": 1}
    clauses = read(dialect, **{"$ref": "#/definitions/a"}, **definitions)
    assert clauses.reference is not None
    assert refused_at(dialect, **{"$ref": "#/definitions/a", "type": "string"}, **definitions) == "/type"
    assert refused_at(dialect, maxItems=1, **{"$ref": "#/definitions/a"}, **definitions) == "/maxItems"


@pytest.mark.parametrize("dialect", [Dialect.DRAFT_2019_09, Dialect.DRAFT_2020_12])
def test_assertions_beside_a_reference_hold_since_2019_09(dialect: Dialect) -> None:
    clauses = read(dialect, **{"$ref": "#/$defs/a", "$defs": {"a": {}}, "type": "string"})
    assert clauses.types == frozenset({"string"})
    assert clauses.reference is not None
    assert clauses.reference.place.pointer == "/$defs/a"


@pytest.mark.parametrize("dialect", Dialect)
def test_identities_below_the_root_are_refused(dialect: Dialect) -> None:
    keyword = dialect.identity_keyword
    assert read(dialect, **{keyword: "https://example.com/root"}) == Clauses(read(dialect).place)
    assert refused_at(dialect, items={keyword: "https://example.com/inner"}) == f"/items/{keyword}"
    assert refused_at(dialect, items={"$schema": IDENTIFIERS[Dialect(2021 - 1)] + "x"}) == "/items/$schema"
    assert read(dialect, items={"$schema": IDENTIFIERS[dialect]}).items is not None


def test_id_only_describes_since_draft_06_and_is_no_property() -> None:
    assert read(Dialect.DRAFT_07, id="https://example.com/root", items={"id": "inner"}).items is not None
    assert refused_at(Dialect.DRAFT_07, properties={"a": {"id": {"type": "string"}}}) == "/properties/a/id"
