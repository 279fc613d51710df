"""JSON Schema -> ir: source check, reduction to a graph of simple nodes, lowering.

Which keywords are enforced is in `keywords`; what the generated text looks like is in `infernix.grammar.json_values`
(whitespace, strings), `infernix.grammar.decimals` (numbers), `objects` (member order) and `literals` (finite values).
"""

from __future__ import annotations

from infernix.grammar.ir import Grammar
from infernix.grammar.json_values import json_object_grammar
from infernix.grammar.schema.lowering import lower
from infernix.grammar.schema.names import MAX_NAME_STATES
from infernix.grammar.schema.reduction import reduce_schema
from infernix.grammar.schema.source import MAX_SCHEMA_DEPTH, MAX_SOURCE_BYTES, parse_source

__all__ = ["MAX_NAME_STATES", "MAX_SCHEMA_DEPTH", "MAX_SOURCE_BYTES", "json_object_grammar", "parse_json_schema"]


def parse_json_schema(text: str, *, ignore_keywords: frozenset[str] = frozenset()) -> Grammar:
    """The JSON values that satisfy the schema in `text`, in this engine's layout.

    `ignore_keywords` names keywords that would be refused, unknown or known, and are to have no effect instead;
    enforced ones stay enforced.

    Raises InvalidJsonSchema, UnsupportedJsonSchema and UnsatisfiableJsonSchema with a JSON Pointer, and
    ConstraintTooLarge beyond MAX_SOURCE_BYTES, MAX_SCHEMA_DEPTH or MAX_NAME_STATES.
    """
    return lower(reduce_schema(parse_source(text), ignore_keywords))
