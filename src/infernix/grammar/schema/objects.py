"""Objects -> ir.

Declared members come in declared order, optional ones may be left out, then come members of other names. What may
follow a member depends only on how far the declaration has been gone through. All members that may come next share one
comma, one slot of whitespace and one opening quote; the grammar branches over names behind the quote only, so that no
position before it has to hold every name in mind:

    object    = "{" space (quote names_0 | "}")
    names_i   = name_i rest_i  |  names_i+1 (if member_i is optional)
    names_n   = other space ":" space value space ("," space quote names_n | "}")
    rest_i    = space ":" space value_i space ("," space quote names_i+1 | "}" (if no required member is left))

Names here have no opening quote. The size stays linear, however many members are optional.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from infernix.grammar.ir import Choice, Expression, Literal, Repeat, Sequence, choice
from infernix.grammar.json_values import QUOTE, JsonRules, canonical_string
from infernix.grammar.schema.names import names_except

# Groups of members, see _Names, up to this size are not cut into blocks.
_MAX_CHAIN = 8

_CLOSING = Literal(b"}")


@dataclass(frozen=True, slots=True)
class Member:
    """A declared member that can occur; `value` derives its values."""

    name: str
    value: Expression
    required: bool


def lower_object(
    members: SequenceOf[Member], declared_names: SequenceOf[str], additional: Expression | None, rules: JsonRules
) -> Expression:
    """Objects of `members` in order, then any number of others whose values `additional` derives (None: no others).

    `declared_names` are those of `members` and of properties that no value satisfies: a name among the others is
    none of them. It is written in canonical escapes, so that no other spelling lets a declared name through; with no
    declared names any spelling will do. Names may come twice among the others only.
    """
    others = None if additional is None else _others(declared_names, additional, rules)
    following = None if others is None else rules.builder.add("members", others) if members else others
    return Sequence((Literal(b"{"), *_Names(members, following, rules).first_member()))


def _others(declared_names: SequenceOf[str], additional: Expression, rules: JsonRules) -> Expression:
    """One or more members of other names, from behind the opening quote to the end of the object."""
    name = rules.builder.add("name", names_except(declared_names)) if declared_names else rules.string_after_quote
    other = Sequence((rules.member(name, additional), rules.whitespace))
    return Sequence((other, Repeat(Sequence((rules.next_name, other)), 0, None), _CLOSING))


class _Names:
    """The rules names_i and rest_i of one object.

    Members fall into groups: a group ends with a required member, the last one at the others. A name competes with
    those behind it in its group. As a chain of rules they would all stand side by side as long as the text agrees with
    them, so that a large group is cut into blocks of about the root of its size: the rule at the start of a block has
    all names of the block in one choice, which is decided byte by byte, and only the others are chained. That takes
    two places for each name, and so still a linear size.
    """

    def __init__(self, members: SequenceOf[Member], others: Expression | None, rules: JsonRules) -> None:
        self._members = members
        self._rules = rules
        ends = [index + 1 for index, member in enumerate(members) if member.required]
        self._num_until_closable = ends[-1] if ends else 0
        starts = [0, *(end for end in ends if end < len(members))]
        # Only the member before leads to a group of one required member: it is written out there, so that a run of
        # required members becomes one sequence.
        self._written_out = {start for start in starts if start and members[start].required}
        self._names: list[Expression | None] = [None] * len(members) + [others]
        end = len(members)
        for start in reversed(starts if members else []):
            if start not in self._written_out:
                self._add_group(start, end)
            end = start

    def first_member(self) -> tuple[Expression, ...]:
        """All that follows the opening brace."""
        return self._rules.whitespace, self._next_or_end(0, QUOTE)

    def _rest(self, index: int) -> tuple[Expression, ...]:
        rules = self._rules
        items: list[Expression] = [rules.colon, self._members[index].value, rules.whitespace]
        while (index := index + 1) in self._written_out:
            member = self._members[index]
            name = Literal(_name_after_quote(member))
            items += (rules.next_name, name, rules.colon, member.value, rules.whitespace)
        return (*items, self._next_or_end(index, rules.next_name))

    def _next_or_end(self, index: int, opening: Expression) -> Expression:
        names = self._names[index]
        if names is None:
            return _CLOSING
        following = Sequence((opening, names))
        return following if index < self._num_until_closable else Choice((following, _CLOSING))

    def _add_group(self, start: int, end: int) -> None:
        block_size = isqrt(end - start - 1) + 1 if end - start > _MAX_CHAIN else 1
        for block_start in reversed(range(start, end, block_size)):
            self._add_block(block_start, min(block_start + block_size, end), start)

    def _add_block(self, start: int, end: int, group_start: int) -> None:
        add = self._rules.builder.add
        names = [_name_after_quote(member) for member in self._members[start:end]]
        lengths = _num_bytes_apart(names)
        later = None if self._members[end - 1].required else self._names[end]
        entries: list[Expression] = []
        following = later
        for index in reversed(range(start, end)):
            name = names[index - start]
            rest = self._rest(index)
            if index > start:
                # Two rules have this entry. All that they repeat is what tells it apart in the block.
                length = lengths[index - start]
                rest = (add("member", Sequence((Literal(name[length:]), *rest))),)
                name = name[:length]
            entry = Sequence((Literal(name), *rest))
            entries.append(entry)
            options = [entry, following] if index > start else [*entries, later]
            following = choice(*(option for option in options if option is not None))
            if index > group_start:
                following = add("members", following)
            # Else only one place leads here: it is written out there, and the options of a union are told apart in it.
            self._names[index] = following


def _name_after_quote(member: Member) -> bytes:
    return canonical_string(member.name)[1:]


def _num_bytes_apart(names: SequenceOf[bytes]) -> list[int]:
    """By name, how many bytes it takes to tell it apart from all others; none of them begins another."""
    order = sorted(range(len(names)), key=names.__getitem__)
    num_apart = [1] * len(names)
    for first, second in pairwise(order):
        common = next(i for i, (a, b) in enumerate(zip(names[first], names[second], strict=False)) if a != b)
        num_apart[first] = max(num_apart[first], common + 1)
        num_apart[second] = common + 1
    return num_apart
