"""Finite values at the level of the lowering: one spelling each, whitespace between tokens, sizes, depth."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from infernix.grammar import ir
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.literals import canonical_number, lower_literals
from infernix.grammar.schema.source import JsonNumber, JsonValue, parse_source
from infernix.matching.network import build_network
from support.recognizer import Recognizer


def grammar_of(values: list[JsonValue]) -> ir.Grammar:
    builder = ir.GrammarBuilder()
    return builder.build(builder.add("root", lower_literals(tuple(values), JsonRules(builder))))


def grammar_of_text(text: str) -> ir.Grammar:
    values = parse_source(text)
    assert isinstance(values, list)
    return grammar_of(values)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("-12.50", "-12.5"),
        ("0.1", "0.1"),
        ("5e-324", "5e-324"),
        ("1.5E-7", "1.5e-07"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_a_number_has_one_spelling(text: str, spelling: str) -> None:
    assert canonical_number(JsonNumber(text)) == spelling.encode()
    assert float(spelling) == float(text)
    language = Recognizer(grammar_of([JsonNumber(text)]))
    assert language.matches(spelling.encode())
    assert language.matches(text.encode()) == (text == spelling)


def test_equal_spellings_are_one_literal() -> None:
    assert grammar_of_text("[1, 1.0, 10e-1]") == grammar_of_text("[1]")
    assert grammar_of_text('["\\u0041", "A"]') == grammar_of_text('["A"]')
    assert grammar_of_text('[{"a": [1.0]}, {"a": [1]}]') == grammar_of_text('[{"a": [1]}]')


def test_no_values_are_no_language() -> None:
    assert Recognizer(grammar_of([])).is_empty


def test_a_value_may_begin_another_one() -> None:
    recognizer = Recognizer(grammar_of_text('[1, 12, 1.5, -1, "", "a", "ab", [], [[]], [1], [1, 2], {}, {"a": 1}]'))
    for text in ["1", "12", "1.5", "-1", '""', '"a"', '"ab"', "[]", "[[]]", "[1]", "[1,2]", "{}", '{"a":1}']:
        assert recognizer.matches(text.encode()), text
    for text in ["", "-", "1.", "2", "123", '"', '"b"', '"abc"', "[2]", "[1,2,3]", "[[],[]]", '{"a":2}', "[1", "{"]:
        assert not recognizer.matches(text.encode()), text


@pytest.mark.parametrize("extra", [0, 1])
def test_whitespace_stands_between_tokens_only(extra: int) -> None:
    recognizer = Recognizer(grammar_of_text('[{"a b": [1.5, {}], "c": [[]]}]'))
    tokens = ["{", '"a b"', ":", "[", "1.5", ",", "{", "}", "]", ",", '"c"', ":", "[", "[", "]", "]", "}"]
    assert recognizer.matches("".join(tokens).encode())
    for slot in range(1, len(tokens)):
        text = "".join(tokens[:slot]) + "\n" + " " * (31 + extra) + "".join(tokens[slot:])
        assert recognizer.matches(text.encode()) == (extra == 0), text
    for text in (" " + "".join(tokens), "".join(tokens) + " ", "".join(tokens).replace("a b", "a  b")):
        assert not recognizer.matches(text.encode())
    assert not recognizer.matches("".join(tokens).replace("1.5", "1. 5").encode())


TEXTS = ["", "a", "ab", "é", "日本", "😀", '"', "\\", "/", "\n\x00\x1f", "\x7f\u2028", "</think>", " "]


def random_value(generator: random.Random, depth: int) -> Any:
    kind = generator.random()
    if depth == 0 or kind < 0.6:
        return generator.choice([None, True, False, 0, 1, -7, 0.5, -2.25, *TEXTS])
    items = [random_value(generator, depth - 1) for _ in range(generator.randint(0, 3))]
    return items if kind < 0.8 else dict(zip(generator.sample(TEXTS, len(items)), items, strict=True))


def identity(value: Any) -> str:
    """Equal for the same value with its members in the same order."""
    return json.dumps(value)


@pytest.mark.parametrize("seed", range(4))
def test_random_values(seed: int) -> None:
    generator = random.Random(seed)
    num_outside = 0
    for _ in range(30):
        values = [random_value(generator, 3) for _ in range(generator.randint(1, 8))]
        recognizer = Recognizer(grammar_of_text(json.dumps(values)))
        others = [random_value(generator, 3) for _ in range(8)]
        others += [dict(reversed(value.items())) for value in values if isinstance(value, dict)]
        known = {identity(value) for value in values}
        for value in values + others:
            expected = identity(value) in known
            num_outside += not expected
            for indent in (None, 0, 3, "\t"):
                text = json.dumps(value, ensure_ascii=False, indent=indent)
                assert recognizer.matches(text.encode()) == expected, (values, text)
    assert num_outside > 50


def test_values_as_deep_as_one_likes() -> None:
    array: JsonValue = JsonNumber("1")
    for _ in range(2000):
        array = [array]
    member: JsonValue = None
    for _ in range(2000):
        member = {"a": member}
    arrays, members = "[" * 2000 + "1" + "]" * 2000, '{"a":' * 2000 + "null" + "}" * 2000
    recognizer = Recognizer(grammar_of([array, member]))
    assert recognizer.matches(arrays.encode())
    assert recognizer.matches(members.encode())
    assert not recognizer.matches(arrays[1:-1].encode())
    assert not recognizer.matches(members[:-1].encode())


def scalars(count: int) -> list[JsonValue]:
    generator = random.Random(count)
    return ["".join(generator.choices("abcdefgh ", k=20)) for _ in range(count)]


def objects(count: int) -> list[JsonValue]:
    return [{"number": JsonNumber(str(index)), "name": text} for index, text in enumerate(scalars(count))]


@pytest.mark.parametrize("make", [scalars, objects])
def test_the_size_is_linear_in_the_number_of_values(make: Any) -> None:
    small, large = (build_network(grammar_of(make(count))).num_states for count in (500, 4000))
    assert large < 9 * small


def test_equal_beginnings_are_shared() -> None:
    plain = build_network(grammar_of(["x" * 200 + str(index) for index in range(10)])).num_states
    many = build_network(grammar_of(["x" * 200 + str(index) for index in range(1000)])).num_states
    assert many < plain + 10
