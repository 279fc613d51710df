"""A request's body as JSON: bounded in depth and number of values, strict, and with the text of schemas kept as the
client wrote it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from infernix.server.api_error import ApiError, ErrorKind, invalid
from infernix.tools import is_unicode

MAX_DEPTH = 200
# Entries of lists and members of objects, all together; an empty list or object is two, because its bracket is counted
# without a look at what stands behind it. Long texts are parsed in no time; small values are not, and long stretches of
# that keep Python's interpreter lock from the threads that serve everybody else.
MAX_VALUES = 100_000

RawPath = tuple[str, ...]
"""Names that lead to a value; `*` stands for every item of a list."""

# A text, whose ordinary characters are taken many at a time: no other thread runs meanwhile.
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_TOKEN = re.compile(rf'{_TEXT}"?|[\[\]{{}}]', re.DOTALL)
# Up to and with a comma or an opening bracket outside of texts; each value in a list or an object has one before it.
_SEPARATOR = rf'[^",\[{{]*+(?:{_TEXT}"[^",\[{{]*+)*+[,\[{{]'
_ONE_SEPARATOR = re.compile(_SEPARATOR, re.DOTALL)
_THOUSAND_SEPARATORS = re.compile(f"(?:{_SEPARATOR}){{1000}}", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*+")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class RawJson:
    """A JSON value as the text that the client sent: member order and the spelling of numbers are part of it."""

    text: str


def read_json_object(data: bytes, raw_paths: Sequence[RawPath] = ()) -> dict[str, Any]:
    """The object that a body is; the values at `raw_paths` are RawJson.

    Raises ApiError for what is no UTF-8, no JSON, nested deeper than MAX_DEPTH, of more than MAX_VALUES values or no
    object, for NaN and Infinity, for a name that comes twice in an object, and for half a surrogate pair.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _malformed(f"the body is not UTF-8 (byte {error.start})") from error
    _check_number_of_values(text)
    _check_depth(text)
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _malformed(f"the body is not JSON: {error.msg} at {place}") from error
    except ValueError as error:  # such as an integer of thousands of digits
        raise _malformed(f"the body is not usable JSON: {error}") from error
    if not isinstance(document, dict):
        raise _malformed("the body must be a JSON object")
    if _ESCAPED_SURROGATE.search(text):
        _refuse_surrogates(document)
    if raw_paths:
        _keep_raw(document, text, _skip(text, 0), raw_paths)
    return document


def _malformed(message: str) -> ApiError:
    return ApiError(ErrorKind.INVALID, message, code="invalid_json")


def _check_number_of_values(text: str) -> None:
    """Before anything that makes them. A body with few commas and brackets cannot have many."""
    if sum(text.count(mark) for mark in ",[{") <= MAX_VALUES:
        return
    end = 0
    for run in [_THOUSAND_SEPARATORS] * (MAX_VALUES // 1000) + [_ONE_SEPARATOR]:
        found = run.match(text, end)
        if found is None:
            return
        end = found.end()
    line, column = text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end) - 1
    raise _malformed(
        f"the body has more than {MAX_VALUES} values, entries of lists and members of objects taken together,"
        f" empty lists and objects twice: line {line}, column {column}"
    )


def _check_depth(text: str) -> None:
    """Before anything that recurses. A body with few brackets cannot be deep."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _TOKEN.finditer(text):
        character = found[0]
        if character in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise _malformed(f"the body is nested deeper than {MAX_DEPTH} levels")
        elif character in ("]", "}"):
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"the name {repeated[:40]!r} comes twice in an object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_surrogates(value: object) -> None:
    if isinstance(value, str) and not is_unicode(value):
        raise invalid("the body holds half a surrogate pair, which is no Unicode", None, "invalid_json")
    if isinstance(value, dict):
        for name, member in value.items():
            _refuse_surrogates(name)
            _refuse_surrogates(member)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)


# The text is known to be JSON where the functions below look at it, and a path has a handful of names.


def _keep_raw(value: Any, text: str, start: int, paths: Sequence[RawPath]) -> None:
    """Puts RawJson into `value`, whose text begins at `start`."""
    if isinstance(value, dict):
        if not any(path[0] in value for path in paths):
            return
        for name, begin, end in _members(text, start):
            _keep_child(value, name, text, begin, end, [path[1:] for path in paths if path[0] == name])
    elif isinstance(value, list):
        below = [path[1:] for path in paths if path[0] == "*"]
        for index, (begin, end) in enumerate(_items(text, start) if below else ()):
            _keep_child(value, index, text, begin, end, below)


def _keep_child(parent: Any, key: str | int, text: str, begin: int, end: int, paths: Sequence[RawPath]) -> None:
    if () in paths:
        parent[key] = RawJson(text[begin:end])
    elif paths:
        _keep_raw(parent[key], text, begin, paths)


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    at = _skip(text, start + 1)
    while text[at] != "}":
        name, end = _decoder.raw_decode(text, at)
        begin = _skip(text, _skip(text, end) + 1)
        _, end = _decoder.raw_decode(text, begin)
        yield name, begin, end
        at = _skip_comma(text, end)


def _items(text: str, start: int) -> Iterator[tuple[int, int]]:
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, end = _decoder.raw_decode(text, at)
        yield at, end
        at = _skip_comma(text, end)


def _skip_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches nothing, too
    return found.end()
