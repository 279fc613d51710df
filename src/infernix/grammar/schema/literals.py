"""`const` and `enum` -> ir: each value in one spelling, whitespace free between the tokens of objects and arrays."""

from __future__ import annotations

from infernix.grammar.ir import Expression, Literal, choice, sequence
from infernix.grammar.json_values import JsonRules, canonical_string
from infernix.grammar.schema.source import JsonNumber, JsonValue
from infernix.grammar.schema.values import number_value


def lower_literals(values: tuple[JsonValue, ...], rules: JsonRules) -> Expression:
    """One of `values`: strings and names in canonical escapes, members in the schema's order, numbers as
    `canonical_number` writes them. Values with the same spelling (`1` and `1.0`) are one."""
    spellings = dict.fromkeys(tuple(_tokens(value)) for value in values)
    return choice(*(_lower_tokens(tokens, rules) for tokens in spellings))


def canonical_number(number: JsonNumber) -> bytes:
    """Digits alone for an integer, however the source writes it (`1.0`, `1e2`, `-0`), else the shortest text of the
    binary64 value."""
    value = number_value(number)
    return (str(value.numerator) if value.denominator == 1 else repr(float(number.text))).encode()


def _tokens(value: JsonValue) -> list[bytes]:
    tokens: list[bytes] = []
    _append_tokens(value, tokens)
    return tokens


def _append_tokens(value: JsonValue, tokens: list[bytes]) -> None:
    if isinstance(value, dict):
        tokens.append(b"{")
        for index, (name, item) in enumerate(value.items()):
            tokens.extend([b",", canonical_string(name), b":"] if index else [canonical_string(name), b":"])
            _append_tokens(item, tokens)
        tokens.append(b"}")
    elif isinstance(value, list):
        tokens.append(b"[")
        for index, item in enumerate(value):
            if index:
                tokens.append(b",")
            _append_tokens(item, tokens)
        tokens.append(b"]")
    elif isinstance(value, str):
        tokens.append(canonical_string(value))
    elif isinstance(value, JsonNumber):
        tokens.append(canonical_number(value))
    else:
        tokens.append({None: b"null", True: b"true", False: b"false"}[value])


def _lower_tokens(tokens: tuple[bytes, ...], rules: JsonRules) -> Expression:
    items: list[Expression] = []
    for index, token in enumerate(tokens):
        if index:
            items.append(rules.whitespace)
        items.append(Literal(token))
    return sequence(*items)
