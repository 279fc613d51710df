"""Strings: patterns, lengths and forbidden texts together, in both written forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar import ir
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import Pattern, StringNode
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.strings import (
    admits_raw_string,
    admits_string,
    has_raw_string,
    has_string,
    lower_raw_string,
    lower_string,
)
from support.random_patterns import PATTERNS, python_pattern, texts
from support.recognizer import Recognizer

TEXTS = texts(4)
DELIMITER = "\n</parameter>"


def node(*patterns: str, minimum: int = 0, maximum: int | None = None) -> StringNode:
    place = Place().at("pattern")
    return StringNode(minimum, maximum, tuple(Pattern(text, place) for text in patterns))


def grammar_of(string: StringNode) -> ir.Grammar:
    builder = ir.GrammarBuilder()
    body = lower_string(string, JsonRules(builder))
    return builder.build(builder.add("root", body))


def json_text(value: str) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@settings(max_examples=150, deadline=None)
@given(st.lists(PATTERNS, max_size=3), st.integers(0, 3), st.none() | st.integers(0, 4), st.data())
def test_all_patterns_and_the_length_hold_together(
    patterns: list[str], minimum: int, maximum: int | None, data: st.DataObject
) -> None:
    string = node(*patterns, minimum=minimum, maximum=maximum)
    searches = [python_pattern(pattern) for pattern in patterns]
    expected = {
        text
        for text in TEXTS
        if all(search.search(text) for search in searches)
        and len(text) >= minimum
        and (maximum is None or len(text) <= maximum)
    }
    assert {text for text in TEXTS if admits_string(string, text)} == expected
    assert has_string(string) or not expected
    assert expected or not has_string(string) or maximum is None
    recognizer = Recognizer(grammar_of(string))
    samples = data.draw(st.lists(st.sampled_from(TEXTS), min_size=10, max_size=10))
    for text in [*samples, *sorted(expected)[:5]]:
        assert recognizer.matches(json_text(text)) == (text in expected), text


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PATTERNS, max_size=2), st.none() | st.integers(0, 4), st.text("ab\n", min_size=1, max_size=3), st.data()
)
@example([], 4, "\na", None)
@example(["^a*$"], 4, "\na", None)
def test_forbidden_texts(patterns: list[str], maximum: int | None, forbidden: str, data: st.DataObject | None) -> None:
    string = node(*patterns, maximum=maximum)
    searches = [python_pattern(pattern) for pattern in patterns]
    expected = {
        text
        for text in TEXTS
        if all(search.search(text) for search in searches)
        and (maximum is None or len(text) <= maximum)
        and forbidden not in text
    }
    assert {text for text in TEXTS if admits_raw_string(string, text, forbidden)} == expected
    assert has_raw_string(string, forbidden) or not expected
    recognizer = Recognizer(ir.Grammar.of(lower_raw_string(string, forbidden)))
    samples = TEXTS if data is None else data.draw(st.lists(st.sampled_from(TEXTS), min_size=10, max_size=10))
    for text in [*samples, *sorted(expected)[:5]]:
        assert recognizer.matches(text.encode()) == (text in expected), text


@pytest.mark.parametrize(
    ("string", "inside", "outside"),
    [
        (node("^\\d{4}-\\d{2}-\\d{2}$"), ["2024-01-31"], ["2024-1-31", "x2024-01-31", "2024-01-31\n", "２024-01-31"]),
        (node("[A-Z]{2}", minimum=2, maximum=2), ["AB"], ["A", "ABC", "aB"]),
        (node("^\\S+@\\S+$", maximum=9), ["é@\U0001f600", "a@b"], ["a b@c", "@b", "aaaaaaaa@b"]),
        (node('"|\\\\|\\x07'), ['a"', "\\", "\x07", "\n\x07"], ["", "'", "\x08"]),
        (node('^[^"]$'), ["\\", "\n", "\x00", "\x1f", "\u2028", "\U0010ffff"], ['"', "", "ab"]),
        (node(minimum=1, maximum=2), ["\U0001f600", "\U0001f600\n", '"\\'], ["", "abc", "\U0001f600ab"]),
        (node("^(?:\\S+\\s+){0,99}\\S+$", minimum=1), ["word", "a " * 99 + "b"], ["", "a " * 100 + "b", " a"]),
        (node("^[^/]+$", "^.{2,3}$", "x"), ["ax", "xyz"], ["a/x", "x", "abc", "wxyz"]),
    ],
)
def test_examples(string: StringNode, inside: list[str], outside: list[str]) -> None:
    recognizer = Recognizer(grammar_of(string))
    for values, expected in ((inside, True), (outside, False)):
        for value in values:
            assert recognizer.matches(json_text(value)) == expected, value
            assert admits_string(string, value) == expected, value


@pytest.mark.parametrize("string", [node(maximum=9), node(minimum=1), node(""), node("a|\\\\|/|\n", "^[\\s\\S]*$")])
def test_one_spelling_a_character(string: StringNode) -> None:
    recognizer = Recognizer(grammar_of(string))
    for text in ['"a\\n"', '"a\\\\"', '"a/"', '"\\n\\u001f\U0001f600"']:
        assert recognizer.matches(text.encode()), text
    for text in ['"\\u0061a"', '"a\\/"', '"a\\u000a"', '"a\\u001F"', '"a\\ud83d\\ude00"', '"a\n"', "a", '"a', '"a"a']:
        assert not recognizer.matches(text.encode()), text


def test_without_keywords_every_spelling_will_do() -> None:
    builder = ir.GrammarBuilder()
    rules = JsonRules(builder)
    assert lower_string(StringNode(), rules) == rules.string


def test_half_a_pair_is_no_character_and_a_pair_is_one() -> None:
    recognizer = Recognizer(grammar_of(node(minimum=1, maximum=1)))
    assert recognizer.matches('"\U0001f600"'.encode())
    assert not recognizer.matches(b'"\\ud83d"')
    assert not recognizer.matches(b'"\xed\xa0\xbd"')
    every = Recognizer(grammar_of(StringNode()))
    assert every.matches(b'"\\uD83D\\uDE00"')
    for half in (b'"\\uD83D"', b'"\\uDE00"', b'"\\uDE00\\uD83D"', b'"\\uD83Dx"', b'"\\uD83D\\uD83D\\uDE00"'):
        assert not every.matches(half), half


@pytest.mark.parametrize(
    "string",
    [
        node("^a$", "^b$"),
        node("^[a-z]{3}$", maximum=2),
        node("^[a-z]{3}$", minimum=4),
        node("foo", maximum=2),
        node(minimum=3, maximum=2),
        node("^(ab)+$", minimum=3, maximum=3),
        node("^$", minimum=1),
    ],
)
def test_where_no_string_is_left(string: StringNode) -> None:
    assert not has_string(string)
    assert lower_string(string, JsonRules(ir.GrammarBuilder())) == ir.NOTHING
    assert not has_raw_string(string, "x")
    assert lower_raw_string(string, "x") == ir.NOTHING


def test_a_forbidden_text_may_leave_nothing() -> None:
    assert has_string(node("a</p>"))
    assert not has_raw_string(node("a</p>"), "</p>")
    assert has_raw_string(node("a</p"), "</p>")


def test_equal_strings_are_one_rule() -> None:
    builder = ir.GrammarBuilder()
    rules = JsonRules(builder)
    first = lower_string(StringNode(0, None, (Pattern("a", Place().at("x")),)), rules)
    assert lower_string(StringNode(0, None, (Pattern("a", Place().at("y")),)), rules) is first
    assert lower_string(StringNode(1, None, (Pattern("a", Place().at("y")),)), rules) is not first


def size(expression: ir.Expression) -> int:
    match expression:
        case ir.Automaton(_, edges):
            return len(edges)
        case ir.Sequence(parts) | ir.Choice(parts):
            return 1 + sum(map(size, parts))
        case ir.Repeat(body):
            return 1 + size(body)
    return 1


@pytest.mark.parametrize("patterns", [(), ("^[a-z]+$",), ("^https?://",), ("^.*$",), ("^#[^#]*$",)])
def test_counts_cost_the_same_for_any_bound(patterns: tuple[str, ...]) -> None:
    sizes = set()
    for maximum in (100, 8000, 10**9):
        string = node(*patterns, minimum=9, maximum=maximum)
        sizes.add(sum(size(rule.body) for rule in grammar_of(string).rules))
        if patterns != ("^https?://",) and patterns != ("^#[^#]*$",) and patterns:
            sizes.add(size(lower_raw_string(string, DELIMITER)) + 10**6)
    assert len(sizes) <= 2
    assert size(lower_raw_string(node(maximum=10**9), "x")) < 10


def test_values_of_tool_arguments() -> None:
    recognizer = Recognizer(ir.Grammar.of(lower_raw_string(node(), DELIMITER)))
    for value in ["", "\n", "</parameter>", "a\n\n</parameter", 'say "hi" \\ \t\x00\U0001f600', "\n</parameter\n"]:
        assert recognizer.matches(value.encode()), value
    for value in [DELIMITER, f"a{DELIMITER}b", f"\n{DELIMITER}"]:
        assert not recognizer.matches(value.encode()), value
        assert recognizer.is_prefix(value.encode()) == (DELIMITER not in value)
    assert not recognizer.is_prefix(b"\xed\xa0\xbd")
    bounded = Recognizer(ir.Grammar.of(lower_raw_string(node(minimum=2, maximum=15), DELIMITER)))
    for value in ["ab", "\n</parameter", "\U0001f600" * 15, "</parameter></"]:
        assert bounded.matches(value.encode()), value
    for value in ["", "a", "\U0001f600" * 16, DELIMITER, f"a{DELIMITER}"]:
        assert not bounded.matches(value.encode()), value


@pytest.mark.parametrize(
    ("string", "bound"),
    [
        (node("foo", maximum=8193), "MAX_AUTOMATON_LENGTH"),
        (node("a.*b", minimum=8193), "MAX_AUTOMATON_LENGTH"),
        (node("a[ab]{16}b"), "MAX_STATES"),
        (node(*(f"[{chr(97 + i)}]" for i in range(16))), "MAX_INTERSECTION_STEPS"),
        (node("([a-z]{1,100}-?){1,100}!"), "MAX_STEPS"),
    ],
)
def test_bounds_are_named(string: StringNode, bound: str) -> None:
    for ask in (has_string, lambda string: lower_string(string, JsonRules(ir.GrammarBuilder()))):
        with pytest.raises(UnsupportedJsonSchema, match=bound) as error:
            ask(string)
        assert error.value.pointer == "/pattern"


def test_bounds_of_raw_strings_are_located() -> None:
    assert has_raw_string(node(maximum=4000), DELIMITER)
    with pytest.raises(UnsupportedJsonSchema, match="MAX_STATES") as error:
        lower_raw_string(node(maximum=8000), DELIMITER, Place().at("properties", "text"))
    assert error.value.pointer == "/properties/text"


def test_long_values_are_judged() -> None:
    string = node("^(?:\\S+\\s+)*end$", "b")
    assert admits_string(string, "ab " * 100_000 + "end")
    assert not admits_string(string, "ab " * 100_000 + "enD")
