"""Patterns: regular expressions that are searched in a string, as expressions that match a whole string.

An alternative without `^` may begin anywhere, so any characters may come before it, and the same goes for `$` and its
end. What comes out is kept in a few plain shapes that the rest can reason about: an alternative is a list of items
without sequences among them, and any choice between single characters is a character class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from infernix.grammar import ir
from infernix.grammar.alphabets import SCALAR_VALUES
from infernix.grammar.automata import AutomatonTooLarge, LazyAutomaton, determinize
from infernix.grammar.character_nfa import parts_of, postorder
from infernix.grammar.regex_syntax import read_pattern
from infernix.grammar.unicode import CodePointRange, character_class, normalize_ranges

ANY_CHARACTER = ir.CharacterClass(SCALAR_VALUES)
ANYTHING = ir.Repeat(ANY_CHARACTER, 0, None)
"""Any text."""

Items: TypeAlias = tuple[ir.Expression, ...]

# Larger sequences and choices are left inside others: each level of nesting would copy them once more.
_MAX_JOINED = 1000
# A pattern whose repetitions are more than this, or whose repeated parts take more work, is not looked into.
_MAX_REPEATS = 100
_MAX_BODY_STATES = 500
_MAX_BODY_STEPS = 20_000


@dataclass(frozen=True)
class SearchPattern:
    """The strings in which an expression is found: any one of `alternatives`, each of them items in a row."""

    alternatives: tuple[Items, ...]

    @cached_property
    def expression(self) -> ir.Expression:
        """The whole strings, over characters. What may come before several alternatives stands there once."""
        open_ends: dict[tuple[Items, Items], list[ir.Expression]] = {}
        for items in self.alternatives:
            before = items[:1] if items[:1] == (ANYTHING,) else ()
            after = items[-1:] if len(items) > 1 and items[-1] == ANYTHING else ()
            middle = items[len(before) : len(items) - len(after)]
            open_ends.setdefault((before, after), []).append(_in_a_row(middle))
        return ir.choice(
            *(_in_a_row((*before, ir.choice(*middles), *after)) for (before, after), middles in open_ends.items())
        )

    @cached_property
    def automaton(self) -> LazyAutomaton:
        """For single strings."""
        return LazyAutomaton(self.expression)

    @property
    def is_universal(self) -> bool:
        """Whether an alternative is known to be found in every string."""
        return (ANYTHING,) in self.alternatives

    def never_has_one_of(self, characters: str) -> bool:
        """Whether one of `characters` is in no string of the language."""
        ranges: list[CodePointRange] = []
        for node in postorder(self.expression):
            if isinstance(node, ir.CharacterClass):
                ranges += node.ranges
            elif isinstance(node, ir.Literal):
                ranges += [(ord(character),) * 2 for character in node.data.decode("utf-8")]
        known = normalize_ranges(ranges)
        return any(not any(low <= ord(character) <= high for low, high in known) for character in characters)

    @cached_property
    def counts_are_clear(self) -> bool:
        """Whether a string leaves no doubt about where one turn of a counted repetition ends and the next begins."""
        repeats = [node for node in postorder(self.expression) if isinstance(node, ir.Repeat)]
        bodies = [node.body for node in repeats if max(node.minimum, node.maximum or 0) > 1]
        return len(bodies) <= _MAX_REPEATS and all(map(_turns_are_clear, bodies))

    @property
    def is_anchored(self) -> bool:
        """Whether no alternative has any text at its beginning or its end."""
        return not any(item == ANYTHING for items in self.alternatives for item in (*items[:1], *items[-1:]))


@lru_cache(maxsize=256)
def read_search_pattern(text: str) -> SearchPattern:
    """Reads the expression `text`. Raises infernix.grammar.regex_syntax.PatternError."""
    alternatives: list[Items] = []
    for alternative in read_pattern(text).alternatives:
        body = _simplified(alternative.body)
        for option in body.options if isinstance(body, ir.Choice) else (body,):
            items = option.items if isinstance(option, ir.Sequence) else (option,)
            before = () if alternative.anchored_start else (ANYTHING,)
            after = () if alternative.anchored_end else (ANYTHING,)
            if (before or after) and _may_be_empty(option):
                # It is found at one end of any string.
                items, before, after = (), (ANYTHING,), ()
            items = tuple(item for item in items if item != ir.EMPTY)
            if before and items[:1] == before:
                before = ()
            if after and items[-1:] == after:
                after = ()
            alternatives.append((*before, *items, *after))
    return SearchPattern(tuple(alternatives))


def _simplified(root: ir.Expression) -> ir.Expression:
    """The same language in plain shapes: no sequence directly in a sequence, no choice of single characters."""
    simple: dict[int, ir.Expression] = {}
    for node in postorder(root):
        simple[id(node)] = _simplified_node(node, [simple[id(part)] for part in parts_of(node)])
    return simple[id(root)]


def _simplified_node(node: ir.Expression, parts: list[ir.Expression]) -> ir.Expression:
    if isinstance(node, ir.Literal) and len(node.data.decode("utf-8")) == 1:
        return character_class([(ord(node.data.decode("utf-8")),) * 2])
    if isinstance(node, ir.Sequence):
        items = [item for part in parts for item in _items_of(part)]
        return ir.sequence(*items) if items else ir.EMPTY
    if isinstance(node, ir.Repeat):
        body = parts[0]
        if isinstance(body, ir.Repeat) and body.minimum <= 1 and body.maximum is None and node.maximum is None:
            return ir.Repeat(body.body, body.minimum * node.minimum, None)
        return ir.Repeat(body, node.minimum, node.maximum)
    if isinstance(node, ir.Choice):
        options = [option for part in parts for option in _options_of(part)]
        if all(isinstance(option, ir.CharacterClass) for option in options):
            return character_class(
                r for option in options if isinstance(option, ir.CharacterClass) for r in option.ranges
            )
        return ir.choice(*options)
    return node


def _in_a_row(items: Items) -> ir.Expression:
    return ir.sequence(*items) if items else ir.EMPTY


def _items_of(node: ir.Expression) -> Items:
    return node.items if isinstance(node, ir.Sequence) and len(node.items) <= _MAX_JOINED else (node,)


def _options_of(node: ir.Expression) -> Items:
    return node.options if isinstance(node, ir.Choice) and len(node.options) <= _MAX_JOINED else (node,)


def _may_be_empty(root: ir.Expression) -> bool:
    empty: dict[int, bool] = {}
    for node in postorder(root):
        parts = [empty[id(part)] for part in parts_of(node)]
        if isinstance(node, ir.Repeat):
            empty[id(node)] = node.minimum == 0 or parts[0]
        elif isinstance(node, ir.Choice):
            empty[id(node)] = any(parts)
        else:
            empty[id(node)] = node == ir.EMPTY or (isinstance(node, ir.Sequence) and all(parts))
    return empty[id(root)]


def _turns_are_clear(body: ir.Expression) -> bool:
    """Whether the end of `body` shows by the next character: none that begins `body` also goes on inside it there.

    A body that may be empty has no clear turns. Where the answer takes too long to find, it is no.
    """
    if isinstance(body, ir.CharacterClass):
        return True
    try:
        automaton = determinize(body, _MAX_BODY_STATES, _MAX_BODY_STEPS)
    except AutomatonTooLarge:
        return False
    if automaton.accepting[0]:
        return False
    first = automaton.rows[0]
    return not any(
        begin >= 0 and following >= 0
        for row, accepts in zip(automaton.rows, automaton.accepting, strict=True)
        if accepts
        for begin, following in zip(first, row, strict=True)
    )
