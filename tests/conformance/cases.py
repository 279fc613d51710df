"""The schemas of the test collections with their instances: texts as they stand in the files."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance.json_slices import elements, members

DIRECTORY_VARIABLE = "INFERNIX_SHARED_DATA"

DRAFTS = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}


@dataclass(frozen=True, slots=True)
class Instance:
    """A value and whether the collection calls it valid."""

    value: Any
    label: bool
    description: str


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema's text and the instances that come with it."""

    name: str
    schema: str
    instances: tuple[Instance, ...]


def default_data() -> Path:
    """`$INFERNIX_SHARED_DATA`, or `../shared/data` beside the project."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get(DIRECTORY_VARIABLE) or beside)


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """`--data DIR`: the folder of the collections, or that of the one that is asked for; it has to be there."""

    def existing(text: str) -> Path:
        path = Path(text)
        if not path.is_dir():
            raise argparse.ArgumentTypeError(f"{path} is not there; ${DIRECTORY_VARIABLE} names another folder")
        return path

    parser.add_argument(
        "--data",
        type=existing,
        default=str(default_data()),
        metavar="DIR",
        help="the folder of the test collections, or the collection's own (default: %(default)s)",
    )


def collection(data: Path, name: str) -> Path:
    """The folder of a collection, where `data` is that folder or the one above it."""
    below = data / name
    folder = below if below.is_dir() else data
    if next(folder.rglob("*.json"), None) is None:
        raise FileNotFoundError(f"no JSON file below {folder}")
    return folder


def maskbench_cases(data: Path, sample: int | None = None, seed: int = 0) -> list[SchemaCase]:
    """All real schemas in the order of their names, or `sample` of them at random."""
    folder = collection(data, "maskbench")
    paths = sorted(folder.rglob("*.json"))
    if sample is not None and sample < len(paths):
        paths = sorted(Random(seed).sample(paths, sample))
    return [_maskbench_case(folder, path) for path in paths]


def _maskbench_case(folder: Path, path: Path) -> SchemaCase:
    parts = members(path.read_text(encoding="utf-8"))
    return SchemaCase(str(path.relative_to(folder)), parts["schema"], _instances(parts["tests"]))


def suite_cases(data: Path, draft: str) -> Iterator[SchemaCase]:
    """The groups of the official suite for one draft, each with its `$schema`."""
    folder = collection(data, "json_schema_test_suite") / draft
    for path in sorted(folder.rglob("*.json")):
        for group in elements(path.read_text(encoding="utf-8")):
            parts = members(group)
            name = f"{draft}/{path.relative_to(folder)}: {json.loads(parts['description'])}"
            yield SchemaCase(name, with_dialect(parts["schema"], DRAFTS[draft]), _instances(parts["tests"]))


def pattern_cases(data: Path) -> list[SchemaCase]:
    """A schema of one string for every expression of the real schemas."""
    lines = (data / "regex" / "schema_patterns.jsonl").read_text(encoding="utf-8").splitlines()
    patterns = [json.loads(line)["pattern"] for line in lines]
    return [
        SchemaCase(f"pattern {pattern}", json.dumps({"type": "string", "pattern": pattern}), ()) for pattern in patterns
    ]


def with_dialect(schema: str, identifier: str) -> str:
    """The schema with `$schema` in front, if it is an object that names no dialect."""
    document = json.loads(schema)
    if not isinstance(document, dict) or "$schema" in document:
        return schema
    head = "{" + f'"$schema": {json.dumps(identifier)}'
    return head + (", " if document else "") + schema.lstrip()[1:]


def _instances(tests: str) -> tuple[Instance, ...]:
    return tuple(Instance(test["data"], test["valid"], test.get("description", "")) for test in json.loads(tests))
