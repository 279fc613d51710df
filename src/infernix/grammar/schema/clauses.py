"""What one schema object says by itself, read and checked, whichever dialect it was written in.

The names are those of 2020-12: a draft-04 `exclusiveMinimum: true` has become an exclusive bound, an array in
`items` is `prefix`, `additionalItems` is `items`. To locate a keyword, take `place.at(keyword)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infernix.grammar.schema.nodes import Bound, Pattern
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonValue


@dataclass(slots=True, eq=False)
class Subschema:
    """A schema where it stands: an object or a boolean.

    A document has one Subschema for a place, however the place is reached, so two are the same if they are one object;
    they are compared and hashed as such. Equal schemas in several places may be one too: see `reading`.
    """

    value: bool | dict[str, JsonValue]
    place: Place


@dataclass(slots=True)
class LocatedBound:
    """A limit of a number and the place of the keyword that sets it."""

    bound: Bound
    place: Place


@dataclass(slots=True)
class LocatedCount:
    """A limit of a length or of a number of elements and the place of the keyword that sets it."""

    count: int
    place: Place


@dataclass(slots=True)
class RequiredName:
    """A name in `required`, which stands at `keyword`, and its index there."""

    name: str
    keyword: Place
    index: int

    @property
    def place(self) -> Place:
        """Where the name stands."""
        return self.keyword.at(str(self.index))


@dataclass(frozen=True, slots=True)
class FiniteValues:
    """The values of a `const` (one) or an `enum` and the place of the keyword."""

    values: tuple[JsonValue, ...]
    place: Place


@dataclass(slots=True)
class Clauses:
    """The assertions of one schema object; a keyword that is absent has its default.

    All of them hold together: `all_of` every one, `any_of` and `one_of` as their names say (None: not there), and
    what `reference` leads to as well. `types` is None where every type is allowed.
    """

    place: Place
    types: frozenset[str] | None = None
    finite: tuple[FiniteValues, ...] = ()
    lower: tuple[LocatedBound, ...] = ()
    upper: tuple[LocatedBound, ...] = ()
    min_length: LocatedCount | None = None
    max_length: LocatedCount | None = None
    patterns: tuple[Pattern, ...] = ()
    properties: Mapping[str, Subschema] = field(default_factory=dict)
    required: tuple[RequiredName, ...] = ()
    additional: Subschema | None = None
    prefix: tuple[Subschema, ...] = ()
    items: Subschema | None = None
    min_items: LocatedCount | None = None
    max_items: LocatedCount | None = None
    all_of: tuple[Subschema, ...] = ()
    any_of: tuple[Subschema, ...] | None = None
    one_of: tuple[Subschema, ...] | None = None
    reference: Subschema | None = None
