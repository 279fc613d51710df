"""Which positions admit a value of finite size, and why the root does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infernix.errors import UnsatisfiableJsonSchema
from infernix.grammar.schema.nodes import AnyOf, ArrayNode, Literals, Node, Nothing, ObjectNode, Reference
from infernix.grammar.schema.reduction import SchemaGraph
from infernix.grammar.schema.source import JsonValue
from infernix.grammar.schema.values import Evaluator


@dataclass(frozen=True, slots=True)
class Satisfiability:
    """`positions` are those with a value; `literals` are the values that remain of each finite list."""

    positions: frozenset[int]
    literals: dict[int, tuple[JsonValue, ...]]

    def admits_some(self, node: Node, position: int) -> bool:
        """Whether `node`, which is (part of) what stands at `position`, admits any value."""
        return any(
            all(needed in self.positions for needed in needs) for needs in _alternatives(node, position, self.literals)
        )


def find_satisfiable(graph: SchemaGraph) -> Satisfiability:
    """The least fixpoint: a position has a value if some alternative needs only positions that have one.

    Linear in the number of edges (each is counted down once), as for Horn clauses (Dowling and Gallier 1984).
    """
    evaluator = Evaluator(graph.nodes, graph.resolved())
    literals = {
        position: tuple(value for value in node.values if evaluator.admits(node.siblings, value))
        for position, node in enumerate(graph.nodes)
        if isinstance(node, Literals)
    }
    num_missing: list[int] = []
    heads: list[int] = []
    needed_by: dict[int, list[int]] = {}
    ready: list[int] = []
    for position, node in enumerate(graph.nodes):
        for needs in _alternatives(node, position, literals):
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
    return Satisfiability(frozenset(found), literals)


def _alternatives(node: Node, position: int, literals: dict[int, tuple[JsonValue, ...]]) -> Iterator[tuple[int, ...]]:
    """Sets of positions, each set enough for `node` to have a value."""
    match node:
        case Nothing():
            return
        case Literals():
            if literals[position]:
                yield ()
        case Reference(target):
            yield (target,)
        case AnyOf(branches):
            for branch in branches:
                yield from _alternatives(branch, position, literals)
        case ObjectNode(properties):
            # A position may be needed by several names; it counts once.
            yield tuple(dict.fromkeys(prop.value for prop in properties if prop.required))
        case ArrayNode(items, min_items):
            yield (items,) if min_items else ()
        case _:
            yield ()


def explain(graph: SchemaGraph, satisfiability: Satisfiability, position: int) -> UnsatisfiableJsonSchema:
    """The error for a position without a value: follows what it needs to the place that is at fault."""
    visited: set[int] = set()
    while position not in visited:
        visited.add(position)
        node = graph.nodes[position]
        place = graph.places[position]
        if isinstance(node, AnyOf):
            if len(node.branches) != 1:
                first = next((branch for branch in node.branches if isinstance(branch, Nothing)), None)
                reason = "no type admits a value" + (f" ({first.reason})" if first else "")
                return UnsatisfiableJsonSchema(reason, place.pointer)
            node = node.branches[0]
        if isinstance(node, Nothing):
            return UnsatisfiableJsonSchema(node.reason, node.place.pointer)
        if isinstance(node, Literals):
            where = node.place.at(node.keyword).pointer
            return UnsatisfiableJsonSchema(f"no value of {node.keyword!r} satisfies the other keywords", where)
        if isinstance(node, Reference):
            position = node.target
        elif isinstance(node, ObjectNode):
            position = next(
                prop.value for prop in node.properties if prop.required and prop.value not in satisfiability.positions
            )
        elif isinstance(node, ArrayNode):
            position = node.items
    if isinstance(graph.nodes[position], Reference):
        return UnsatisfiableJsonSchema("the reference leads back to itself", graph.places[position].at("$ref").pointer)
    return UnsatisfiableJsonSchema(
        "every value would have to contain another one of its own kind, without end", graph.places[position].pointer
    )
