"""The evidence for vendor annotations: how many real schemas use each of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from infernix.grammar.schema.vendors import VENDOR_ANNOTATIONS, is_vendor_annotation
from support.shared_data import shared_data

SCHEMA_KEYWORDS = {"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains"}
LIST_KEYWORDS = {"items", "allOf", "anyOf", "oneOf"}
MAP_KEYWORDS = {"properties", "patternProperties", "definitions", "$defs", "dependencies"}


def schema_objects(document: Any) -> Iterator[dict[str, Any]]:
    pending = [document]
    while pending:
        schema = pending.pop()
        if isinstance(schema, dict):
            yield schema
            for keyword, value in schema.items():
                if keyword in MAP_KEYWORDS and isinstance(value, dict):
                    pending.extend(value.values())
                elif keyword in LIST_KEYWORDS and isinstance(value, list):
                    pending.extend(value)
                elif keyword in SCHEMA_KEYWORDS:
                    pending.append(value)


def test_the_counts_are_those_of_the_real_schemas() -> None:
    counts: Counter[str] = Counter()
    num_schemas = 0
    for path in sorted(shared_data("maskbench").glob("*/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))["schema"]
        is_draft_04 = isinstance(document, dict) and "draft-04" in document.get("$schema", "")
        num_schemas += 1
        counts.update(
            {
                keyword
                for schema in schema_objects(document)
                for keyword, value in schema.items()
                if keyword in VENDOR_ANNOTATIONS
                and is_vendor_annotation(keyword, value)
                and not (keyword == "id" and is_draft_04)
            }
        )
    assert num_schemas == 1049
    assert dict(counts) == VENDOR_ANNOTATIONS
