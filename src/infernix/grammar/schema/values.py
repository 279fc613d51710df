"""JSON values of a schema's `const` and `enum`: when two are equal, and which of them a node admits."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    ArrayNode,
    BooleanNode,
    IntegerNode,
    Literals,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    Reference,
    StringNode,
)
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonNumber, JsonValue


def number_value(number: JsonNumber) -> Fraction:
    """The value of a number that the source check found exact."""
    return number.exact(Place())


def equality_key(value: JsonValue) -> Hashable:
    """Equal for equal values: numbers by value, objects whatever the order of their members (2020-12, 4.2.2)."""
    if isinstance(value, JsonNumber):
        return "number", number_value(value)
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(equality_key(item))
        return "array", tuple(items)
    if isinstance(value, dict):
        members = set()
        for name, item in value.items():
            members.add((name, equality_key(item)))
        return "object", frozenset(members)
    return type(value).__name__, value


class Evaluator:
    """Says exactly whether a value of the source is one that a node admits.

    `nodes` are those of a graph; `resolved` tells by position where its chain of references ends (None: nowhere).
    """

    def __init__(self, nodes: list[Node], resolved: list[int | None]) -> None:
        self._nodes = nodes
        self._resolved = resolved
        # What is derived from a node, by the node's identity: the graph keeps its nodes alive.
        self._literal_keys: dict[int, frozenset[Hashable]] = {}
        self._members: dict[int, tuple[dict[str, int], list[str]]] = {}

    def admits(self, node: Node, value: JsonValue) -> bool:
        """Every node is a conjunction of demands on parts of the value, so a list of open demands suffices.

        References that lead back to themselves without a value in between admit nothing.
        """
        demands: list[tuple[Node, JsonValue]] = [(node, value)]
        while demands:
            node, value = demands.pop()
            if isinstance(node, Reference):
                end = self._resolved[node.target]
                if end is None:
                    return False
                demands.append((self._nodes[end], value))
            elif isinstance(node, Literals):
                if equality_key(value) not in self._keys(node):
                    return False
                demands.append((node.siblings, value))
            elif isinstance(node, AnyOf):
                branch = next((branch for branch in node.branches if _is_of_kind(branch, value)), None)
                if branch is None:
                    return False
                demands.append((branch, value))
            elif isinstance(node, ObjectNode) and isinstance(value, dict):
                positions, required = self._properties(node)
                if any(name not in value for name in required):
                    return False
                for name, item in value.items():
                    position = positions.get(name, node.additional)
                    if position is None:
                        return False
                    demands.append((self._nodes[position], item))
            elif isinstance(node, ArrayNode) and isinstance(value, list):
                if not _within(len(value), node.min_items, node.max_items):
                    return False
                demands.extend((self._nodes[node.items], item) for item in value)
            elif not (isinstance(node, Anything) or _is_of_kind(node, value)):
                return False
        return True

    def _keys(self, node: Literals) -> frozenset[Hashable]:
        if id(node) not in self._literal_keys:
            self._literal_keys[id(node)] = frozenset([equality_key(value) for value in node.values])
        return self._literal_keys[id(node)]

    def _properties(self, node: ObjectNode) -> tuple[dict[str, int], list[str]]:
        if id(node) not in self._members:
            positions = {prop.name: prop.value for prop in node.properties}
            self._members[id(node)] = positions, [prop.name for prop in node.properties if prop.required]
        return self._members[id(node)]


def _is_of_kind(node: Node, value: JsonValue) -> bool:
    """Whether `node` speaks of values like this one; for scalars, whether it admits it."""
    match node:
        case ObjectNode():
            return isinstance(value, dict)
        case ArrayNode():
            return isinstance(value, list)
        case StringNode(low, high):
            return isinstance(value, str) and _within(len(value), low, high)
        case BooleanNode():
            return isinstance(value, bool)
        case NullNode():
            return value is None
        case IntegerNode(low, high):
            if not isinstance(value, JsonNumber):
                return False
            number = number_value(value)
            return number.denominator == 1 and low <= number <= high
        case NumberNode(lower, upper):
            if not isinstance(value, JsonNumber):
                return False
            number = number_value(value)
            if lower is not None and (number < lower.value or (lower.exclusive and number == lower.value)):
                return False
            return upper is None or not (number > upper.value or (upper.exclusive and number == upper.value))
    return False


def _within(count: int, low: int, high: int | None) -> bool:
    return low <= count and (high is None or count <= high)
