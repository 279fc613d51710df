"""The hash that rows are found by.

NH (Black et al., "UMAC: Fast and Secure Message Authentication", 1999), cut to 63 bits, with keys by place: each word
of a row's first half is multiplied with one of the second. It is a sum over such pairs, so the hash of a row that
differs from another in a few words takes no more than these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.jit import inner, kernel

_FIRST_KEY = 0x4BF29CE4
_SECOND_KEY = 0x3C6EF372
_FIRST_STEP = 0x9E3779B1
_SECOND_STEP = 0x85EBCA77
_LAST_FACTOR = 0x1B873593CC9E2D51
_MASK32 = 0xFFFFFFFF
_MASK63 = 0x7FFFFFFFFFFFFFFF


@inner
def hash_row(row: NDArray[np.uint32]) -> int:
    """A 63-bit hash of the row's content."""
    half = len(row) // 2
    first_key, second_key, total = _FIRST_KEY, _SECOND_KEY, len(row)
    for i in range(half):
        first_key += _FIRST_STEP
        second_key += _SECOND_STEP
        first = (int(row[i]) + first_key) & _MASK32
        second = (int(row[half + i]) + second_key) & _MASK32
        total += first * second
    if 2 * half < len(row):
        total += (int(row[2 * half]) + 1) * _LAST_FACTOR
    return total & _MASK63


@kernel
def digest_row(row: NDArray[np.uint32]) -> int:
    """The same for callers from Python."""
    return hash_row(row)


@inner
def hash_changed(
    base: NDArray[np.uint32], base_hash: int, differences: NDArray[np.uint32], places: NDArray[np.int64]
) -> int:
    """The hash of a row out of that of another, `base`.

    differences: the words of one XOR those of the other; places: how many differ, then where, once each.
    """
    half = len(base) // 2
    total = base_hash
    # First with the second half as it is in the base, then with the first half as it has become.
    for i in range(1, places[0] + 1):
        place = int(places[i])
        if place < half:
            key = _FIRST_KEY + (place + 1) * _FIRST_STEP
            old = int(base[place])
            new = old ^ int(differences[place])
            other = (int(base[half + place]) + _SECOND_KEY + (place + 1) * _SECOND_STEP) & _MASK32
            total += (((new + key) & _MASK32) - ((old + key) & _MASK32)) * other
    for i in range(1, places[0] + 1):
        place = int(places[i])
        if place >= half:
            old = int(base[place])
            new = old ^ int(differences[place])
            if place == 2 * half:
                total += (new - old) * _LAST_FACTOR
                continue
            key = _SECOND_KEY + (place - half + 1) * _SECOND_STEP
            first = int(base[place - half]) ^ int(differences[place - half])
            other = (first + _FIRST_KEY + (place - half + 1) * _FIRST_STEP) & _MASK32
            total += (((new + key) & _MASK32) - ((old + key) & _MASK32)) * other
    return total & _MASK63
