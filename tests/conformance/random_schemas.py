"""Random schemas over every enforced keyword, with random instances that follow them more often than not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.conformance.schema_walk import SchemaWalk, Subschemas

NAMES = ("a", "b", "ab", "é", '"', "")
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
STRINGS = ("", "a", "b", "ab", "abc", "é", "😀", "a1", "A", "\n", "a\nb", '"', "\u0001c", "aaaa", "0", "_", " ")
NUMBERS = (0, 1, -1, 2, 7, 12, 0.5, -0.5, 0.1, 9.5, 1e-3, 1e21, -(2**63), 2**63 - 1)
BOUNDS = (-2, -1, 0, 0.1, 0.5, 1, 2, 7, 9.5, 12, 1e21)
PATTERNS = (
    *("^a", "b$", "^[a-c]*$", "a.", "^(a|bc)+$", "\\d", "^\\w*$", "é", "^$", "[^a]", "^a|b$", "^.{2}$"),
    *("^[\\s\\S]*$", "\\n", "^a{2,3}", "^(?:a|\\W)?$", '"|a', "^[^\\d]+$"),
)

_DRAFT_04 = "http://json-schema.org/draft-04/schema#"
_DRAFT_07 = "http://json-schema.org/draft-07/schema#"


class RandomSchemas:
    """Draws documents and instances; the same seed draws the same ones."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def document(self) -> Any:
        """A schema document of one of three dialects, with definitions that it may refer to."""
        dialect = self._rng.choice((None, None, None, _DRAFT_07, _DRAFT_04))
        document = self._schema(2, dialect)
        if isinstance(document, dict):
            document["$defs" if dialect is None else "definitions"] = {
                name: self._schema(1, dialect) for name in ("x", "y")
            }
            if dialect is not None:
                document = {"$schema": dialect, **document}
        return document

    def _schema(self, depth: int, dialect: str | None) -> Any:
        rng = self._rng
        if rng.random() < 0.06 and dialect != _DRAFT_04:
            return rng.choice((True, False))
        parts: list[dict[str, Any]] = []
        if rng.random() < 0.15:
            container = "$defs" if dialect is None else "definitions"
            reference = {"$ref": rng.choice(("#", f"#/{container}/x", f"#/{container}/y"))}
            if dialect is not None or rng.random() < 0.5:
                return reference
            parts.append(reference)
        if rng.random() < 0.75:
            types = rng.sample(TYPES, rng.choice((1, 1, 1, 1, 2, 3)))
            parts.append({"type": types[0] if len(types) == 1 else types})
        if rng.random() < 0.12:
            literals = [self.value(2) for _ in range(rng.randint(1, 4))]
            parts.append({"enum": _distinct(literals)} if dialect or rng.random() < 0.6 else {"const": literals[0]})
        makers: tuple[Callable[[int, str | None], dict[str, Any]], ...] = (
            *(self._bounds, self._lengths, self._array, self._object, self._composition),
        )
        for maker in makers:
            if rng.random() < 0.35:
                parts.append(maker(depth, dialect))
        rng.shuffle(parts)
        return {keyword: value for part in parts for keyword, value in part.items()}

    def _bounds(self, _depth: int, dialect: str | None) -> dict[str, Any]:
        bounds: dict[str, Any] = {}
        for keyword, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if self._rng.random() < 0.6:
                bound = self._rng.choice(BOUNDS)
                if dialect == _DRAFT_04:
                    bounds[keyword] = bound
                    if self._rng.random() < 0.4:
                        bounds[exclusive] = self._rng.random() < 0.7
                else:
                    bounds[self._rng.choice((keyword, exclusive))] = bound
        return bounds

    def _lengths(self, _depth: int, _dialect: str | None) -> dict[str, Any]:
        rng = self._rng
        result: dict[str, Any] = {}
        if rng.random() < 0.5:
            result["pattern"] = rng.choice(PATTERNS)
        if rng.random() < 0.4:
            result["minLength"] = rng.randint(0, 3)
        if rng.random() < 0.4:
            result["maxLength"] = rng.randint(0, 4)
        return result

    def _array(self, depth: int, dialect: str | None) -> dict[str, Any]:
        rng = self._rng
        result: dict[str, Any] = {}
        if rng.random() < 0.3:
            result["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.3:
            result["maxItems"] = rng.randint(0, 3)
        if depth == 0:
            return result
        prefix_keyword, items_keyword = ("prefixItems", "items") if dialect is None else ("items", "additionalItems")
        if rng.random() < 0.4:
            result[prefix_keyword] = [self._schema(depth - 1, dialect) for _ in range(rng.randint(1, 3))]
            if rng.random() < 0.5:
                result[items_keyword] = rng.choice((False, self._schema(depth - 1, dialect)))
        elif rng.random() < 0.7:
            result["items"] = self._schema(depth - 1, dialect)
        return result

    def _object(self, depth: int, dialect: str | None) -> dict[str, Any]:
        rng = self._rng
        result: dict[str, Any] = {}
        if rng.random() < 0.7:
            names = rng.sample(NAMES, rng.randint(0, 4))
            result["properties"] = {name: self._schema(max(depth - 1, 0), dialect) for name in names}
        if rng.random() < 0.5:
            result["required"] = rng.sample(NAMES, rng.randint(1, 2))
        if rng.random() < 0.5:
            result["additionalProperties"] = rng.choice((False, self._schema(max(depth - 1, 0), dialect)))
        return result

    def _composition(self, depth: int, dialect: str | None) -> dict[str, Any]:
        if depth == 0:
            return {}
        keywords = self._rng.sample(("allOf", "anyOf", "oneOf"), self._rng.choice((1, 1, 2)))
        return {
            keyword: [self._schema(depth - 1, dialect) for _ in range(self._rng.randint(1, 3))] for keyword in keywords
        }

    def value(self, depth: int) -> Any:
        """Any JSON value."""
        rng = self._rng
        kind = rng.random()
        if depth == 0 or kind < 0.5:
            return rng.choice((None, True, False, rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(STRINGS)))
        if kind < 0.7:
            return [self.value(depth - 1) for _ in range(rng.randint(0, 3))]
        return {name: self.value(depth - 1) for name in rng.sample(NAMES, rng.randint(0, 3))}

    def instance(self, document: Any) -> Any:
        """A value for a document of any kind."""
        walk = SchemaWalk(document)
        return self._instance(walk, walk.root, 4)

    def _instance(self, walk: SchemaWalk, subschemas: Subschemas, depth: int) -> Any:
        rng = self._rng
        # A few of the subschemas that speak of the value: those of one branch, if it is lucky.
        schemas = [schema for schema in subschemas if isinstance(schema, dict) and rng.random() < 0.8]
        if not schemas or depth == 0 or rng.random() < 0.05:
            return self.value(min(depth, 2))
        literals = [literal for schema in schemas for literal in (*schema.get("enum", []), schema.get("const", None))]
        if any("enum" in schema or "const" in schema for schema in schemas) and rng.random() < 0.9:
            return rng.choice(literals)
        types = [kind for schema in schemas if "type" in schema for kind in _as_list(schema["type"])]
        hints = [kind for schema in schemas for kind in _hinted_types(schema)]
        chosen = rng.choice(types or hints or TYPES)
        if chosen == "object":
            declared = [name for schema in schemas for name in (*schema.get("properties", ()),)]
            names = {name for schema in schemas for name in schema.get("required", ())}
            names |= {name for name in declared if rng.random() < 0.5}
            if rng.random() < 0.3:
                names.add(rng.choice(NAMES))
            return {name: self._instance(walk, walk.member(subschemas, name), depth - 1) for name in sorted(names)}
        if chosen == "array":
            least = max((schema.get("minItems", 0) for schema in schemas), default=0)
            return [
                self._instance(walk, walk.element(subschemas, index), depth - 1)
                for index in range(least + rng.choice((0, 0, 1, 2)))
            ]
        bounds = [schema[keyword] for schema in schemas for keyword in schema if keyword.lower().endswith("imum")]
        numbers = [near for bound in bounds if not isinstance(bound, bool) for near in (bound, bound + 1, bound - 0.5)]
        return {
            "string": rng.choice(STRINGS),
            "integer": rng.choice([*(int(number) for number in numbers), 0, 1, -1, 7, 2.0]),
            "number": rng.choice([*numbers, *NUMBERS]),
            "boolean": rng.random() < 0.5,
            "null": None,
        }[chosen]


def loops_in_place(document: Any) -> bool:
    """Whether some schema leads back to itself on the same value: validators differ on what that means."""
    walk = SchemaWalk(document)
    pending: list[Any] = [document]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if _reaches_itself(walk, part):
                return True
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return False


def _reaches_itself(walk: SchemaWalk, schema: dict[str, Any]) -> bool:
    return any(schema is later for part in walk.parts_in_place(schema) for later in walk.closure((part,)))


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _as_list(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _hinted_types(schema: dict[str, Any]) -> list[str]:
    hints = {
        "object": ("properties", "required", "additionalProperties"),
        "array": ("items", "prefixItems", "minItems", "maxItems"),
        "string": ("pattern", "minLength", "maxLength"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
    return [kind for kind, keywords in hints.items() if any(keyword in schema for keyword in keywords)]
