"""What could stand at a place of a text, said for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from infernix.grammar.unicode import CodePointRange, normalize_ranges

_MAX_ITEMS = 24
_CONTINUATION_BYTES = range(0x80, 0xC0)


class ByteTable(Protocol):
    """The part of `infernix.matching.ConfigurationTable` that is needed here."""

    def step_byte(self, configuration: int, byte: int) -> int: ...

    def allowed_bytes(self, configuration: int) -> list[int]: ...


def next_characters(table: ByteTable, configuration: int) -> tuple[CodePointRange, ...]:
    """The code points whose whole UTF-8 encoding can follow; `configuration` stands between characters."""
    memo: dict[tuple[int, int], tuple[CodePointRange, ...]] = {}

    def tails(state: int, num_bytes: int) -> tuple[CodePointRange, ...]:
        """Values, below 64**num_bytes, of the continuation bytes that can follow."""
        if num_bytes == 0:
            return ((0, 0),)
        key = (state, num_bytes)
        if key not in memo:
            span = 1 << (6 * (num_bytes - 1))
            ranges = []
            for byte in table.allowed_bytes(state):
                if byte in _CONTINUATION_BYTES:
                    base = (byte & 0x3F) * span
                    rest = tails(table.step_byte(state, byte), num_bytes - 1)
                    ranges += [(base + low, base + high) for low, high in rest]
            memo[key] = normalize_ranges(ranges)
        return memo[key]

    ranges: list[CodePointRange] = []
    for lead in table.allowed_bytes(configuration):
        num_tail_bytes = utf8_tail_bytes(lead)
        if num_tail_bytes is not None:
            payload = lead if num_tail_bytes == 0 else lead & (0x3F >> num_tail_bytes)
            base = payload << (6 * num_tail_bytes)
            rest = tails(table.step_byte(configuration, lead), num_tail_bytes)
            ranges += [(base + low, base + high) for low, high in rest]
    return normalize_ranges(ranges)


def utf8_tail_bytes(lead: int) -> int | None:
    """Bytes after a UTF-8 lead byte; None for a byte that starts no character."""
    if lead < 0x80:
        return 0
    if 0xC2 <= lead <= 0xF4:
        return 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
    return None


def describe_characters(ranges: Sequence[CodePointRange]) -> str:
    """`'"', 'a'..'f' or '}'`; a set that is large and scattered is cut and counted."""
    return _join(_describe_range(low, high, _quote) for low, high in _join_over_surrogates(ranges))


def describe_bytes(values: Iterable[int]) -> str:
    """`byte 0x80..0xbf`, for a place inside a character."""
    ranges = normalize_ranges((value, value) for value in values)
    return _join(_describe_range(low, high, lambda value: f"0x{value:02x}", "byte ") for low, high in ranges)


def _join_over_surrogates(ranges: Sequence[CodePointRange]) -> list[CodePointRange]:
    # Surrogates are no characters, so a set that holds both neighbours of the gap reads as one range.
    joined: list[CodePointRange] = []
    for low, high in ranges:
        if joined and joined[-1][1] == 0xD7FF and low == 0xE000:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def _describe_range(low: int, high: int, name: _Naming, prefix: str = "") -> str:
    if low == high:
        return prefix + name(low)
    if high == low + 1:
        return f"{prefix}{name(low)}, {prefix}{name(high)}"
    return f"{prefix}{name(low)}..{name(high)}"


def _quote(code_point: int) -> str:
    character = chr(code_point)
    if character.isprintable() or character in "\t\n\r":
        return repr(character)
    return f"U+{code_point:04X}"


def _join(names: Iterable[str]) -> str:
    items = list(names)
    if not items:
        return "nothing"
    if len(items) > _MAX_ITEMS:
        return f"{', '.join(items[:_MAX_ITEMS])} or {len(items) - _MAX_ITEMS} more ranges"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"


class _Naming(Protocol):
    def __call__(self, value: int, /) -> str: ...
