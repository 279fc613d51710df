"""Strings -> ir."""

from __future__ import annotations

from infernix.grammar.ir import Expression, Repeat, Sequence
from infernix.grammar.json_values import CANONICAL_CHARACTER, QUOTE, JsonRules
from infernix.grammar.schema.nodes import StringNode


def lower_string(node: StringNode, rules: JsonRules) -> Expression:
    """Without a bound: any JSON string. With one: a counted repetition of characters in canonical escapes, one unit
    a Unicode character, and the closing quote beside the repetition it ends."""
    if node == StringNode():
        return rules.string
    return Sequence((QUOTE, Repeat(CANONICAL_CHARACTER, node.min_length, node.max_length), QUOTE))
