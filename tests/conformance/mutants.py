"""Values one step away from a valid one, made to break an assertion that speaks of the place of the change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.schema_walk import SchemaWalk, Subschemas, same

Path = tuple[str | int, ...]

_OF_EACH_TYPE: tuple[Any, ...] = (None, True, 7, -1.5, "x", [], {})
_EXTRA_NAMES = ("zz", "", "é", '"')


def mutants(walk: SchemaWalk, value: Any) -> Iterator[tuple[str, Any]]:
    """Pairs of a keyword and `value` with one part changed so that this keyword may refuse it; some are valid."""
    for path, part, subschemas in _parts(walk, value):
        for keyword, schema in _assertions(subschemas):
            for changed in _CHANGES[keyword](schema, part):
                if not same(changed, part):
                    yield keyword, _replaced(value, path, changed)


def _parts(walk: SchemaWalk, value: Any) -> Iterator[tuple[Path, Any, Subschemas]]:
    pending: list[tuple[Path, Any, Subschemas]] = [((), value, walk.root)]
    while pending:
        path, part, subschemas = pending.pop()
        yield path, part, subschemas
        if isinstance(part, dict):
            pending += [((*path, name), item, walk.member(subschemas, name)) for name, item in part.items()]
        elif isinstance(part, list):
            pending += [((*path, index), item, walk.element(subschemas, index)) for index, item in enumerate(part)]


def _assertions(subschemas: Subschemas) -> Iterator[tuple[str, dict[str, Any]]]:
    for schema in subschemas:
        if isinstance(schema, dict):
            yield from ((keyword, schema) for keyword in schema if keyword in _CHANGES)


def _replaced(value: Any, path: Path, part: Any) -> Any:
    """`value` with `part` at `path`; what is not on the way there is shared."""
    if not path:
        return part
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], part)  # as deep as an instance, not as a text may be
    return copy


def _other_types(_schema: dict[str, Any], _part: Any) -> list[Any]:
    return list(_OF_EACH_TYPE)


def _other_literals(schema: dict[str, Any], part: Any) -> list[Any]:
    """Other values of the same type, as near as can be."""
    if isinstance(part, bool):
        return [not part, int(part)]
    if isinstance(part, str):
        return [part + "x", part[:-1], part.upper(), part + "\0"]
    if isinstance(part, int | float):
        return [part + 1, part - 1, part + 0.5, str(part)]
    if isinstance(part, list):
        return [[*part, None], part[:-1]]
    if isinstance(part, dict):
        return [{**part, "zz": None}, *({name: part[name] for name in part if name != gone} for gone in part)]
    return [False, 0, "null"]


def _around_bound(keyword: str) -> Callable[[dict[str, Any], Any], list[Any]]:
    def change(schema: dict[str, Any], part: Any) -> list[Any]:
        bound = schema[keyword]
        if isinstance(bound, bool):  # draft 4: the bound itself is the change
            bound = schema["minimum" if keyword == "exclusiveMinimum" else "maximum"]
        if not isinstance(part, int | float) or isinstance(part, bool) or not -1e300 < bound < 1e300:
            return []
        near = float(bound)
        whole = [math.floor(near), math.ceil(near), math.floor(near) - 1, math.ceil(near) + 1]
        return [*whole, bound, math.nextafter(near, -math.inf), math.nextafter(near, math.inf), bound - 0.25]

    return change


def _around_length(keyword: str, step: int) -> Callable[[dict[str, Any], Any], list[Any]]:
    def change(schema: dict[str, Any], part: Any) -> list[Any]:
        count = int(schema[keyword]) + step
        if not isinstance(part, str) or not 0 <= count <= 20_000:
            return []
        missing = count - len(part)
        if missing < 0:
            return [part[:count], part[-count:] if count else ""]
        return [part + filler * missing for filler in ("a", "0", "é", "😀", "\n", part[-1:] or "b")]

    return change


def _other_strings(_schema: dict[str, Any], part: Any) -> list[Any]:
    if not isinstance(part, str):
        return []
    swapped = [part[:index] + other + part[index + 1 :] for index in range(min(len(part), 8)) for other in "0a-☃"]
    return [part[:-1], part[1:], part + "\n", part + "a", " " + part, part.swapcase(), "", "x", *swapped]


def _around_count(keyword: str, step: int) -> Callable[[dict[str, Any], Any], list[Any]]:
    def change(schema: dict[str, Any], part: Any) -> list[Any]:
        count = int(schema[keyword]) + step
        if not isinstance(part, list) or not 0 <= count <= 2000:
            return []
        missing = count - len(part)
        if missing <= 0:
            return [part[:count]]
        fillers = [part[-1], part[0]] if part else list(_OF_EACH_TYPE)
        return [part + [filler] * missing for filler in fillers]

    return change


def _further_elements(_schema: dict[str, Any], part: Any) -> list[Any]:
    if not isinstance(part, list):
        return []
    return [[*part, further] for further in _OF_EACH_TYPE]


def _one_name_less(schema: dict[str, Any], part: Any) -> list[Any]:
    names = schema["required"]
    if not isinstance(part, dict) or not isinstance(names, list):
        return []
    return [{name: item for name, item in part.items() if name != gone} for gone in names]


def _one_name_more(_schema: dict[str, Any], part: Any) -> list[Any]:
    if not isinstance(part, dict):
        return []
    near = [name + "x" for name in list(part)[:2]] + [name[:-1] for name in list(part)[:2]]
    names = [name for name in (*_EXTRA_NAMES, *near) if name not in part]
    return [{**part, name: item} for name in names for item in _OF_EACH_TYPE]


def _other_members(schema: dict[str, Any], part: Any) -> list[Any]:
    """Declared members with values of every type, those that are false schemas among them."""
    if not isinstance(part, dict) or not isinstance(schema["properties"], dict):
        return []
    return [{**part, name: item} for name in schema["properties"] for item in _OF_EACH_TYPE]


_CHANGES: dict[str, Callable[[dict[str, Any], Any], list[Any]]] = {
    **dict.fromkeys(("type", "$ref", "allOf", "anyOf", "oneOf"), _other_types),
    **dict.fromkeys(("const", "enum"), _other_literals),
    **{name: _around_bound(name) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "minLength": _around_length("minLength", -1),
    "maxLength": _around_length("maxLength", 1),
    "pattern": _other_strings,
    "minItems": _around_count("minItems", -1),
    "maxItems": _around_count("maxItems", 1),
    **dict.fromkeys(("items", "prefixItems", "additionalItems"), _further_elements),
    "required": _one_name_less,
    "additionalProperties": _one_name_more,
    "properties": _other_members,
}
