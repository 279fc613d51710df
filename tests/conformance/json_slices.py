"""Parts of a JSON text as they are written: order, number spelling and escapes untouched."""

from __future__ import annotations

import json
import re

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def members(text: str) -> dict[str, str]:
    """The members of the object that `text` is, each value as its own text."""
    result: dict[str, str] = {}
    position = _after(text, 0, "{")
    while text[position] != "}":
        name, position = _DECODER.raw_decode(text, position)
        begin = _after(text, _skip(text, position), ":")
        position = _end_of_value(text, begin)
        result[name] = text[begin:position]
        position = _next(text, position)
    return result


def elements(text: str) -> list[str]:
    """The elements of the array that `text` is, each as its own text."""
    result: list[str] = []
    position = _after(text, 0, "[")
    while text[position] != "]":
        end = _end_of_value(text, position)
        result.append(text[position:end])
        position = _next(text, end)
    return result


def _end_of_value(text: str, begin: int) -> int:
    _, end = _DECODER.raw_decode(text, begin)
    return end


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    assert found is not None
    return found.end()


def _after(text: str, position: int, bracket: str) -> int:
    """Behind `bracket`, which is what comes next, and the space after it."""
    position = _skip(text, position)
    if text[position] != bracket:
        raise ValueError(f"{bracket!r} expected at character {position}")
    return _skip(text, position + 1)


def _next(text: str, position: int) -> int:
    """Where the next part or the closing bracket stands."""
    position = _skip(text, position)
    return _skip(text, position + 1) if text[position] == "," else position
