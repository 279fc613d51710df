"""Which positions admit a value of finite size, and why the root does not."""

from __future__ import annotations

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
        return any(map(self.positions.issuperset, _alternatives(node)))


def find_satisfiable(graph: SchemaGraph) -> Satisfiability:
    """The least fixpoint: a position has a value if some alternative needs only positions that have one.

    Linear in the number of edges (each is counted down once), as for Horn clauses (Dowling and Gallier 1984).
    """
    found = {graph.ANYTHING}
    # What a position needs mostly stands behind it. The clauses are for those that this does not find.
    waiting: list[tuple[int, tuple[int, ...]]] = []
    for position in range(len(graph.nodes) - 1, -1, -1):
        alternatives = _alternatives(graph.nodes[position])
        if any(map(found.issuperset, alternatives)):
            found.add(position)
        else:
            waiting += [(position, needs) for needs in alternatives]
    if not waiting:
        return Satisfiability(frozenset(found))
    num_missing: list[int] = []
    needed_by: dict[int, list[int]] = {}
    ready: list[int] = []
    for clause, (position, needs) in enumerate(waiting):
        missing = [needed for needed in needs if needed not in found]
        num_missing.append(len(missing))
        for needed in missing:
            needed_by.setdefault(needed, []).append(clause)
        if not missing:
            ready.append(position)
    while ready:
        position = ready.pop()
        if position in found:
            continue
        found.add(position)
        for clause in needed_by.get(position, ()):
            num_missing[clause] -= 1
            if num_missing[clause] == 0:
                ready.append(waiting[clause][0])
    return Satisfiability(frozenset(found))


def _alternatives(node: Node) -> list[tuple[int, ...]]:
    """Sets of positions, each set enough for `node` to have a value; a position counts once in a set."""
    if isinstance(node, ObjectNode):
        return [tuple(dict.fromkeys([prop.value for prop in node.properties if prop.required]))]
    if isinstance(node, ArrayNode):
        return [_needed_elements(node)]
    if isinstance(node, AnyOf):
        return [needs for branch in node.branches for needs in _alternatives(branch)]
    if isinstance(node, Reference):
        return [(node.target,)]
    return [] if isinstance(node, Nothing) else [()]


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
        needed = _alternatives(node)[0]
        position = next(part for part in needed if part not in satisfiability.positions)
    return UnsatisfiableJsonSchema(
        "every value would have to contain another one of its own kind, without end", graph.places[position].pointer
    )
