"""Equal positions of a graph made one: schemas that are written out several times are lowered and compiled once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import AnyOf, ArrayNode, Literals, Node, ObjectNode, Property, Reference, TypedNode

_CONTAINERS = (list, dict)


def share_equal_positions(graph: SchemaGraph) -> None:
    """Where two positions below the root have equal nodes, the later one becomes a reference to the earlier one.

    Nodes are compared with their parts already shared, from the leaves up, once each: positions on a cycle are equal
    to nothing but themselves. Members of two objects must have the same order as well.
    """
    nodes = graph.nodes
    position_of: dict[Hashable, int] = {}
    references = {position for position, node in enumerate(nodes) if isinstance(node, Reference)}
    entered: set[int] = set()
    # A position to enter, or -1 minus one whose parts are done.
    pending = [graph.ROOT]
    while pending:
        position = pending.pop()
        if position >= 0:
            if position in entered:
                continue
            entered.add(position)
            parts = [part for part in _parts(nodes[position]) if part not in entered]
            if parts:
                pending.append(-1 - position)
                pending += parts
                continue
        else:
            position = -1 - position
        node = nodes[position]
        if not references.isdisjoint(_parts(node)):
            node = nodes[position] = _with_shared_parts(node, graph)
        if not isinstance(node, Reference) and _is_hashable(node):
            first = position_of.setdefault(node, position)
            if first != position:
                nodes[position] = Reference(first)
                references.add(position)


def _parts(node: Node) -> list[int]:
    if isinstance(node, ObjectNode):
        values = [prop.value for prop in node.properties]
        return values if node.additional is None else [*values, node.additional]
    if isinstance(node, ArrayNode):
        return [*node.prefix, node.items]
    if isinstance(node, AnyOf):
        return [part for branch in node.branches for part in _parts(branch)]
    return [node.target] if isinstance(node, Reference) else []


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
    return not isinstance(node, Literals) or not any(isinstance(value, _CONTAINERS) for value in node.values)
