"""Schema document -> clauses: every keyword checked, in whatever dialect, with references resolved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from infernix.errors import InvalidJsonSchema, InvalidOptions, UnsupportedJsonSchema
from infernix.grammar.schema.check import (
    CONTAINERS,
    InnerSchema,
    Schema,
    check_is_schema,
    check_keyword,
    inner_schemas,
)
from infernix.grammar.schema.clause_reader import ClauseReader
from infernix.grammar.schema.clauses import Clauses, Subschema
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.effects import is_enforced
from infernix.grammar.schema.equal_schemas import SchemaKey, schema_key
from infernix.grammar.schema.keywords import NEVER_IGNORED, KeywordPolicy
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.references import References
from infernix.grammar.schema.source import JsonValue


def read_document(value: JsonValue, ignored_keywords: frozenset[str], *, shares_equal: bool = False) -> Document:
    """The schema document `value`: every keyword is well formed, and enforced wherever the root leads.

    `shares_equal` makes equal schemas (those with an equal `schema_key`) one Subschema, with the place of the first:
    whatever error is found then, here or later, may name the wrong one of several equal places.

    Raises InvalidJsonSchema for a malformed keyword anywhere, and UnsupportedJsonSchema for one that would not be
    enforced, unless it is in a definition to which nothing refers; of several, the first in the document.
    `ignored_keywords` are to have no effect; InvalidOptions if an enforced one is among them.
    """
    never_ignored = sorted(ignored_keywords & NEVER_IGNORED)
    if never_ignored:
        raise InvalidOptions(f"{never_ignored[0]!r} is enforced and cannot be ignored", field="ignore_keywords")
    return Document(value, KeywordPolicy(_dialect(value), ignored_keywords), shares_equal)


def _dialect(document: JsonValue) -> Dialect:
    if not isinstance(document, dict) or "$schema" not in document:
        return Dialect.DRAFT_2020_12
    identifier = document["$schema"]
    place = Place().at("$schema")
    if not isinstance(identifier, str):
        raise InvalidJsonSchema("'$schema' must be a string", place.pointer)
    dialect = Dialect.of_identifier(identifier)
    if dialect is None:
        raise UnsupportedJsonSchema(f"the dialect {identifier[:100]!r} is not supported", place.pointer)
    return dialect


class Document:
    """A schema document that has passed the source check; made by `read_document`."""

    def __init__(self, value: JsonValue, policy: KeywordPolicy, shares_equal: bool) -> None:
        self._policy = policy
        self._references = References(value, policy)
        # A schema object is known by its identity, a boolean by that of the list or object that holds it and its index
        # or name there: all live as long as the document. Pointers would do as well, but long names above many places
        # make them long.
        self._subschemas: dict[int | tuple[int, str], Subschema] = {}
        self._shares_equal = shares_equal
        self._by_content: dict[SchemaKey, Subschema] = {}
        # The schema objects whose keywords have been checked: the keywords that lead to other schemas.
        self._leading: dict[Subschema, list[tuple[str, tuple[Subschema, ...]]]] = {}
        # All keywords that have been checked, in the order of complaints, and the schemas directly inside them.
        self._keywords: list[tuple[Subschema, str, tuple[Subschema, ...]]] = []
        self.root = self._check_forms(InnerSchema(None, "", value, Place()))
        self._clauses = self._read_clauses(self._reached())

    def clauses(self, subschema: Subschema) -> Clauses:
        """What the schema object `subschema`, to which the root leads, asserts. Booleans have no clauses."""
        return self._clauses[subschema]

    def _check_forms(self, start: InnerSchema) -> Subschema:
        """Checks every keyword of `start` and of the schemas below it, in document order."""
        policy = self._policy
        words, dialect, leading, add = policy.words, policy.dialect, self._leading, self._keywords.append
        first = self._target_subschema(start)
        # A schema to be looked at, or one to be gone on with behind the keyword whose schemas have been looked at.
        pending: list[tuple[Subschema, Iterator[str] | None]] = [(first, None)]
        while pending:
            subschema, keywords = pending.pop()
            schema, place = subschema.value, subschema.place
            if keywords is None:
                if not isinstance(schema, dict):
                    check_is_schema(schema, place, dialect)
                    continue
                if subschema in leading:
                    continue
                leading[subschema] = []
                if "$schema" in schema and policy.is_foreign(schema):
                    # Refused where it is reached; what it says cannot be judged by the rules of this dialect.
                    add((subschema, "$schema", ()))
                    continue
                keywords = iter(schema)
            assert isinstance(schema, dict)
            for keyword in keywords:
                inner: tuple[Subschema, ...] = ()
                if keyword in words:
                    check_keyword(schema, keyword, place, dialect)
                    if keyword in CONTAINERS:
                        inner = self._inner(schema, keyword, place)
                add((subschema, keyword, inner))
                if inner or keyword == "$ref":
                    leading[subschema].append((keyword, inner))
                if inner:
                    pending.append((subschema, keywords))
                    pending += [(below, None) for below in reversed(inner) if below not in leading]
                    break
        return first

    def _reached(self) -> set[Subschema]:
        """The schema objects to which enforced keywords lead from the root."""
        reached: set[Subschema] = set()
        pending = [self.root]
        while pending:
            subschema = pending.pop()
            if subschema in reached or not isinstance(subschema.value, dict):
                continue
            reached.add(subschema)
            for keyword, inner in self._leading[subschema]:
                if keyword in self._policy.enforced:
                    pending.extend(self._led_to(subschema.value, keyword, subschema.place, inner))
        return reached

    def _led_to(
        self, schema: dict[str, JsonValue], keyword: str, place: Place, inner: tuple[Subschema, ...]
    ) -> tuple[Subschema, ...]:
        try:
            if not is_enforced(schema, keyword, place, self._policy):
                return ()
            target = self._target(schema, place) if keyword == "$ref" else None
        except (InvalidJsonSchema, UnsupportedJsonSchema):
            return ()  # `_read_clauses` comes back to it, unless there is an earlier complaint
        if target is not None:
            # A place to which no word of the specification leads has not been checked yet.
            return (self._check_forms(target),)
        return inner

    def _read_clauses(self, reached: set[Subschema]) -> dict[Subschema, Clauses]:
        readers: dict[Subschema, ClauseReader] = {}
        for subschema, keyword, inner in self._keywords:
            if subschema not in reached:
                continue
            schema, place = subschema.value, subschema.place
            assert isinstance(schema, dict)
            if not is_enforced(schema, keyword, place, self._policy):
                continue
            reader = readers.get(subschema)
            if reader is None:
                reader = readers[subschema] = ClauseReader(schema, place, self._policy.dialect)
            if keyword == "$ref":
                reader.refer(self._target_subschema(self._target(schema, place)))
            else:
                reader.read(keyword, inner)
        return {
            subschema: readers[subschema].clauses() if subschema in readers else Clauses(subschema.place)
            for subschema in reached
        }

    def _inner(self, schema: dict[str, JsonValue], keyword: str, place: Place) -> tuple[Subschema, ...]:
        container, inner = inner_schemas(schema, keyword)
        parent = place if container is schema else place.at(keyword)
        found: list[Subschema] = []
        for step, value in inner:
            key = id(value) if isinstance(value, dict) else (id(container), step)
            subschema = self._subschemas.get(key)
            if subschema is None:
                subschema = self._subschemas[key] = self._new(value, parent, step)
            found.append(subschema)
        return tuple(found)

    def _target(self, schema: dict[str, JsonValue], place: Place) -> InnerSchema:
        reference = schema["$ref"]
        assert isinstance(reference, str)
        return self._references.resolve(reference, place.at("$ref"))

    def _target_subschema(self, target: InnerSchema) -> Subschema:
        value = target.value
        key = id(value) if isinstance(value, dict) else (id(target.container), target.step)
        if key not in self._subschemas:
            self._subschemas[key] = Subschema(_as_schema(value), target.place)
        return self._subschemas[key]

    def _new(self, value: JsonValue, parent: Place, step: str) -> Subschema:
        content = schema_key(value) if self._shares_equal and isinstance(value, dict) else None
        if content is None:
            return Subschema(_as_schema(value), parent.at(step))
        known = self._by_content.get(content)
        if known is None:
            known = self._by_content[content] = Subschema(_as_schema(value), parent.at(step))
        return known


def _as_schema(value: JsonValue) -> Schema:
    """That it is one by its type is checked in its turn: complaints come in document order."""
    return cast("Schema", value)
