"""What a tool that is not strict says of its arguments' types.

Its schema constrains nothing. It tells only whether a value that was written as free text is meant as a string or as
JSON; so everything in it that is not simple is passed over.
"""

from __future__ import annotations

from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ArgumentContract, ArgumentEncoding
from infernix.grammar.schema.check import TYPE_NAMES
from infernix.grammar.schema.source import JsonValue, parse_source

_PRIMITIVE = frozenset(TYPE_NAMES) - {"object", "array"}


def hinted_contracts(parameters: str, style: ToolStyle) -> dict[str, ArgumentContract]:
    """The declared arguments; those that are not declared are HINTED without a hint.

    Raises InvalidJsonSchema and ConstraintTooLarge for a text that `parse_source` refuses; ValueError for one that is
    no object.
    """
    document = parse_source(parameters)
    if not isinstance(document, dict):
        raise ValueError("the schema of arguments is an object")
    properties = document.get("properties")
    if not isinstance(properties, dict):
        return {}
    contracts = {}
    for name, schema in properties.items():
        hint = _declared_types(schema)
        if style is ToolStyle.JSON:
            encoding = ArgumentEncoding.JSON
        else:
            is_string = hint is not None and "string" in hint
            encoding = ArgumentEncoding.TEXT if is_string else ArgumentEncoding.HINTED
        contracts[name] = ArgumentContract(name, encoding, hint)
    return contracts


def _declared_types(schema: JsonValue) -> frozenset[str] | None:
    """A direct `type`, or an `anyOf` or `oneOf` of nothing but explicit primitive types; None otherwise."""
    if not isinstance(schema, dict):
        return None
    if "type" in schema:
        return _type_names(schema["type"])
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if not isinstance(branches, list) or not branches:
            continue
        names: frozenset[str] = frozenset()
        for branch in branches:
            of_branch = _type_names(branch.get("type")) if isinstance(branch, dict) else None
            if of_branch is None or not of_branch <= _PRIMITIVE:
                return None
            names |= of_branch
        return names
    return None


def _type_names(value: JsonValue) -> frozenset[str] | None:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name in TYPE_NAMES for name in names):
        return None
    return frozenset(name for name in names if isinstance(name, str))
