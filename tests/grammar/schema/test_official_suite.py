"""The official JSON Schema test suite: a group is refused as unsupported, or every one of its tests holds.

"Valid" means in the language here, with members in the order that the schema declares; see `support.json_text`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from support.json_text import json_text
from support.schema_language import SchemaLanguage
from support.shared_data import shared_data

DIALECTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}

# Valid instances outside the language by decision: integers are limited to signed 64-bit.
BEYOND_64_BITS = {
    "a bignum is an integer",
    "a negative bignum is an integer",
    "a bignum is a number",
    "a negative bignum is a number",
    "comparison works for high numbers",
    "comparison works for very negative numbers",
}

# How many groups of the sample are enforced, unsupported, and without any value. Enforcing a further keyword moves
# groups to the left; nothing else may change the figures.
EXPECTED = {
    "draft2020-12": {"enforced": 128, "unsupported": 223, "unsatisfiable": 6},
    "draft7": {"enforced": 125, "unsupported": 118, "unsatisfiable": 6},
}


def groups(draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = shared_data(f"json_schema_test_suite/{draft}")
    for path in sorted(folder.rglob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(folder)}: {group['description']}", group


@pytest.mark.parametrize("draft", DIALECTS)
def test_groups(draft: str) -> None:
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    num_valid = num_invalid = 0
    for name, group in groups(draft):
        schema = group["schema"]
        if isinstance(schema, dict):
            # The draft 7 files name no dialect: it is the folder's.
            schema = {"$schema": DIALECTS[draft], **schema}
        try:
            language = SchemaLanguage(schema)
        except UnsupportedJsonSchema:
            outcomes["unsupported"] += 1
            continue
        except UnsatisfiableJsonSchema:
            outcomes["unsatisfiable"] += 1
            wrong += [f"{name}: {test['description']}" for test in group["tests"] if test["valid"]]
            continue
        outcomes["enforced"] += 1
        for test in group["tests"]:
            num_valid += test["valid"]
            num_invalid += not test["valid"]
            expected = test["valid"] and test["description"] not in BEYOND_64_BITS
            if (json_text(schema, test["data"]) in language) != expected:
                wrong.append(f"{name}: {test['description']}")
    assert wrong == []
    assert dict(outcomes) == EXPECTED[draft]
    assert num_valid > 80
    assert num_invalid > 80
