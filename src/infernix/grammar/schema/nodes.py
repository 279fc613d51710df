"""The reduced form of a schema: small nodes that know no keyword.

A node that has parts names them by position: an index into the graph's nodes, so that recursion is a cycle of
indices. Where a node comes from makes no difference to its equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonValue


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No value; `reason` and `place` tell why."""

    reason: str
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class NullNode:
    """`null`."""


@dataclass(frozen=True, slots=True)
class BooleanNode:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True)
class IntegerNode:
    """Integers low..high, within signed 64-bit."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit of a number."""

    value: Fraction
    exclusive: bool


@dataclass(frozen=True, slots=True)
class NumberNode:
    """Numbers between two limits (None: no limit)."""

    lower: Bound | None = None
    upper: Bound | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that is searched in a string: the text of the keyword at `place`."""

    text: str
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class StringNode:
    """Strings of min_length..max_length Unicode characters in which each of `patterns` is found."""

    min_length: int = 0
    max_length: int | None = None
    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """Arrays of min_items..max_items elements: the first ones of the positions `prefix`, all others of `items`."""

    items: int
    min_items: int = 0
    max_items: int | None = None
    prefix: tuple[int, ...] = ()


class Property(NamedTuple):
    """A named member whose value is of position `value`."""

    name: str
    value: int
    required: bool


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """Objects with these members in this order, then members of other names, of position `additional` (None: none)."""

    properties: tuple[Property, ...]
    additional: int | None


@dataclass(frozen=True, slots=True)
class Literals:
    """`values`, one at least, in the order of the list that stands at `place`. Not hashable."""

    values: tuple[JsonValue, ...]
    place: Place = field(compare=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The union of `branches`; several of them may admit the same value."""

    branches: tuple[TypedNode, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """What position `target` admits, which is no Reference itself."""

    target: int


TypedNode: TypeAlias = (
    NullNode | BooleanNode | IntegerNode | NumberNode | StringNode | ArrayNode | ObjectNode | Literals | Nothing
)
Node: TypeAlias = TypedNode | Anything | AnyOf | Reference
