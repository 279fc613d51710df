"""Arrays -> ir."""

from __future__ import annotations

from infernix.grammar.ir import Expression
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import ArrayNode


def lower_array(node: ArrayNode, items: Expression | None, rules: JsonRules) -> Expression:
    """`items` derives one element, or is None where no value is one: then only the empty array is left."""
    if items is None:
        return rules.enclosed("[", rules.value, "]", 0, 0)
    return rules.enclosed("[", items, "]", node.min_items, node.max_items)
