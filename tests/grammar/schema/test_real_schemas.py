"""Schemas that people really use (MaskBench), with their valid and invalid instances."""

from __future__ import annotations

import json

import pytest

from infernix.errors import ConstraintError
from support.json_text import json_text
from support.schema_language import SchemaLanguage
from support.shared_data import shared_data

MAX_INSTANCE_BYTES = 800

# Of the schemas of each origin: how many are enforced, out of how many. Enforcing a further keyword adds to the first.
EXPECTED = {
    "BFCL_parallel": (59, 60),
    "BFCL_simple": (45, 45),
    "Github_easy": (93, 120),
    "Github_medium": (90, 150),
    "Github_trivial": (34, 45),
    "Glaiveai2K": (83, 90),
    "JME": (41, 75),
    "JsonSchemaStore": (18, 45),
    "Kubernetes": (34, 45),
    "MCPspec": (19, 33),
}


@pytest.mark.parametrize("origin", EXPECTED)
def test_instances(origin: str) -> None:
    num_schemas = num_enforced = num_instances = 0
    wrong: list[str] = []
    for path in sorted(shared_data(f"maskbench/{origin}").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        num_schemas += 1
        try:
            language = SchemaLanguage(case["schema"])
        except ConstraintError:
            continue
        num_enforced += 1
        for test in case["tests"]:
            text = json_text(case["schema"], test["data"])
            if len(text) <= MAX_INSTANCE_BYTES:
                num_instances += 1
                if (text in language) != test["valid"]:
                    wrong.append(f"{path.name}: {test['description']}")
    assert wrong == []
    assert (num_enforced, num_schemas) == EXPECTED[origin]
    assert num_instances > 0
