"""What a strict tool's JSON Schema comes to: one object with a finite list of named arguments."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from infernix.errors import UnsupportedJsonSchema
from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ArgumentContract, ArgumentEncoding
from infernix.frontend.tools.parameter_framing import VALUE_END, is_parameter_name
from infernix.grammar.schema import reduce_json_schema
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    Literals,
    Node,
    ObjectNode,
    Property,
    StringNode,
)
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.satisfiability import Satisfiability, explain, find_satisfiable
from infernix.grammar.schema.strings import has_raw_string

_MAX_CACHED_WEIGHT = 1 << 16

_Key: TypeAlias = tuple[str, ToolStyle]


@dataclass(frozen=True, slots=True)
class StrictSchema:
    """A reduced schema whose root is the object `root`, to which no other names can be added.

    `arguments` says how each one is written that can have a value, in declared order.
    """

    graph: SchemaGraph
    satisfiability: Satisfiability
    root: ObjectNode
    arguments: Mapping[str, ArgumentContract] = field(default_factory=dict)

    def properties(self) -> Iterator[Property]:
        """The arguments that can have a value, in declared order."""
        return (prop for prop in self.root.properties if prop.value in self.satisfiability.positions)

    def place(self, prop: Property) -> Place:
        """Where an argument is declared."""
        if prop.value == self.graph.ANYTHING:  # all that admit anything have one position
            return Place().at("properties", prop.name)
        return self.graph.places[prop.value]

    def branches(self, position: int) -> list[Node]:
        """See `possible_branches`."""
        return possible_branches(self.graph, self.satisfiability, position)


def read_strict_schema(text: str, style: ToolStyle) -> StrictSchema:
    """The schema in `text`, for calls that are written in `style`.

    Raises what `parse_json_schema` raises, and UnsupportedJsonSchema

    - unless the root comes to an object with `additionalProperties: false`, be it through `$ref` or `allOf`, without
      alternatives and without finite values;
    - at an argument that `style` cannot write: one with a name that its framing does not hold, one whose value could be
      a string as well as something else, one that is required and has no value without the text that ends values.
    """
    known = _recent.get((text, style))
    if known is None:
        bare = _read(text)
        encoding = _xml_encoding if style is ToolStyle.XML else _json_encoding
        arguments = {prop.name: ArgumentContract(prop.name, encoding(bare, prop)) for prop in bare.properties()}
        known = replace(bare, arguments=arguments)
        _recent.put((text, style), known)
    return known


def _read(text: str) -> StrictSchema:
    graph = reduce_json_schema(text)
    satisfiability = find_satisfiable(graph)
    if graph.ROOT not in satisfiability.positions:
        raise explain(graph, satisfiability, graph.ROOT)
    branches = possible_branches(graph, satisfiability, graph.ROOT)
    root = branches[0]
    if len(branches) > 1 or not isinstance(root, ObjectNode):
        raise UnsupportedJsonSchema("the arguments of a strict tool must come to 'type': 'object' without alternatives")
    if root.additional is not None and root.additional in satisfiability.positions:
        raise UnsupportedJsonSchema("the arguments of a strict tool need 'additionalProperties': false")
    return StrictSchema(graph, satisfiability, root)


def possible_branches(graph: SchemaGraph, satisfiability: Satisfiability, position: int) -> list[Node]:
    """The nodes whose union a position admits, without those that admit nothing; no AnyOf among them."""
    node = graph.nodes[graph.resolve(position)]
    branches = node.branches if isinstance(node, AnyOf) else (node,)
    return [branch for branch in branches if satisfiability.admits_some(branch)]


def _json_encoding(_schema: StrictSchema, _prop: Property) -> ArgumentEncoding:
    return ArgumentEncoding.JSON


def _xml_encoding(schema: StrictSchema, prop: Property) -> ArgumentEncoding:
    place = schema.place(prop)
    if not is_parameter_name(prop.name):
        raise UnsupportedJsonSchema(
            f"the argument name {prop.name[:40]!r} is empty or holds '<', '>' or a line break", place.pointer
        )
    branches = schema.branches(prop.value)
    kinds = frozenset[str]().union(*map(_kinds, branches))
    if kinds == {"string"}:
        # Of one that is optional too: whether its languages can be built at all is to be known here.
        has_value = [_has_raw_value(branch, schema, prop) for branch in branches]
        if prop.required and not any(has_value):
            raise UnsupportedJsonSchema(
                f"{prop.name[:40]!r} is required, and each of its values holds the text {VALUE_END!r} that ends one",
                place.pointer,
            )
        return ArgumentEncoding.TEXT
    if "string" in kinds:
        raise UnsupportedJsonSchema(
            f"{prop.name[:40]!r} mixes strings, which are written as they are, and JSON values", place.pointer
        )
    return ArgumentEncoding.JSON


def _has_raw_value(branch: Node, schema: StrictSchema, prop: Property) -> bool:
    if isinstance(branch, StringNode):
        return has_raw_string(branch, VALUE_END, schema.place(prop))
    assert isinstance(branch, Literals)
    return any(isinstance(value, str) and VALUE_END not in value for value in branch.values)


def _kinds(node: Node) -> frozenset[str]:
    match node:
        case Anything():
            return frozenset({"string", "other"})
        case StringNode():
            return frozenset({"string"})
        case Literals(values):
            return frozenset("string" if isinstance(value, str) else "other" for value in values)
        case _:
            return frozenset({"other"})


class _RecentSchemas:
    """The schemas that were asked for last, of a bounded weight together; shared by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[_Key, StrictSchema] = {}
        self._weight = 0

    def get(self, key: _Key) -> StrictSchema | None:
        with self._lock:
            schema = self._found.pop(key, None)
            if schema is not None:
                self._found[key] = schema
            return schema

    def put(self, key: _Key, schema: StrictSchema) -> None:
        with self._lock:
            if key in self._found:
                return
            self._found[key] = schema
            self._weight += _weight(key, schema)
            while self._weight > _MAX_CACHED_WEIGHT:
                oldest = next(iter(self._found))
                self._weight -= _weight(oldest, self._found.pop(oldest))


def _weight(key: _Key, schema: StrictSchema) -> int:
    """About 200 bytes to one."""
    return 1 + len(key[0]) // 50 + 2 * len(schema.graph.nodes)


_recent = _RecentSchemas()
