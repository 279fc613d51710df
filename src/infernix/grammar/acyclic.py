"""Finite languages over bytes as nodes of a graph without cycles, equal languages as one node.

A node is made from finished nodes and looked up by its content first, so the automaton that is read off at the end is
the smallest deterministic one: this is the register of Daciuk, Mihov, Watson and Watson, "Incremental Construction of
Minimal Acyclic Finite-State Automata" (2000).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from infernix.grammar.ir import Automaton

Node: TypeAlias = int

NOTHING: Node = 0
"""No text at all."""
END: Node = 1
"""The empty text alone."""


class AcyclicGraph:
    """Builds finite languages from their ends to their beginnings.

    `union` recurses as deep as the texts are long: made for texts of some dozens of bytes.
    """

    def __init__(self) -> None:
        self._moves: list[dict[str, Node]] = [{}, {}]
        self._accepting: list[bool] = [False, True]
        self._known: dict[tuple[bool, frozenset[tuple[str, Node]]], Node] = {}
        for node in (NOTHING, END):
            self._known[self._accepting[node], frozenset()] = node
        self._unions: dict[tuple[Node, Node], Node] = {}

    def node(self, moves: Mapping[str, Node], *, accepting: bool = False) -> Node:
        """The texts that begin with a character of `moves` (ASCII) and go on as its node says; if `accepting`, the
        empty text as well."""
        live = {character: target for character, target in moves.items() if target != NOTHING}
        key = accepting, frozenset(live.items())
        node = self._known.setdefault(key, len(self._moves))
        if node == len(self._moves):
            self._moves.append(live)
            self._accepting.append(accepting)
        return node

    def union(self, left: Node, right: Node) -> Node:
        """The texts of either."""
        if left == right or right == NOTHING:
            return left
        if left == NOTHING:
            return right
        key = (left, right) if left < right else (right, left)
        found = self._unions.get(key)
        if found is None:
            moves = dict(self._moves[left])
            for character, target in self._moves[right].items():
                moves[character] = self.union(moves.get(character, NOTHING), target)
            accepting = self._accepting[left] or self._accepting[right]
            found = self._unions[key] = self.node(moves, accepting=accepting)
        return found

    def automaton(self, root: Node) -> Automaton:
        """The language of `root`. Neighbouring bytes with the same target share an edge."""
        number = {root: 0}
        order = [root]
        edges: list[tuple[int, int, int, int]] = []
        for source, node in enumerate(order):
            last: tuple[int, int, int, int] | None = None
            for character, target_node in sorted(self._moves[node].items()):
                byte = ord(character)
                target = number.setdefault(target_node, len(order))
                if target == len(order):
                    order.append(target_node)
                if last is not None and last[2:] == (byte - 1, target):
                    last = edges[-1] = (source, last[1], byte, target)
                else:
                    last = (source, byte, byte, target)
                    edges.append(last)
        return Automaton(len(order), tuple(edges), frozenset(number[node] for node in order if self._accepting[node]))
