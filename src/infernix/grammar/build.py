"""From a constraint's source to its grammar."""

from __future__ import annotations

from collections.abc import Callable

from infernix.grammar import ir
from infernix.grammar.choice import build_choice
from infernix.grammar.gbnf import parse_gbnf
from infernix.grammar.regex import parse_regex
from infernix.grammar.schema import json_object_grammar, parse_json_schema
from infernix.options import ConstraintKind, OutputConstraint


def build_grammar(constraint: OutputConstraint, token_error: Callable[[int], str | None] | None = None) -> ir.Grammar:
    """The language of `constraint`; raises a ConstraintError that names the place.

    InvalidOptions where the constraint asks to ignore a keyword of JSON Schema that is enforced.

    `token_error(id)` says why a grammar's text may not name a token, None where it may; without it (no vocabulary at
    hand) every id is taken.
    """
    match constraint.kind:
        case ConstraintKind.GRAMMAR:
            return parse_gbnf(constraint.source, token_error=token_error)
        case ConstraintKind.JSON_OBJECT:
            return json_object_grammar()
        case ConstraintKind.JSON_SCHEMA:
            return parse_json_schema(constraint.source, ignore_keywords=constraint.ignore_keywords)
        case ConstraintKind.CHOICE:
            return build_choice(constraint.choices)
        case ConstraintKind.REGEX:
            return parse_regex(constraint.source)
