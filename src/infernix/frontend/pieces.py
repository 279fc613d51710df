"""Bytes that arrive in pieces: finding a delimiter over their borders, and joining many of them cheaply."""

from __future__ import annotations

from typing import TypeVar

DataT = TypeVar("DataT", bytes, str)


def num_held(data: bytes, delimiter: bytes) -> int:
    """Length of the longest end of `data` that begins `delimiter` without being all of it."""
    start = max(0, len(data) - len(delimiter) + 1)
    while True:
        start = data.find(delimiter[:1], start)
        if start < 0:
            return 0
        if delimiter.startswith(data[start:]):
            return len(data) - start
        start += 1


def split_at(data: bytes, delimiter: bytes) -> tuple[bytes, bytes, bool]:
    """What stands before the first `delimiter`, the rest, and whether there was one.

    Without one, the rest is the end of `data` that may begin it.
    """
    before, found, rest = data.partition(delimiter)
    if found:
        return before, rest, True
    split = len(data) - num_held(data, delimiter)
    return data[:split], data[split:], False


def appended(parts: tuple[DataT, ...], piece: DataT) -> tuple[DataT, ...]:
    """`parts` with `piece` at the end. Joined they are the same text as before and after.

    Short neighbours are merged, so n appended pieces cost O(n log n) and leave O(log n) parts, and a tuple taken
    earlier stays what it was.
    """
    kept: list[DataT] = list(parts)
    while kept and len(kept[-1]) <= len(piece):
        piece = kept.pop() + piece
    kept.append(piece)
    return tuple(kept) if piece else parts
