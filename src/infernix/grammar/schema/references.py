"""Where a reference leads: to a schema of the same document, or to an error that says why not."""

from __future__ import annotations

from enum import Enum
from urllib.parse import urljoin

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.schema.check import ONE_SCHEMA, SCHEMA_LIST, SCHEMA_MAP, Container, InnerSchema
from infernix.grammar.schema.keywords import DESCRIPTIONS, KeywordPolicy
from infernix.grammar.schema.pointers import Place, array_index, parse_reference
from infernix.grammar.schema.source import JsonValue


class _Position(Enum):
    """What stands at a point of the way to the target."""

    SCHEMA = "schema"
    SCHEMAS = "schemas"
    """A list or an object of schemas."""
    FREE = "free"
    """Below a word that no specification knows: anything."""
    VALUE = "value"
    """No schema, and nothing below is one."""


class References:
    """Resolves the references of one document."""

    def __init__(self, document: JsonValue, policy: KeywordPolicy) -> None:
        self._document = document
        self._policy = policy
        keyword = policy.dialect.identity_keyword
        identity = document.get(keyword) if isinstance(document, dict) and keyword not in policy.ignored else None
        self._base = identity.partition("#")[0] if isinstance(identity, str) else ""
        self._targets: dict[str, InnerSchema] = {}

    def resolve(self, reference: str, place: Place) -> InnerSchema:
        """What `reference`, the well-formed value of the `$ref` at `place`, leads to: an object or a boolean.

        Raises InvalidJsonSchema if it leads to no schema, UnsupportedJsonSchema if it leaves the document.
        """
        if reference not in self._targets:
            self._targets[reference] = self._find(reference, place)
        return self._targets[reference]

    def _find(self, reference: str, place: Place) -> InnerSchema:
        try:
            steps = parse_reference(self._local_part(reference))
        except ValueError as error:
            raise InvalidJsonSchema(f"malformed reference: {error}", place.pointer) from None
        if steps is None:
            raise UnsupportedJsonSchema("only references inside the document ('#', '#/…') are supported", place.pointer)
        value, position = self._document, _Position.SCHEMA
        container: Container | None = None
        for index, step in enumerate(steps):
            if isinstance(value, dict) and index and position in (_Position.SCHEMA, _Position.FREE):
                self._check_boundary(value, place)
            position = self._below(position, step)
            if isinstance(value, dict) and step in value:
                container, value = value, value[step]
            elif isinstance(value, list) and (number := array_index(step, len(value))) is not None:
                container, value = value, value[number]
            else:
                raise InvalidJsonSchema(f"the reference {reference[:100]!r} leads nowhere", place.pointer)
            if isinstance(value, list) and position is _Position.SCHEMA:
                # `items` with one schema a position, or the names in `dependencies`.
                position = _Position.SCHEMAS if step == "items" else _Position.VALUE
        if position is _Position.VALUE:
            raise UnsupportedJsonSchema(
                f"the reference {reference[:100]!r} leads to a value that is not a schema", place.pointer
            )
        if position is _Position.SCHEMAS or not isinstance(value, bool | dict):
            raise InvalidJsonSchema(f"the reference {reference[:100]!r} leads to no schema", place.pointer)
        return InnerSchema(container, steps[-1] if steps else "", value, Place().at(*steps) if steps else Place())

    def _local_part(self, reference: str) -> str:
        """The fragment of a reference that names the document itself, else the whole reference."""
        resource, hash_sign, fragment = reference.partition("#")
        if hash_sign and not resource:
            return reference
        # A relative reference starts from the document's own identity (RFC 3986, section 5).
        try:
            is_own = urljoin(self._base, resource) == self._base
        except ValueError:  # no URI at all
            is_own = False
        return f"#{fragment}" if is_own else reference

    def _below(self, position: _Position, step: str) -> _Position:
        """What stands at `step` below something, apart from arrays where there may be one schema as well."""
        if position is _Position.SCHEMAS:
            return _Position.SCHEMA
        if position is not _Position.SCHEMA:
            return position
        if step in DESCRIPTIONS:
            return _Position.VALUE
        if step not in self._policy.words:
            return _Position.FREE
        if step in SCHEMA_MAP or step in SCHEMA_LIST or step == "dependencies":
            return _Position.SCHEMAS
        return _Position.SCHEMA if step in ONE_SCHEMA or step == "items" else _Position.VALUE

    def _check_boundary(self, schema: dict[str, JsonValue], place: Place) -> None:
        """A schema with its own identity or dialect would change what references through it and inside it mean."""
        keyword = self._policy.dialect.identity_keyword
        if isinstance(schema.get(keyword), str) and keyword not in self._policy.ignored:
            raise UnsupportedJsonSchema(f"a reference through a schema with its own {keyword!r}", place.pointer)
        if self._policy.is_foreign(schema):
            raise UnsupportedJsonSchema("a reference through a schema of another dialect", place.pointer)
