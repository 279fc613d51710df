"""Schemas with something wrong in them: a keyword with a value of another kind, a part in the place of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.conformance.cases import Instance, SchemaCase
from tests.conformance.keyword_schemas import KEYWORD_CASES
from tests.conformance.mutation import ENFORCED
from tests.conformance.oracles import Oracle
from tests.conformance.random_schemas import loops_in_place
from tests.conformance.spelling import published_value

_KEYWORDS = (
    *ENFORCED,
    *("$schema", "$id", "id", "$defs", "definitions", "not", "if", "format", "uniqueItems", "minProperties", "title"),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**70, 1e300, "", "x", "(", "object", "\ud800", [], [1], [[]], {}, {"a": 1}),
    *("#", "#/", "#/$defs/x", "#/definitions/%zz", "other.json", {"type": "x"}, ["a", "a"], [True, {}], ["string"]),
)

_Path = tuple[str | int, ...]


def corrupted(document: Any, rng: Random) -> Any:
    """A copy of the document with one or two parts changed."""
    copy = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 2))):
        paths = list(_paths(copy))
        path = rng.choice(paths)
        value = rng.choice((rng.choice(_VALUES), _at(copy, rng.choice(paths))))
        value = json.loads(json.dumps(value))
        target = _at(copy, path)
        if isinstance(target, dict) and rng.random() < 0.5:
            target[rng.choice(_KEYWORDS)] = value
        elif path:
            _at(copy, path[:-1])[path[-1]] = value
    return copy


def corrupted_cases(num_schemas: int, seed: int) -> Iterator[SchemaCase]:
    """Corrupted keyword schemas; those that are schemas still have their instance, labelled by a validator."""
    for index in range(num_schemas):
        rng = Random(f"{seed} {index}")
        base = rng.choice(KEYWORD_CASES)
        document = corrupted(json.loads(base.schema), rng)
        text = json.dumps(document)
        oracle = Oracle(text)
        instances: list[Instance] = []
        if oracle.is_well_formed and oracle.rust is not None and not loops_in_place(document):
            for instance in base.instances:
                label = bool(oracle.rust.is_valid(published_value(instance.value)))
                instances.append(Instance(instance.value, label, json.dumps(instance.value)))
        yield SchemaCase(f"corrupted, seed {seed}, schema {index}: {text}", text, tuple(instances))


def _paths(document: Any) -> Iterator[_Path]:
    pending: list[tuple[_Path, Any]] = [((), document)]
    while pending:
        path, part = pending.pop()
        yield path
        if isinstance(part, dict):
            pending += [((*path, name), item) for name, item in part.items()]
        elif isinstance(part, list):
            pending += [((*path, index), item) for index, item in enumerate(part)]


def _at(document: Any, path: _Path) -> Any:
    for step in path:
        document = document[step]
    return document
