"""Arrays -> ir.

An array is brought into one form first: the positions `p` that differ from what comes behind them, then a tail for
all other elements, and from `minimum` to `maximum` (None: without bound) elements altogether. With n such positions:

    array       = "[" space elements_0
    elements_i  = ("," space, if i > 0) p_i space elements_i+1  |  "]" (if i >= minimum)
    elements_n  = ("," space tail space){minimum - n, maximum - n} "]"

Without them the tail's first element is p_0. Elements that cannot be missing stand in one flat sequence, and a rule
begins wherever the array may end: no expression gets deeper with the number of positions, and the size is linear.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from infernix.grammar.ir import NOTHING, Choice, Expression, Literal, Repeat, RuleReference, Sequence
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import ArrayNode

_OPENING = Literal(b"[")
_COMMA = Literal(b",")
_CLOSING = Literal(b"]")


def lower_array(
    node: ArrayNode, prefix: SequenceOf[Expression | None], items: Expression | None, rules: JsonRules
) -> Expression:
    """Arrays whose first elements `prefix` derives, one for each position of `node.prefix`, and all others `items`.

    None stands where no value is possible: the array ends before it, and is NOTHING if `node.min_items` does not let
    it.
    """
    positions, tail, maximum = _normal_form(prefix, items, node.max_items)
    if maximum is not None and node.min_items > maximum:
        return NOTHING
    elements = [_CLOSING] if tail is None else _elements(positions, tail, node.min_items, maximum, rules)
    return Sequence((_OPENING, rules.whitespace, *elements))


def _normal_form(
    prefix: SequenceOf[Expression | None], items: Expression | None, maximum: int | None
) -> tuple[list[Expression], Expression | None, int | None]:
    """The positions, the tail and the greatest length. The tail is None where no element is possible at all.

    Where the length does not go beyond the prefix, the last position is the tail. Positions before the tail that are
    the same rule belong to it, so that `[x, x, x]` is three times `x`, however it is written.
    """
    positions: list[Expression] = []
    for position in prefix if maximum is None else prefix[:maximum]:
        if position is None:
            break
        positions.append(position)
    if len(positions) < len(prefix) or items is None:
        maximum = len(positions)
    tail = items
    if maximum == len(positions):
        tail = positions.pop() if positions else None
    while isinstance(tail, RuleReference) and positions and positions[-1] == tail:
        positions.pop()
    return positions, tail, maximum


def _elements(
    positions: list[Expression], tail: Expression, minimum: int, maximum: int | None, rules: JsonRules
) -> list[Expression]:
    """All that follows the opening bracket and its whitespace."""
    space, space_after_comma = rules.whitespace, rules.whitespace_after(b",")
    positions = positions or [tail]
    num_positions = len(positions)
    others = Repeat(
        Sequence((_COMMA, space_after_comma, tail, space)),
        max(minimum - num_positions, 0),
        None if maximum is None else maximum - num_positions,
    )
    # From the end to the beginning, so that a long run of positions is no list copied over and over.
    reverse: list[Expression] = [_CLOSING] if maximum == num_positions else [_CLOSING, others]
    for index in reversed(range(num_positions)):
        reverse += (space, positions[index])
        if index:
            reverse += (space_after_comma, _COMMA)
        if index >= minimum:
            elements = Choice((Sequence(tuple(reversed(reverse))), _CLOSING))
            reverse = [rules.builder.add("elements", elements) if index else elements]
    reverse.reverse()
    return reverse
