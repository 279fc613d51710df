"""Which positions admit a value of finite size, and why the root does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infernix.errors import UnsatisfiableJsonSchema
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import AnyOf, ArrayNode, Node, Nothing, ObjectNode, Reference


@dataclass(frozen=True, slots=True)
class Satisfiability:
    """`positions` are those with a value."""

    positions: frozenset[int]

    def admits_some(self, node: Node) -> bool:
        """Whether `node`, whose parts are positions of the same graph, admits any value."""
        return any(all(needed in self.positions for needed in needs) for needs in _alternatives(node))


def find_satisfiable(graph: SchemaGraph) -> Satisfiability:
    """The least fixpoint: a position has a value if some alternative needs only positions that have one.

    Linear in the number of edges (each is counted down once), as for Horn clauses (Dowling and Gallier 1984).
    """
    num_missing: list[int] = []
    heads: list[int] = []
    needed_by: dict[int, list[int]] = {}
    ready: list[int] = []
    for position, node in enumerate(graph.nodes):
        for needs in _alternatives(node):
            for needed in needs:
                needed_by.setdefault(needed, []).append(len(heads))
            heads.append(position)
            num_missing.append(len(needs))
            if not needs:
                ready.append(position)
    found: set[int] = set()
    while ready:
        position = ready.pop()
        if position in found:
            continue
        found.add(position)
        for clause in needed_by.get(position, ()):
            num_missing[clause] -= 1
            if num_missing[clause] == 0:
                ready.append(heads[clause])
    return Satisfiability(frozenset(found))


def _alternatives(node: Node) -> Iterator[tuple[int, ...]]:
    """Sets of positions, each set enough for `node` to have a value; a position counts once in a set."""
    match node:
        case Nothing():
            return
        case Reference(target):
            yield (target,)
        case AnyOf(branches):
            for branch in branches:
                yield from _alternatives(branch)
        case ObjectNode(properties):
            yield tuple(dict.fromkeys(prop.value for prop in properties if prop.required))
        case ArrayNode():
            yield _needed_elements(node)
        case _:
            yield ()


def _needed_elements(node: ArrayNode) -> tuple[int, ...]:
    needed = node.prefix[: node.min_items]
    return tuple(dict.fromkeys((*needed, node.items) if node.min_items > len(node.prefix) else needed))


def explain(graph: SchemaGraph, satisfiability: Satisfiability, position: int) -> UnsatisfiableJsonSchema:
    """The error for a position without a value: follows what it needs to the place that is at fault."""
    visited: set[int] = set()
    while (position := graph.resolve(position)) not in visited:
        visited.add(position)
        node = graph.nodes[position]
        place = graph.places[position]
        if isinstance(node, AnyOf):
            first = next((branch for branch in node.branches if isinstance(branch, Nothing)), None)
            reason = "no alternative admits a value"
            if first is not None:
                reason += f" ({first.reason} at {first.place.pointer or '/'})"
            return UnsatisfiableJsonSchema(reason, place.pointer)
        if isinstance(node, Nothing):
            return UnsatisfiableJsonSchema(node.reason, node.place.pointer)
        needed = next(_alternatives(node))
        position = next(part for part in needed if part not in satisfiability.positions)
    return UnsatisfiableJsonSchema(
        "every value would have to contain another one of its own kind, without end", graph.places[position].pointer
    )
