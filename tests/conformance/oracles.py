"""Independent validators: which values a schema admits, in the schema's own dialect.

`jsonschema-rs` is the judge: its regular expressions are ECMAScript's, it keeps the dialects apart, and it compares
numbers exactly. Where it cannot read a schema, python's `jsonschema` is asked, but only if no regular expression is
involved: `\\d`, `\\W`, `$` and `.` mean something else in Python.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import jsonschema
import jsonschema_rs

RUST = "jsonschema-rs"
PYTHON = "python-jsonschema"
LABEL = "label"

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

_PATTERN_KEYWORDS = frozenset({"pattern", "patternProperties", "format"})


def parse_exactly(text: str) -> Any:
    """The value in `text` with every fraction and exponent as a Decimal, which rounds nothing."""
    return json.loads(text, parse_float=Decimal)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a value is valid, and which oracle says so."""

    is_valid: bool
    judge: str


@dataclass(frozen=True, slots=True)
class Failure:
    """One assertion that a value fails: the keyword, and the steps of evaluation that lead to it."""

    keyword: str
    path: tuple[str | int, ...]


class Oracle:
    """The validators of one schema."""

    def __init__(self, schema: str) -> None:
        self._text = schema
        self.document = json.loads(schema)

    @cached_property
    def rust(self) -> Any:
        """The judge of values, or None where it cannot read the schema."""
        return _rust_validator(self.document)

    @cached_property
    def _exact_rust(self) -> Any:
        # A bound of 1e300 is less than the binary64 number that it is read as: both sides are to be read alike.
        return _rust_validator(parse_exactly(self._text))

    @cached_property
    def python(self) -> Any:
        """python's `jsonschema`, or None where a regular expression is involved."""
        if has_keyword(self.document, _PATTERN_KEYWORDS):
            return None
        kind = jsonschema.validators.validator_for(self.document, default=jsonschema.Draft202012Validator)
        return kind(self.document)

    @cached_property
    def is_well_formed(self) -> bool | None:
        """Whether the schema satisfies the metaschema of its dialect; None for a dialect nobody knows."""
        try:
            return bool(jsonschema_rs.meta.is_valid(self.document))
        except (ValueError, jsonschema_rs.ReferencingError):
            return None

    def verdict(self, value: Any) -> Verdict | None:
        """What a validator says of `value`; None where neither comes to an answer."""
        if self.rust is not None:
            # Half a surrogate pair cannot be handed over.
            with suppress(UnicodeEncodeError):
                return Verdict(bool(self.rust.is_valid(value)), RUST)
        return self.python_verdict(value)

    def is_valid_text(self, text: str) -> bool | None:
        """Whether the judge admits what `text` says, read without any rounding; None where it cannot say."""
        return self._exact_rust and bool(self._exact_rust.is_valid(parse_exactly(text)))

    def python_verdict(self, value: Any) -> Verdict | None:
        """What python's `jsonschema` says, where it may be asked."""
        if self.python is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # a remote reference would be fetched
                return Verdict(bool(self.python.is_valid(value)), PYTHON)
        except Exception:  # what its many dependencies raise on a schema they cannot follow
            return None

    def failures(self, value: Any) -> list[Failure]:
        """The assertions that `value` fails, in the eyes of the judge; a failing anyOf is one, not its branches."""
        return [_failure(error) for error in self.rust.iter_errors(value)]


def _rust_validator(schema: Any) -> Any:
    try:
        return jsonschema_rs.validator_for(_ecmascript(schema), validate_formats=False, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _ecmascript(document: Any) -> Any:
    """The document with `\\<` and `\\>` in patterns as `<` and `>`: the judge takes them for the borders of words."""
    if isinstance(document, dict):
        return {
            name: _ESCAPE.sub(_unescaped_angle, item)
            if name == "pattern" and isinstance(item, str)
            else _ecmascript(item)
            for name, item in document.items()
        }
    return [_ecmascript(item) for item in document] if isinstance(document, list) else document


def _unescaped_angle(escape: re.Match[str]) -> str:
    return escape[1] if escape[1] in "<>" else escape[0]


def _failure(error: Any) -> Failure:
    path = tuple(error.evaluation_path)
    keyword = error.kind.name
    if keyword in ("falseSchema", "false schema") or not isinstance(keyword, str):
        keyword = "false"
    return Failure(keyword, path)


def has_keyword(document: Any, keywords: frozenset[str]) -> bool:
    """Whether any object of the document has one of these names, wherever it stands."""
    return any(not keywords.isdisjoint(part) for part in objects(document))


def objects(document: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document, from the outside in."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            pending.extend(reversed(value.values()))
        elif isinstance(value, list):
            pending.extend(reversed(value))
