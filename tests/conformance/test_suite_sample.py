"""The official JSON Schema test suite: a group is refused, or every one of its tests holds."""

from __future__ import annotations

import json

import pytest

from support.shared_data import shared_data
from tests.conformance.cases import DRAFTS, suite_cases, with_dialect
from tests.conformance.checking import check_cases
from tests.conformance.languages import SchemaCompiler
from tests.conformance.suite import summary

# How many groups of each draft compile, at least. A keyword more that is enforced adds to it.
LEAST_COMPILED = {"draft2020-12": 125, "draft7": 120}


@pytest.mark.parametrize("draft", DRAFTS)
def test_groups(draft: str, schema_compiler: SchemaCompiler) -> None:
    tally = check_cases(suite_cases(shared_data(), draft), schema_compiler, trust_labels=True)
    figures = summary(tally)
    assert figures["wrong"] == []
    assert tally.num_wrong == 0
    assert figures["groups"] == figures["compiled"] + figures["refused"] == tally.num_schemas
    assert figures["compiled"] >= LEAST_COMPILED[draft]
    assert tally.outside.keys() == {"an integer beyond signed 64 bits"}
    assert (tally.malformed_compiled, tally.well_formed_invalid) == ([], [])
    assert tally.instances["valid"] > 150
    assert tally.instances["invalid"] > 150


def test_dialect_is_added_where_none_is_named() -> None:
    named = '{"$schema": "x", "type": "null"}'
    assert with_dialect("true", "y") == "true"
    assert with_dialect(named, "y") == named
    assert json.loads(with_dialect(" {}", "y")) == {"$schema": "y"}
    assert with_dialect('{ "const": 1.0 }', "y") == '{"$schema": "y",  "const": 1.0 }'
