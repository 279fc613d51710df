"""Schema document -> graph of nodes: each position is checked and reduced once, references become edges.

Everything runs on worklists: neither the depth of the schema nor the length of a chain of references meets the
recursion limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.decimals import INT64_MAX, INT64_MIN
from infernix.grammar.schema.check import (
    Schema,
    as_schema,
    check_schema,
    exact_count,
    read_rules,
    subschemas,
    type_names,
)
from infernix.grammar.schema.keywords import ASSERTIONS, KeywordRules
from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    ArrayNode,
    BooleanNode,
    Bound,
    IntegerNode,
    Literals,
    Node,
    Nothing,
    NullNode,
    NumberNode,
    ObjectNode,
    Property,
    Reference,
    StringNode,
    TypedNode,
)
from infernix.grammar.schema.pointers import Place, array_index, parse_reference
from infernix.grammar.schema.source import JsonNumber, JsonValue
from infernix.grammar.schema.values import equality_key


@dataclass(slots=True)
class SchemaGraph:
    """`nodes[position]` and `places[position]`; the root is position 0, position 1 admits anything."""

    nodes: list[Node] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    ROOT = 0
    ANYTHING = 1

    def resolved(self) -> list[int | None]:
        """By position: the end of the chain of references that starts there, None where the chain is a cycle."""
        ends: dict[int, int | None] = {}
        for position in range(len(self.nodes)):
            chain: dict[int, None] = {}
            current = position
            node = self.nodes[current]
            while isinstance(node, Reference) and current not in ends and current not in chain:
                chain[current] = None
                current = node.target
                node = self.nodes[current]
            end = ends.get(current, None if current in chain else current)
            ends.update(dict.fromkeys((*chain, position), end))
        return [ends[position] for position in range(len(self.nodes))]


def reduce_schema(document: JsonValue, ignored_keywords: frozenset[str]) -> SchemaGraph:
    """The graph of all schemas in `document`, or InvalidJsonSchema / UnsupportedJsonSchema with the pointer."""
    return _Reducer(document, read_rules(document, ignored_keywords)).run()


class _Reducer:
    def __init__(self, document: JsonValue, rules: KeywordRules) -> None:
        self._document = document
        self._rules = rules
        self._graph = SchemaGraph()
        self._schemas: list[Schema] = []
        self._pending: list[int] = []
        # Positions of schema objects by identity: a place reached by a walk and by a reference is one position.
        self._position_of: dict[int, int] = {}

    def run(self) -> SchemaGraph:
        self._position(self._document, Place())
        self._position(True, Place())
        while self._pending:
            position = self._pending.pop()
            schema, place = self._schemas[position], self._graph.places[position]
            if isinstance(schema, dict):
                check_schema(schema, place, self._rules)
                num_waiting = len(self._pending)
                children = {steps: self._child(schema, place, steps) for steps in subschemas(schema)}
                self._graph.nodes[position] = self._reduce(schema, place, children)
                # What was found here is taken up next, first things first: complaints come in document order.
                self._pending[num_waiting:] = reversed(self._pending[num_waiting:])
        return self._graph

    def _child(self, schema: dict[str, JsonValue], place: Place, steps: tuple[str, ...]) -> int:
        value: JsonValue = schema
        for step in steps:
            assert isinstance(value, dict)
            value = value[step]
        return self._position(value, place.at(*steps))

    def _position(self, value: JsonValue, place: Place) -> int:
        schema = as_schema(value, place)
        if isinstance(schema, dict) and id(schema) in self._position_of:
            return self._position_of[id(schema)]
        position = len(self._schemas)
        self._schemas.append(schema)
        self._graph.places.append(place)
        self._graph.nodes.append(Anything() if schema is not False else Nothing("the schema is false", place))
        if isinstance(schema, dict):
            self._position_of[id(schema)] = position
            self._pending.append(position)
        return position

    def _reduce(self, schema: dict[str, JsonValue], place: Place, children: dict[tuple[str, ...], int]) -> Node:
        if "$ref" in schema:
            reference = schema["$ref"]
            assert isinstance(reference, str)
            return Reference(self._target(reference, place.at("$ref")))
        if ASSERTIONS.isdisjoint(schema):
            return Anything()
        branches = self._branches(schema, place, children)
        keyword = next((keyword for keyword in ("const", "enum") if keyword in schema), None)
        if keyword is not None:
            return _literals(schema, keyword, AnyOf(branches), place)
        return branches[0] if len(branches) == 1 else AnyOf(branches)

    def _target(self, reference: str, place: Place) -> int:
        try:
            steps = parse_reference(reference)
        except ValueError as error:
            raise InvalidJsonSchema(f"malformed reference: {error}", place.pointer) from None
        if steps is None:
            raise UnsupportedJsonSchema("only references inside the document ('#', '#/…') are supported", place.pointer)
        value = self._document
        for step in steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
                # A schema with its own identity would change what references inside it mean.
                if isinstance(value, dict) and isinstance(value.get("$id"), str):
                    raise UnsupportedJsonSchema("a reference into a schema with its own '$id'", place.pointer)
            elif isinstance(value, list) and (index := array_index(step, len(value))) is not None:
                value = value[index]
            else:
                raise InvalidJsonSchema(f"the reference {reference[:100]!r} leads nowhere", place.pointer)
        if not isinstance(value, bool | dict):
            raise InvalidJsonSchema(f"the reference {reference[:100]!r} leads to no schema", place.pointer)
        return self._position(value, Place().at(*steps))

    def _branches(
        self, schema: dict[str, JsonValue], place: Place, children: dict[tuple[str, ...], int]
    ) -> tuple[TypedNode, ...]:
        has_literals = "const" in schema or "enum" in schema
        branches: list[TypedNode] = []
        for name in type_names(schema):
            if name == "object":
                branches.append(self._object(schema, place, children))
            elif name == "array":
                items = children.get(("items",), self._graph.ANYTHING)
                low, high, emptiness = _counts(schema, place, "minItems", "maxItems")
                branches.append(emptiness or ArrayNode(items, low, high))
            elif name == "string":
                low, high, emptiness = _counts(schema, place, "minLength", "maxLength")
                branches.append(emptiness or StringNode(low, high))
            elif name == "integer":
                branches.append(_integer(schema, place))
            elif name == "number":
                number = _number(schema, place)
                if not has_literals and number != NumberNode():
                    bound = next(keyword for keyword in schema if keyword in _BOUNDS)
                    raise UnsupportedJsonSchema(
                        f"{bound!r} is supported for integers only, and the type allows any number",
                        place.at(bound).pointer,
                    )
                branches.append(number)
            else:
                branches.append(BooleanNode() if name == "boolean" else NullNode())
        return tuple(branches)

    def _object(self, schema: dict[str, JsonValue], place: Place, children: dict[tuple[str, ...], int]) -> TypedNode:
        declared = schema.get("properties", {})
        required = schema.get("required", [])
        assert isinstance(declared, dict)
        assert isinstance(required, list)
        additional: int | None = children.get(("additionalProperties",), self._graph.ANYTHING)
        closed = schema.get("additionalProperties") is False
        required_names = {name for name in required if isinstance(name, str)}
        properties = [Property(name, children["properties", name], name in required_names) for name in declared]
        for index, name in enumerate(required):
            assert isinstance(name, str)
            if name not in declared:
                if closed:
                    reason = f"{name[:40]!r} is required, but not declared and 'additionalProperties' is false"
                    return Nothing(reason, place.at("required", str(index)))
                assert additional is not None
                properties.append(Property(name, additional, required=True))
        return ObjectNode(tuple(properties), None if closed else additional)


def _counts(
    schema: dict[str, JsonValue], place: Place, low_keyword: str, high_keyword: str
) -> tuple[int, int | None, Nothing | None]:
    low = exact_count(schema[low_keyword], place.at(low_keyword)) if low_keyword in schema else 0
    high = exact_count(schema[high_keyword], place.at(high_keyword)) if high_keyword in schema else None
    if high is not None and low > high:
        return low, high, Nothing(f"{low_keyword!r} is above {high_keyword!r}", place.at(low_keyword))
    return low, high, None


_BOUNDS = {"minimum": False, "exclusiveMinimum": True, "maximum": False, "exclusiveMaximum": True}


def _bounds(schema: dict[str, JsonValue], place: Place, suffix: str) -> Iterator[tuple[str, Bound]]:
    for keyword, exclusive in _BOUNDS.items():
        value = schema.get(keyword)
        if keyword.lower().endswith(suffix) and isinstance(value, JsonNumber):
            yield keyword, Bound(value.exact(place.at(keyword)), exclusive)


def _number(schema: dict[str, JsonValue], place: Place) -> NumberNode:
    # Of two equal limits the exclusive one is the tighter.
    lower = max(_bounds(schema, place, "minimum"), key=lambda item: (item[1].value, item[1].exclusive), default=None)
    upper = min(
        _bounds(schema, place, "maximum"), key=lambda item: (item[1].value, not item[1].exclusive), default=None
    )
    return NumberNode(lower[1] if lower else None, upper[1] if upper else None)


def _integer(schema: dict[str, JsonValue], place: Place) -> TypedNode:
    """The integers between the bounds; bounds that are no integers fold to the nearest one inside."""
    low, low_keyword = INT64_MIN, ""
    for keyword, bound in _bounds(schema, place, "minimum"):
        least = math.floor(bound.value) + 1 if bound.exclusive else math.ceil(bound.value)
        if least > low:
            low, low_keyword = least, keyword
    high, high_keyword = INT64_MAX, ""
    for keyword, bound in _bounds(schema, place, "maximum"):
        most = math.ceil(bound.value) - 1 if bound.exclusive else math.floor(bound.value)
        if most < high:
            high, high_keyword = most, keyword
    if low <= high:
        return IntegerNode(low, high)
    keyword_place = place.at(low_keyword or high_keyword)
    if low_keyword and high_keyword:
        return Nothing("no integer lies between the bounds", keyword_place)
    raise UnsupportedJsonSchema("no signed 64-bit integer lies within the bound", keyword_place.pointer)


def _literals(schema: dict[str, JsonValue], keyword: str, siblings: AnyOf, place: Place) -> Literals:
    listed = schema.get("enum", [])
    assert isinstance(listed, list)
    if keyword == "enum":
        return Literals(tuple(listed), siblings, keyword, place)
    value = schema["const"]
    listed_keys = {equality_key(item) for item in listed}
    is_listed = "enum" not in schema or equality_key(value) in listed_keys
    return Literals((value,) if is_listed else (), siblings, keyword, place)
