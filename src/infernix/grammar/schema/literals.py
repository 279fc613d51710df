"""`const` and `enum` -> ir: each value in one spelling, whitespace free between the tokens of objects and arrays.

Many values are a plain choice of their spellings. Making it deterministic, as every rule is made, shares their equal
beginnings: that is the prefix tree, and it takes time linear in their bytes.
"""

from __future__ import annotations

from infernix.grammar.ir import Expression, Literal, choice, sequence
from infernix.grammar.json_values import JsonRules, canonical_string
from infernix.grammar.schema.source import JsonNumber, JsonValue
from infernix.grammar.schema.values import number_value

_CONSTANTS = {None: b"null", True: b"true", False: b"false"}


def lower_literals(values: tuple[JsonValue, ...], rules: JsonRules) -> Expression:
    """One of `values`: strings and names in canonical escapes, members in the schema's order, numbers as
    `canonical_number` writes them. Values with the same spelling (`1` and `1.0`) are one."""
    spellings = dict.fromkeys(
        [(canonical_string(value),) if isinstance(value, str) else tuple(_tokens(value)) for value in values]
    )
    return choice(*[_lower_tokens(tokens, rules) for tokens in spellings])


def canonical_number(number: JsonNumber) -> bytes:
    """Digits alone for an integer, however the source writes it (`1.0`, `1e2`, `-0`), else the shortest text of the
    binary64 value. No integer in `const` or `enum` is outside signed 64-bit: reading the schema refuses it."""
    value = number_value(number)
    return (str(value.numerator) if value.denominator == 1 else repr(float(number.text))).encode()


def _tokens(value: JsonValue) -> list[bytes]:
    """The tokens of JSON (RFC 8259, section 2) that `value` is written with."""
    tokens: list[bytes] = []
    # Bytes are tokens already.
    pending: list[JsonValue | bytes] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, bytes):
            tokens.append(part)
        elif isinstance(part, str):
            tokens.append(canonical_string(part))
        elif isinstance(part, JsonNumber):
            tokens.append(canonical_number(part))
        elif isinstance(part, dict):
            pending.append(b"}")
            for index, (name, item) in reversed(list(enumerate(part.items()))):
                pending += (item, b":", canonical_string(name))
                if index:
                    pending.append(b",")
            pending.append(b"{")
        elif isinstance(part, list):
            pending.append(b"]")
            for index, item in reversed(list(enumerate(part))):
                pending.append(item)
                if index:
                    pending.append(b",")
            pending.append(b"[")
        else:
            tokens.append(_CONSTANTS[part])
    return tokens


def _lower_tokens(tokens: tuple[bytes, ...], rules: JsonRules) -> Expression:
    if len(tokens) == 1:
        return Literal(tokens[0])
    items: list[Expression] = []
    for index, token in enumerate(tokens):
        if index:
            items.append(rules.whitespace_after(tokens[index - 1]))
        items.append(Literal(token))
    return sequence(*items)
