"""Writes an instance the way the engine's language writes it, so that "valid" and "in the language" can be compared.

The language orders members as the schema declares them and spells each value in one way; a validator does not care.
This is a plain walk over the schema's keywords and shares nothing with the compiler.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote


def json_text(schema: Any, instance: Any, *, indent: int | None = None) -> bytes:
    """`instance` with its members in the order of `schema`, integers without a point, in canonical escapes."""
    ordered = _ordered(schema, instance, schema)
    return json.dumps(
        ordered, ensure_ascii=False, separators=(",", ":") if indent is None else None, indent=indent
    ).encode()


def _ordered(schema: Any, value: Any, document: Any) -> Any:
    schema = _resolve(schema, document)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, list | dict):
        for literal in _literals(schema):
            if same(literal, value):
                return _ordered(True, literal, document)
    if isinstance(value, list):
        items = schema.get("items", True) if isinstance(schema, dict) else True
        return [_ordered(items, item, document) for item in value]
    if isinstance(value, dict):
        properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
        required = schema.get("required", []) if isinstance(schema, dict) else []
        additional = schema.get("additionalProperties", True) if isinstance(schema, dict) else True
        names = dict.fromkeys([*properties, *required, *value])
        return {
            name: _ordered(properties.get(name, additional), value[name], document) for name in names if name in value
        }
    return value


def _resolve(schema: Any, document: Any) -> Any:
    for _ in range(100):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        reference = schema["$ref"]
        schema = document
        for step in unquote(reference[1:]).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            schema = schema[int(step) if isinstance(schema, list) else step]
    return True


def _literals(schema: Any) -> list[Any]:
    if not isinstance(schema, dict):
        return []
    return [schema["const"]] if "const" in schema else list(schema.get("enum", []))


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values: `1` and `1.0` are equal, `1` and `true` are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right if isinstance(left, str) else bool(left == right)
