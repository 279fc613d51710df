"""A plain walk over a schema beside an instance: which subschemas speak of which part, and in which order names stand.

It shares nothing with the compiler, and it only has to guess well: the writer in `published_form` tries other orders
where a guess is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

Subschemas = tuple[Any, ...]
"""Schema objects and booleans that speak of the same value."""

OWN_PROPERTIES_FIRST = "own properties first"
KEYWORD_ORDER = "keyword order"
DOCUMENT_ORDER = "document order"
ORDERS = (OWN_PROPERTIES_FIRST, KEYWORD_ORDER, DOCUMENT_ORDER)

_UNIONS = frozenset({"anyOf", "oneOf"})
_IN_PLACE = ("allOf", "anyOf", "oneOf", "$ref")


class SchemaWalk:
    """The parts of one schema document.

    With a number for `branch`, of every anyOf and oneOf only the branch of that number speaks (counted round where
    there are fewer); without, all of them do.
    """

    def __init__(self, document: Any, branch: int | None = None) -> None:
        self.document = document
        self._branch = branch
        self._positions = {id(part): index for index, part in enumerate(_parts(document))}

    @property
    def root(self) -> Subschemas:
        """What speaks of the whole value."""
        return self.closure((self.document,))

    def closure(self, subschemas: Subschemas) -> Subschemas:
        """`subschemas` and all that they bring in on the same value by allOf, anyOf, oneOf and `$ref`."""
        found: dict[int, Any] = {}
        pending = list(reversed(subschemas))
        while pending:
            schema = pending.pop()
            if id(schema) in found:
                continue
            found[id(schema)] = schema
            if isinstance(schema, dict):
                pending.extend(reversed(self.parts_in_place(schema)))
        return tuple(found.values())

    def parts_in_place(self, schema: dict[str, Any]) -> list[Any]:
        """What one schema object brings in on the same value, by itself."""
        return [part for keyword in schema for part in self._in_place(schema, keyword)]

    def _in_place(self, schema: dict[str, Any], keyword: str) -> list[Any]:
        if keyword not in _IN_PLACE:
            return []
        if keyword == "$ref":
            target = resolve(self.document, schema["$ref"])
            return [] if target is None else [target]
        branches = schema[keyword]
        if not isinstance(branches, list) or not branches:
            return []
        if keyword == "allOf" or self._branch is None:
            return branches
        return [branches[self._branch % len(branches)]]

    @property
    def num_branches(self) -> int:
        """The most branches that any anyOf or oneOf has."""
        lists = [
            part[word] for part in _parts(self.document) if isinstance(part, dict) for word in _UNIONS & part.keys()
        ]
        return max((len(branches) for branches in lists if isinstance(branches, list)), default=0)

    def member(self, subschemas: Subschemas, name: str) -> Subschemas:
        """What speaks of the member `name` of an object that `subschemas` speak of."""
        found = []
        for schema in _objects(subschemas):
            literals = [literal[name] for literal in _literals(schema) if isinstance(literal, dict) and name in literal]
            if literals:
                found.append({"enum": literals})
            properties = schema.get("properties")
            if isinstance(properties, dict) and name in properties:
                found.append(properties[name])
            elif "additionalProperties" in schema:
                found.append(schema["additionalProperties"])
        return self.closure(tuple(found))

    def element(self, subschemas: Subschemas, index: int) -> Subschemas:
        """What speaks of the element `index` of an array that `subschemas` speak of."""
        found = []
        for schema in _objects(subschemas):
            literals = [item[index] for item in _literals(schema) if isinstance(item, list) and index < len(item)]
            if literals:
                found.append({"enum": literals})
            items = schema.get("items")
            prefix = items if isinstance(items, list) else schema.get("prefixItems", [])
            if isinstance(prefix, list) and index < len(prefix):
                found.append(prefix[index])
            elif isinstance(items, list):
                found.append(schema.get("additionalItems", True))
            elif items is not None:
                found.append(items)
        return self.closure(tuple(found))

    def ordered_names(self, subschemas: Subschemas, value: dict[str, Any], order: str) -> list[str]:
        """The names of `value`: as in an equal literal, else the declared ones, the required ones, and all others."""
        schemas = list(_objects(subschemas))
        for schema in schemas:
            for literal in _literals(schema):
                if isinstance(literal, dict) and same(literal, value):
                    return list(literal)
        if order == KEYWORD_ORDER:
            declared = [name for schema in subschemas for name in self._names_by_keyword(schema)]
        else:
            if order == DOCUMENT_ORDER:
                schemas.sort(key=lambda schema: self._positions.get(id(schema), 0))
            declared = [name for schema in schemas for name in _mapping(schema, "properties")]
        required = [name for schema in schemas for name in _required(schema)]
        return [name for name in dict.fromkeys([*declared, *required, *value]) if name in value]

    def _names_by_keyword(self, schema: Any) -> list[str]:
        """The declared names where all keywords on the same value are gone through in the order they are written."""
        names: list[str] = []
        seen: set[int] = set()
        pending: list[Any] = [schema]
        while pending:
            part = pending.pop()
            if isinstance(part, str):
                names.append(part)
            elif isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
                inside: list[Any] = []
                for keyword in part:
                    if keyword == "properties":
                        inside.extend(_mapping(part, keyword))
                    else:
                        inside.extend(self._in_place(part, keyword))
                pending.extend(reversed(inside))
        return names


def resolve(document: Any, reference: Any) -> Any:
    """What a reference into the same document leads to, None where it leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#") or reference[1:2] not in ("", "/"):
        return None
    target = document
    for step in unquote(reference[1:]).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            target = target[int(step) if isinstance(target, list) else step]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return target


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values: `1` and `1.0` are equal, `1` and `true` are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)


def _objects(subschemas: Subschemas) -> Iterator[dict[str, Any]]:
    return (schema for schema in subschemas if isinstance(schema, dict))


def _literals(schema: dict[str, Any]) -> list[Any]:
    values = schema.get("enum")
    return [*([schema["const"]] if "const" in schema else []), *(values if isinstance(values, list) else [])]


def _mapping(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _required(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def _parts(document: Any) -> Iterator[Any]:
    """Everything in a document in the order it is written."""
    pending = [document]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, dict):
            pending.extend(reversed(part.values()))
        elif isinstance(part, list):
            pending.extend(reversed(part))
