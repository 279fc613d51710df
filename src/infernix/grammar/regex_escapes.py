"""Character sets and escapes of the regular expression dialect.

The sets are those of ECMAScript without flags (ECMA-262, "CharacterClassEscape", "WhiteSpace", "LineTerminator"), read
over code points instead of UTF-16 code units.
"""

from __future__ import annotations

import re
import string
from typing import TypeAlias

from infernix.grammar.ir import SURROGATES
from infernix.grammar.unicode import CodePointRange, complement_ranges, normalize_ranges

CodePointRanges: TypeAlias = tuple[CodePointRange, ...]

LINE_TERMINATORS: CodePointRanges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
DIGITS: CodePointRanges = ((0x30, 0x39),)
WORD_CHARACTERS: CodePointRanges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
WHITE_SPACE: CodePointRanges = normalize_ranges(
    (
        (0x09, 0x0D),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    )
)

_SETS: dict[str, CodePointRanges] = {
    "d": DIGITS,
    "D": complement_ranges(DIGITS),
    "w": WORD_CHARACTERS,
    "W": complement_ranges(WORD_CHARACTERS),
    "s": WHITE_SPACE,
    "S": complement_ranges(WHITE_SPACE),
}
_CONTROLS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_IDENTITY = frozenset(string.punctuation + " ")
_HEX_2 = re.compile("[0-9A-Fa-f]{2}")
_HEX_4 = re.compile("[0-9A-Fa-f]{4}")
_ASCII_DIGITS = frozenset(string.digits)
_ASCII_LETTERS = frozenset(string.ascii_letters)

_REFUSALS = {
    "B": "word boundaries (\\B) are not supported",
    "p": "Unicode property classes (\\p) are not supported",
    "P": "Unicode property classes (\\P) are not supported",
    "k": "back-references (\\k) are not supported",
    "A": "\\A is not an anchor of this dialect; the whole content is matched anyway",
    "Z": "\\Z is not an anchor of this dialect; the whole content is matched anyway",
    "z": "\\z is not an anchor of this dialect; the whole content is matched anyway",
}


class EscapeError(ValueError):
    """An escape that is not part of the dialect; the message says why. The reader adds the place."""


def read_escape(text: str, offset: int, *, in_class: bool) -> tuple[int | CodePointRanges, int]:
    """What the escape at `offset` (its backslash) stands for, and the offset after it.

    A single character is returned as its code point, a class escape as its ranges. Raises EscapeError.
    """
    letter = text[offset + 1 : offset + 2]
    after = offset + 2
    if not letter:
        raise EscapeError("nothing follows the backslash")
    if letter in _SETS:
        return _SETS[letter], after
    if letter in _CONTROLS:
        return _CONTROLS[letter], after
    if letter in _IDENTITY:
        return ord(letter), after
    if letter == "b" and in_class:
        return 0x08, after
    if letter == "0" and text[after : after + 1] not in _ASCII_DIGITS:
        return 0x00, after
    if letter == "x":
        return _read_hexadecimal(text, after, _HEX_2, "\\x takes two hexadecimal digits"), after + 2
    if letter == "u":
        return _read_code_unit(text, after), after + 4
    if letter == "c" and text[after : after + 1] in _ASCII_LETTERS:
        return ord(text[after]) % 32, after + 1
    raise EscapeError(_refusal(letter, in_class=in_class))


def _read_hexadecimal(text: str, offset: int, digits: re.Pattern[str], message: str) -> int:
    match = digits.match(text, offset)
    if match is None:
        raise EscapeError(message)
    return int(match[0], 16)


def _read_code_unit(text: str, offset: int) -> int:
    if text.startswith("{", offset):
        raise EscapeError("\\u{...} is not supported; write \\uNNNN, or the character itself")
    value = _read_hexadecimal(text, offset, _HEX_4, "\\u takes four hexadecimal digits")
    if SURROGATES[0] <= value <= SURROGATES[1]:
        raise EscapeError("surrogate escapes are not supported; write the character itself")
    return value


def _refusal(letter: str, *, in_class: bool) -> str:
    if letter in _REFUSALS:
        return _REFUSALS[letter]
    if letter == "b":
        return "word boundaries (\\b) are not supported"
    if letter == "c":
        return "\\c takes an ASCII letter"
    if letter in _ASCII_DIGITS:
        if in_class or letter == "0":
            return "octal escapes are not supported; write \\xNN"
        return f"back-references (\\{letter}) are not supported"
    return f"unknown escape \\{letter}"
