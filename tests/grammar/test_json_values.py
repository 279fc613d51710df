"""Any JSON value: the grammar against Python's own reader."""

from __future__ import annotations

import json

import pytest

from infernix.grammar.ir import Grammar, GrammarBuilder, Repeat, RuleReference, text
from infernix.grammar.json_values import (
    ANY_CHARACTER,
    CANONICAL_CHARACTER,
    JsonRules,
    Spacing,
    canonical_string,
    json_object_grammar,
)
from support.recognizer import Recognizer

OBJECT = Recognizer(json_object_grammar())


def value_recognizer() -> Recognizer:
    builder = GrammarBuilder()
    return Recognizer(builder.build(JsonRules(builder).value))


VALUE = value_recognizer()


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a":1}',
        '{"a":1,"b":[true,false,null,"x",-1.5e3,{}]}',
        '{ "a" : [ 1 , 2 ] , "b" : { } , "c" : [ ] }',
        '{\n\t"a": {\r\n "b": []\n}\n}',
        '{"":"","\\u0061\\n\\/":"é€😀"}',
        '{"a":1,"a":2}',
    ],
)
def test_objects(text: str) -> None:
    assert OBJECT.matches(text.encode())
    json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        '"a"',
        "null",
        "{",
        "}",
        "{,}",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{"a":1 "b":2}',
        "{a:1}",
        "{'a':1}",
        '{"a":1}}',
        '{"a":[1,]}',
        '{"a":[,1]}',
        '{"a":01}',
        '{"a":.5}',
        '{"a":1.}',
        '{"a":+1}',
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":True}',
        '{"a":"\n"}',
        '{"a":"\\x"}',
        '{"a":"\x00"}',
        '{"a":1}//',
    ],
)
def test_texts_that_are_no_json_object(text: str) -> None:
    assert not OBJECT.matches(text.encode())


@pytest.mark.parametrize("text", [" {}", "{} ", "\n{}", "{}\n"])
def test_nothing_surrounds_the_root(text: str) -> None:
    assert not OBJECT.matches(text.encode())


SLOTS = ['{%s"a":[1,2]}', '{"a"%s:[1,2]}', '{"a":%s[1,2]}', '{"a":[%s1,2]}', '{"a":[1%s,2]}', '{"a":[1,%s2]}']
SLOTS += ['{"a":[1,2%s]}', '{"a":[1,2]%s}', "{%s}", '{"a":[%s]}', '{"a":1%s,"b":2}', '{"a":1,%s"b":2}']


@pytest.mark.parametrize("slot", SLOTS)
def test_a_run_of_whitespace_has_at_most_32_characters(slot: str) -> None:
    mixed = " \t\r\n" * 8
    assert OBJECT.matches((slot % mixed).encode())
    assert not OBJECT.matches((slot % (mixed + "\n")).encode())
    assert not OBJECT.matches((slot % "\f").encode())
    assert not OBJECT.matches((slot % "\u00a0").encode())


def test_whitespace_inside_strings_is_not_counted() -> None:
    assert OBJECT.matches(b'{"' + b" " * 100 + b'":"' + b" " * 100 + b'"}')


@pytest.mark.parametrize(
    "text", ['"', '"a', '["', '{"a', "[1", "tru", "-", "1.", "1e", "1e+", '"\\', '"\\ud83d', '{"a":[{']
)
def test_unfinished_values_can_be_completed(text: str) -> None:
    assert VALUE.is_prefix(text.encode())
    assert not VALUE.matches(text.encode())


@pytest.mark.parametrize(
    ("body", "legal"),
    [
        ("\\ud83d\\ude00", True),
        ("\\uD83D\\uDE00", True),
        ("\\udbff\\udfff", True),
        ("\\ud800\\udc00", True),
        ("\\ud7ff", True),
        ("\\ue000", True),
        ("\\uDABC\\uDEF0x", True),
        ("\\ud800", False),
        ("\\udc00", False),
        ("\\ud800x", False),
        ("\\ud800\\n", False),
        ("\\ud800\\ud800", False),
        ("\\udc00\\ud800", False),
        ("\\u12", False),
        ("\\u12g4", False),
        ("\\U0041", False),
    ],
)
def test_escaped_surrogates_come_in_pairs(body: str, legal: bool) -> None:
    assert VALUE.matches(f'"{body}"'.encode()) == legal


@pytest.mark.parametrize(
    "data",
    [
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xed\xa0\x80"',
        b'"\xf4\x90\x80\x80"',
        b'"\xe2\x82"',
        b'"\x80"',
        b'"\x1f"',
        b'"\xc3"',
    ],
)
def test_bytes_that_are_not_utf8_text(data: bytes) -> None:
    assert not VALUE.matches(data)


ANY = Recognizer(Grammar.of(Repeat(ANY_CHARACTER, 1, 1)))
CANONICAL = Recognizer(Grammar.of(Repeat(CANONICAL_CHARACTER, 1, 1)))


def test_every_character_has_one_canonical_spelling() -> None:
    """The spelling is the one that Python's writer uses; it is one unit of both repetitions."""
    code_points = [*range(0x300), 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
    for code_point in code_points:
        spelling = canonical_string(chr(code_point))
        assert spelling == json.dumps(chr(code_point), ensure_ascii=False).encode()
        assert CANONICAL.matches(spelling[1:-1])
        assert ANY.matches(spelling[1:-1])
        escaped = f"\\u{code_point:04x}".encode()
        if code_point <= 0xFFFF:
            assert ANY.matches(escaped)
            assert ANY.matches(escaped.upper().replace(b"\\U", b"\\u"))
            assert CANONICAL.matches(escaped) == (escaped == spelling[1:-1])


@pytest.mark.parametrize(
    "spelling", ["\\/", "\\u001F", "\\u0041", "\\u000a", "\\u0022", "\\u007f", '"', "\\", "\n", "ab", ""]
)
def test_other_spellings_are_not_canonical(spelling: str) -> None:
    assert not CANONICAL.matches(spelling.encode())


def test_rules_are_shared() -> None:
    builder = GrammarBuilder()
    rules = JsonRules(builder)
    assert rules.value == rules.value
    assert rules.object == rules.object
    names = [rule.name for rule in builder.build(rules.value).rules]
    assert sorted(names) == ["array", "characters", "colon", "number", "object", "string", "value", "whitespace"]


@pytest.mark.parametrize(
    "value", [{}, [], [[], {}], {"a": 1}, {"a": [1, 2.5, "x,y:z"], "é": {"b": None, "c": [True, {}]}}, ["a", {"": ""}]]
)
def test_template_spacing_is_that_of_pythons_writer(value: object) -> None:
    builder = GrammarBuilder()
    spaced = Recognizer(builder.build(JsonRules(builder, Spacing.TEMPLATE).value))
    written = json.dumps(value, ensure_ascii=False)
    assert spaced.matches(written.encode())
    for wrong in (json.dumps(value, separators=(",", ":")), json.dumps(value, indent=1), f" {written}", f"{written} "):
        assert spaced.matches(wrong.encode()) == (wrong == written)


def test_a_shared_rule_that_is_one_already_gets_no_other_name() -> None:
    builder = GrammarBuilder()
    rules = JsonRules(builder)
    assert rules.shared("a", "name", lambda: rules.boolean) == rules.boolean
    made = rules.shared("b", "name", lambda: text("x"))
    assert made == rules.shared("b", "name", lambda: text("y")) == RuleReference(1)


def test_a_builder_goes_on_with_the_rules_of_a_grammar() -> None:
    grammar = json_object_grammar()
    builder = GrammarBuilder.extending(grammar)
    extended = builder.build(builder.add("two", Repeat(RuleReference(grammar.root), 2, 2)))
    assert extended.rules[: len(grammar.rules)] == grammar.rules
    recognizer = Recognizer(extended)
    assert recognizer.matches(b'{}{"a": 1}')
    assert not recognizer.matches(b"{}")
