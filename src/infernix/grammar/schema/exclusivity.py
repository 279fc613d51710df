"""The proof that the branches of a `oneOf` exclude each other, on a reduced graph.

Branches without a value drop out first. Two alternatives exclude each other if no value satisfies both: by the types
of their values, by finite lists, or by the finite values of a member that both require, which can be read off the
graph; otherwise by reducing both together and finding that nothing is left. The latter covers disjoint ranges, lengths
and closed sets of names, and is sound, because what is reduced for a proof admits too much at most.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, product

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.expansion import Fork
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    ArrayNode,
    BooleanNode,
    IntegerNode,
    Literals,
    Node,
    Nothing,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
    TypedNode,
)
from infernix.grammar.schema.reduction import Outcome, Reducer
from infernix.grammar.schema.satisfiability import find_satisfiable
from infernix.grammar.schema.source import JsonNumber, JsonValue
from infernix.grammar.schema.values import equality_key


def prove_exclusive(reducer: Reducer) -> None:
    """Raises UnsupportedJsonSchema at the first `oneOf` two branches of which may hold together."""
    resolutions = {fork: branches for fork, branches in reducer.resolutions.items() if len(branches) > 1}
    if not resolutions:
        return
    satisfiability = find_satisfiable(reducer.graph)
    quick = _QuickProof(reducer.graph)
    unproven: list[tuple[int, Fork, int, int]] = []
    for fork, branches in resolutions.items():
        alive = {
            branch: [outcome for outcome in outcomes if any(map(satisfiability.admits_some, outcome.nodes))]
            for branch, outcomes in branches.items()
        }
        if quick.are_all_disjoint([outcomes for outcomes in alive.values() if outcomes]):
            continue
        for first, second in combinations(sorted(alive), 2):
            for one, other in product(alive[first], alive[second]):
                if not quick.are_disjoint(one, other):
                    both = reducer.intersection(one.alternative, other.alternative, fork.place)
                    unproven.append((both, fork, first, second))
    if not unproven:
        return
    reducer.run()
    satisfiable = find_satisfiable(reducer.graph).positions
    for position, fork, first, second in unproven:
        if position in satisfiable:
            raise UnsupportedJsonSchema(
                f"the branches {first} and {second} of the 'oneOf' are not proved to exclude each other",
                fork.place.pointer,
            )


class _QuickProof:
    """What the nodes of a graph tell without another reduction."""

    def __init__(self, graph: SchemaGraph) -> None:
        self._graph = graph
        self._keys: dict[int, frozenset[Hashable]] = {}
        self._required: dict[int, dict[str, int]] = {}

    def are_all_disjoint(self, groups: list[list[Outcome]]) -> bool:
        """Whether finite lists, or one required member in all objects, tell the groups apart; in linear time."""
        nodes = [
            [node for outcome in group for node in outcome.nodes if not isinstance(node, Nothing)] for group in groups
        ]
        if not nodes:
            return True
        named: set[str] = set()
        if isinstance(nodes[0][0], ObjectNode):
            named.update(self._required_members(nodes[0][0]))
        return any(
            _are_pairwise_disjoint([self._finite_keys(group, name) for group in nodes]) for name in (None, *named)
        )

    def are_disjoint(self, one: Outcome, other: Outcome) -> bool:
        """Whether no value is of both; False also where that cannot be read off."""
        return all(self._exclude(*pair) for pair in product(one.nodes, other.nodes))

    def _exclude(self, one: TypedNode, other: TypedNode) -> bool:
        if isinstance(one, Literals) and isinstance(other, Literals):
            return self._literal_keys(one).isdisjoint(self._literal_keys(other))
        if _kinds(one).isdisjoint(_kinds(other)):
            return True
        if isinstance(one, ObjectNode) and isinstance(other, ObjectNode):
            theirs = self._required_members(other)
            return any(
                name in theirs and self._values_exclude(position, theirs[name])
                for name, position in self._required_members(one).items()
            )
        return False

    def _values_exclude(self, one: int, other: int) -> bool:
        """Of a required member: by kinds and finite lists only."""
        first, second = (self._graph.nodes[self._graph.resolve(position)] for position in (one, other))
        if isinstance(first, Literals) and isinstance(second, Literals):
            return self._literal_keys(first).isdisjoint(self._literal_keys(second))
        return _kinds(first).isdisjoint(_kinds(second))

    def _finite_keys(self, nodes: Sequence[TypedNode], name: str | None) -> frozenset[Hashable] | None:
        """The values of `nodes`, or of their required member `name`; None where they are not finite lists."""
        keys: set[Hashable] = set()
        for node in nodes:
            found: Node = node
            if name is not None:
                position = self._required_members(node).get(name) if isinstance(node, ObjectNode) else None
                if position is None:
                    return None
                found = self._graph.nodes[self._graph.resolve(position)]
            if not isinstance(found, Literals):
                return None
            keys |= self._literal_keys(found)
        return frozenset(keys)

    # By the identity of nodes, which the graph and the outcomes keep alive.

    def _literal_keys(self, node: Literals) -> frozenset[Hashable]:
        if id(node) not in self._keys:
            self._keys[id(node)] = frozenset([equality_key(value) for value in node.values])
        return self._keys[id(node)]

    def _required_members(self, node: ObjectNode) -> dict[str, int]:
        if id(node) not in self._required:
            self._required[id(node)] = {prop.name: prop.value for prop in node.properties if prop.required}
        return self._required[id(node)]


def _are_pairwise_disjoint(sets: Sequence[frozenset[Hashable] | None]) -> bool:
    seen: set[Hashable] = set()
    for keys in sets:
        if keys is None or not seen.isdisjoint(keys):
            return False
        seen |= keys
    return True


def _kinds(node: Node) -> frozenset[str]:
    """Which kinds of value a node may admit; an integer is a number."""
    match node:
        case AnyOf(branches):
            return frozenset[str]().union(*map(_kinds, branches))
        case Literals(values):
            return frozenset(map(_kind_of_value, values))
        case Anything():
            return _ALL_KINDS
    return _KINDS.get(type(node), frozenset())


def _kind_of_value(value: JsonValue) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case JsonNumber():
            return "number"
    return "null"


_KINDS: dict[type, frozenset[str]] = {
    ObjectNode: frozenset({"object"}),
    ArrayNode: frozenset({"array"}),
    StringNode: frozenset({"string"}),
    NumberNode: frozenset({"number"}),
    IntegerNode: frozenset({"number"}),
    BooleanNode: frozenset({"boolean"}),
    NullNode: frozenset({"null"}),
}
_ALL_KINDS = frozenset[str]().union(*_KINDS.values())
