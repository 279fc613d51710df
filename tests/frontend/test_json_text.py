from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from infernix.frontend.json_text import json_type, object_members, value_end

DEPTH = 200_000


def loaded(text: str) -> Any:
    """The value of a JSON text; ValueError where it is none."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def random_value(rng: Random, depth: int = 3) -> Any:
    kind = rng.randrange(7 if depth else 4)
    if kind == 0:
        return rng.choice([0, -1, 12, 1.5, -0.25, 1e300, 10**20])
    if kind == 1:
        return rng.choice([True, False, None])
    if kind in (2, 3):
        return "".join(rng.choices('a"\\\n\u2028é😀/ ', k=rng.randint(0, 4)))
    if kind == 4:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {str(rng.randint(0, 5)): random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))}


def test_what_is_json_is_what_a_parser_takes() -> None:
    """Valid texts in several layouts, and each of them with one character changed, taken away or put in."""
    rng = Random(3)
    num_valid = num_invalid = 0
    for _ in range(4000):
        layout = {"indent": rng.choice([None, 1]), "ensure_ascii": rng.random() < 0.5}
        text = json.dumps(random_value(rng), **layout)  # type: ignore[arg-type]
        if rng.random() < 0.7:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(["", *'{}[]",:\\ 01e.-tn\n\x00']) + text[at + rng.randint(0, 1) :]
        try:
            loaded(text)
        except ValueError:
            num_invalid += 1
            assert json_type(text) is None, text
        else:
            num_valid += 1
            assert json_type(text) is not None, text
    assert min(num_valid, num_invalid) > 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "object"),
        (" [1 , 2]\t", "array"),
        ('"a"', "string"),
        ("true", "boolean"),
        ("false", "boolean"),
        ("null", "null"),
        ("-0", "integer"),
        ("1.0", "integer"),
        ("1.50e1", "integer"),
        ("15e-1", "number"),
        ("150e-1", "integer"),
        ("1.05", "number"),
        ("0.0e-999999999999999999999999", "integer"),
        ("1e999999999999999999999999", "integer"),
        ("1e-999999999999999999999999", "number"),
        ("1" + "0" * 10_000 + "e-10000", "integer"),
        ("1" + "0" * 10_000 + "e-10001", "number"),
        ("NaN", None),
        ("Infinity", None),
        ("True", None),
        ("01", None),
        ("1.", None),
        ("+1", None),
        ("'a'", None),
        ("", None),
        ("  ", None),
        ("1 2", None),
        ("\u0661", None),
        ("\u00a01", None),
        ('"\t"', None),
    ],
)
def test_the_type_of_a_text(text: str, expected: str | None) -> None:
    assert json_type(text) == expected


def test_depth_and_length_are_no_problem() -> None:
    assert json_type("[" * DEPTH + "]" * DEPTH) == "array"
    assert json_type('{"a":' * DEPTH + "1" + "}" * DEPTH) == "object"
    assert json_type("[" * DEPTH) is None
    assert json_type('"' + "\\n" * DEPTH + '"') == "string"


def test_a_value_ends_where_it_ends() -> None:
    assert value_end('x{"a": [1, "]"]} y', 1) == 16
    assert value_end("12 ") == 2
    assert value_end('{"a" 1}') is None


def test_members_are_given_as_they_are_written() -> None:
    text = ' { "a" : 1.0 , "\\u0061":{"b": [ ]}}\n'
    assert object_members(text) == [('"a"', "1.0"), ('"\\u0061"', '{"b": [ ]}')]
    assert object_members("{}") == []
    assert object_members("[1]") is None
    assert object_members('{"a":}') is None
