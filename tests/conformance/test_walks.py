"""Texts drawn through the masks are valid; `python -m tests.conformance.walks` draws tens of thousands."""

from __future__ import annotations

import json
from random import Random

import pytest

from support.shared_data import shared_data
from tests.conformance.cases import SchemaCase, maskbench_cases
from tests.conformance.forgetful import ForgetfulCompiler
from tests.conformance.keyword_schemas import KEYWORD_CASES
from tests.conformance.languages import SchemaCompiler
from tests.conformance.walking import Manner, Walker
from tests.conformance.walks import walk_cases


def test_walks_over_real_schemas(schema_compiler: SchemaCompiler) -> None:
    tally = walk_cases(maskbench_cases(shared_data("maskbench"), 120, seed=1), schema_compiler, num_walks=5)
    assert (tally.invalid, tally.not_again, tally.broken) == ([], [], [])
    assert tally.counts["judged by jsonschema-rs"] == tally.counts["finished"] > 300
    assert tally.counts["judged by python-jsonschema too"] > 30
    assert tally.counts["given up"] < 5


def test_walks_over_every_keyword(schema_compiler: SchemaCompiler) -> None:
    tally = walk_cases(KEYWORD_CASES, schema_compiler, num_walks=10, seed=2)
    assert (tally.invalid, tally.not_again, tally.broken) == ([], [], [])
    assert tally.num_schemas == len(KEYWORD_CASES)
    assert tally.counts["finished"] > 9.5 * tally.num_schemas


@pytest.mark.parametrize(
    ("keyword", "schema"),
    [
        ("pattern", {"type": "string", "pattern": "^[a-f]*$"}),
        ("maximum", {"type": "integer", "maximum": 3}),
        ("required", {"properties": {"a": {}}, "required": ["a"], "type": "object"}),
        ("additionalProperties", {"type": "object", "additionalProperties": {"type": "null"}}),
        ("maxItems", {"type": "array", "maxItems": 0}),
    ],
)
def test_a_loosened_schema_is_noticed(keyword: str, schema: object, schema_compiler: SchemaCompiler) -> None:
    case = SchemaCase("", json.dumps(schema), ())
    tally = walk_cases([case], ForgetfulCompiler(schema_compiler, keyword), num_walks=20)
    assert tally.invalid
    assert tally.num_wrong >= len(tally.invalid)
    assert f"invalid texts: {len(tally.invalid)}" in tally.report()


@pytest.mark.parametrize("by_byte", [False, True])
def test_closing_ends_texts_that_want_to_go_on(by_byte: bool, schema_compiler: SchemaCompiler) -> None:
    schema = {
        "type": "object",
        "properties": {"s": {"type": "string", "pattern": "needle"}, "n": {"type": "string", "minLength": 40}},
        "required": ["s", "n", "t"],
        "additionalProperties": {"type": "array", "items": {"type": "array"}, "minItems": 2},
    }
    language = schema_compiler.compile(json.dumps(schema)).language
    assert language is not None
    walker = Walker(schema_compiler.vocabulary.vocabulary)
    manner = Manner(num_free=10, haste=0.0, blanks=0.1, by_byte=by_byte)
    texts = [walker.walk(language.grammar, manner, Random(seed)) for seed in range(20)]
    assert None not in texts
    assert len(set(texts)) == 20
