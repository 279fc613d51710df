"""From the text of an argument's value to its JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from infernix.frontend.json_text import WHITESPACE, json_type


@dataclass(frozen=True, slots=True)
class NormalizedValue:
    """`json` is the value's JSON, or None for a value that counts as not given.

    `is_mismatch`: it has none of the types that its declaration admits.
    """

    json: str | None
    is_mismatch: bool = False


def string_fragment(text: str) -> str:
    """The part of a JSON string that `text` becomes; fragments join like their texts."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def string_value(text: str) -> str:
    """`text` as a JSON string."""
    return f'"{string_fragment(text)}"'


def normalized_value(text: str, hint: frozenset[str] | None) -> NormalizedValue:
    """What a value in free text stands for, by the JSON types that its argument admits (None: nothing is declared).

    A string stays as it is. For other types, white space around the value is framing: nothing but white space is no
    value, JSON is taken as it is written, and true and false in any case where a boolean is admitted. What is no JSON
    becomes a string. Without a declaration, JSON is JSON and all else a string.
    """
    if hint is not None and "string" in hint:
        return NormalizedValue(string_value(text))
    trimmed = text.strip(WHITESPACE)
    found = json_type(trimmed)
    if hint is None:
        return NormalizedValue(string_value(text) if found is None else trimmed)
    if not trimmed:
        return NormalizedValue(None)
    if found is not None:
        return NormalizedValue(trimmed, is_mismatch=not _admits(hint, found))
    if "boolean" in hint and trimmed.lower() in ("true", "false"):
        return NormalizedValue(trimmed.lower())
    return NormalizedValue(string_value(trimmed), is_mismatch=True)


def _admits(hint: frozenset[str], found: str) -> bool:
    return found in hint or (found == "integer" and "number" in hint)
