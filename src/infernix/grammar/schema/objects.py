"""Objects -> ir: declared members in declared order, then members of other names.

    object    = "{" space (quote names_0 | "}")
    names_i   = name_i rest_i  |  names_i+1 (if member_i is optional)
    names_n   = other space ":" space value space ("," space quote names_n | "}")
    rest_i    = space ":" space value_i space ("," space quote names_i+1 | "}" (if no required member is left))

Names here have no opening quote; see `members`.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from infernix.grammar.ir import Expression, Literal, Repeat, Sequence
from infernix.grammar.json_values import QUOTE, JsonRules, canonical_string
from infernix.grammar.schema.members import Member, MemberSyntax, lower_members
from infernix.grammar.schema.names import names_except

_CLOSING = Literal(b"}")


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
    syntax = MemberSyntax(
        opening=QUOTE,
        next_opening=rules.next_name,
        spelled_name=_name_after_quote,
        after_name=rules.colon,
        after_value=rules.whitespace,
        closing=_CLOSING,
    )
    return Sequence((Literal(b"{"), rules.whitespace, lower_members(members, following, syntax, rules.builder)))


def _others(declared_names: SequenceOf[str], additional: Expression, rules: JsonRules) -> Expression:
    """One or more members of other names, from behind the opening quote to the end of the object."""
    name = rules.builder.add("name", names_except(declared_names)) if declared_names else rules.string_after_quote
    other = Sequence((rules.member(name, additional), rules.whitespace))
    return Sequence((other, Repeat(Sequence((rules.next_name, other)), 0, None), _CLOSING))


def _name_after_quote(name: str) -> bytes:
    return canonical_string(name)[1:]
