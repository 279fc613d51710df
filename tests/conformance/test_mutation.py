"""Valid values with one assertion broken are refused; `python -m tests.conformance.mutation` breaks thousands."""

from __future__ import annotations

import json

import pytest

from infernix.grammar.schema import keywords
from support.shared_data import shared_data
from tests.conformance.cases import Instance, SchemaCase, maskbench_cases
from tests.conformance.forgetful import ForgetfulCompiler
from tests.conformance.keyword_schemas import KEYWORD_CASES
from tests.conformance.languages import SchemaCompiler
from tests.conformance.mutation import ENFORCED, MutationTally, broken_keyword, mutate_cases
from tests.conformance.oracles import Oracle


@pytest.fixture(scope="module")
def keyword_tally(schema_compiler: SchemaCompiler) -> MutationTally:
    return mutate_cases(KEYWORD_CASES, schema_compiler, num_mutants=6)


def test_every_enforced_keyword_is_broken(keyword_tally: MutationTally) -> None:
    assert keyword_tally.accepted == []
    assert keyword_tally.num_schemas == len(KEYWORD_CASES)
    assert {keyword: keyword_tally.count(keyword) for keyword in ENFORCED if keyword_tally.count(keyword) < 2} == {}
    assert keyword_tally.never_broken == []
    assert "never broken: none" in keyword_tally.report()


def test_all_enforced_keywords_are_listed() -> None:
    assert set(ENFORCED) == keywords.ENFORCED


def test_real_schemas(schema_compiler: SchemaCompiler) -> None:
    tally = mutate_cases(maskbench_cases(shared_data("maskbench"), 30, seed=2), schema_compiler, num_mutants=3)
    assert tally.accepted == []
    assert sum(tally.refused.values()) > 100


@pytest.mark.parametrize("keyword", sorted(set(ENFORCED) - {"properties", "allOf", "$ref", "additionalItems"}))
def test_a_keyword_that_is_dropped_is_noticed(keyword: str, schema_compiler: SchemaCompiler) -> None:
    cases = [case for case in KEYWORD_CASES if f'"{keyword}"' in case.schema and "draft-04" not in case.schema]
    tally = mutate_cases(cases, ForgetfulCompiler(schema_compiler, keyword), num_mutants=6)
    assert tally.accepted
    assert {entry["keyword"] for entry in tally.accepted} >= {keyword} - {"items", "prefixItems"}


def test_valid_changes_are_not_counted(schema_compiler: SchemaCompiler) -> None:
    case = SchemaCase("", '{"type": "array", "minItems": 0}', (Instance([1], True, ""),))
    tally = mutate_cases([case], schema_compiler, num_mutants=100)
    assert set(tally.refused) == {"type"}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"type": {"type": "null"}}}, {"type": 1}, ("type", {"properties"})),
        ({"prefixItems": [True, False]}, [1, 2], ("prefixItems", set())),
        ({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"minimum": 3}}}, 1, ("minimum", {"allOf", "$ref"})),
        ({"anyOf": [{"type": "null"}, {"maxLength": 1}]}, "ab", ("anyOf", set())),
        ({"additionalProperties": {"type": "null"}}, {"a": 1}, ("type", {"additionalProperties"})),
    ],
)
def test_broken_keyword(schema: object, value: object, expected: tuple[str, set[str]]) -> None:
    failures = Oracle(json.dumps(schema)).failures(value)
    assert [broken_keyword(failure) for failure in failures] == [expected]
