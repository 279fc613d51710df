"""Which words of JSON Schema are enforced, which only describe, and which are refused.

Every member of a schema object is exactly one of: enforced, without effect on the language (annotations, definitions,
assertions that the standard gives no effect there), named by the caller to be ignored, or refused at its pointer.
"""

from __future__ import annotations

import difflib

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonValue
from infernix.grammar.schema.vendors import is_vendor_annotation

NUMBER_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
DEFINITIONS = frozenset({"$defs", "definitions"})

ENFORCED = (
    NUMBER_BOUNDS
    | COUNTS
    | {"type", "const", "enum", "$ref", "properties", "required", "additionalProperties", "pattern"}
    | {"items", "prefixItems", "additionalItems", "allOf", "anyOf", "oneOf"}
)

DESCRIPTIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated"}
)

# Names of a schema that only other keywords (references by name, which are refused) look at.
NAMES = frozenset({"$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})

# Words of the specifications (drafts 4 to 2020-12) that would have to be enforced, or change what other words mean.
REFUSED = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "format",
        "if",
        "maxContains",
        "maxProperties",
        "minContains",
        "minProperties",
        "multipleOf",
        "not",
        "patternProperties",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)

SPECIFIED = ENFORCED | DEFINITIONS | DESCRIPTIONS | NAMES | REFUSED | {"$schema", "$id", "id"}
"""All words of the specifications."""

NEVER_IGNORED = ENFORCED | DEFINITIONS | {"$schema"}
"""What a caller cannot ask to be ignored."""

_HINTS = sorted(SPECIFIED)
_MAX_SHOWN = 40


_WORDS = {dialect: frozenset(word for word in SPECIFIED if dialect.knows(word)) for dialect in Dialect}


class KeywordPolicy:
    """The dialect of a document, and the refused keywords that its caller chose to ignore instead.

    words      the keywords that mean here what the specification of the dialect says
    enforced   those of them that are enforced, whatever their value
    """

    def __init__(self, dialect: Dialect = Dialect.DRAFT_2020_12, ignored: frozenset[str] = frozenset()) -> None:
        self.dialect = dialect
        self.ignored = ignored
        self.words = _WORDS[dialect] - ignored
        self.enforced = self.words & ENFORCED
        self._descriptions = DESCRIPTIONS | NAMES | DEFINITIONS | ignored

    def is_description(self, keyword: str, value: JsonValue) -> bool:
        """Whether `keyword` never has an effect on the language, whatever stands beside it."""
        return keyword in self._descriptions or (keyword not in self.words and is_vendor_annotation(keyword, value))

    def is_foreign(self, schema: dict[str, JsonValue]) -> bool:
        """Whether a schema object says that it is of another dialect."""
        identifier = schema.get("$schema")
        return isinstance(identifier, str) and Dialect.of_identifier(identifier) is not self.dialect

    def refusal(self, keyword: str, place: Place) -> UnsupportedJsonSchema:
        """The error about a keyword at `place` that is neither enforced nor without effect."""
        shown = keyword if len(keyword) <= _MAX_SHOWN else f"{keyword[:_MAX_SHOWN]}…"
        if keyword in SPECIFIED:
            where = "" if self.dialect.knows(keyword) else f" in {self.dialect.label}"
            return UnsupportedJsonSchema(f"the keyword {shown!r} is not supported{where}", place.pointer)
        hint = ""
        if len(keyword) <= _MAX_SHOWN:
            close = difflib.get_close_matches(keyword, _HINTS, n=1, cutoff=0.75)
            hint = f", did you mean {close[0]!r}?" if close else ""
        return UnsupportedJsonSchema(f"unknown keyword {shown!r}{hint}", place.pointer)
