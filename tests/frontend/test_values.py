from __future__ import annotations

import json
from random import Random

import pytest

from infernix.frontend.values import NormalizedValue, normalized_value, string_fragment, string_value

INTEGER, NUMBER, BOOLEAN = frozenset({"integer"}), frozenset({"number"}), frozenset({"boolean"})


@pytest.mark.parametrize(
    ("text", "hint", "expected", "is_mismatch"),
    [
        # A string is what stands there, and everything is one.
        (" a\n", frozenset({"string"}), '" a\\n"', False),
        ("", frozenset({"string"}), '""', False),
        ("12", frozenset({"string", "integer"}), '"12"', False),
        # Other types: white space is framing, JSON is taken as it is written.
        (" 12\n", INTEGER, "12", False),
        ("12.0", INTEGER, "12.0", False),
        ("1.5", INTEGER, "1.5", True),
        ("1.5", NUMBER, "1.5", False),
        ("12", NUMBER, "12", False),
        ("null", INTEGER, "null", True),
        ('{"a":  1}', frozenset({"object"}), '{"a":  1}', False),
        ("[1]", frozenset({"object"}), "[1]", True),
        ("true", BOOLEAN, "true", False),
        ("True", BOOLEAN, "true", False),
        (" FALSE ", BOOLEAN, "false", False),
        ("True", INTEGER, '"True"', True),
        (" yes ", BOOLEAN, '"yes"', True),
        ("1e5x", NUMBER, '"1e5x"', True),
        ("", INTEGER, None, False),
        (" \n\t", INTEGER, None, False),
        # Nothing declared.
        ("12", None, "12", False),
        (" [1]\n", None, "[1]", False),
        (" a ", None, '" a "', False),
        ("", None, '""', False),
        ("True", None, '"True"', False),
        ("\u00a01", INTEGER, '"\u00a01"', True),
    ],
)
def test_normalisation(text: str, hint: frozenset[str] | None, expected: str | None, is_mismatch: bool) -> None:
    assert normalized_value(text, hint) == NormalizedValue(expected, is_mismatch)


def test_fragments_join_to_the_string() -> None:
    rng = Random(4)
    for _ in range(500):
        text = "".join(rng.choices('a"\\\n\r\t\b\x00\x1f\x7f/é在😀\u2028', k=rng.randint(0, 12)))
        cut = rng.randint(0, len(text))
        assert string_fragment(text[:cut]) + string_fragment(text[cut:]) == string_fragment(text)
        assert json.loads(string_value(text)) == text


def test_a_value_of_any_depth_is_normalised() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert normalized_value(deep, frozenset({"array"})) == NormalizedValue(deep)
