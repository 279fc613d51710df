"""Reading the tools that a file declares."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from infernix.cli.files import InputFileError, display_name, json_type, parse_json, read_text
from infernix.errors import InvalidToolConstraint
from infernix.tools import ToolDefinition

_FIELDS = ("name", "description", "parameters", "strict")
_SPACE = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


def read_tools(path: str) -> tuple[ToolDefinition, ...]:
    """A JSON list of tools: `{"type": "function", "function": {...}}`, or the inner object alone.

    The text of a tool's `parameters` is kept as it stands, with the order of names and the spelling of numbers. Raises
    InputFileError with the place of what is wrong.
    """
    text, name = read_text(path), display_name(path)
    document = parse_json(text, name)
    if not isinstance(document, list):
        raise InputFileError(f"{name}: expected a list of tools, got {json_type(document)}")
    starts = _item_starts(text)
    return tuple(
        _tool(entry, text, start, f"{name}: tools[{index}]")
        for index, (entry, start) in enumerate(zip(document, starts, strict=True))
    )


def _tool(entry: Any, text: str, start: int, place: str) -> ToolDefinition:
    """The tool whose text begins at `start`."""
    if not isinstance(entry, dict):
        raise InputFileError(f"{place}: expected an object, got {json_type(entry)}")
    if entry.get("type", "function") != "function":
        raise InputFileError(f"{place}.type: only 'function' is known, not {str(entry['type'])[:40]!r}")
    if "function" in entry:
        _refuse_unknown(entry, ("type", "function"), place)
        start, _ = dict(_member_spans(text, start))["function"]
        entry, place = entry["function"], f"{place}.function"
        if not isinstance(entry, dict):
            raise InputFileError(f"{place}: expected an object, got {json_type(entry)}")
        _refuse_unknown(entry, _FIELDS, place)
    else:
        _refuse_unknown(entry, ("type", *_FIELDS), place)
    # Clients write null for what is not there.
    fields = {key: entry[key] for key in _FIELDS if entry.get(key) is not None}
    if "name" not in fields:
        raise InputFileError(f"{place}.name: missing")
    for key, kind, label in (
        ("name", str, "a string"),
        ("description", str, "a string"),
        ("strict", bool, "a boolean"),
    ):
        if not isinstance(fields.get(key, kind()), kind):
            raise InputFileError(f"{place}.{key}: expected {label}, got {json_type(fields[key])}")
    if "parameters" in fields:
        begin, end = dict(_member_spans(text, start))["parameters"]
        fields["parameters"] = text[begin:end]
    try:
        return ToolDefinition(**fields)
    except InvalidToolConstraint as error:
        raise InputFileError(f"{place}: {error.message}") from error


def _refuse_unknown(entry: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in entry:
        if key not in known:
            raise InputFileError(f"{place}.{key[:40]}: unknown field; a tool has {', '.join(known)}")


# The text is known to be JSON where the functions below look at it.


def _item_starts(text: str) -> Iterator[int]:
    """Where each item of the list begins that is the whole text."""
    at = _skip(text, text.index("[") + 1)
    while text[at] != "]":
        yield at
        _, end = _decoder.raw_decode(text, at)
        at = _skip_comma(text, end)


def _member_spans(text: str, start: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each name in the object at `start`, with where its value begins and ends."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        name, end = _decoder.raw_decode(text, at)
        begin = _skip(text, text.index(":", end) + 1)
        _, end = _decoder.raw_decode(text, begin)
        yield name, (begin, end)
        at = _skip_comma(text, end)


def _skip_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches nothing, too
    return found.end()
