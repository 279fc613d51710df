"""The graph that a document is reduced to."""

from __future__ import annotations

from dataclasses import dataclass, field

from infernix.grammar.schema.nodes import Node, Reference
from infernix.grammar.schema.pointers import Place


@dataclass(slots=True)
class SchemaGraph:
    """`nodes[position]` and `places[position]`; the root is position 0, position 1 admits anything."""

    nodes: list[Node] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    ROOT = 0
    ANYTHING = 1

    def add(self, node: Node, place: Place) -> int:
        """A new position."""
        self.nodes.append(node)
        self.places.append(place)
        return len(self.nodes) - 1

    def resolve(self, position: int) -> int:
        """`position`, or where its reference leads."""
        node = self.nodes[position]
        return node.target if isinstance(node, Reference) else position
