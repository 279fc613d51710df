"""Schema document -> graph of nodes.

A position of the graph is a set of subschemas that hold together. Each set is reduced once: expanded to alternatives
(`expansion`), each of which is intersected type by type (`conjunction`) or filtered value by value (`finite`), and the
values of members and elements are again sets of subschemas, on a worklist. Sets that lead to the same entries are one
position, so that recursion ends in a cycle of the graph, and neither the depth of the schema nor the length of a chain
of references meets the recursion limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.budget import Budget
from infernix.grammar.schema.clauses import Subschema
from infernix.grammar.schema.conjunction import intersect
from infernix.grammar.schema.expansion import Alternative, Atom, Closure, Entry, Expander, Fork
from infernix.grammar.schema.finite import FiniteValueFilter
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    ArrayNode,
    Literals,
    Node,
    Nothing,
    ObjectNode,
    Reference,
    StringNode,
    TypedNode,
)
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.reading import Document
from infernix.grammar.schema.strings import admits_string

# Up to so many alternatives each is compared with each, to drop those that only add to what another demands.
_MAX_COMPARED = 64


class Outcome(NamedTuple):
    """An alternative and the nodes it comes to."""

    alternative: Alternative
    nodes: tuple[TypedNode, ...]


class Reducer:
    """Builds the graph of a document; `resolutions` holds, by fork and branch, what a `oneOf` was resolved to, and
    `budget` what the work has been so far."""

    def __init__(self, document: Document) -> None:
        self.graph = SchemaGraph()
        self.resolutions: dict[Fork, dict[int, list[Outcome]]] = {}
        self.budget = Budget()
        self._expander = Expander(document, self.budget)
        self._filter = FiniteValueFilter(self._expander, self.budget)
        self._is_proving = False
        self._pending: list[tuple[int, Closure]] = []
        self._position_of: dict[frozenset[Subschema] | Subschema, int] = {}
        self._position_of_entries: dict[frozenset[Entry] | Entry, int] = {}
        self._nodes_of: dict[frozenset[Entry] | Entry, tuple[TypedNode, ...]] = {}
        root = self._add(self._expander.closure(document.root), document.root.place)
        self._position_of[document.root] = root
        self.graph.add(Anything(), document.root.place)

    def run(self) -> None:
        """Reduces all positions that are waiting.

        Raises UnsupportedJsonSchema for what cannot be written or is beyond a bound of `budget`.
        """
        while self._pending:
            position, closure = self._pending.pop()
            num_waiting = len(self._pending)
            self.graph.nodes[position] = self._reduce(position, closure)
            # What was found here is taken up next, first things first: complaints come in document order.
            self._pending[num_waiting:] = reversed(self._pending[num_waiting:])

    def position_of(self, subschemas: Sequence[Subschema]) -> int:
        """The position of a value for which all of `subschemas` hold; none of them: any value."""
        if len(subschemas) == 1:
            position = self._position_of.get(subschemas[0])
            if position is not None:
                return position
        members = tuple(dict.fromkeys([subschema for subschema in subschemas if subschema.value is not True]))
        if not members:
            return self.graph.ANYTHING
        key = members[0] if len(members) == 1 else frozenset(members)
        position = self._position_of.get(key)
        if position is None:
            self.budget.spend(len(members), members[0].place)
            closure = self._expander.join(members)
            position = self._position_of[key] = self._add(closure, members[0].place)
        return position

    def intersection(self, first: Alternative, second: Alternative, place: Place) -> int:
        """The position of the values of both alternatives, for a proof that there are none.

        All positions that come into being from here on serve proofs: they may admit more than they should, where
        exactness would take another proof or is not supported.
        """
        self._is_proving = True
        return self._add(Closure(tuple(dict.fromkeys((*first.entries, *second.entries)))), place)

    def _add(self, closure: Closure, place: Place) -> int:
        position = self.graph.add(Anything(), place)
        self._pending.append((position, closure))
        return position

    def _reduce(self, position: int, closure: Closure) -> Node:
        if closure.impossible is not None:
            return closure.impossible
        entries = closure.entries
        if not entries:
            return Anything()
        known = self._position_of_entries.setdefault(_key_of(entries), position)
        if known != position:
            return Reference(known)
        place = self.graph.places[position]
        try:
            if len(entries) == 1 and isinstance(entries[0], Atom):
                # The most common case: nothing to choose or to join.
                alternative = Alternative(entries, entries[0].types)
                nodes = self._nodes(alternative, place)
                return nodes[0] if len(nodes) == 1 else self._union([Outcome(alternative, nodes)], place)
            outcomes = [
                Outcome(alternative, self._nodes(alternative, place))
                for alternative in self._expander.alternatives(entries)
            ]
        except UnsupportedJsonSchema:
            if self._is_proving and not self.budget.is_exhausted:
                return Anything()
            raise
        if not self._is_proving:
            for outcome in outcomes:
                for fork, branch in outcome.alternative.taken:
                    self.resolutions.setdefault(fork, {}).setdefault(branch, []).append(outcome)
        return self._union(outcomes, place)

    def _nodes(self, alternative: Alternative, place: Place) -> tuple[TypedNode, ...]:
        if alternative.impossible is not None:
            return (alternative.impossible,)
        key = _key_of(alternative.entries)
        nodes = self._nodes_of.get(key)
        if nodes is None:
            atoms = alternative.atoms
            if len(atoms) > 1:
                self.budget.merge(len(atoms) - 1, place)
            if any(atom.finite for atom in atoms):
                nodes = (self._filter.literals(alternative),)
            else:
                nodes = intersect(atoms, alternative.types, self.position_of)
            self._nodes_of[key] = nodes
        return nodes

    def _union(self, outcomes: list[Outcome], place: Place) -> Node:
        if any(outcome.alternative.impossible is None and not outcome.alternative.entries for outcome in outcomes):
            return Anything()
        if len(outcomes) == 1 and len(outcomes[0].nodes) == 1:
            return outcomes[0].nodes[0]
        nodes = [node for outcome in _without_subsumed(outcomes) for node in outcome.nodes]
        possible = [node for node in nodes if not isinstance(node, Nothing)]
        if not possible:
            return AnyOf(tuple(nodes)) if len(nodes) != 1 else nodes[0]
        branches: list[TypedNode] = []
        if all(isinstance(node, ObjectNode | ArrayNode) for node in possible):
            # These may turn out to have no value either; then all reasons are told.
            branches += [node for node in nodes if isinstance(node, Nothing)]
        if len(outcomes) > 1:
            branches += dict.fromkeys(node for node in possible if not isinstance(node, Literals))
            branches += _joined_literals(possible)
        else:
            branches += possible
        return branches[0] if len(branches) == 1 else AnyOf(tuple(branches))


def _key_of(entries: tuple[Entry, ...]) -> frozenset[Entry] | Entry:
    """The set of `entries`, a single one by itself."""
    return entries[0] if len(entries) == 1 else frozenset(entries)


def _without_subsumed(outcomes: list[Outcome]) -> list[Outcome]:
    """Without alternatives that hold only where another one holds: those that have all its entries and more."""
    impossible = [outcome for outcome in outcomes if outcome.alternative.impossible is not None]
    possible = {
        frozenset(outcome.alternative.entries): outcome
        for outcome in outcomes
        if outcome.alternative.impossible is None
    }
    if len(possible) > _MAX_COMPARED:
        return [*impossible, *possible.values()]
    return [*impossible, *(found for key, found in possible.items() if not any(other < key for other in possible))]


def _joined_literals(nodes: Sequence[TypedNode]) -> list[Literals]:
    """All finite lists as one, without the strings that another node admits anyway."""
    lists = [node for node in nodes if isinstance(node, Literals)]
    if not lists:
        return []
    strings = [node for node in nodes if isinstance(node, StringNode)]
    values = tuple(
        value
        for node in lists
        for value in node.values
        if not (isinstance(value, str) and any(admits_string(string, value) for string in strings))
    )
    return [Literals(values, lists[0].place)] if values else []
