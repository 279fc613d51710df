"""The drafts of JSON Schema: how a document names its own, and which keywords each of them has."""

from __future__ import annotations

from enum import IntEnum


class Dialect(IntEnum):
    """A draft, ordered by age."""

    DRAFT_04 = 4
    DRAFT_06 = 6
    DRAFT_07 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020

    @classmethod
    def of_identifier(cls, identifier: str) -> Dialect | None:
        """The dialect that `$schema` names; an empty fragment at the end and the URI's scheme make no difference."""
        name = identifier.removesuffix("#").removeprefix("https://").removeprefix("http://")
        return _OF_IDENTIFIER.get(name)

    @property
    def label(self) -> str:
        """The name that its specification gives it."""
        return "2019-09" if self == 2019 else "2020-12" if self == 2020 else f"draft-{self.value:02}"

    @property
    def identity_keyword(self) -> str:
        """The keyword that names a schema resource."""
        return "id" if self is Dialect.DRAFT_04 else "$id"

    @property
    def has_item_arrays(self) -> bool:
        """Whether `items` may be an array, one schema a position, and `additionalItems` goes on behind it."""
        return self < Dialect.DRAFT_2020_12

    @property
    def has_boolean_bounds(self) -> bool:
        """Whether `exclusiveMinimum` and `exclusiveMaximum` are booleans that sharpen `minimum` and `maximum`."""
        return self is Dialect.DRAFT_04

    @property
    def has_boolean_schemas(self) -> bool:
        """Whether `true` and `false` are schemas wherever one stands, not in `additional…` only."""
        return self > Dialect.DRAFT_04

    @property
    def reads_beside_reference(self) -> bool:
        """Whether the keywords beside a `$ref` hold as well; they are ignored before 2019-09."""
        return self >= Dialect.DRAFT_2019_09

    def knows(self, keyword: str) -> bool:
        """Whether `keyword`, a word of some draft, is a keyword of this one."""
        return _FIRST.get(keyword, Dialect.DRAFT_04) <= self <= _LAST.get(keyword, Dialect.DRAFT_2020_12)


_OF_IDENTIFIER = {
    "json-schema.org/draft-04/schema": Dialect.DRAFT_04,
    "json-schema.org/draft-06/schema": Dialect.DRAFT_06,
    "json-schema.org/draft-07/schema": Dialect.DRAFT_07,
    "json-schema.org/draft/2019-09/schema": Dialect.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Dialect.DRAFT_2020_12,
}

# Where a word that has a meaning is absent here, every draft has it: `$defs` is a container in practice wherever it
# stands, and 2019-09 and 2020-12 keep `definitions` and `dependencies` in their meta-schemas.
_FIRST = {
    **dict.fromkeys(("$id", "const", "contains", "propertyNames"), Dialect.DRAFT_06),
    **dict.fromkeys(("if", "then", "else", "contentEncoding", "contentMediaType"), Dialect.DRAFT_07),
    **dict.fromkeys(("$anchor", "$recursiveAnchor", "$recursiveRef", "$vocabulary"), Dialect.DRAFT_2019_09),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "contentSchema"), Dialect.DRAFT_2019_09),
    **dict.fromkeys(("minContains", "maxContains"), Dialect.DRAFT_2019_09),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), Dialect.DRAFT_2019_09),
    **dict.fromkeys(("prefixItems", "$dynamicAnchor", "$dynamicRef"), Dialect.DRAFT_2020_12),
}
_LAST = {
    "id": Dialect.DRAFT_04,
    **dict.fromkeys(("additionalItems", "$recursiveAnchor", "$recursiveRef"), Dialect.DRAFT_2019_09),
}
