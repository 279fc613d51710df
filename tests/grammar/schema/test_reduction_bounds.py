"""Work in proportion to the schema, and bounds where that is not possible."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema import parse_json_schema
from infernix.grammar.schema.budget import MAX_MERGES, MAX_REDUCTION_STEPS, Budget
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.reduction import Reducer
from infernix.grammar.schema.source import parse_source
from support.schema_language import SchemaLanguage


def reduced(document: Any) -> Reducer:
    reducer = Reducer(read_document(parse_source(json.dumps(document)), frozenset()))
    reducer.run()
    return reducer


def merged_objects(num_branches: int) -> dict[str, Any]:
    branches = [{"properties": {f"p{index}": {"type": "string"}}} for index in range(num_branches)]
    return {"type": "object", "allOf": branches}


def discriminated_union(num_branches: int) -> dict[str, Any]:
    return {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": index}, "value": {}}, "required": ["kind"]}
            for index in range(num_branches)
        ]
    }


@pytest.mark.parametrize("document", [merged_objects, discriminated_union])
def test_steps_grow_linearly(document: Any) -> None:
    steps = [reduced(document(count)).budget.num_steps for count in (100, 200, 400)]
    assert steps[2] - steps[1] <= 2 * (steps[1] - steps[0]) + 8


def test_choosing_a_branch_counts_whether_it_holds_a_choice_or_not() -> None:
    def union(num_branches: int, *more: Any) -> dict[str, Any]:
        return {"anyOf": [*({"type": "integer", "minimum": index} for index in range(num_branches)), *more]}

    for more in ((), ({"anyOf": [{"type": "null"}]},)):
        few, many = (reduced(union(count, *more)).budget.num_steps for count in (100, 200))
        # Each branch with its one assertion, and that it is tried beside the choice.
        assert many - few == 100 * (2 + 2)


def test_each_combination_is_reduced_once() -> None:
    """Two recursive schemas with 5 and 7 positions have at most 35 intersections, however often they meet."""

    def ring(name: str, length: int) -> dict[str, Any]:
        return {
            f"{name}{index}": {
                "type": "object",
                "properties": {
                    "x": {"$ref": f"#/$defs/{name}{(index + 1) % length}"},
                    "y": {"$ref": f"#/$defs/{name}{(index * 2 + 1) % length}"},
                },
            }
            for index in range(length)
        }

    document = {"$defs": {**ring("a", 5), **ring("b", 7)}, "allOf": [{"$ref": "#/$defs/a0"}, {"$ref": "#/$defs/b0"}]}
    assert reduced(document).budget.num_merges <= 35


def pairs(count: int, *, keyword: str = "anyOf") -> list[Any]:
    return [{keyword: [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]} for index in range(count)]


def test_products_of_choices_are_bounded() -> None:
    parse_json_schema(json.dumps({"type": "object", "allOf": pairs(6)}))
    with pytest.raises(UnsupportedJsonSchema, match=f"MAX_MERGES = {MAX_MERGES}"):
        parse_json_schema(json.dumps({"type": "object", "allOf": pairs(40)}))
    with pytest.raises(UnsupportedJsonSchema):
        parse_json_schema(json.dumps({"type": "object", "allOf": pairs(40, keyword="oneOf")}))


def test_choices_nested_in_choices_are_bounded() -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {"anyOf": [{"$ref": f"#/$defs/d{index + 1}"}, {"allOf": [{"$ref": f"#/$defs/d{index + 1}"}]}]}
        for index in range(60)
    }
    document = {"$defs": {**definitions, "d60": {"type": "null"}}, "$ref": "#/$defs/d0"}
    with pytest.raises(UnsupportedJsonSchema, match=f"MAX_REDUCTION_STEPS = {MAX_REDUCTION_STEPS}"):
        parse_json_schema(json.dumps(document))


def test_a_value_tried_on_nested_choices_is_tried_once_on_each() -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {
            "oneOf": [{"$ref": f"#/$defs/d{index + 1}"}, {"allOf": [{"$ref": f"#/$defs/d{index + 1}"}], "minLength": 3}]
        }
        for index in range(2000)
    }
    definitions["d2000"] = {"type": "string"}
    document = {"$defs": definitions, "enum": ["a", "abc"], "allOf": [{"$ref": "#/$defs/d0"}]}
    assert SchemaLanguage(document).grammar == SchemaLanguage({"const": "a"}).grammar


def test_proofs_are_bounded() -> None:
    branches = [{"type": "array", "minItems": 2 * index, "maxItems": 2 * index + 1} for index in range(50)]
    parse_json_schema(json.dumps({"oneOf": branches}))
    branches = [{"type": "array", "minItems": 2 * index, "maxItems": 2 * index + 1} for index in range(200)]
    with pytest.raises(UnsupportedJsonSchema, match="MAX_MERGES") as raised:
        parse_json_schema(json.dumps({"oneOf": branches}))
    assert raised.value.pointer == "/oneOf"


@pytest.mark.parametrize(
    ("joining", "expected"),
    [
        (lambda reference: {"allOf": [reference]}, ["null"]),
        (lambda reference: {"type": ["null", "string"], "allOf": [reference]}, ["null"]),
        (lambda reference: {"allOf": [reference], "anyOf": [True]}, ["null"]),
    ],
)
def test_long_chains_of_joins(joining: Any, expected: list[str]) -> None:
    definitions: dict[str, Any] = {f"d{index}": joining({"$ref": f"#/$defs/d{index + 1}"}) for index in range(1000)}
    definitions["d1000"] = {"type": "null"}
    language = SchemaLanguage({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert [text for text in ("null", '"a"', "1") if text in language] == expected


def test_a_long_chain_of_choices() -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {"anyOf": [{"const": index}, {"$ref": f"#/$defs/d{index + 1}"}]} for index in range(500)
    }
    definitions["d500"] = {"type": "null"}
    language = SchemaLanguage({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert all(text in language for text in ("null", "0", "499"))
    assert "500" not in language


def test_a_deep_value_under_deep_choices() -> None:
    definitions: dict[str, Any] = {
        f"d{index}": {"anyOf": [{"items": {"$ref": f"#/$defs/d{index + 1}"}}, {"type": "null"}]} for index in range(200)
    }
    definitions["d200"] = {"type": "integer"}
    value = "[" * 200 + "{}" + "]" * 200
    text = json.dumps({"$defs": definitions, "allOf": [{"$ref": "#/$defs/d0"}], "const": 0})
    assert value.replace("{}", "1") in SchemaLanguage(
        text.replace('"const": 0', f'"const": {value.replace("{}", "1")}')
    )
    with pytest.raises(UnsatisfiableJsonSchema) as raised:
        parse_json_schema(text.replace('"const": 0', f'"const": {value.replace("{}", "null")}'))
    assert raised.value.pointer == "/const"


def test_a_budget_counts_to_its_bounds() -> None:
    budget = Budget()
    place = Place().at("items")
    budget.merge(MAX_MERGES, place)
    budget.spend(MAX_REDUCTION_STEPS, place)
    assert not budget.is_exhausted
    for use, bound in ((budget.merge, "MAX_MERGES"), (budget.spend, "MAX_REDUCTION_STEPS")):
        with pytest.raises(UnsupportedJsonSchema, match=bound) as raised:
            use(1, place)
        assert raised.value.pointer == "/items"
    assert budget.is_exhausted
