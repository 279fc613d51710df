"""The regex constraint: a regular expression that the whole content matches."""

from __future__ import annotations

from infernix.grammar import ir
from infernix.grammar.regex_syntax import parse_pattern


def parse_regex(text: str) -> ir.Grammar:
    """The language of all contents that `text` matches from the first character to the last.

    Anchors change nothing here: every alternative matches the whole content with or without them. An empty
    expression allows the empty content only. Raises InvalidRegex (with a location) and ConstraintTooLarge.
    """
    pattern = parse_pattern(text)
    return ir.Grammar.of(ir.choice(*(alternative.body for alternative in pattern.alternatives)))
