"""Assertions that hold together -> one node for each type of value: intersection, type by type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.decimals import INT64_MAX, INT64_MIN
from infernix.grammar.schema.clauses import Clauses, LocatedBound, LocatedCount, RequiredName, Subschema
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.nodes import (
    ArrayNode,
    BooleanNode,
    IntegerNode,
    Nothing,
    NullNode,
    NumberNode,
    ObjectNode,
    Property,
    StringNode,
    TypedNode,
)
from infernix.grammar.schema.numbers import Emptiness, number_emptiness
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.strings import has_string

PositionOf: TypeAlias = Callable[[Sequence[Subschema]], int]
"""The position of a value for which all of these subschemas hold; none of them: any value."""

_ANY_OBJECT = ObjectNode((), SchemaGraph.ANYTHING)
_ANY_ARRAY = ArrayNode(SchemaGraph.ANYTHING)


def intersect(atoms: Sequence[Clauses], types: frozenset[str], position_of: PositionOf) -> tuple[TypedNode, ...]:
    """The values of `types` that all of `atoms` admit, by type; Nothing with the reason for a type without a value.

    Raises UnsupportedJsonSchema for a range of numbers none of which can be written.
    """
    nodes: list[TypedNode] = []
    if "object" in types:
        nodes.append(_intersect_objects(atoms, position_of))
    if "array" in types:
        nodes.append(_intersect_arrays(atoms, position_of))
    if "string" in types:
        nodes.append(_intersect_strings(atoms))
    if "number" in types:
        nodes.append(_intersect_numbers(atoms))
    elif "integer" in types:
        nodes.append(_intersect_integers(atoms))
    if "boolean" in types:
        nodes.append(BooleanNode())
    if "null" in types:
        nodes.append(NullNode())
    return tuple(nodes)


def _intersect_objects(atoms: Sequence[Clauses], position_of: PositionOf) -> TypedNode:
    """Each atom closes or opens the object for the names that it does not declare itself."""
    if len(atoms) == 1:
        atom = atoms[0]
        needed_names = {needed.name for needed in atom.required}
        if atom.properties and needed_names <= atom.properties.keys():
            declared = [
                Property(name, position_of((subschema,)), name in needed_names)
                for name, subschema in atom.properties.items()
            ]
            if atom.additional is None:
                return ObjectNode(tuple(declared), SchemaGraph.ANYTHING)
            return ObjectNode(
                tuple(declared), None if atom.additional.value is False else position_of((atom.additional,))
            )
    restricting = [atom for atom in atoms if atom.additional is not None and atom.additional.value is not True]
    values: dict[str, list[Subschema]] = {}
    required: dict[str, RequiredName] = {}
    for atom in atoms:
        for name, subschema in atom.properties.items():
            values.setdefault(name, []).append(subschema)
        for needed in atom.required:
            required.setdefault(needed.name, needed)
    if not (values or required or restricting):
        return _ANY_OBJECT
    for name in required:
        values.setdefault(name, [])
    for atom in restricting:
        assert atom.additional is not None
        for name, subschemas in values.items():
            if name not in atom.properties:
                subschemas.append(atom.additional)
                if name in required and atom.additional.value is False:
                    shown = repr(name[:40])
                    reason = f"{shown} is required, but not declared where 'additionalProperties' is false"
                    return Nothing(reason, required[name].place)
    properties = tuple(Property(name, position_of(found), name in required) for name, found in values.items())
    additional = [atom.additional for atom in restricting if atom.additional is not None]
    closed = any(subschema.value is False for subschema in additional)
    return ObjectNode(properties, None if closed else position_of(additional))


def _intersect_arrays(atoms: Sequence[Clauses], position_of: PositionOf) -> TypedNode:
    """Element by element: each atom has its own prefix, and its `items` hold from behind it."""
    low, high, emptiness = _counts(
        (atom.min_items for atom in atoms), (atom.max_items for atom in atoms), "minItems", "maxItems"
    )
    if emptiness is not None:
        return emptiness
    length = max((len(atom.prefix) for atom in atoms), default=0)
    if high is not None:
        length = min(length, high)
    prefix = []
    for index in range(length):
        elements = [atom.prefix[index] if index < len(atom.prefix) else atom.items for atom in atoms]
        prefix.append(position_of([element for element in elements if element is not None]))
    if length == high:
        return ArrayNode(SchemaGraph.ANYTHING, low, high, tuple(prefix))
    items = [atom.items for atom in atoms if atom.items is not None]
    if not items and not prefix and low == 0 and high is None:
        return _ANY_ARRAY
    return ArrayNode(position_of(items), low, high, tuple(prefix))


def _intersect_strings(atoms: Sequence[Clauses]) -> TypedNode:
    low, high, emptiness = _counts(
        (atom.min_length for atom in atoms), (atom.max_length for atom in atoms), "minLength", "maxLength"
    )
    if emptiness is not None:
        return emptiness
    patterns = {pattern.text: pattern for atom in atoms for pattern in atom.patterns}
    node = StringNode(low, high, tuple(patterns.values()))
    if patterns and not has_string(node):
        reason = "no string matches the pattern within the length" if len(patterns) == 1 else "no string matches all"
        return Nothing(reason, next(iter(patterns.values())).place)
    return node


def _counts(
    lows: Iterable[LocatedCount | None], highs: Iterable[LocatedCount | None], low_keyword: str, high_keyword: str
) -> tuple[int, int | None, Nothing | None]:
    """The greatest lower limit, the least upper one, and why no count lies between them."""
    low = max((limit for limit in lows if limit is not None), key=lambda limit: limit.count, default=None)
    high = min((limit for limit in highs if limit is not None), key=lambda limit: limit.count, default=None)
    if low is None or high is None or low.count <= high.count:
        return low.count if low else 0, high.count if high else None, None
    return low.count, high.count, Nothing(f"{low_keyword!r} is above {high_keyword!r}", low.place)


def _tightest(atoms: Sequence[Clauses]) -> tuple[LocatedBound | None, LocatedBound | None]:
    """The greatest lower and the least upper bound; of two equal ones the exclusive one is the tighter."""
    lowers = [located for atom in atoms for located in atom.lower]
    uppers = [located for atom in atoms for located in atom.upper]
    return (
        max(lowers, key=lambda located: (located.bound.value, located.bound.exclusive), default=None),
        min(uppers, key=lambda located: (located.bound.value, not located.bound.exclusive), default=None),
    )


def _intersect_numbers(atoms: Sequence[Clauses]) -> TypedNode:
    lower, upper = _tightest(atoms)
    if lower is None and upper is None:
        return NumberNode()
    node = NumberNode(lower.bound if lower else None, upper.bound if upper else None)
    emptiness = number_emptiness(node)
    if emptiness is None:
        return node
    place = _first_place(lower, upper)
    if emptiness is Emptiness.UNSATISFIABLE:
        return Nothing(emptiness.value, place)
    raise UnsupportedJsonSchema(emptiness.value, place.pointer)


def _intersect_integers(atoms: Sequence[Clauses]) -> TypedNode:
    """Bounds that are no integers fold to the nearest one inside."""
    lower, upper = _tightest(atoms)
    low = high = None
    if lower is not None:
        value = lower.bound.value
        low = math.floor(value) + 1 if lower.bound.exclusive else math.ceil(value)
    if upper is not None:
        value = upper.bound.value
        high = math.ceil(value) - 1 if upper.bound.exclusive else math.floor(value)
    if low is not None and high is not None and low > high:
        return Nothing("no integer lies between the bounds", _first_place(lower, upper))
    low = INT64_MIN if low is None else max(low, INT64_MIN)
    high = INT64_MAX if high is None else min(high, INT64_MAX)
    if low > high:
        place = _first_place(lower, upper)
        raise UnsupportedJsonSchema("no signed 64-bit integer lies within the bound", place.pointer)
    return IntegerNode(low, high)


def _first_place(lower: LocatedBound | None, upper: LocatedBound | None) -> Place:
    located = lower or upper
    assert located is not None
    return located.place
