"""JSON Schema -> ir: source check, reduction to a graph of simple nodes, lowering.

Which keywords are enforced is in `keywords`; what the generated text looks like is in `infernix.grammar.json_values`
(whitespace, strings), `infernix.grammar.decimals` (numbers), `objects` (member order) and `literals` (finite values).
"""

from __future__ import annotations

from infernix.errors import ConstraintError
from infernix.grammar.ir import Grammar
from infernix.grammar.json_values import json_object_grammar
from infernix.grammar.schema.exclusivity import prove_exclusive
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.lowering import lower
from infernix.grammar.schema.names import MAX_NAME_STATES
from infernix.grammar.schema.reading import read_document
from infernix.grammar.schema.reduction import Reducer
from infernix.grammar.schema.source import MAX_SCHEMA_DEPTH, MAX_SOURCE_BYTES, JsonValue, parse_source

__all__ = [
    "MAX_NAME_STATES",
    "MAX_SCHEMA_DEPTH",
    "MAX_SOURCE_BYTES",
    "json_object_grammar",
    "parse_json_schema",
    "reduce_json_schema",
]


def parse_json_schema(text: str, *, ignore_keywords: frozenset[str] = frozenset()) -> Grammar:
    """The JSON values that satisfy the schema in `text`, in this engine's layout.

    `ignore_keywords` names keywords that would be refused, unknown or known, and are to have no effect instead;
    enforced ones stay enforced.

    Raises InvalidJsonSchema, UnsupportedJsonSchema and UnsatisfiableJsonSchema with a JSON Pointer, and
    ConstraintTooLarge beyond MAX_SOURCE_BYTES, MAX_SCHEMA_DEPTH or MAX_NAME_STATES.
    """
    document = parse_source(text)
    try:
        return lower(_reduce(document, ignore_keywords, shares_equal=True))
    except ConstraintError:
        # Once more with every place for itself, so that the error names the right one.
        return lower(_reduce(document, ignore_keywords, shares_equal=False))


def reduce_json_schema(text: str, *, ignore_keywords: frozenset[str] = frozenset()) -> SchemaGraph:
    """What the schema in `text` comes to, for those who write its values in another layout. Raises as above, but does
    not look whether any value satisfies the schema."""
    return _reduce(parse_source(text), ignore_keywords, shares_equal=False)


def _reduce(document: JsonValue, ignored_keywords: frozenset[str], *, shares_equal: bool) -> SchemaGraph:
    reducer = Reducer(read_document(document, ignored_keywords, shares_equal=shares_equal))
    reducer.run()
    prove_exclusive(reducer)
    return reducer.graph
