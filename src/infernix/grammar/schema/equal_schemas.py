"""Equal schemas found by their content, where that is little: most positions of a large schema are one of a few."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from infernix.grammar.schema.keywords import COUNTS, DESCRIPTIONS, NUMBER_BOUNDS
from infernix.grammar.schema.source import JsonValue

SchemaKey: TypeAlias = tuple[Hashable, ...]

# What each of these says is the same wherever it stands in a document.
_WORDS = NUMBER_BOUNDS | COUNTS | {"$ref", "type", "const", "enum", "pattern", "required"}
_CONTAINERS = (list, dict)
_WORDS_WITH_PARTS = frozenset({"items", "properties", "additionalProperties"})


def schema_key(schema: dict[str, JsonValue], *, may_have_parts: bool = True) -> SchemaKey | None:
    """Equal for schema objects that say the same in the same words and the same order, descriptions aside.

    None where one says more than this looks at: the schemas of its members and elements must have no parts themselves,
    its values neither, and all words must be of a few common kinds.
    """
    key: list[Hashable] = []
    for keyword, value in schema.items():
        if keyword in _WORDS:
            if isinstance(value, list):
                if any(isinstance(item, _CONTAINERS) for item in value):
                    return None
                key += (keyword, tuple(value))
            elif isinstance(value, dict):
                return None
            else:
                key += (keyword, value)
        elif keyword in _WORDS_WITH_PARTS:
            part = _key_of_parts(keyword, value, may_have_parts)
            if part is None:
                return None
            key += (keyword, part)
        elif keyword not in DESCRIPTIONS:
            return None
    return tuple(key)


def _key_of_parts(keyword: str, value: JsonValue, may_have_parts: bool) -> Hashable | None:
    if isinstance(value, bool):
        return value
    if not may_have_parts or not isinstance(value, dict):
        return None
    if keyword != "properties":
        return schema_key(value, may_have_parts=False)
    members: list[Hashable] = []
    for name, schema in value.items():
        part = _key_of_parts("items", schema, may_have_parts)
        if part is None:
            return None
        members += (name, part)
    return tuple(members)
