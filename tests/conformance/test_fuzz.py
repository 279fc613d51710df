"""Random schemas and an independent validator agree; `python -m tests.conformance.fuzz` takes thousands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infernix.matching import GrammarCompiler
from infernix.options import OutputConstraint
from tests.conformance.cases import SchemaCase
from tests.conformance.checking import check_cases
from tests.conformance.corruption import corrupted_cases
from tests.conformance.forgetful import ForgetfulCompiler
from tests.conformance.fuzz import fuzz, random_cases
from tests.conformance.languages import SchemaCompiler
from tests.conformance.oracles import Oracle
from tests.conformance.random_schemas import loops_in_place
from tests.conformance.shrinking import shrink


def test_random_schemas(schema_compiler: SchemaCompiler) -> None:
    tally = fuzz(250, schema_compiler, seed=7)
    assert (tally.checks.wrong_acceptances, tally.checks.wrong_refusals, tally.smallest) == ([], [], [])
    assert (tally.walks.invalid, tally.walks.not_again, tally.walks.broken) == ([], [], [])
    assert tally.num_wrong == 0
    assert tally.checks.num_compiled > 80
    assert tally.checks.refusal_codes["unsatisfiable_json_schema"] > 10
    assert tally.checks.refusal_codes["invalid_json_schema"] > 50
    assert min(tally.checks.instances["valid"], tally.checks.instances["invalid"]) > 300


def test_a_breakdown_is_noticed(schema_compiler: SchemaCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(constraint: OutputConstraint) -> None:
        raise RecursionError(constraint.source)

    monkeypatch.setattr(GrammarCompiler, "compile", lambda _, constraint: broken(constraint))
    tally = check_cases([SchemaCase("deep", "{}", ())], schema_compiler)
    assert (tally.num_wrong, dict(tally.refusal_codes)) == (1, {"crash": 1})
    assert "broken down: 1" in tally.report()


def test_corruption_keeps_some_schemas_and_spoils_others() -> None:
    documents = [json.loads(case.schema) for case in corrupted_cases(300, seed=1)]
    num_well_formed = sum(Oracle(json.dumps(document)).is_well_formed is True for document in documents)
    assert 60 < num_well_formed < 240


def test_every_keyword_comes_up() -> None:
    schemas = " ".join(case.schema for case in random_cases(400, seed=0))
    keywords = (
        *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern"),
        *("minLength", "maxLength", "minItems", "maxItems", "items", "prefixItems", "additionalItems", "properties"),
        *("required", "additionalProperties", "allOf", "anyOf", "oneOf", "$ref"),
    )
    assert [keyword for keyword in keywords if schemas.count(f'"{keyword}"') < 20] == []


def test_a_disagreement_is_found_and_made_smaller(schema_compiler: SchemaCompiler) -> None:
    tally = fuzz(40, ForgetfulCompiler(schema_compiler, "maxLength"), seed=3)
    smallest = [entry for entry in tally.smallest if "maxLength" in json.dumps(entry["schema"])]
    assert smallest
    assert max(len(json.dumps(entry["schema"])) for entry in smallest) < 250


def test_shrinking() -> None:
    def shows(schema: Any, value: Any) -> bool:
        inner = schema.get("a") if isinstance(schema, dict) else None
        return isinstance(inner, dict) and "b" in inner and value != []

    assert shrink({"a": {"b": [1, 2], "c": 1}, "d": 2}, ["xyz", {"k": 12}], shows) == ({"a": {"b": []}}, {})
    assert shrink({"a": {"b": 9}}, "hello", lambda schema, value: "ll" in value) == ({}, "ll")


@pytest.mark.parametrize(
    ("document", "loops"),
    [
        ({"$ref": "#"}, True),
        ({"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/x"}]}], "$defs": {"x": {"$ref": "#"}}}, True),
        ({"items": {"$ref": "#"}}, False),
        ({"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "null"}}}, False),
    ],
)
def test_loops_in_place(document: Any, loops: bool) -> None:
    assert loops_in_place(document) is loops
