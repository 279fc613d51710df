"""Members in declared order, optional ones left out at will, in whatever form members are written.

What may follow a member depends only on how far the declaration has been gone through. All members that may come next
share what stands before a name; the grammar branches over names behind it only, so that no position before it has to
hold every name in mind:

    members   = opening names_0 | closing
    names_i   = name_i rest_i  |  names_i+1 (if member_i is optional)
    names_n   = others
    rest_i    = after_name value_i after_value (next_opening names_i+1 | closing (if no required member is left))

The size stays linear, however many members are optional.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from itertools import pairwise
from math import isqrt
from typing import NamedTuple

from infernix.grammar.ir import Choice, Expression, GrammarBuilder, Literal, Sequence, choice

# Groups of members, see _Names, up to this size are not cut into blocks.
_MAX_CHAIN = 8


class Member(NamedTuple):
    """A declared member that can occur; `value` derives its values."""

    name: str
    value: Expression
    required: bool


class MemberSyntax(NamedTuple):
    """How members are written. `spelled_name` gives a name with what ends it: no such spelling begins another."""

    opening: Expression
    next_opening: Expression
    spelled_name: Callable[[str], bytes]
    after_name: Expression
    after_value: Expression
    closing: Expression


def lower_members(
    members: SequenceOf[Member], others: Expression | None, syntax: MemberSyntax, builder: GrammarBuilder
) -> Expression:
    """`members` in order, then `others` (None: nothing else), which end with the closing; all of it with the closing.

    `others` begins where a name does.
    """
    return _Names(members, others, syntax, builder).from_opening()


class _Names:
    """The rules names_i and rest_i.

    Members fall into groups: a group ends with a required member, the last one at the others. A name competes with
    those behind it in its group. As a chain of rules they would all stand side by side as long as the text agrees with
    them, so that a large group is cut into blocks of about the root of its size: the rule at the start of a block has
    all names of the block in one choice, which is decided byte by byte, and only the others are chained. That takes
    two places for each name, and so still a linear size.
    """

    def __init__(
        self, members: SequenceOf[Member], others: Expression | None, syntax: MemberSyntax, builder: GrammarBuilder
    ) -> None:
        self._members = members
        self._syntax = syntax
        self._builder = builder
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

    def from_opening(self) -> Expression:
        """All members and the closing."""
        return self._next_or_end(0, self._syntax.opening)

    def _rest(self, index: int) -> tuple[Expression, ...]:
        syntax = self._syntax
        items: list[Expression] = [syntax.after_name, self._members[index].value, syntax.after_value]
        while (index := index + 1) in self._written_out:
            member = self._members[index]
            name = Literal(syntax.spelled_name(member.name))
            items += (syntax.next_opening, name, syntax.after_name, member.value, syntax.after_value)
        return (*items, self._next_or_end(index, syntax.next_opening))

    def _next_or_end(self, index: int, opening: Expression) -> Expression:
        names = self._names[index]
        closing = self._syntax.closing
        if names is None:
            return closing
        following = Sequence((opening, names))
        return following if index < self._num_until_closable else Choice((following, closing))

    def _add_group(self, start: int, end: int) -> None:
        block_size = isqrt(end - start - 1) + 1 if end - start > _MAX_CHAIN else 1
        for block_start in reversed(range(start, end, block_size)):
            self._add_block(block_start, min(block_start + block_size, end), start)

    def _add_block(self, start: int, end: int, group_start: int) -> None:
        add = self._builder.add
        if end - start == 1:
            member = self._members[start]
            own = Sequence((Literal(self._syntax.spelled_name(member.name)), *self._rest(start)))
            behind = None if member.required else self._names[end]
            either = own if behind is None else Choice((own, behind))
            self._names[start] = add("members", either) if start > group_start else either
            return
        names = [self._syntax.spelled_name(member.name) for member in self._members[start:end]]
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


def _num_bytes_apart(names: SequenceOf[bytes]) -> list[int]:
    """By name, how many bytes it takes to tell it apart from all others; none of them begins another."""
    order = sorted(range(len(names)), key=names.__getitem__)
    num_apart = [1] * len(names)
    for first, second in pairwise(order):
        common = next(i for i, (a, b) in enumerate(zip(names[first], names[second], strict=False)) if a != b)
        num_apart[first] = max(num_apart[first], common + 1)
        num_apart[second] = common + 1
    return num_apart
