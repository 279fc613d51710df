"""What a keyword does where it stands: it is enforced, it has no effect, or the schema is refused.

A keyword that is not enforced in general is accepted where what it says admits every value anyway; that is exact.
"""

from __future__ import annotations

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.keywords import KeywordPolicy
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.source import JsonNumber, JsonValue


def is_enforced(schema: dict[str, JsonValue], keyword: str, place: Place, policy: KeywordPolicy) -> bool:
    """Whether the checked `keyword` of the schema object at `place` restricts the language; else it has no effect.

    Raises UnsupportedJsonSchema at the keyword if it would have an effect that is not enforced.
    """
    if keyword not in policy.enforced:
        if policy.is_description(keyword, schema[keyword]):
            return False
        if keyword in ("$schema", "$id") or keyword == policy.dialect.identity_keyword:
            _check_identity(schema, keyword, place, policy)
            return False
        if asserts_nothing(schema, keyword, policy):
            return False
        raise policy.refusal(keyword, place.at(keyword))
    if keyword == "additionalItems" and asserts_nothing(schema, keyword, policy):
        return False
    if keyword != "$ref" and "$ref" in schema and not policy.dialect.reads_beside_reference:
        raise UnsupportedJsonSchema(
            f"{keyword!r} beside '$ref' has no effect in {policy.dialect.label}; use 'allOf' to join them",
            place.at(keyword).pointer,
        )
    return True


def _check_identity(schema: dict[str, JsonValue], keyword: str, place: Place, policy: KeywordPolicy) -> None:
    """At the root these words name the document and its dialect; below, they begin another document inside it."""
    if place.parent is None:
        return
    if keyword != "$schema":
        raise UnsupportedJsonSchema(f"{keyword!r} below the root is not supported", place.at(keyword).pointer)
    if policy.is_foreign(schema):
        raise UnsupportedJsonSchema("another dialect below the root is not supported", place.at(keyword).pointer)


def asserts_nothing(schema: dict[str, JsonValue], keyword: str, policy: KeywordPolicy) -> bool:
    """Whether the checked `keyword`, of which not every value is enforced, admits every value in this schema object.

    A keyword that the dialect does not know is a word without meaning there; it is judged as in the dialects that
    know it, so what is accepted has no effect in either reading.
    """
    value = schema[keyword]
    match keyword:
        case "uniqueItems" | "not":
            return value is False
        case "minProperties":
            return _is_at_most(value, 0)
        case "propertyNames" | "unevaluatedItems" | "unevaluatedProperties":
            return is_always_true(value, policy)
        case "patternProperties" | "dependentSchemas" | "dependentRequired" | "dependencies":
            return isinstance(value, dict) and not value
        case "additionalItems":
            return is_always_true(value, policy) or not _has_positions(schema)
        case "contains":
            # Before 2019-09 there is no `minContains`: at least one element is needed.
            is_counted = policy.dialect.knows("minContains")
            return is_counted and _is_at_most(schema.get("minContains"), 0) and "maxContains" not in schema
        case "minContains":
            return "contains" not in schema or _is_at_most(value, 1)
        case "maxContains":
            return "contains" not in schema
        case "if":
            return "then" not in schema and "else" not in schema
        case "then" | "else":
            return "if" not in schema
        case _:
            return False


def is_always_true(value: JsonValue, policy: KeywordPolicy) -> bool:
    """Whether `value`, a schema, is `true` or an object that only describes."""
    if isinstance(value, dict):
        return all(policy.is_description(keyword, inner) for keyword, inner in value.items())
    return value is True


def _has_positions(schema: dict[str, JsonValue]) -> bool:
    return isinstance(schema.get("items"), list) or "prefixItems" in schema


def _is_at_most(value: JsonValue, limit: int) -> bool:
    return isinstance(value, JsonNumber) and value.value is not None and value.value <= limit
