"""Objects -> ir.

Declared members come in declared order, optional ones may be left out, then come members of other names. After a
member, what may follow depends only on how far the declaration has been gone through, so there is one rule for each
such place and the size stays linear, however many members are optional:

    object  = "{" space (member_i space tail_i+1 for each i up to the first required one) "}"
    tail_i  = "," space member_i space tail_i+1  |  tail_i+1 (if member_i is optional)
    tail_n  = ("," space other space)*
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from infernix.grammar.ir import EMPTY, Choice, Expression, Literal, Repeat, Sequence, choice
from infernix.grammar.json_values import JsonRules, canonical_string
from infernix.grammar.schema.names import names_except

_COMMA = Literal(b",")


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
    space = rules.whitespace
    declared = [rules.member(Literal(canonical_string(member.name)), member.value) for member in members]
    last: Expression = EMPTY
    if additional is not None:
        name = rules.builder.add("name", names_except(declared_names)) if declared_names else rules.string
        other: Expression = rules.member(name, additional)
        if not members:
            return rules.enclosed("{", other, "}", 0, None)
        other = rules.builder.add("member", other)
        last = rules.builder.add("members", Repeat(Sequence((_COMMA, space, other, space)), 0, None))

    first_required = next((index for index, member in enumerate(members) if member.required), None)
    num_starts = len(members) if first_required is None else first_required + 1
    # tails[i] is what may follow once member i - 1 has been written. Between two required members only one place leads
    # to it, and it is written out there: a run of required members becomes one sequence.
    shared = [
        index <= num_starts or not (members[index - 1].required and members[index].required)
        for index in range(len(members))
    ]
    tails: dict[int, Expression] = {len(members): last}
    end = len(members)
    for index in range(len(members) - 1, 0, -1):
        if not shared[index]:
            continue
        run: list[Expression] = []
        for following in range(index, end):
            run.extend((_COMMA, space, declared[following], space))
            if following + 1 in tails:
                run.append(tails[following + 1])
                break
        body: Expression = Sequence(tuple(run))
        if not members[index].required:
            body = Choice((body, tails[index + 1]))
        tails[index] = rules.builder.add("members", body)

    starts: list[Expression] = [Sequence((declared[index], space, tails[index + 1])) for index in range(num_starts)]
    if first_required is None:
        starts.append(EMPTY if additional is None else Choice((EMPTY, Sequence((other, space, last)))))
    return Sequence((Literal(b"{"), space, choice(*starts), Literal(b"}")))
