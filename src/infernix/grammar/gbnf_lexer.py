"""The words of GBNF text: names, literals, character classes and punctuation, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from infernix.errors import InvalidGrammar, TextLocation
from infernix.grammar import ir
from infernix.grammar.unicode import CodePointRange, character_class

NAME, LITERAL, CLASS, DEFINE, ANNOTATION, END = "name", "literal", "class", "::=", "(=", "end"

# A dot between two name characters belongs to the name; any other dot is the terminal for any character.
_WORD = re.compile(
    r"""
      (?P<space> (?: [ \t\r\n]++ | \#[^\r\n]*+ )++ )
    | (?P<name> [A-Za-z0-9_-]++ (?: \.[A-Za-z0-9_-]++ )*+ )
    | (?P<literal> " (?: [^"\\\r\n]++ | \\[^\r\n] )*+ (?P<literal_end> "? ) )
    | (?P<class> \[ (?: [^\]\\\r\n]++ | \\[^\r\n] )*+ (?P<class_end> \]? ) )
    | (?P<define> ::= )
    | (?P<annotation> \(= )
    | (?P<mark> [()|*+?{},.] )
    """,
    re.VERBOSE,
)
_CHARACTER = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|([^\\])", re.DOTALL)
_LETTER_ESCAPES = {
    "a": 0x07, "b": 0x08, "t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D, "e": 0x1B, "0": 0x00,
}  # fmt: skip
_HEX_ESCAPE_DIGITS = {"x": 2, "u": 4, "U": 8}
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_HINTS = {
    "'": "a literal stands in double quotes",
    "/": 'a comment starts with "#", and a regular expression is a constraint of its own',
    "=": 'a rule is written "name ::= body"',
    ":": 'a rule is written "name ::= body"',
    ";": "a rule needs no end mark",
    "%": "directives are not part of GBNF",
    "<": "a token is named by its id: Token(id)",
}


class Word(NamedTuple):
    """One word: its kind (a mark is its own kind), its source text and the offset of its first character."""

    kind: str
    text: str
    start: int


def grammar_error(text: str, message: str, offset: int) -> InvalidGrammar:
    """The error for the place at `offset` of `text`."""
    return InvalidGrammar(message, TextLocation.at(text, offset))


def words(text: str) -> Iterator[Word]:
    """The words of `text` in order, without white space and comments; two END words close the stream.

    Raises InvalidGrammar for a character that starts no word, and for a literal or class that is open at the end of
    its line.
    """
    position = 1 if text.startswith("\ufeff") else 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise _unexpected_character(text, position)
        kind = match.lastgroup or END
        if kind == "literal" and not match["literal_end"]:
            raise grammar_error(
                text, 'this literal is not closed on its line; a line break in it is written "\\n"', position
            )
        if kind == "class" and not match["class_end"]:
            raise grammar_error(
                text, 'this class is not closed on its line; a line break in it is written "\\n"', position
            )
        if match[0] == "[]":  # here, because what follows "[]x]" would be the next complaint
            raise grammar_error(text, 'no character matches this class (a "]" in a class is written "\\]")', position)
        if kind in ("mark", "define", "annotation"):
            kind = match[kind]
        if kind != "space":
            yield Word(kind, match[0], position)
        position = match.end()
    yield from (Word(END, "", len(text)),) * 2


def _unexpected_character(text: str, offset: int) -> InvalidGrammar:
    character = text[offset]
    shown = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    hint = _HINTS.get(character)
    return grammar_error(text, f"unexpected character {shown}" + (f" ({hint})" if hint else ""), offset)


def read_literal(text: str, word: Word) -> ir.Literal:
    """The UTF-8 bytes of a LITERAL word. Raises InvalidGrammar for a bad escape."""
    inner = word.text[1:-1]
    if "\\" in inner:
        inner = "".join(chr(code_point) for code_point, _, _ in _characters(text, inner, word.start + 1))
    return ir.text(inner)


def read_class(text: str, word: Word) -> ir.CharacterClass:
    """The set of a CLASS word. A "-" that is first, last, or follows a range stands for itself.

    Raises InvalidGrammar for a bad escape, a range that runs backwards and a class that no character matches.
    """
    negated = word.text.startswith("[^")
    start = 2 if negated else 1
    characters = list(_characters(text, word.text[start:-1], word.start + start))
    ranges: list[CodePointRange] = []
    index = 0
    while index < len(characters):
        low, offset, _ = characters[index]
        high = low
        index += 1
        if index + 1 < len(characters) and characters[index][0] == ord("-") and not characters[index][2]:
            high = characters[index + 1][0]
            index += 2
        if high < low:
            raise grammar_error(text, f"this range runs backwards: U+{low:04X} is above U+{high:04X}", offset)
        ranges.append((low, high))
    result = character_class(ranges, negated=negated)
    if not result.ranges:
        raise grammar_error(text, "no character matches this class", word.start)
    return result


def _characters(text: str, inner: str, offset: int) -> Iterator[tuple[int, int, bool]]:
    """(code point, offset, written as an escape) of each character of `inner`, which starts at `offset` of `text`."""
    for match in _CHARACTER.finditer(inner):
        hex2, hex4, hex8, escaped, plain = match.groups()
        place = offset + match.start()
        if plain is not None:
            yield ord(plain), place, False
        elif escaped is None:
            code_point = int(hex2 or hex4 or hex8, 16)
            if ir.SURROGATES[0] <= code_point <= ir.SURROGATES[1]:
                hint = "write the character itself or \\UNNNNNNNN"
                raise grammar_error(text, f"{match[0]} is half of a surrogate pair and no character ({hint})", place)
            if code_point > ir.MAX_CODE_POINT:
                raise grammar_error(text, f"{match[0]} is above the last code point, U+10FFFF", place)
            yield code_point, place, True
        elif escaped in _LETTER_ESCAPES:
            yield _LETTER_ESCAPES[escaped], place, True
        elif _PUNCTUATION.match(escaped):
            yield ord(escaped), place, True
        elif escaped in _HEX_ESCAPE_DIGITS:
            digits = _HEX_ESCAPE_DIGITS[escaped]
            raise grammar_error(text, f"\\{escaped} takes exactly {digits} hexadecimal digits", place)
        else:
            raise grammar_error(text, f"unknown escape \\{escaped}", place)
