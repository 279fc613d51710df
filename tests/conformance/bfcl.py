"""Function-calling requests of BFCL v4 as tools and expected calls.

What is converted:
- types: `dict` and `HashMap` are objects, `float` and `double` numbers, `tuple` and `ArrayList` arrays, `String` is a
  string, `long` an integer, and `any` has no type
- an object that declares members has no others; one that declares none is open, but at the root it has no members
- an `enum` of an array whose entries are no arrays is one of its elements; what is not of the declared type leaves an
  `enum`, and an `enum` that is then empty is left out
- `description`, `default`, `optional` and `format` say nothing about values there, and are left out
- an expected argument lists the values that will do, and so does each member of an object in it; an empty string among
  them means that it may be left out if it is not required; of these values, those count that the converted schema
  admits

A tool is strict if its schema can be enforced, and otherwise not. An expected call is excluded where an argument of a
strict tool has no value among those listed that the converted schema admits, by the verdict of a validator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_TYPES = {
    "dict": "object",
    "HashMap": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "ArrayList": "array",
    "String": "string",
    "long": "integer",
}
_KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
_OMITTED = object()


@dataclass(frozen=True)
class Request:
    """`functions` have a name, a description and parameters as a JSON Schema; `expected` are calls: a name and, by
    argument, the values that will do. None are expected where no function fits."""

    name: str
    functions: tuple[dict[str, Any], ...]
    expected: tuple[tuple[str, dict[str, list[Any]]], ...]


class NoSuchValue(Exception):
    """An expected argument has no value that the schema admits; the message is why."""


def requests(folder: Path) -> Iterator[Request]:
    """All requests below `folder`, and each toolbox as a request without expected calls."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            calls = [next(iter(call.items())) for call in entry.get("ground_truth") or ()]
            yield Request(entry["id"], tuple(map(_function, entry["function"])), tuple(calls))
    for path in sorted((folder / "toolboxes").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield Request(path.stem, tuple(_function(json.loads(line)) for line in lines), ())


def _function(entry: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"properties": {}} | entry["parameters"]
    return {"name": entry["name"], "description": entry["description"], "parameters": converted(parameters)}


def converted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of the dialect as JSON Schema."""
    result: dict[str, Any] = {}
    kind = schema.get("type")
    if kind != "any" and kind is not None:
        kind = result["type"] = _TYPES.get(kind, kind)
    if "properties" in schema:
        result["properties"] = {name: converted(member) for name, member in schema["properties"].items()}
        result["required"] = [name for name in schema.get("required", ()) if name in result["properties"]]
        result["additionalProperties"] = False
    if "items" in schema:
        result["items"] = converted(schema["items"])
    values = schema.get("enum")
    if values is not None and kind == "array" and not any(isinstance(value, list) for value in values):
        result["items"] = result.get("items", {}) | {"enum": values}
    elif values is not None:
        of_kind = [value for value in values if kind is None or _is_of_kind(value, kind)]
        result |= {"enum": of_kind} if of_kind else {}
    return result


def _is_of_kind(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "boolean") == isinstance(value, bool)


def expected_arguments(schema: Mapping[str, Any], expected: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Calls in which every listed value that the schema admits comes at least once. Raises NoSuchValue."""
    options: dict[str, list[Any]] = {}
    for name, listed in expected.items():
        member = schema.get("properties", {}).get(name)
        if member is None:
            raise NoSuchValue("an argument is not declared")
        options[name] = _admitted(member, listed, is_required=name in schema.get("required", ()))
    missing = [name for name in schema.get("required", ()) if name not in options]
    if missing:
        raise NoSuchValue("a required argument is not listed")
    calls = []
    for turn in range(max((len(values) for values in options.values()), default=1)):
        chosen = {name: values[turn % len(values)] for name, values in options.items()}
        calls.append({name: value for name, value in chosen.items() if value is not _OMITTED})
    return calls


def _admitted(schema: Mapping[str, Any], listed: list[Any], *, is_required: bool) -> list[Any]:
    validator = Draft202012Validator(dict(schema))
    admitted: list[Any] = []
    reason = "no value is listed"
    for value in listed:
        if value == "" and not is_required:
            admitted.append(_OMITTED)
        if value == "" and len(listed) > 1:
            continue
        for candidate in _concrete(schema, value):
            error = next(validator.iter_errors(candidate), None)
            if error is None:
                admitted.append(candidate)
            else:
                reason = _reason(str(error.validator))
    if not admitted:
        raise NoSuchValue(reason)
    return admitted


def _reason(keyword: str) -> str:
    reasons = {
        "type": "a value is not of the declared type",
        "enum": "a value is not in the enum",
        "required": "an object lacks a required member",
        "additionalProperties": "an object has a member that is not declared",
    }
    return reasons.get(keyword, keyword)


def _concrete(schema: Mapping[str, Any], value: Any) -> list[Any]:
    """The values that a listed one stands for: in objects, each member lists its own."""
    if isinstance(value, dict) and value and all(isinstance(listed, list) for listed in value.values()):
        required = schema.get("required", ())
        found = []
        for turn in range(max(map(len, value.values()), default=1)):
            chosen = {name: listed[turn % len(listed)] for name, listed in value.items() if listed}
            left = {name: item for name, item in chosen.items() if item != "" or name in required}
            found.append(left)
        return found
    if isinstance(value, list):
        items = schema.get("items", {})
        variants = [_concrete(items, item) for item in value]
        return [
            [variant[turn % len(variant)] for variant in variants] for turn in range(max(map(len, variants), default=1))
        ]
    return [value]


def ordered(schema: Mapping[str, Any], value: Any) -> Any:
    """The value with members in declared order, and integers written as such where an integer is declared."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        names = [name for name in properties if name in value] + [name for name in value if name not in properties]
        return {name: ordered(properties.get(name, {}), value[name]) for name in names}
    if isinstance(value, list):
        return [ordered(schema.get("items", {}), item) for item in value]
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    return value
