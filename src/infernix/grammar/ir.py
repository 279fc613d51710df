"""The one form that every constraint becomes: rules over characters, bytes, tokens and each other.

A `Grammar` is a tuple of rules; a rule is known by its index, its name serves messages only (two rules may share a
name). Expressions are trees without cycles; recursion goes through `RuleReference`. The language of a grammar is the
set of byte strings that its root rule derives, with token terminals standing between token boundaries.

No vocabulary, no model and no request is known here. Nothing changes an expression once it is made; those that large
grammars have by the ten thousand are not frozen all the same, because making a frozen one takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)


@dataclass(slots=True, unsafe_hash=True)
class Literal:
    """Exactly these bytes (UTF-8 where they come from text); no bytes at all is the empty string."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One Unicode scalar value out of sorted, disjoint, inclusive code point `ranges`, as its UTF-8 bytes.

    Surrogates are never in `ranges`; a class without ranges matches nothing. Build it with
    `infernix.grammar.unicode.character_class`, which normalises.
    """

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """One byte, low <= byte <= high."""

    low: int
    high: int


@dataclass(slots=True, unsafe_hash=True)
class Sequence:
    """All `items`, one after the other; no items is the empty string."""

    items: tuple[Expression, ...]


@dataclass(slots=True, unsafe_hash=True)
class Choice:
    """Any one of `options`; no options matches nothing."""

    options: tuple[Expression, ...]


@dataclass(slots=True, unsafe_hash=True)
class Repeat:
    """`body` at least `minimum` and at most `maximum` times (None: without bound)."""

    body: Expression
    minimum: int
    maximum: int | None


@dataclass(slots=True, unsafe_hash=True)
class RuleReference:
    """What the rule with this index derives."""

    index: int


@dataclass(frozen=True, slots=True)
class TokenSet:
    """One whole token by id, at a token boundary.

    `excluded=False`: any of `ids`, whatever class it has in the vocabulary except EOS and NEVER.
    `excluded=True`: any TEXT token that is not in `ids`.
    """

    ids: tuple[int, ...]
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic automaton over bytes: state 0 is the start.

    `edges` are (source, low byte, high byte, target), byte ranges of one source disjoint; `accepting` are the final
    states. Used where a finite language is built as an automaton anyway (choices, numeric ranges).
    """

    num_states: int
    edges: tuple[tuple[int, int, int, int], ...]
    accepting: frozenset[int]


Expression: TypeAlias = (
    Literal | CharacterClass | ByteRange | Sequence | Choice | Repeat | RuleReference | TokenSet | Automaton
)

EMPTY = Literal(b"")
NOTHING = Choice(())


@dataclass(slots=True, unsafe_hash=True)
class Rule:
    """A named expression."""

    name: str
    body: Expression


@dataclass(frozen=True, slots=True)
class Grammar:
    """`rules[root]` derives the language."""

    rules: tuple[Rule, ...]
    root: int = 0

    @classmethod
    def of(cls, body: Expression) -> Grammar:
        """A grammar with one rule."""
        return cls((Rule("root", body),), 0)


@dataclass(slots=True)
class GrammarBuilder:
    """Collects rules whose bodies may refer to rules that are defined later."""

    _names: list[str] = field(default_factory=list)
    _bodies: list[Expression | None] = field(default_factory=list)

    @classmethod
    def extending(cls, grammar: Grammar) -> GrammarBuilder:
        """One that holds the rules of `grammar` already, under the same indices."""
        return cls([rule.name for rule in grammar.rules], [rule.body for rule in grammar.rules])

    def declare(self, name: str) -> RuleReference:
        """A new rule without a body yet."""
        self._names.append(name)
        self._bodies.append(None)
        return RuleReference(len(self._names) - 1)

    def define(self, rule: RuleReference, body: Expression) -> None:
        """Gives a declared rule its body, once."""
        if self._bodies[rule.index] is not None:
            raise ValueError(f"rule {self._names[rule.index]!r} has a body already")
        self._bodies[rule.index] = body

    def add(self, name: str, body: Expression) -> RuleReference:
        """Declares and defines."""
        rule = self.declare(name)
        self.define(rule, body)
        return rule

    def build(self, root: RuleReference) -> Grammar:
        """The finished grammar; every declared rule must have a body."""
        rules = []
        for name, body in zip(self._names, self._bodies, strict=True):
            if body is None:
                raise ValueError(f"rule {name!r} has no body")
            rules.append(Rule(name, body))
        return Grammar(tuple(rules), root.index)


def text(value: str) -> Literal:
    """The UTF-8 bytes of `value`."""
    return Literal(value.encode("utf-8"))


def sequence(*items: Expression) -> Expression:
    """A sequence; a single item stands for itself."""
    return items[0] if len(items) == 1 else Sequence(items)


def choice(*options: Expression) -> Expression:
    """A choice; a single option stands for itself."""
    return options[0] if len(options) == 1 else Choice(options)


def optional(body: Expression) -> Repeat:
    """`body` or nothing."""
    return Repeat(body, 0, 1)
