"""Reads a regular expression into alternatives of `ir` expressions over characters.

The dialect is the regular part of ECMAScript without flags, over code points. What an alternative has to match,
the whole content or some part of it, is left to whoever uses the `Pattern`.

What the standard's Annex B reads in an unexpected way is refused with its place, with two exceptions that
expressions in use need: a `]` or `}` without partner is itself, and so is a `{` that does not look like a counted
repetition. Greedy and lazy repetitions describe the same set of texts. A capturing group is a group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn

from infernix.errors import ConstraintTooLarge, InvalidRegex, TextLocation
from infernix.grammar import ir
from infernix.grammar.regex_escapes import LINE_TERMINATORS, CodePointRanges, EscapeError, read_escape
from infernix.grammar.unicode import CodePointRange, character_class, first_surrogate

MAX_SOURCE_BYTES = 1 << 20
MAX_GROUP_DEPTH = 256
MAX_REPEAT_COUNT = 100_000
MAX_EXPANDED_CHARACTERS = 10_000_000

_ANY_CHARACTER = character_class(LINE_TERMINATORS, negated=True)
_PLAIN_RUN = re.compile(r"[^\\^$.*+?()\[{|]+")
_COUNTS = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_NEARLY_COUNTS = re.compile(r"\{ *(?:[0-9,]|\Z)")
_POSIX_CLASS = re.compile(r"\[:\^?[A-Za-z]+:\]")
_MAX_COUNT_DIGITS = len(str(MAX_REPEAT_COUNT))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One top-level alternative: `body`, with `^` before it and `$` after it where they were written.

    In `body`, a `Literal` holds whole UTF-8 characters; the other nodes are `CharacterClass` (never without a
    character), `Sequence`, `Choice` and `Repeat`, at most three of them per level of grouping.
    """

    anchored_start: bool
    anchored_end: bool
    body: ir.Expression


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression: any one of `alternatives`, of which there is at least one."""

    alternatives: tuple[Alternative, ...]


class Fault(Enum):
    """What is wrong with an expression."""

    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too large"


class PatternError(ValueError):
    """An expression that cannot be read: what is wrong, why, and at which code point (None: as a whole)."""

    def __init__(self, fault: Fault, reason: str, offset: int | None) -> None:
        super().__init__(reason)
        self.fault = fault
        self.reason = reason
        self.offset = offset


def parse_pattern(text: str) -> Pattern:
    """What `read_pattern` reads; its errors are InvalidRegex and, for bounds, ConstraintTooLarge, with a location."""
    try:
        return read_pattern(text)
    except PatternError as error:
        location = None if error.offset is None else TextLocation.at(text, error.offset)
        kind = ConstraintTooLarge if error.fault is Fault.TOO_LARGE else InvalidRegex
        raise kind(error.reason, location) from None


def read_pattern(text: str) -> Pattern:
    """Reads `text`, in time linear in its length.

    Raises PatternError for whatever the dialect does not have, and for a source of more than MAX_SOURCE_BYTES UTF-8
    bytes, a count above MAX_REPEAT_COUNT, or an expression that would have more than MAX_EXPANDED_CHARACTERS
    characters with every bounded repetition written out.
    """
    surrogate = first_surrogate(text)
    if surrogate is not None:
        raise PatternError(Fault.MALFORMED, "a lone surrogate is not a character", surrogate)
    if len(text) > MAX_SOURCE_BYTES or len(text.encode("utf-8")) > MAX_SOURCE_BYTES:
        reason = f"the regular expression is longer than {MAX_SOURCE_BYTES} bytes (MAX_SOURCE_BYTES)"
        raise PatternError(Fault.TOO_LARGE, reason, None)
    return _Reader(text).read()


@dataclass(slots=True)
class _Group:
    """A group that is being read, or the whole expression (depth 0).

    `num_characters` is its size with bounded repetitions written out, and `sizes` that of each item in `items`.
    """

    opened_at: int
    options: list[ir.Expression] = field(default_factory=list)
    items: list[ir.Expression] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    num_characters: int = 0


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._groups = [_Group(opened_at=0)]
        self._alternatives: list[Alternative] = []
        self._anchored_start = False
        self._anchored_end = False
        # Whether a quantifier may follow: an atom was read last.
        self._repeatable = False
        self._classes: dict[tuple[CodePointRanges, bool], ir.CharacterClass] = {}

    def read(self) -> Pattern:
        text = self._text
        while self._offset < len(text):
            run = _PLAIN_RUN.match(text, self._offset)
            if run is not None:
                self._read_plain_run(run[0])
            else:
                self._read_special(text[self._offset])
        if len(self._groups) > 1:
            self._fail("this group is not closed", self._groups[-1].opened_at)
        self._end_alternative()
        return Pattern(tuple(self._alternatives))

    def _fail(self, reason: str, offset: int) -> NoReturn:
        raise PatternError(Fault.MALFORMED, reason, offset)

    def _refuse(self, reason: str, offset: int) -> NoReturn:
        raise PatternError(Fault.UNSUPPORTED, reason, offset)

    def _read_plain_run(self, run: str) -> None:
        # A quantifier that follows binds the last character only.
        if len(run) > 1:
            self._push(ir.text(run[:-1]), len(run) - 1)
        self._push(ir.text(run[-1]), 1)
        self._offset += len(run)

    def _read_special(self, character: str) -> None:
        offset = self._offset
        if character == "(":
            self._open_group()
        elif character == ")":
            self._close_group()
        elif character == "|":
            self._end_alternative()
            self._offset += 1
        elif character == "[":
            self._push(self._read_class(), 1)
        elif character == "\\":
            value = self._read_escape(in_class=False)
            self._push(ir.text(chr(value)) if isinstance(value, int) else self._class_of(value), 1)
        elif character == ".":
            self._push(_ANY_CHARACTER, 1)
            self._offset += 1
        elif character in "^$":
            self._read_anchor(character)
        elif character == "{" and _COUNTS.match(self._text, offset) is None:
            self._read_brace()
        else:
            self._read_quantifier()

    # Groups and alternatives

    def _open_group(self) -> None:
        offset = self._offset
        if len(self._groups) > MAX_GROUP_DEPTH:
            self._refuse(f"groups are nested deeper than {MAX_GROUP_DEPTH} (MAX_GROUP_DEPTH)", offset)
        self._offset += 1
        if self._text.startswith("?", self._offset):
            if not self._text.startswith("?:", self._offset):
                self._refuse(_group_refusal(self._text[offset : offset + 4]), offset)
            self._offset += 2
        self._groups.append(_Group(opened_at=offset))
        self._repeatable = False

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            self._fail("this parenthesis closes no group", self._offset)
        self._end_alternative()
        group = self._groups.pop()
        self._push(ir.choice(*group.options), group.num_characters)
        self._offset += 1

    def _end_alternative(self) -> None:
        group = self._groups[-1]
        body = _sequence(group.items)
        group.items, group.sizes = [], []
        self._repeatable = False
        if len(self._groups) > 1:
            group.options.append(body)
            return
        self._alternatives.append(Alternative(self._anchored_start, self._anchored_end, body))
        self._anchored_start = self._anchored_end = False

    def _read_anchor(self, character: str) -> None:
        offset = self._offset
        at_top_level = len(self._groups) == 1
        if character == "^":
            allowed = at_top_level and not self._groups[0].items and not self._anchored_start
            self._anchored_start = True
        else:
            allowed = at_top_level and self._text[offset + 1 : offset + 2] in ("", "|")
            self._anchored_end = True
        if not allowed:
            end = "start" if character == "^" else "end"
            self._refuse(f"{character} is supported only at the {end} of a top-level alternative", offset)
        self._offset += 1

    # Atoms

    def _push(self, atom: ir.Expression, num_characters: int) -> None:
        group = self._groups[-1]
        group.items.append(atom)
        group.sizes.append(num_characters)
        self._grow(num_characters, self._offset)
        self._repeatable = True

    def _read_escape(self, *, in_class: bool) -> int | CodePointRanges:
        try:
            value, self._offset = read_escape(self._text, self._offset, in_class=in_class)
        except EscapeError as error:
            if self._offset + 1 == len(self._text):
                self._fail(str(error), self._offset)
            self._refuse(str(error), self._offset)
        return value

    def _read_brace(self) -> None:
        if _NEARLY_COUNTS.match(self._text, self._offset):
            self._refuse("this is not a repetition {m}, {m,} or {m,n}; write \\{ for the character", self._offset)
        self._push(ir.text("{"), 1)
        self._offset += 1

    def _read_class(self) -> ir.CharacterClass:
        start = self._offset
        self._offset += 1
        negated = self._text.startswith("^", self._offset)
        self._offset += negated
        if self._text.startswith("]", self._offset):
            any_character = ", or [\\s\\S] for any character" if negated else ""
            self._refuse(f"this class is empty; write \\] for the character{any_character}", start)
        ranges: list[CodePointRange] = []
        while not self._text.startswith("]", self._offset):
            ranges.extend(self._read_class_range(start))
        self._offset += 1
        result = self._class_of(tuple(ranges), negated=negated)
        if not result.ranges:
            self._refuse("this class has no character", start)
        return result

    def _read_class_range(self, class_start: int) -> CodePointRanges:
        start = self._offset
        low = self._read_class_atom(class_start)
        following = self._text[self._offset : self._offset + 2]
        if len(following) < 2 or following[0] != "-" or following[1] == "]":
            return ((low, low),) if isinstance(low, int) else low
        self._offset += 1
        high = self._read_class_atom(class_start)
        if not isinstance(low, int) or not isinstance(high, int):
            self._refuse("a range cannot end in a class escape; write \\- for the character", start)
        if low > high:
            self._fail("the ends of this range are in the wrong order", start)
        return ((low, high),)

    def _read_class_atom(self, class_start: int) -> int | CodePointRanges:
        character = self._text[self._offset : self._offset + 1]
        if not character:
            self._fail("this class is not closed", class_start)
        if character == "\\":
            return self._read_escape(in_class=True)
        if character == "[" and _POSIX_CLASS.match(self._text, self._offset):
            self._refuse("POSIX classes are not supported", self._offset)
        self._offset += 1
        return ord(character)

    def _class_of(self, ranges: CodePointRanges, *, negated: bool = False) -> ir.CharacterClass:
        known = self._classes.get((ranges, negated))
        if known is None:
            known = self._classes[ranges, negated] = character_class(ranges, negated=negated)
        return known

    # Repetition

    def _read_quantifier(self) -> None:
        offset = self._offset
        minimum, maximum = self._read_counts()
        group = self._groups[-1]
        if not self._repeatable:
            repeated = "a repetition cannot be repeated; write (?:...) around it"
            self._fail(repeated if group.items else "there is nothing to repeat", offset)
        if self._text.startswith("?", self._offset):
            self._offset += 1
        elif self._text.startswith("+", self._offset):
            self._refuse("possessive repetition is not supported", self._offset)
        num_times = max(minimum, 1) if maximum is None else maximum
        added = group.sizes[-1] * (num_times - 1)
        group.sizes[-1] += added
        self._grow(added, offset)
        group.items[-1] = _repeat(group.items[-1], minimum, maximum)
        self._repeatable = False

    def _grow(self, num_characters: int, offset: int) -> None:
        group = self._groups[-1]
        group.num_characters += num_characters
        if group.num_characters > MAX_EXPANDED_CHARACTERS:
            self._fail_too_large(
                f"with its repetitions written out, the expression has more than {MAX_EXPANDED_CHARACTERS} characters "
                "(MAX_EXPANDED_CHARACTERS)",
                offset,
            )

    def _read_counts(self) -> tuple[int, int | None]:
        offset = self._offset
        counts = _COUNTS.match(self._text, offset)
        if counts is None:
            self._offset += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._text[offset]]
        self._offset = counts.end()
        minimum = self._bounded_count(counts[1], offset)
        if counts[2] is None:
            return minimum, minimum
        if not counts[3]:
            return minimum, None
        maximum = self._bounded_count(counts[3], offset)
        if maximum < minimum:
            self._fail("the counts of this repetition are in the wrong order", offset)
        return minimum, maximum

    def _bounded_count(self, digits: str, offset: int) -> int:
        significant = digits.lstrip("0")
        if len(significant) > _MAX_COUNT_DIGITS or int(significant or "0") > MAX_REPEAT_COUNT:
            self._fail_too_large(f"a repetition count is above {MAX_REPEAT_COUNT} (MAX_REPEAT_COUNT)", offset)
        return int(significant or "0")

    def _fail_too_large(self, reason: str, offset: int) -> NoReturn:
        raise PatternError(Fault.TOO_LARGE, reason, offset)


def _sequence(items: list[ir.Expression]) -> ir.Expression:
    """The items one after the other, neighbouring literals joined."""
    joined: list[ir.Expression] = []
    literals: list[bytes] = []
    for item in (*items, None):
        if isinstance(item, ir.Literal):
            literals.append(item.data)
            continue
        data = b"".join(literals)
        if data:
            joined.append(ir.Literal(data))
        literals = []
        if item is not None:
            joined.append(item)
    return ir.sequence(*joined) if joined else ir.EMPTY


def _repeat(body: ir.Expression, minimum: int, maximum: int | None) -> ir.Expression:
    if body == ir.EMPTY or maximum == 0:
        return ir.EMPTY
    if (minimum, maximum) == (1, 1):
        return body
    return ir.Repeat(body, minimum, maximum)


def _group_refusal(opening: str) -> str:
    """Why a group that starts with `opening`, at most four characters, is refused."""
    kind = opening[2:]
    if kind[:1] in ("=", "!"):
        return "lookahead is not supported"
    if kind in ("<=", "<!"):
        return "lookbehind is not supported"
    if kind[:1] == "<" or kind[:1] == "P":
        return "named groups are not supported; no captures are returned, write (?:...)"
    if kind[:1] == ">":
        return "atomic groups are not supported"
    if kind[:1] == "#":
        return "comments are not supported"
    if kind[:1].isalpha() or kind[:1] == "-":
        return "flags are not supported"
    return "unknown kind of group"
