"""Schema text -> document: member order kept, numbers as written, repeated names and unpaired surrogates found."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from infernix.errors import ConstraintTooLarge, InvalidJsonSchema, TextLocation, UnsupportedJsonSchema
from infernix.grammar.decimals import INT64_MAX, INT64_MIN
from infernix.grammar.schema.pointers import Place
from infernix.grammar.unicode import first_surrogate

MAX_SOURCE_BYTES = 2**20
MAX_SCHEMA_DEPTH = 256

_MAX_INTEGER_CHARACTERS = len(str(INT64_MIN))
_NONZERO_DIGIT = re.compile("[1-9]")


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number by its text. Two numbers are equal here if they are written alike; compare values with `exact`."""

    text: str

    @property
    def value(self) -> Fraction | None:
        """The value, or None if reading the text as a 64-bit integer or as binary64 would change it.

        An integer without point and exponent must fit signed 64 bits. Other text must stand for the same number as
        the shortest text of its binary64 value: `0.1` does, `0.10000000000000001` and `1e400` do not.
        """
        if self.is_plain_integer:
            if len(self.text) > _MAX_INTEGER_CHARACTERS or not INT64_MIN <= int(self.text) <= INT64_MAX:
                return None
            return Fraction(int(self.text))
        number = float(self.text)
        if number == 0:
            return None if _NONZERO_DIGIT.search(self.text.lower().partition("e")[0]) else Fraction(0)
        # A finite number other than zero: its exponent is one that Decimal can hold.
        if math.isinf(number) or Decimal(repr(number)) != Decimal(self.text):
            return None
        return Fraction(repr(number))

    def exact(self, place: Place) -> Fraction:
        """`value`; UnsupportedJsonSchema at `place` where it is None."""
        value = self.value
        if value is None:
            if self.is_plain_integer:
                raise UnsupportedJsonSchema(f"the integer {self} is outside signed 64-bit", place.pointer)
            raise UnsupportedJsonSchema(f"reading the number {self} as binary64 changes its value", place.pointer)
        return value

    @property
    def wide_integer(self) -> int | None:
        """The value of an integer without point and exponent that is outside signed 64 bits, but finite as binary64.

        Some parsers keep it exactly, others round it. None for all other numbers.
        """
        if not self.is_plain_integer or self.value is not None or math.isinf(float(self.text)):
            return None
        return int(self.text)

    @property
    def is_plain_integer(self) -> bool:
        """Whether it is written without point and exponent."""
        return self.text.lstrip("-").isdigit()

    def __str__(self) -> str:
        return self.text if len(self.text) <= 40 else f"{self.text[:40]}…"


JsonValue: TypeAlias = "bool | str | JsonNumber | list[JsonValue] | dict[str, JsonValue] | None"

# Strings are skipped as a whole (an unterminated one up to the end), possessively, so that the scan is linear.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|([\[{])|([\]}])', re.DOTALL)

_QUOTE = ord('"')
_DEPTH_OF_BYTE = np.zeros(256, np.int8)
_DEPTH_OF_BYTE[list(b"[{")] = 1
_DEPTH_OF_BYTE[list(b"]}")] = -1

# A surrogate in the text, or its escape.
_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")


class _RepeatedName(dict[str, JsonValue]):
    """An object in which the name `repeated` comes twice."""

    def __init__(self, members: list[tuple[str, JsonValue]], repeated: str) -> None:
        super().__init__(members)
        self.repeated = repeated


def parse_source(text: str) -> JsonValue:
    """The document in `text`.

    Raises InvalidJsonSchema where the text is not JSON, repeats a member name or contains half a surrogate pair, and
    ConstraintTooLarge beyond MAX_SOURCE_BYTES (1 MiB of UTF-8) or MAX_SCHEMA_DEPTH (256 nested arrays and objects).
    """
    data = text.encode("utf-8", errors="surrogatepass")
    num_bytes = len(data)
    if num_bytes > MAX_SOURCE_BYTES:
        raise ConstraintTooLarge(f"the schema has {num_bytes} bytes, more than MAX_SOURCE_BYTES = {MAX_SOURCE_BYTES}")
    _check_depth(text, data)

    has_repeated_names = False

    def build_object(members: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        result = dict(members)
        if len(result) == len(members):
            return result
        nonlocal has_repeated_names
        has_repeated_names = True
        counts = Counter(name for name, _ in members)
        return _RepeatedName(members, next(name for name, count in counts.items() if count > 1))

    def refuse_constant(name: str) -> JsonValue:
        raise InvalidJsonSchema(f"not valid JSON: {name} is not a JSON value")

    try:
        document: JsonValue = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_int=JsonNumber,
            parse_float=JsonNumber,
            parse_constant=refuse_constant,
        )
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg.removesuffix(' at')}"
        raise InvalidJsonSchema(message, location=TextLocation.at(text, error.pos)) from error
    if has_repeated_names or _SURROGATE.search(text):
        _check_names_and_strings(document)
    return document


def _check_depth(text: str, data: bytes) -> None:
    """`data` is the text in UTF-8."""
    if _is_shallow(data):
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        if found[1]:
            depth += 1
            if depth > MAX_SCHEMA_DEPTH:
                raise ConstraintTooLarge(
                    f"the schema nests deeper than MAX_SCHEMA_DEPTH = {MAX_SCHEMA_DEPTH}",
                    TextLocation.at(text, found.start()),
                )
        elif found[2]:
            depth -= 1


def _is_shallow(data: bytes) -> bool:
    """Whether no beginning of a text that is JSON so far nests deeper than MAX_SCHEMA_DEPTH; without a look at each
    string, which takes longer than reading the text."""
    if data.count(b"[") + data.count(b"{") <= MAX_SCHEMA_DEPTH:
        return True
    # Escapes stand in strings only.
    codes = np.frombuffer(data.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    is_outside = np.cumsum(codes == _QUOTE, dtype=np.int32) & 1 == 0
    depths = np.cumsum(np.where(is_outside, _DEPTH_OF_BYTE[codes], 0), dtype=np.int32)
    return len(depths) == 0 or int(depths.max()) <= MAX_SCHEMA_DEPTH


def _check_names_and_strings(document: JsonValue) -> None:
    pending: list[tuple[JsonValue, Place]] = [(document, Place())]
    while pending:
        value, place = pending.pop()
        if isinstance(value, str):
            _check_surrogates(value, place)
        elif isinstance(value, list):
            pending.extend((item, place.at(str(index))) for index, item in reversed(list(enumerate(value))))
        elif isinstance(value, dict):
            if isinstance(value, _RepeatedName):
                raise InvalidJsonSchema(f"the name {value.repeated!r} comes twice", place.at(value.repeated).pointer)
            for name in value:
                _check_surrogates(name, place)
            pending.extend((item, place.at(name)) for name, item in reversed(value.items()))


def _check_surrogates(value: str, place: Place) -> None:
    if first_surrogate(value) is not None:
        raise InvalidJsonSchema("half a surrogate pair is not a character", place.pointer)
