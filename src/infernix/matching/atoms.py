"""Atoms: a partition of the characters, coarse enough that a set of them fits into one 64-bit word.

A state that goes round on every character of some atoms takes every token that is made of those atoms alone, whatever
else the grammar says. Masks use that to take whole parts of the vocabulary at once. ASCII punctuation has an atom a
character, because grammars end loops on it; letters and digits are grouped as grammars tend to group them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.grammar.ir import MAX_CODE_POINT
from infernix.grammar.unicode import complement_ranges, normalize_ranges

# White space beyond ASCII (ECMAScript's WhiteSpace and LineTerminator productions).
_LINE_SEPARATORS = ((0x2028, 0x2029),)
_WIDE_SPACES = (
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
_ASCII_GROUPS = ("0", "123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ")
_ASCII_SINGLES = "\t\n\r\x7f" + "".join(chr(c) for c in range(32, 127) if not chr(c).isalnum())


def _ascii_atoms() -> tuple[tuple[tuple[int, int], ...], ...]:
    groups = [*_ASCII_GROUPS, *_ASCII_SINGLES]
    groups.append("".join(chr(c) for c in range(32) if chr(c) not in _ASCII_SINGLES))
    return tuple(normalize_ranges((ord(c), ord(c)) for c in group) for group in groups)


_NON_ASCII = complement_ranges([(0, 127), *_LINE_SEPARATORS, *_WIDE_SPACES, (MAX_CODE_POINT + 1, MAX_CODE_POINT + 1)])

# ATOM_RANGES[atom]: its code points. The last three lie beyond ASCII; the others are found by byte.
ATOM_RANGES: tuple[tuple[tuple[int, int], ...], ...] = (*_ascii_atoms(), _LINE_SEPARATORS, _WIDE_SPACES, _NON_ASCII)
NUM_ASCII_ATOMS = len(ATOM_RANGES) - 3
LINE_SEPARATOR_ATOM = NUM_ASCII_ATOMS
WIDE_SPACE_ATOM = NUM_ASCII_ATOMS + 1
# Also stands for an unfinished character at a token's end: every unfinished character can become one of this atom.
NON_ASCII_ATOM = NUM_ASCII_ATOMS + 2
# Bytes that are no UTF-8, or that do not begin at a character's first byte: in no loop, ever.
BROKEN_ATOM = NUM_ASCII_ATOMS + 3

ATOM_OF_ASCII: NDArray[np.int64] = np.zeros(128, np.int64)
for _atom, _ranges in enumerate(ATOM_RANGES[:NUM_ASCII_ATOMS]):
    for _low, _high in _ranges:
        ATOM_OF_ASCII[_low : _high + 1] = _atom
