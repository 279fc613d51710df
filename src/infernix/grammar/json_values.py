"""JSON text (RFC 8259) as grammar rules: whitespace, strings, numbers, and values of any shape.

One slot of insignificant whitespace stands between two tokens: at most 32 characters, space, tab, line feed and
carriage return counted together; or, with `Spacing.TEMPLATE`, what chat templates write. None stands before or after a
whole value.

A context-free rule cannot say that the member names of one object differ from each other; where names are free, a
name may therefore come twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from infernix.grammar.decimals import INT64_MAX, INT64_MIN, integer_range, json_number
from infernix.grammar.ir import (
    EMPTY,
    Choice,
    Expression,
    Grammar,
    GrammarBuilder,
    Literal,
    Repeat,
    RuleReference,
    Sequence,
    optional,
)
from infernix.grammar.unicode import character_class

MAX_WHITESPACE_RUN = 32

QUOTE = Literal(b'"')
TRUE = Literal(b"true")
FALSE = Literal(b"false")
NULL = Literal(b"null")

_WHITESPACE = character_class([(ord(character), ord(character)) for character in " \t\n\r"])
_HEX = character_class([(ord("0"), ord("9")), (ord("a"), ord("f")), (ord("A"), ord("F"))])

UNESCAPED = character_class([(0x00, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\"))], negated=True)
"""Characters that stand for themselves in a JSON string."""

_SHORT_ESCAPES = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
CANONICAL_ESCAPES = {
    **{chr(code): f"\\u{code:04x}" for code in range(0x20)},
    **{character: f"\\{letter}" for character, letter in _SHORT_ESCAPES.items()},
}
"""The one spelling, in the canonical form, of each character that must be escaped; all others stand for themselves.

Short escapes where JSON has them, else `\\u00` with lower-case digits; the form of RFC 8785, section 3.2.2.2.
"""


def canonical_string(value: str) -> bytes:
    """`value` as a JSON string in the canonical form, quotes included. `value` holds no surrogates."""
    # Nothing in an identifier needs an escape; most names are one.
    return f'"{value if value.isidentifier() else value.translate(_CANONICAL_TRANSLATION)}"'.encode()


_CANONICAL_TRANSLATION = str.maketrans(CANONICAL_ESCAPES)


def _code_points(*ranges: str) -> Expression:
    """A class out of two-character strings, each the first and the last character of a range."""
    return character_class([(ord(bounds[0]), ord(bounds[1])) for bounds in ranges])


CANONICAL_CHARACTER: Expression = Choice(
    (
        UNESCAPED,
        Sequence(
            (
                Literal(b"\\"),
                Choice(
                    (
                        character_class([(ord(letter), ord(letter)) for letter in _SHORT_ESCAPES.values()]),
                        # \u0008 to \u000a, \u000c and \u000d have short escapes.
                        Sequence((Literal(b"u000"), _code_points("07", "bb", "ef"))),
                        Sequence((Literal(b"u001"), _code_points("09", "af"))),
                    )
                ),
            )
        ),
    )
)
"""One Unicode character inside a JSON string, in its canonical spelling."""

_ESCAPED_CODE_UNITS: Expression = Choice(
    (
        Sequence((_code_points("09", "ac", "AC", "ef", "EF"), _HEX, _HEX, _HEX)),
        Sequence((_code_points("dd", "DD"), _code_points("07"), _HEX, _HEX)),
        Sequence(
            (
                _code_points("dd", "DD"),
                _code_points("89", "ab", "AB"),
                _HEX,
                _HEX,
                Literal(b"\\u"),
                _code_points("dd", "DD"),
                _code_points("cf", "CF"),
                _HEX,
                _HEX,
            )
        ),
    )
)
ANY_CHARACTER: Expression = Choice(
    (
        UNESCAPED,
        Sequence(
            (
                Literal(b"\\"),
                Choice(
                    (
                        character_class([(ord(letter), ord(letter)) for letter in '"\\/bfnrt']),
                        Sequence((Literal(b"u"), _ESCAPED_CODE_UNITS)),
                    )
                ),
            )
        ),
    )
)
"""One Unicode character inside a JSON string, in any spelling. A surrogate is escaped only as half of a pair."""


class Spacing(Enum):
    """What may stand between the tokens of JSON.

    FREE       insignificant whitespace, in a bounded run
    TEMPLATE   one space after each colon and comma and nothing else, as chat templates write the arguments of calls
    """

    FREE = "free"
    TEMPLATE = "template"


@dataclass(frozen=True)
class JsonRules:
    """The shared rules of JSON inside one grammar; each comes into being when it is first asked for."""

    builder: GrammarBuilder
    spacing: Spacing = Spacing.FREE
    _shared: dict[Hashable, RuleReference] = field(default_factory=dict, compare=False)

    def shared(self, key: Hashable, name: str, body: Callable[[], Expression]) -> RuleReference:
        """The one rule for `key`; made from `body` when it is first asked for, and called `name` if that is no rule."""
        rule = self._shared.get(key)
        if rule is None:
            expression = body()
            rule = expression if isinstance(expression, RuleReference) else self.builder.add(name, expression)
            self._shared[key] = rule
        return rule

    @cached_property
    def whitespace(self) -> Expression:
        """The slot between two tokens, the first of them neither a comma nor a colon."""
        if self.spacing is Spacing.TEMPLATE:
            return EMPTY
        return self.builder.add("whitespace", Repeat(_WHITESPACE, 0, MAX_WHITESPACE_RUN))

    def whitespace_after(self, token: bytes) -> Expression:
        """The slot behind `token`."""
        if self.spacing is Spacing.TEMPLATE and token in (b",", b":"):
            return Literal(b" ")
        return self.whitespace

    @cached_property
    def colon(self) -> RuleReference:
        """What stands between the name of a member and its value."""
        return self.builder.add("colon", Sequence((self.whitespace, Literal(b":"), self.whitespace_after(b":"))))

    @cached_property
    def next_name(self) -> RuleReference:
        """From the comma behind a member to the opening quote of the next one's name."""
        return self.builder.add("comma", Sequence((Literal(b","), self.whitespace_after(b","), QUOTE)))

    @cached_property
    def string(self) -> RuleReference:
        """Any string, in any spelling."""
        return self.builder.add("string", Sequence((QUOTE, self.string_after_quote)))

    @cached_property
    def string_after_quote(self) -> RuleReference:
        """Any string, in any spelling, from behind its opening quote."""
        return self.builder.add("characters", Sequence((Repeat(ANY_CHARACTER, 0, None), QUOTE)))

    @cached_property
    def integer(self) -> RuleReference:
        """Any signed 64-bit integer, without point and exponent."""
        return self.builder.add("integer", integer_range(INT64_MIN, INT64_MAX))

    @cached_property
    def number(self) -> RuleReference:
        """Any number; `infernix.grammar.decimals.json_number` says which spellings."""
        return self.builder.add("number", json_number())

    @cached_property
    def boolean(self) -> RuleReference:
        """`true` or `false`."""
        return self.builder.add("boolean", Choice((TRUE, FALSE)))

    @cached_property
    def value(self) -> RuleReference:
        """Any JSON value."""
        rule = self.builder.declare("value")
        # The rules of objects and arrays refer to this one: it must be known before they are made.
        self.__dict__["value"] = rule
        self.builder.define(rule, Choice((self.object, self.array, self.string, self.number, TRUE, FALSE, NULL)))
        return rule

    @cached_property
    def object(self) -> RuleReference:
        """Any JSON object."""
        rule = self.builder.declare("object")
        self.__dict__["object"] = rule
        self.builder.define(rule, self._enclosed("{", self.member(self.string, self.value), "}"))
        return rule

    @cached_property
    def array(self) -> RuleReference:
        """Any JSON array."""
        rule = self.builder.declare("array")
        self.__dict__["array"] = rule
        self.builder.define(rule, self._enclosed("[", self.value, "]"))
        return rule

    def member(self, name: Expression, value: Expression) -> Sequence:
        """One member of an object."""
        return Sequence((name, self.colon, value))

    def _enclosed(self, opening: str, item: Expression, closing: str) -> Sequence:
        """Any number of times `item`, separated by commas, in brackets."""
        space = self.whitespace
        following = Repeat(Sequence((Literal(b","), self.whitespace_after(b","), item, space)), 0, None)
        items = optional(Sequence((item, space, following)))
        return Sequence((Literal(opening.encode()), space, items, Literal(closing.encode())))


def json_object_grammar() -> Grammar:
    """Any JSON object, starting with `{` and ending with `}`."""
    builder = GrammarBuilder()
    return builder.build(JsonRules(builder).object)
