"""How a value is spelled in the published form, white space and the order of members aside."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[^"]', re.DOTALL)

INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Layout:
    """White space around the tokens."""

    before_colon: bytes = b""
    after_colon: bytes = b""
    after_comma: bytes = b""
    inside: bytes = b""
    """Behind an opening bracket and before a closing one."""


COMPACT = Layout()
SPACED = Layout(after_colon=b" ", after_comma=b" ")
AIRY = Layout(b" ", b"\t", b"\n    ", b"\r\n  ")
LAYOUTS = (COMPACT, SPACED, AIRY)


def in_layout(text: bytes, layout: Layout) -> bytes:
    """A text without white space, with that of a layout between its tokens."""
    pieces: list[bytes] = []
    for token in _TOKEN.findall(text):
        if token == b",":
            pieces.append(b"," + layout.after_comma)
        elif token == b":":
            pieces.append(layout.before_colon + b":" + layout.after_colon)
        elif token in (b"[", b"{"):
            pieces.append(token + layout.inside)
        elif token in (b"]", b"}"):
            is_empty = pieces[-1][:1] in (b"[", b"{")
            pieces.append(token if is_empty else layout.inside + token)
        else:
            pieces.append(token)
    return b"".join(pieces)


def scalar_text(value: Any) -> bytes:
    """A string in canonical escapes, a number in its published form, or a name of JSON."""
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value).encode()
    return number_text(value)


def number_text(value: int | float) -> bytes:
    """A whole number as digits if it is within signed 64 bits, everything else as the shortest text of its binary64.

    A whole number beyond 64 bits that binary64 cannot hold has no published form; it is written as it is.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return b"1e400" if value > 0 else b"-1e400"
    if value == int(value) and int(value) in INT64:
        return str(int(value)).encode()
    if isinstance(value, int):
        try:
            return repr(float(value)).encode() if float(value) == value else str(value).encode()
        except OverflowError:
            return str(value).encode()
    return repr(value).encode()


def published_value(value: Any) -> Any:
    """`value` as its published text is read: a fraction that is a whole number within 64 bits is an integer.

    Draft 4 tells `2.0` from `2`, and only the latter is ever written.
    """
    if isinstance(value, dict):
        return {name: published_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [published_value(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and int(value) in INT64
    return int(value) if is_whole else value


def canonical_string(value: str) -> bytes:
    """A JSON string with only those characters escaped that have to be, in the short form where there is one."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def outside_reasons(value: Any) -> list[str]:
    """What may keep `value` out of the language of a schema that it satisfies, by decision; [] for most values.

    A whole number beyond 64 bits is refused as an integer only: a number may be written with an exponent.
    """
    reasons: set[str] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending.extend([*part, *part.values()])
        elif isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, str):
            if any("\ud800" <= character <= "\udfff" for character in part):
                reasons.add("half a surrogate pair is not a character")
        elif isinstance(part, int) and not isinstance(part, bool):
            if part not in INT64:
                reasons.add("an integer beyond signed 64 bits")
        elif isinstance(part, float):
            if part != 0 and not 1e-307 <= abs(part) < 1e308:
                reasons.add("a number that is not within 1e-307..1e308")
            elif part.is_integer() and int(part) not in INT64:
                reasons.add("an integer beyond signed 64 bits")
    return sorted(reasons)
