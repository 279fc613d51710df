"""JSON inside templates: parsed with its spelling kept, and written as templates expect it."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any


class SpelledNumber:
    """A number with a fraction or an exponent, as its author wrote it; Python's floats would write it anew."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def parse_json(text: str) -> Any:
    """The document, members in order and numbers as spelled. Raises ValueError or RecursionError."""
    return json.loads(text, parse_float=SpelledNumber, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is written, without the escapes for HTML that Jinja's own filter adds."""
    secret = secrets.token_hex(16)

    def spell(number: object) -> str:
        if isinstance(number, SpelledNumber):
            return f"{secret}{number.text}{secret}"
        raise TypeError(f"{type(number).__name__} cannot be written as JSON")

    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=spell
    )
    return re.sub(f'"{secret}(.*?){secret}"', r"\1", text) if secret in text else text
