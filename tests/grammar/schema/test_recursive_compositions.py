"""Random definitions that lead back to themselves through `allOf`, `anyOf` and `$ref`, against a plain fixpoint.

The oracle decides each value by itself. A schema holds if its own assertion does, all that it joins holds, and its
choice, if it has one, has a branch that holds: the greatest solution for joins (A and A is A), the least one for
choices (A or A is nothing new).
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from infernix.errors import UnsatisfiableJsonSchema
from support.schema_language import SchemaLanguage

VALUES = {"string": "x", "integer": 1, "null": None, "boolean": True}
NAMES = ["A", "B", "C", "D"]


def random_definition(generator: random.Random, *, finite: bool) -> dict[str, Any]:
    def assertion() -> dict[str, Any]:
        types = generator.sample(sorted(VALUES), generator.randint(1, 3))
        return {"enum": [VALUES[name] for name in types]} if finite and generator.random() < 0.4 else {"type": types}

    def part(depth: int) -> dict[str, Any]:
        kind = generator.random()
        if kind < 0.45:
            return {"$ref": f"#/$defs/{generator.choice(NAMES)}"}
        return assertion() if kind < 0.8 or depth == 0 else composition(depth - 1)

    def composition(depth: int) -> dict[str, Any]:
        schema = assertion() if generator.random() < 0.3 else {}
        for keyword in generator.sample(["allOf", "anyOf"], generator.choice([1, 1, 2])):
            schema[keyword] = [part(depth) for _ in range(generator.randint(1, 3))]
        return schema

    return composition(1)


class Oracle:
    """The names of the definitions that hold for one value."""

    def __init__(self, definitions: dict[str, Any], value: Any) -> None:
        self._definitions = definitions
        self._value = value
        # The choices, by the identity of their owner, that are known to hold.
        self._chosen: set[int] = set()
        while True:
            self._joined = self._greatest()
            found = {id(schema) for schema in self._schemas() if "anyOf" in schema and self._has_branch(schema)}
            if found == self._chosen:
                break
            self._chosen = found
        self.names = {name for name, schema in definitions.items() if id(schema) in self._joined}

    def _schemas(self) -> list[dict[str, Any]]:
        pending, found = [*self._definitions.values()], []
        while pending:
            schema = pending.pop()
            found.append(schema)
            pending += [*schema.get("allOf", []), *schema.get("anyOf", [])]
        return found

    def _greatest(self) -> set[int]:
        holding = {id(schema) for schema in self._schemas()}
        while True:
            remaining = {id(schema) for schema in self._schemas() if self._holds(schema, holding)}
            if remaining == holding:
                return holding
            holding = remaining

    def _holds(self, schema: dict[str, Any], holding: set[int]) -> bool:
        if "type" in schema and not any(self._value is VALUES[name] for name in schema["type"]):
            return False
        if "enum" in schema and not any(self._value is value for value in schema["enum"]):
            return False
        joined = [*schema.get("allOf", [])]
        if "$ref" in schema:
            joined.append(self._definitions[schema["$ref"].rpartition("/")[2]])
        return all(id(part) in holding for part in joined) and ("anyOf" not in schema or id(schema) in self._chosen)

    def _has_branch(self, schema: dict[str, Any]) -> bool:
        return any(id(branch) in self._joined for branch in schema["anyOf"])


def has_an_assertion(definitions: dict[str, Any], name: str) -> bool:
    """Whether joins alone lead to an assertion or a choice; a cycle of nothing but joins is refused as empty."""
    pending, visited = [definitions[name]], set[int]()
    while pending:
        schema = pending.pop()
        if id(schema) in visited:
            continue
        visited.add(id(schema))
        if not {"type", "enum", "anyOf"}.isdisjoint(schema):
            return True
        pending += schema.get("allOf", [])
        if "$ref" in schema:
            pending.append(definitions[schema["$ref"].rpartition("/")[2]])
    return False


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("finite", [False, True])
def test_random_recursion(seed: int, *, finite: bool) -> None:
    generator = random.Random(seed)
    num_inside = num_outside = 0
    for _ in range(60):
        definitions = {name: random_definition(generator, finite=finite) for name in NAMES}
        if not all(has_an_assertion(definitions, name) for name in NAMES):
            continue
        inside = {json.dumps(value): Oracle(definitions, value).names for value in VALUES.values()}
        for name in NAMES:
            document = {"$defs": definitions, "$ref": f"#/$defs/{name}"}
            try:
                language: SchemaLanguage | None = SchemaLanguage(document)
            except UnsatisfiableJsonSchema:
                language = None
            for text, names in inside.items():
                assert (language is not None and text in language) == (name in names), (document, text)
                num_inside += name in names
                num_outside += name not in names
    assert min(num_inside, num_outside) > 100
