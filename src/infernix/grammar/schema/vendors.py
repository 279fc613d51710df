"""Keywords that no specification knows and that only describe, with the evidence that people use them so."""

from __future__ import annotations

from infernix.grammar.schema.source import JsonValue

VENDOR_ANNOTATIONS = {
    # Switched off or kept private by their authors with an underscore.
    "_format": 77,
    "_uniqueItems": 31,
    "_id": 4,
    "_comment": 1,
    "_description": 1,
    "_meta": 1,
    # The identity of a schema: Snowplow's Iglu, gdbots' pbj, draft-04 in documents of another dialect, and at large.
    "self": 60,
    "id": 8,
    "version": 6,
    "name": 3,
    "pbj": 3,
    "$version": 1,
    # JSON Hyper-Schema and its tools (prmd).
    "links": 12,
    "media": 1,
    "stability": 3,
    # Documentation and editors: OpenAPI, Visual Studio Code, Skaffold, sphinx-jsonschema; a former `readOnly`.
    "readonly": 14,
    "example": 9,
    "markdownDescription": 5,
    "deprecationMessage": 1,
    "preferredOrder": 4,
    "$$target": 4,
    "comment": 3,
    # Command lines (Angular, Nx): where an argument comes from and what else it is called.
    "$default": 6,
    "alias": 6,
    "visible": 4,
    "aliases": 2,
    # Java classes made out of schemas.
    "javaInterfaces": 8,
    "javaType": 7,
    "extendsJavaClass": 6,
    "javaName": 1,
    "javaInterface": 1,
    "javaAbstract": 1,
    "javaLenientDeserialize": 1,
}
"""How many of the 1,049 real schemas of JSONSchemaBench's sample (MaskBench) use the word as a keyword."""

# Ordinary words: with an object as value they are rather properties that slipped out of `properties`.
_NEVER_OBJECTS = frozenset(
    {"id", "version", "name", "links", "stability", "readonly", "comment", "alias", "aliases", "visible"}
)


def is_vendor_annotation(keyword: str, value: JsonValue) -> bool:
    """Whether `keyword` with this value is a known annotation of some tool."""
    if keyword not in VENDOR_ANNOTATIONS:
        return keyword.startswith("x-")
    return keyword not in _NEVER_OBJECTS or not isinstance(value, dict)
