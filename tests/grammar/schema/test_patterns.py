"""Reading patterns: what the search is, which shapes come out, what is refused and where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from infernix.errors import InvalidJsonSchema, UnsupportedJsonSchema
from infernix.grammar.ir import GrammarBuilder
from infernix.grammar.json_values import JsonRules
from infernix.grammar.regex_syntax import MAX_REPEAT_COUNT, Fault, PatternError, read_pattern
from infernix.grammar.schema.nodes import Pattern, StringNode
from infernix.grammar.schema.patterns import ANYTHING, read_search_pattern
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.strings import admits_string, has_string, lower_string
from support.random_patterns import PATTERNS, python_pattern, texts
from support.shared_data import shared_data

TEXTS = texts(5)


@settings(max_examples=300, deadline=None)
@given(PATTERNS)
def test_a_pattern_is_searched(text: str) -> None:
    pattern = read_search_pattern(text)
    expected = python_pattern(text)
    found = {candidate for candidate in TEXTS if expected.search(candidate)}
    assert {candidate for candidate in TEXTS if pattern.automaton.accepts(candidate)} == found
    assert not pattern.is_universal or found == set(TEXTS)


@pytest.mark.parametrize(
    "text", ["", "^", "$", ".*", "^a*", "b?$", "x|[a-z]*", "^$|", "(a|b*)", "^[\\s\\S]*$", "(a*)(b*)"]
)
def test_universal_patterns(text: str) -> None:
    assert read_search_pattern(text).is_universal


@pytest.mark.parametrize("text", ["^$", "^.*$", ".", "^a*$", "a"])
def test_other_patterns(text: str) -> None:
    assert not read_search_pattern(text).is_universal


def test_a_dot_is_no_line_terminator() -> None:
    node = StringNode(0, None, (Pattern("^.*$", Place()),))
    assert admits_string(node, "a \U0001f600")
    for terminator in "\n\r\u2028\u2029":
        assert not admits_string(node, f"a{terminator}b")


@pytest.mark.parametrize(
    ("text", "num_items"),
    [("^([ab])(b)$", 2), ("^((a[bc]))d$", 3), ("^(?:[ab]|c)*$", 1), ("^([a-z]+)*$", 1), ("^(([0-9]))$", 1)],
)
def test_groups_do_not_hide_what_they_hold(text: str, num_items: int) -> None:
    ((*items,),) = read_search_pattern(text).alternatives
    assert len(items) == num_items


def test_anchors_bind_their_own_alternative() -> None:
    first, second, third = read_search_pattern("^a|b|c$").alternatives
    assert (first[0] == ANYTHING, first[-1] == ANYTHING) == (False, True)
    assert (second[0] == ANYTHING, second[-1] == ANYTHING) == (True, True)
    assert (third[0] == ANYTHING, third[-1] == ANYTHING) == (True, False)


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("^[a-z]{2,60}$", True),
        ("^(?:\\S+\\s+){0,99}\\S+$", True),
        ("^([a-z]+-){3}$", True),
        ("^(ab?){2,9}$", True),
        ("^(a|ab){2,9}$", True),
        ("^(a?){9}$", False),
        ("^(a+){3,9}$", False),
        ("^(.[0-9]){3,9}$", True),
        ("^(.?[0-9]){3,9}$", False),
        ("^(.?[0-9]+){3,9}$", False),
        ("^((a|b)c*){9}$", True),
        ("^(c*(a|b)c*){9}$", False),
        ("^([a-z]{1,100}-?){1,100}$", False),
    ],
)
def test_where_the_turns_of_a_counted_repetition_are_clear(text: str, is_clear: bool) -> None:
    assert read_search_pattern(text).counts_are_clear == is_clear


@pytest.mark.parametrize(
    ("text", "fault", "offset"),
    [
        ("(a", Fault.MALFORMED, 0),
        ("a)", Fault.MALFORMED, 1),
        ("[a", Fault.MALFORMED, 0),
        ("a**", Fault.MALFORMED, 2),
        ("*a", Fault.MALFORMED, 0),
        ("a{2,1}", Fault.MALFORMED, 1),
        ("[b-a]", Fault.MALFORMED, 1),
        ("ab\\", Fault.MALFORMED, 2),
        ("\ud800", Fault.MALFORMED, 0),
        ("a(?=b)", Fault.UNSUPPORTED, 1),
        ("(?<!a)b", Fault.UNSUPPORTED, 0),
        ("(a)\\1", Fault.UNSUPPORTED, 3),
        ("\\bword", Fault.UNSUPPORTED, 0),
        ("\\p{L}", Fault.UNSUPPORTED, 0),
        ("\\ud83d", Fault.UNSUPPORTED, 0),
        ("a\\q", Fault.UNSUPPORTED, 1),
        ("(^a)", Fault.UNSUPPORTED, 1),
        ("(a$|b)", Fault.UNSUPPORTED, 2),
        ("[]", Fault.UNSUPPORTED, 0),
        ("(?i)a", Fault.UNSUPPORTED, 0),
        (f"a{{{MAX_REPEAT_COUNT + 1}}}", Fault.TOO_LARGE, 1),
    ],
)
def test_what_cannot_be_read_is_refused_at_the_pattern(text: str, fault: Fault, offset: int) -> None:
    with pytest.raises(PatternError) as found:
        read_pattern(text)
    assert (found.value.fault, found.value.offset) == (fault, offset)
    node = StringNode(0, None, (Pattern("a", Place()), Pattern(text, Place().at("properties", "x", "pattern"))))
    kind = InvalidJsonSchema if fault is Fault.MALFORMED else UnsupportedJsonSchema
    for ask in (
        has_string,
        lambda node: admits_string(node, "a"),
        lambda node: lower_string(node, JsonRules(GrammarBuilder())),
    ):
        with pytest.raises(
            kind, match=f"\\(character {offset + 1} of the pattern\\) at /properties/x/pattern"
        ) as error:
            ask(node)
        assert error.value.pointer == "/properties/x/pattern"


def test_patterns_in_use_are_read_or_refused() -> None:
    lines = shared_data("regex/schema_patterns.jsonl").read_text().splitlines()
    refused = []
    for line in lines:
        node = StringNode(0, None, (Pattern(json.loads(line)["pattern"], Place()),))
        try:
            assert has_string(node)
        except UnsupportedJsonSchema as error:
            refused.append(error.message.split(" (character")[0])
    assert set(refused) == {
        "^ is supported only at the start of a top-level alternative",
        "$ is supported only at the end of a top-level alternative",
        "lookahead is not supported",
        "back-references (\\1) are not supported",
        "word boundaries (\\b) are not supported",
        "Unicode property classes (\\p) are not supported",
    }
    assert len(refused) < len(lines) // 40
