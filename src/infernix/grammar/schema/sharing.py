"""Equal positions of a graph made one: schemas that are written out several times are lowered and compiled once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import AnyOf, ArrayNode, Literals, Node, ObjectNode, Property, Reference, TypedNode


def share_equal_positions(graph: SchemaGraph) -> None:
    """Where two positions below the root have equal nodes, the later one becomes a reference to the earlier one.

    Nodes are compared with their parts already shared, from the leaves up, once each: positions on a cycle are equal
    to nothing but themselves. Members of two objects must have the same order as well.
    """
    position_of: dict[Hashable, int] = {}
    entered: set[int] = set()
    pending = [(graph.ROOT, False)]
    while pending:
        position, is_done = pending.pop()
        node = graph.nodes[position]
        if not is_done:
            if position not in entered:
                entered.add(position)
                pending.append((position, True))
                pending += [(part, False) for part in _parts(node) if part not in entered]
            continue
        node = graph.nodes[position] = _with_shared_parts(node, graph)
        if not isinstance(node, Reference) and _is_hashable(node):
            first = position_of.setdefault(node, position)
            if first != position:
                graph.nodes[position] = Reference(first)


def _parts(node: Node) -> Iterator[int]:
    match node:
        case Reference(target):
            yield target
        case AnyOf(branches):
            for branch in branches:
                yield from _parts(branch)
        case ObjectNode(properties, additional):
            yield from (prop.value for prop in properties)
            if additional is not None:
                yield additional
        case ArrayNode():
            yield from node.prefix
            yield node.items


def _with_shared_parts(node: Node, graph: SchemaGraph) -> Node:
    match node:
        case Reference(target):
            return Reference(graph.resolve(target))
        case AnyOf(branches):
            return AnyOf(tuple(_typed_with_shared_parts(branch, graph) for branch in branches))
        case ObjectNode() | ArrayNode():
            return _typed_with_shared_parts(node, graph)
    return node


def _typed_with_shared_parts(node: TypedNode, graph: SchemaGraph) -> TypedNode:
    match node:
        case ObjectNode(properties, additional):
            resolved = tuple([Property(name, graph.resolve(value), required) for name, value, required in properties])
            return ObjectNode(resolved, None if additional is None else graph.resolve(additional))
        case ArrayNode():
            prefix = tuple(graph.resolve(position) for position in node.prefix)
            return replace(node, items=graph.resolve(node.items), prefix=prefix)
    return node


def _is_hashable(node: Node) -> bool:
    """Lists of values that are arrays or objects are not."""
    if isinstance(node, AnyOf):
        return all(map(_is_hashable, node.branches))
    return not isinstance(node, Literals) or not any(isinstance(value, list | dict) for value in node.values)
