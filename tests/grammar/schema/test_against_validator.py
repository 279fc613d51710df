"""Random schemas and random instances: the language and an independent validator (`jsonschema`) agree."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from infernix.errors import UnsatisfiableJsonSchema
from support.json_text import json_text
from support.schema_language import SchemaLanguage

NAMES = ["a", "b", "ab", "é", '"', ""]
SCALARS: list[Any] = [None, True, False, 0, 1, -1, 7, 12, 0.5, "", "a", "é", "ab", "\n\u0001", "abc"]
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]


def random_value(generator: random.Random, depth: int) -> Any:
    kind = generator.random()
    if depth == 0 or kind < 0.5:
        return generator.choice(SCALARS)
    if kind < 0.7:
        return [random_value(generator, depth - 1) for _ in range(generator.randint(0, 3))]
    names = generator.sample(NAMES, generator.randint(0, 3))
    return {name: random_value(generator, depth - 1) for name in names}


def random_schema(generator: random.Random, depth: int, *, can_refer: bool = True) -> Any:
    kind = generator.random()
    if kind < 0.08:
        return generator.choice([True, False])
    if can_refer and kind < 0.2:
        return {"$ref": generator.choice(["#", "#/$defs/x", "#/$defs/y"])}
    schema: dict[str, Any] = {}
    types = generator.sample(TYPES, generator.choice([1, 1, 1, 2, 3]))
    if generator.random() < 0.8:
        schema["type"] = types[0] if len(types) == 1 else types
    has_literals = generator.random() < 0.2
    if has_literals and generator.random() < 0.3:
        schema["const"] = random_value(generator, 2)
    elif has_literals:
        schema["enum"] = [random_value(generator, 2) for _ in range(generator.randint(1, 5))]
    if has_literals or ("type" in schema and "number" not in types):
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if generator.random() < 0.15:
                schema[keyword] = generator.choice([-2, -1, 0, 0.5, 1, 7, 9.5, 12])
    for keyword in ("minLength", "maxLength", "minItems", "maxItems"):
        if generator.random() < 0.15:
            schema[keyword] = generator.randint(0, 3)
    if generator.random() < 0.3:
        schema["required"] = generator.sample(NAMES, generator.randint(0, 2))
    if depth:
        if generator.random() < 0.6:
            names = generator.sample(NAMES, generator.randint(0, 4))
            schema["properties"] = {name: random_schema(generator, depth - 1) for name in names}
        if generator.random() < 0.4:
            schema["items"] = random_schema(generator, depth - 1)
    if generator.random() < 0.4:
        schema["additionalProperties"] = random_schema(generator, depth - 1) if depth else generator.random() < 0.5
    return schema


def random_document(generator: random.Random) -> Any:
    document = random_schema(generator, 2, can_refer=False)
    if isinstance(document, dict):
        document["$defs"] = {name: random_schema(generator, 1) for name in ("x", "y")}
    return document


def random_instance(generator: random.Random, schema: Any, document: Any, depth: int) -> Any:
    """A value that follows the schema more often than not."""
    if isinstance(schema, dict) and "$ref" in schema:
        target = {"#": document, "#/$defs/x": document["$defs"]["x"], "#/$defs/y": document["$defs"]["y"]}
        schema = target[schema["$ref"]]
    if not isinstance(schema, dict) or "$ref" in schema or depth == 0 or generator.random() < 0.1:
        return random_value(generator, depth)
    literals = [schema["const"]] if "const" in schema else schema.get("enum")
    if literals:
        return generator.choice(literals)
    types = schema.get("type", TYPES)
    chosen = types if isinstance(types, str) else generator.choice(types)
    if chosen == "object":
        properties = schema.get("properties", {})
        names = {*generator.sample(NAMES, generator.randint(0, 2)), *schema.get("required", [])}
        names |= {name for name in properties if generator.random() < 0.5}
        additional = schema.get("additionalProperties", True)
        return {
            name: random_instance(generator, properties.get(name, additional), document, depth - 1)
            for name in NAMES
            if name in names
        }
    if chosen == "array":
        count = generator.randint(0, 4)
        return [random_instance(generator, schema.get("items", True), document, depth - 1) for _ in range(count)]
    of_type = {
        "string": [value for value in SCALARS if isinstance(value, str)],
        "integer": [0, 1, -1, 7, 12, 2.0],
        "number": [0, 0.5, -1, 1e-3],
        "boolean": [True, False],
        "null": [None],
    }
    return generator.choice(of_type[chosen])


def validate(document: Any, instance: Any) -> bool | None:
    """The validator's answer; None where it does not come to one, as for references that lead back to themselves."""
    try:
        return bool(Draft202012Validator(document).is_valid(instance))
    except RecursionError:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_random_schemas(seed: int) -> None:
    generator = random.Random(seed)
    counts = {True: 0, False: 0, "unsatisfiable": 0}
    for _ in range(60):
        document = random_document(generator)
        try:
            language: SchemaLanguage | None = SchemaLanguage(document)
        except UnsatisfiableJsonSchema:
            language = None
            counts["unsatisfiable"] += 1
        for _ in range(8):
            instance = random_instance(generator, document, document, 3)
            expected = validate(document, instance)
            if expected is None:
                continue
            counts[expected] += 1
            text = json_text(document, instance)
            assert (language is not None and text in language) == expected, (json.dumps(document), text)
    assert min(counts[True], counts[False]) > 50, counts
    assert counts["unsatisfiable"] < 30, counts


# A schema in which the keyword matters, by keyword. Without the keyword the language must be another one.
DELETIONS = {
    "type": {"type": "string"},
    "const": {"const": 1},
    "enum": {"enum": [1, 2]},
    "$ref": {"$ref": "#/$defs/x", "$defs": {"x": {"type": "null"}}},
    "properties": {"type": "object", "properties": {"a": {"type": "null"}}},
    "required": {"type": "object", "required": ["a"]},
    "additionalProperties": {"type": "object", "additionalProperties": False},
    "items": {"type": "array", "items": {"type": "null"}},
    "minItems": {"type": "array", "minItems": 1},
    "maxItems": {"type": "array", "maxItems": 1},
    "minLength": {"type": "string", "minLength": 1},
    "maxLength": {"type": "string", "maxLength": 1},
    "minimum": {"type": "integer", "minimum": 1},
    "maximum": {"type": "integer", "maximum": 1},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 1},
    "exclusiveMaximum": {"type": "integer", "exclusiveMaximum": 1},
}
PROBES: list[Any] = [None, True, -5, 0, 1, 2, 0.5, "", "a", "ab", [], [1], [1, 2], {}, {"a": None}, {"a": 1}, {"b": 1}]


@pytest.mark.parametrize("keyword", DELETIONS)
@pytest.mark.parametrize("place", ["root", "property", "item", "untyped", "union"])
def test_no_keyword_is_silently_dropped(keyword: str, place: str) -> None:
    """Deleting a keyword changes the language, wherever its schema stands; and each language is the validator's."""

    def document(*, deleted: bool) -> Any:
        schema = {name: value for name, value in DELETIONS[keyword].items() if not (deleted and name == keyword)}
        definitions = schema.pop("$defs", {})
        bounds_on_integers = "type" in schema and schema["type"] == "integer"
        if place == "untyped" and not bounds_on_integers and keyword != "type":
            schema.pop("type", None)
        if place == "union" and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "boolean"]
        wrapped = {
            "property": {"type": "object", "properties": {"p": schema}, "required": ["p"]},
            "item": {"type": "array", "items": schema, "minItems": 1},
        }.get(place, schema)
        return {**wrapped, "$defs": definitions}

    answers = []
    for deleted in (False, True):
        language = SchemaLanguage(document(deleted=deleted))
        probes = {"property": [{"p": value} for value in PROBES], "item": [[value] for value in PROBES]}.get(
            place, PROBES
        )
        answers.append([json_text(document(deleted=deleted), probe) in language for probe in probes])
        assert answers[-1] == [validate(document(deleted=deleted), probe) for probe in probes]
    assert answers[0] != answers[1]
