"""Integers and numbers -> ir."""

from __future__ import annotations

from infernix.grammar.decimals import INT64_MAX, INT64_MIN, integer_range
from infernix.grammar.ir import Expression
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import IntegerNode


def lower_integer(node: IntegerNode, rules: JsonRules) -> Expression:
    """The integers of the range, without point, exponent and `-0`."""
    if (node.low, node.high) == (INT64_MIN, INT64_MAX):
        return rules.integer
    return integer_range(node.low, node.high)
