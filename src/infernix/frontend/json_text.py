"""Where JSON values (RFC 8259) begin and end in a text, without building them and without recursion.

A value that a model wrote is passed on as it is written: number spellings, white space and the order and repetition of
names stay. So it is measured here, not parsed.
"""

from __future__ import annotations

import re

WHITESPACE = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SCALAR = re.compile(
    rf"{_STRING.pattern}|(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)|true|false|null", re.ASCII
)
_NUMBER_PARTS = re.compile(r"-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]+))?", re.ASCII)
# An exponent with more digits exceeds any number of digits that a text can have.
_MAX_EXPONENT_DIGITS = 18


def value_end(text: str, start: int = 0) -> int | None:
    """The index after the value that begins at `start`, or None where there is no value."""
    closers: list[str] = []
    at = start
    while True:
        opening = text[at : at + 1]
        if opening in ("{", "["):
            closer = "}" if opening == "{" else "]"
            at = _skip_space(text, at + 1)
            if text[at : at + 1] != closer:
                closers.append(closer)
                after = _value_start(text, at, closer)
                if after is None:
                    return None
                at = after
                continue
            at += 1
        else:
            scalar = _SCALAR.match(text, at)
            if scalar is None:
                return None
            at = scalar.end()
        # A value ends here: so may any number of those around it.
        while closers:
            at = _skip_space(text, at)
            if text[at : at + 1] == closers[-1]:
                closers.pop()
                at += 1
                continue
            if text[at : at + 1] != ",":
                return None
            after = _value_start(text, _skip_space(text, at + 1), closers[-1])
            if after is None:
                return None
            at = after
            break
        else:
            return at


def json_type(text: str) -> str | None:
    """The JSON type of a text that is one value, white space around it allowed; None where it is none.

    A number without fractional part is an "integer" however it is spelled, any other a "number".
    """
    start = _skip_space(text, 0)
    end = value_end(text, start)
    if end is None or _skip_space(text, end) != len(text):
        return None
    match text[start]:
        case "{":
            return "object"
        case "[":
            return "array"
        case '"':
            return "string"
        case "t" | "f":
            return "boolean"
        case "n":
            return "null"
        case _:
            return "integer" if _is_integral(text[start:end]) else "number"


def object_members(text: str) -> list[tuple[str, str]] | None:
    """The members of a text that is one object: each name's JSON string and each value as they are written."""
    if json_type(text) != "object":
        return None
    members = []
    at = _skip_space(text, _skip_space(text, 0) + 1)
    while text[at] != "}":
        name = _STRING.match(text, at)
        start = _value_start(text, at, "}")
        end = None if start is None else value_end(text, start)
        if name is None or start is None or end is None:
            raise AssertionError("a valid object has names and values")
        members.append((name.group(), text[start:end]))
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return members


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _value_start(text: str, at: int, closer: str) -> int | None:
    """The index of a member's or an item's value, the member beginning at `at`."""
    if closer == "]":
        return at
    name = _STRING.match(text, at)
    if name is None:
        return None
    at = _skip_space(text, name.end())
    return _skip_space(text, at + 1) if text[at : at + 1] == ":" else None


def _is_integral(number: str) -> bool:
    parts = _NUMBER_PARTS.fullmatch(number)
    assert parts is not None
    whole, fraction, sign, exponent = parts[1], parts[2] or "", parts[3], parts[4] or "0"
    digits = (whole + fraction).rstrip("0")
    if not digits:
        return True
    # The last significant digit stands this many places before the point.
    num_places = len(whole) - len(digits)
    if len(exponent) > _MAX_EXPONENT_DIGITS:
        return sign != "-"
    return num_places + (-int(exponent) if sign == "-" else int(exponent)) >= 0
