"""Random compositions of small schemas: what compiles is what an independent validator (`jsonschema_rs`) admits.

The language writes members in an order of its own. Here an instance counts as admitted if any order of its members is,
which takes no knowledge of that order, and lets nothing invalid through.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from infernix.errors import UnsatisfiableJsonSchema, UnsupportedJsonSchema
from support.schema_language import SchemaLanguage

NAMES = ["a", "b", "c"]
SCALARS: list[Any] = [None, True, 0, 1, 2, 0.5, "", "x", "xy"]
LITERALS: list[Any] = [*SCALARS, [], [1], ["x", 1], {}, {"a": 1}, {"a": "x", "b": 2}]
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]
REFERENCES = ("#", "#/$defs/x", "#/$defs/y")


def random_schema(generator: random.Random, depth: int, references: tuple[str, ...] = REFERENCES) -> Any:
    """`references` are those that do not lead back here before a member or an element: validators do not agree on what
    a schema means that stands for itself."""
    kind = generator.random()
    if kind < 0.06:
        return generator.choice([True, False])
    if kind < 0.16 and references:
        return {"$ref": generator.choice(references)}
    schema: dict[str, Any] = {}
    makers = [types, literals, bounds, lengths, members, elements]
    for maker in generator.sample(makers, generator.choice([1, 1, 2, 2, 3])):
        schema.update(maker(generator, depth))
    if depth and generator.random() < 0.5:
        for keyword in generator.sample(["allOf", "anyOf", "oneOf"], generator.choice([1, 1, 2])):
            schema[keyword] = [random_schema(generator, depth - 1, references) for _ in range(generator.randint(1, 3))]
        if generator.random() < 0.1 and references:
            schema["$ref"] = generator.choice(references)
    items = [*schema.items()]
    generator.shuffle(items)
    return dict(items)


def types(generator: random.Random, depth: int) -> dict[str, Any]:
    chosen = generator.sample(TYPES, generator.choice([1, 1, 2, 3]))
    return {"type": chosen if len(chosen) > 1 else chosen[0]}


def literals(generator: random.Random, depth: int) -> dict[str, Any]:
    if generator.random() < 0.4:
        return {"const": generator.choice(LITERALS)}
    return {"enum": generator.sample(LITERALS, generator.randint(1, 5))}


def bounds(generator: random.Random, depth: int) -> dict[str, Any]:
    keywords = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    chosen = generator.sample(keywords, generator.choice([1, 2]))
    return {keyword: generator.choice([0, 0.5, 1, 2]) for keyword in chosen}


def lengths(generator: random.Random, depth: int) -> dict[str, Any]:
    if generator.random() < 0.4:
        return {"pattern": generator.choice(["x", "^x", "y$", "^.?$", "^[^y]*$"])}
    return {generator.choice(["minLength", "maxLength"]): generator.randint(0, 2)}


def members(generator: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if depth and generator.random() < 0.8:
        names = generator.sample(NAMES, generator.randint(1, 2))
        schema["properties"] = {name: random_schema(generator, depth - 1) for name in names}
    if generator.random() < 0.5:
        schema["required"] = generator.sample(NAMES, generator.randint(1, 2))
    if generator.random() < 0.4:
        schema["additionalProperties"] = random_schema(generator, depth - 1) if depth else False
    return schema


def elements(generator: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if depth and generator.random() < 0.5:
        schema["prefixItems"] = [random_schema(generator, depth - 1) for _ in range(generator.randint(1, 2))]
    if depth and generator.random() < 0.6:
        schema["items"] = random_schema(generator, depth - 1)
    if generator.random() < 0.4:
        schema[generator.choice(["minItems", "maxItems"])] = generator.randint(0, 2)
    return schema


def instances(generator: random.Random) -> Iterator[Any]:
    """All scalars, and some small arrays and objects of them."""
    yield from SCALARS
    yield from ([], {})
    for _ in range(14):
        items = generator.choices(LITERALS, k=3)
        yield items[: generator.randint(1, 3)]
        yield dict(zip(generator.sample(NAMES, generator.randint(1, 3)), items, strict=False))
    yield from LITERALS


def spellings(value: Any) -> Iterator[str]:
    """The texts of a value, one for each order of members."""
    if isinstance(value, dict):
        for order in permutations(value):
            for texts in product(*(list(spellings(value[name])) for name in order)):
                yield "{" + ",".join(f'"{name}":{text}' for name, text in zip(order, texts, strict=True)) + "}"
    elif isinstance(value, list):
        for texts in product(*(list(spellings(item)) for item in value)):
            yield f"[{','.join(texts)}]"
    else:
        yield json.dumps(value)


def random_document(generator: random.Random) -> dict[str, Any]:
    keyword = generator.choice(["allOf", "anyOf", "oneOf"])
    return {
        **generator.choice([members, elements, types])(generator, 2),
        keyword: [random_schema(generator, 2, REFERENCES[1:]) for _ in range(generator.randint(2, 3))],
        "$defs": {"x": random_schema(generator, 1, REFERENCES[2:]), "y": random_schema(generator, 2, ())},
    }


@pytest.mark.parametrize("seed", range(6))
def test_random_compositions(seed: int) -> None:
    generator = random.Random(seed)
    counts: Counter[str] = Counter()
    for _ in range(40):
        document = random_document(generator)
        validator = Draft202012Validator(document)
        try:
            language: SchemaLanguage | None = SchemaLanguage(document)
        except UnsupportedJsonSchema:
            counts["unsupported"] += 1
            continue
        except UnsatisfiableJsonSchema:
            language = None
            counts["unsatisfiable"] += 1
        for instance in instances(generator):
            expected = validator.is_valid(instance)
            counts["valid" if expected else "invalid"] += 1
            found = language is not None and any(text in language for text in spellings(instance))
            assert found == expected, (json.dumps(document), instance)
    assert min(counts["valid"], counts["invalid"]) > 100, counts
    assert counts["unsupported"] < 20, counts
