"""Which words of JSON Schema are enforced, which only describe, and which are refused.

Every member of a schema object is exactly one of: enforced, an annotation, named by the caller to be ignored, or
refused at its pointer. Nothing is loosened in silence.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import Enum

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.pointers import Place


class Dialect(Enum):
    """The drafts of JSON Schema that are read."""

    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"
    DRAFT_07 = "http://json-schema.org/draft-07/schema"

    @classmethod
    def of_identifier(cls, identifier: str) -> Dialect | None:
        """The dialect that `$schema` names; an empty fragment at the end and the URI's scheme make no difference."""
        name = identifier.removesuffix("#").removeprefix("https://").removeprefix("http://")
        return next((dialect for dialect in cls if dialect.value.partition("://")[2] == name), None)


NUMBER_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
DEFINITIONS = frozenset({"$defs", "definitions"})

ASSERTIONS = NUMBER_BOUNDS | {
    "type",
    "const",
    "enum",
    "$ref",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
}

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated", "$schema", "$id"}
)

# Words of the specifications (drafts 4 to 2020-12) that would have to be enforced, or change what other words mean.
UNSUPPORTED = frozenset(
    {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "$vocabulary",
        "additionalItems",
        "allOf",
        "anyOf",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "format",
        "id",
        "if",
        "maxContains",
        "maxProperties",
        "minContains",
        "minProperties",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)

_ALL = sorted(ASSERTIONS | ANNOTATIONS | DEFINITIONS | UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class KeywordRules:
    """The dialect of a document, and the refused keywords that its caller chose to ignore instead."""

    dialect: Dialect = Dialect.DRAFT_2020_12
    ignored: frozenset[str] = field(default_factory=frozenset)

    def asserts(self, keyword: str, place: Place) -> bool:
        """Whether `keyword` is enforced (else it has no effect on the language).

        Raises UnsupportedJsonSchema, `place` being that of the keyword, if it is neither.
        """
        if keyword in ASSERTIONS:
            return True
        if keyword in ANNOTATIONS or keyword in DEFINITIONS or keyword.startswith("x-") or keyword in self.ignored:
            return False
        if keyword in UNSUPPORTED:
            raise UnsupportedJsonSchema(f"the keyword {keyword!r} is not supported", place.pointer)
        hint = ""
        if len(keyword) <= 40:
            close = difflib.get_close_matches(keyword, _ALL, n=1, cutoff=0.75)
            hint = f", did you mean {close[0]!r}?" if close else ""
        shown = keyword if len(keyword) <= 40 else f"{keyword[:40]}…"
        raise UnsupportedJsonSchema(f"unknown keyword {shown!r}{hint}", place.pointer)
