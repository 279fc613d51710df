"""Schema document -> clauses: every keyword checked, in whatever dialect, with references resolved."""

from __future__ import annotations

from collections.abc import Iterator

from infernix.errors import InvalidJsonSchema, InvalidOptions, UnsupportedJsonSchema
from infernix.grammar.schema.check import InnerSchema, check_is_schema, check_keyword, inner_schemas
from infernix.grammar.schema.clause_reader import ClauseReader
from infernix.grammar.schema.clauses import Clauses, Subschema
from infernix.grammar.schema.dialects import Dialect
from infernix.grammar.schema.effects import is_enforced
from infernix.grammar.schema.keywords import NEVER_IGNORED, KeywordPolicy
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.references import References
from infernix.grammar.schema.source import JsonValue


def read_document(value: JsonValue, ignored_keywords: frozenset[str]) -> Document:
    """The schema document `value`: every keyword is well formed, and enforced wherever the root leads.

    Raises InvalidJsonSchema for a malformed keyword anywhere, and UnsupportedJsonSchema for one that would not be
    enforced, unless it is in a definition to which nothing refers; of several, the first in the document.
    `ignored_keywords` are to have no effect; InvalidOptions if an enforced one is among them.
    """
    never_ignored = sorted(ignored_keywords & NEVER_IGNORED)
    if never_ignored:
        raise InvalidOptions(f"{never_ignored[0]!r} is enforced and cannot be ignored", field="ignore_keywords")
    return Document(value, KeywordPolicy(_dialect(value), ignored_keywords))


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

    def __init__(self, value: JsonValue, policy: KeywordPolicy) -> None:
        self._policy = policy
        self._references = References(value, policy)
        # By the identity of the list or object that holds the schema, and its index or name there: containers live as
        # long as the document. Pointers would do as well, but long names above many places make them long.
        self._subschemas: dict[tuple[int, str], Subschema] = {}
        # The schema objects whose keywords have been checked, and those keywords in the order of complaints.
        self._checked: set[Subschema] = set()
        self._keywords: list[tuple[Subschema, str]] = []
        self.root = self._check_forms(InnerSchema(None, "", value, Place()))
        self._clauses = self._read_clauses(self._reached())

    def clauses(self, subschema: Subschema) -> Clauses:
        """What the schema object `subschema`, to which the root leads, asserts. Booleans have no clauses."""
        return self._clauses[subschema]

    def _check_forms(self, start: InnerSchema) -> Subschema:
        """Checks every keyword of `start` and of the schemas below it, in document order."""
        pending: list[Iterator[InnerSchema]] = [iter((start,))]
        while pending:
            inner = next(pending[-1], None)
            if inner is None:
                pending.pop()
                continue
            check_is_schema(inner.value, inner.place, self._policy.dialect)
            subschema = self._subschema(inner)
            if isinstance(subschema.value, dict) and subschema not in self._checked:
                self._checked.add(subschema)
                pending.append(self._check_object(subschema, subschema.value))
        return self._subschema(start)

    def _check_object(self, subschema: Subschema, schema: dict[str, JsonValue]) -> Iterator[InnerSchema]:
        """Checks the keywords one by one, and between them yields the schemas inside."""
        if self._policy.is_foreign(schema):
            # Refused where it is reached; what it says cannot be judged by the rules of this dialect.
            self._keywords.append((subschema, "$schema"))
            return
        for keyword in schema:
            self._keywords.append((subschema, keyword))
            if keyword in self._policy.words:
                place = subschema.place.at(keyword)
                check_keyword(schema, keyword, place, self._policy.dialect)
                yield from inner_schemas(schema, keyword, place)

    def _reached(self) -> set[Subschema]:
        """The schema objects to which enforced keywords lead from the root."""
        reached: set[Subschema] = set()
        pending = [self.root]
        while pending:
            subschema = pending.pop()
            schema = subschema.value
            if subschema in reached or not isinstance(schema, dict):
                continue
            reached.add(subschema)
            for keyword in () if self._policy.is_foreign(schema) else schema:
                if keyword in self._policy.enforced:
                    pending.extend(self._led_to(schema, keyword, subschema.place))
        return reached

    def _led_to(self, schema: dict[str, JsonValue], keyword: str, place: Place) -> list[Subschema]:
        try:
            if not is_enforced(schema, keyword, place, self._policy):
                return []
            target = self._target(schema, place) if keyword == "$ref" else None
        except (InvalidJsonSchema, UnsupportedJsonSchema):
            return []  # `_read_clauses` comes back to it, unless there is an earlier complaint
        if target is not None:
            # A place to which no word of the specification leads has not been checked yet.
            return [self._check_forms(target)]
        return self._inner(schema, keyword, place)

    def _read_clauses(self, reached: set[Subschema]) -> dict[Subschema, Clauses]:
        readers: dict[Subschema, ClauseReader] = {}
        for subschema, keyword in self._keywords:
            schema, place = subschema.value, subschema.place
            assert isinstance(schema, dict)
            if subschema not in reached or not is_enforced(schema, keyword, place, self._policy):
                continue
            if subschema not in readers:
                readers[subschema] = ClauseReader(schema, place, self._policy.dialect)
            reader = readers[subschema]
            if keyword == "$ref":
                reader.refer(self._subschema(self._target(schema, place)))
            else:
                reader.read(keyword, self._inner(schema, keyword, place))
        return {
            subschema: readers[subschema].clauses() if subschema in readers else Clauses(subschema.place)
            for subschema in reached
        }

    def _inner(self, schema: dict[str, JsonValue], keyword: str, place: Place) -> list[Subschema]:
        return [self._subschema(inner) for inner in inner_schemas(schema, keyword, place.at(keyword))]

    def _target(self, schema: dict[str, JsonValue], place: Place) -> InnerSchema:
        reference = schema["$ref"]
        assert isinstance(reference, str)
        return self._references.resolve(reference, place.at("$ref"))

    def _subschema(self, inner: InnerSchema) -> Subschema:
        key = id(inner.container), inner.step
        found = self._subschemas.get(key)
        if found is None:
            assert isinstance(inner.value, bool | dict)
            found = self._subschemas[key] = Subschema(inner.value, inner.place)
        return found
