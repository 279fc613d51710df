"""Sets of code points, and their UTF-8 encodings as sequences of byte ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from infernix.grammar.ir import MAX_CODE_POINT, SURROGATES, CharacterClass

CodePointRange: TypeAlias = tuple[int, int]
ByteRanges: TypeAlias = tuple[tuple[int, int], ...]

# Scalar values by the length of their UTF-8 encoding, without surrogates (Unicode Standard, table 3-7).
_ENCODING_LENGTH_BLOCKS: tuple[tuple[int, int, int], ...] = (
    (0x0000, 0x007F, 1),
    (0x0080, 0x07FF, 2),
    (0x0800, 0xD7FF, 3),
    (0xE000, 0xFFFF, 3),
    (0x10000, 0x10FFFF, 4),
)

_SURROGATE = re.compile("[\ud800-\udfff]")


def first_surrogate(text: str) -> int | None:
    """The offset of the first surrogate in `text`, which then has no UTF-8 encoding; None where there is none."""
    found = None if text.isascii() else _SURROGATE.search(text)
    return None if found is None else found.start()


def normalize_ranges(ranges: Iterable[CodePointRange]) -> tuple[CodePointRange, ...]:
    """Sorted, disjoint, non-adjacent inclusive ranges; empty ones (low > high) are dropped."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return tuple((low, high) for low, high in merged)


def complement_ranges(ranges: Iterable[CodePointRange]) -> tuple[CodePointRange, ...]:
    """The code points 0..0x10FFFF outside `ranges`, surrogates included."""
    gaps: list[CodePointRange] = []
    next_low = 0
    for low, high in normalize_ranges(ranges):
        if next_low < low:
            gaps.append((next_low, low - 1))
        next_low = high + 1
    if next_low <= MAX_CODE_POINT:
        gaps.append((next_low, MAX_CODE_POINT))
    return tuple(gaps)


def intersect_ranges(left: Iterable[CodePointRange], right: Iterable[CodePointRange]) -> tuple[CodePointRange, ...]:
    """The code points in both."""
    return complement_ranges((*complement_ranges(left), *complement_ranges(right)))


def character_class(ranges: Iterable[CodePointRange], *, negated: bool = False) -> CharacterClass:
    """The scalar values in `ranges` (or outside, if `negated`): surrogates belong to neither."""
    chosen = complement_ranges(ranges) if negated else normalize_ranges(ranges)
    return CharacterClass(intersect_ranges(chosen, complement_ranges([SURROGATES])))


def utf8_sequences(ranges: Iterable[CodePointRange]) -> Iterator[ByteRanges]:
    """The UTF-8 encodings of the scalar values in `ranges`, as sequences of one to four inclusive byte ranges.

    Sequences of one call are disjoint. A code point range is split at the borders of encoding lengths, then so that
    in each part every byte position runs over a range of its own.
    """
    for low, high in normalize_ranges(ranges):
        for block_low, block_high, num_bytes in _ENCODING_LENGTH_BLOCKS:
            first, last = max(low, block_low), min(high, block_high)
            if first <= last:
                yield from _split_aligned(first, last, num_bytes)


def _split_aligned(low: int, high: int, num_bytes: int) -> Iterator[ByteRanges]:
    for num_tail_bytes in range(1, num_bytes):
        tail_mask = (1 << (6 * num_tail_bytes)) - 1
        if (low & ~tail_mask) != (high & ~tail_mask):
            if low & tail_mask:
                yield from _split_aligned(low, low | tail_mask, num_bytes)
                yield from _split_aligned((low | tail_mask) + 1, high, num_bytes)
                return
            if high & tail_mask != tail_mask:
                yield from _split_aligned(low, (high & ~tail_mask) - 1, num_bytes)
                yield from _split_aligned(high & ~tail_mask, high, num_bytes)
                return
    yield tuple(zip(chr(low).encode("utf-8"), chr(high).encode("utf-8"), strict=True))
