"""GBNF text that is refused: the reason and the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infernix.errors import ConstraintTooLarge, InvalidGrammar
from infernix.grammar import ir
from infernix.grammar.gbnf import MAX_GROUP_DEPTH, MAX_REPETITION, MAX_SOURCE_BYTES, MAX_TOKEN_ID, parse_gbnf

# In each source the place of the error is marked with "⁂".
LOCATED_ERRORS = [
    # rules
    ("⁂", 'no rule "root"'),
    ("⁂# only a comment", 'no rule "root"'),
    ('⁂x ::= "a"', 'no rule "root"'),
    ('⁂Root ::= "a"', 'no rule "root"'),
    ('root ::= "a"\n⁂root ::= "b"', 'rule "root" is defined twice'),
    ('root ::= x\nx ::= "a"\ny ::= x\n  ⁂x ::= "b"', 'rule "x" is defined twice'),
    ("root ::= ⁂x x", 'rule "x" is not defined'),
    ('root ::= "a"\nspare ::= "b" | (⁂missing)*', 'rule "missing" is not defined'),
    ('root ::= ⁂a.b\na ::= "x"\nb ::= "y"', 'rule "a.b" is not defined (a "." for any character'),
    ("root ::= ⁂Token", "Token(id, ...)"),
    ("root ⁂::=", "no body"),
    ('root ⁂::= # nothing\nx ::= "a"', "no body"),
    ('root ::= "a"\nx⁂::=\ny ::= "a"', "no body"),
    ('⁂"a"', 'expected a rule, "name ::= body", not "a"'),
    ('⁂::= "a"', 'not "::="'),
    ('root ⁂"a"', 'expected "::="'),
    ("root⁂", 'expected "::=" after the rule name, not the end of the text'),
    ('root ⁂= "a"', 'a rule is written "name ::= body"'),
    ('root⁂: "a"', 'a rule is written "name ::= body"'),
    ('root ::= "a" ⁂::= "b"', 'unexpected "::="'),
    # characters
    ("root ::= ⁂'a'", "double quotes"),
    ('root ::= "a" ⁂// comment', '"#"'),
    ('root ::= "a"⁂; x ::= "b"', "needs no end mark"),
    ('⁂%llguidance {}\nroot ::= "a"', "directives"),
    ("root ::= ⁂<think>", "Token(id)"),
    ('root ::= "a" ⁂& "b"', 'unexpected character "&"'),
    ("root ::= ⁂é", 'unexpected character "é"'),
    ('root ::= "a"⁂\xa0"b"', "U+00A0"),
    ("root ::= [a]⁂]", 'unexpected character "]"'),
    ('root ::= "a" ⁂, "b"', 'unexpected ","'),
    ('root ::= "a" ⁂}', 'unexpected "}"'),
    # literals
    ('root ::= ⁂"a', "literal is not closed"),
    ('root ::= "a" ⁂"', "literal is not closed"),
    ('root ::= "a"\n     | ⁂"b\nx ::= "c"', "literal is not closed"),
    ('root ::= "x" ⁂"a\nb"', "literal is not closed"),
    ('root ::= "x" ⁂"a\r\nb"', "literal is not closed"),
    ('root ::= ⁂"a\\"', "literal is not closed"),
    ('root ::= ⁂"a\\', "literal is not closed"),
    (r'root ::= "ab⁂\q"', r"unknown escape \q"),
    (r'root ::= "é⁂\d"', r"unknown escape \d"),
    (r'root ::= "⁂\é"', r"unknown escape \é"),
    (r'root ::= "\x41⁂\x4"', r"\x takes exactly 2 hexadecimal digits"),
    (r'root ::= "⁂\xg0"', r"\x takes exactly 2 hexadecimal digits"),
    (r'root ::= "⁂\u{41}"', r"\u takes exactly 4 hexadecimal digits"),
    (r'root ::= "⁂\U0041"', r"\U takes exactly 8 hexadecimal digits"),
    (r'root ::= "⁂\ud83d\ude00"', "surrogate"),
    (r'root ::= "a" "⁂\U0000DFFF"', "surrogate"),
    (r'root ::= "⁂\U00110000"', "above the last code point"),
    # classes
    ("root ::= ⁂[a", "class is not closed"),
    ("root ::= ⁂[a\n]", "class is not closed"),
    ("root ::= ⁂[a\\]", "class is not closed"),
    ("root ::= ⁂[", "class is not closed"),
    ("root ::= ⁂[]", "no character matches"),
    ("root ::= ⁂[]a]", "no character matches"),
    (r"root ::= ⁂[^\x00-\U0010FFFF]", "no character matches"),
    ("root ::= [ab⁂z-a]", "runs backwards: U+007A is above U+0061"),
    ("root ::= [^⁂b-a]", "runs backwards"),
    (r"root ::= [a⁂\d]", r"unknown escape \d"),
    (r"root ::= [^⁂\p{L}]", r"unknown escape \p"),
    (r"root ::= [a-⁂\ud800]", "surrogate"),
    # groups
    ('root ::= ⁂("a"', "group is not closed"),
    ('root ::= ("a" ⁂("b" | "c"\nx ::= "d"', "group is not closed"),
    ('root ::= ⁂("a" ("b")', "group is not closed"),
    ('root ::= "a"⁂)', "closes no group"),
    ('root ::= ("a")⁂)*', "closes no group"),
    # repetitions
    ("root ::= ⁂*", 'nothing that this "*" could repeat'),
    ('root ::= "a" | ⁂+', 'nothing that this "+" could repeat'),
    ('root ::= (⁂? "a")', 'nothing that this "?" could repeat'),
    ("root ::= ⁂{2}", 'nothing that this "{" could repeat'),
    ('root ::= "a"+⁂?', "needs parentheses"),
    ('root ::= "a"* ⁂*', "needs parentheses"),
    ('root ::= ("a"){2}⁂{3}', "needs parentheses"),
    ('root ::= "a"⁂{3,2}', "runs backwards: 3 is above 2"),
    ('root ::= "a"{⁂,3}', '"{0,n}"'),
    ('root ::= "a"{⁂}', "expected a count"),
    ('root ::= "a"{⁂x}', "expected a count"),
    ('root ::= "a"{⁂-1}', "expected a count"),
    ('root ::= "a"{⁂1-2}', "expected a count"),
    ('root ::= "a"{1 ⁂2}', 'expected "}"'),
    ('root ::= "a"{1,2⁂,3}', 'expected "}"'),
    ('root ::= "a"⁂{', "repetition is not closed"),
    ('root ::= "a"⁂{2\nx ::= "b"', "repetition is not closed"),
    ('root ::= "a"⁂{2,', "repetition is not closed"),
    (f'root ::= "a"{{2,⁂{MAX_REPETITION + 1}}}', f"MAX_REPETITION = {MAX_REPETITION}"),
    # token terminals
    ("root ::= Token(⁂)", "expected a token id"),
    ("root ::= ExcludeToken(⁂)", "expected a token id"),
    ("root ::= Token(1,⁂)", "expected a token id"),
    ("root ::= Token(⁂-1)", 'not "-1"'),
    ('root ::= Token(⁂"a")', 'not "a"'),
    ("root ::= Token(⁂1.5)", 'not "1.5"'),
    ("root ::= Token(1 ⁂2)", 'expected "," or ")"'),
    ("root ::= Token⁂(", "list of Token is not closed"),
    ("root ::= ExcludeToken⁂(1", "list of ExcludeToken is not closed"),
    ('root ::= Token⁂(1, \nx ::= "a"', "list of Token is not closed"),
    (f"root ::= Token(0, ⁂{MAX_TOKEN_ID + 1})", f"MAX_TOKEN_ID = {MAX_TOKEN_ID}"),
    # annotations
    ('root ::= ("a" ⁂(= "b")) "c"', "only at the end of a rule"),
    ('root ::= "a" ⁂(= "b") "c"', "only at the end of a rule"),
    ('root ::= "a" ⁂(= "b") | "c"', "only at the end of a rule"),
    ('root ::= "a" ⁂(= "b")*', "only at the end of a rule"),
    ('root ::= "a" ⁂(= "b") (= "c")', "only at the end of a rule"),
    ('root ::= "a" (= "b" ⁂(= "c"))', "only at the end of a rule"),
    ('root ::= "a" ⁂(=)', "annotation is empty"),
    ('root ::= "a" ⁂(= "b"', "group is not closed"),
    ('root ::= "a" (= ⁂missing)', 'rule "missing" is not defined'),
    ('root ::= "a" (= ⁂*)', "nothing that this"),
    ('root ⁂::= (= "b")', "no body"),
    # what other notations have
    ('root ::= ⁂TagDispatch(("a", x))\nx ::= "b"', "constructor TagDispatch is not supported"),
    ('root ::= "a" ⁂TokenTagDispatch ((1, x))\nx ::= "b"', "constructor TokenTagDispatch is not supported"),
    ('root ::= (⁂Regex("a"))', "constructor Regex is not supported"),
    ('root ::= ⁂Substring("abc")', "constructor Substring is not supported"),
    ('root⁂[capture] ::= "a"', "rule attributes"),
    ('root⁂[temperature=0.5, max_tokens=10] ::= "a"', "rule attributes"),
    ('root⁂(lazy) ::= "a"', "rule attributes"),
    ('root ::= x\nx⁂[capture="x"] ::= "a"', "rule attributes"),
    ('root ::= x\nx⁂(lazy) ::= "a"', "rule attributes"),
]


@pytest.mark.parametrize(("marked", "message"), LOCATED_ERRORS, ids=[marked for marked, _ in LOCATED_ERRORS])
def test_located_error(marked: str, message: str) -> None:
    before, after = marked.split("⁂")
    with pytest.raises(InvalidGrammar) as caught:
        parse_gbnf(before + after)
    assert message in caught.value.message
    location = caught.value.location
    assert location is not None
    lines = before.split("\n")
    assert (location.line, location.column) == (len(lines), len(lines[-1]) + 1)
    assert location.line_text == (before + after).split("\n")[location.line - 1].removesuffix("\r")


def test_message_shows_the_line_with_a_caret() -> None:
    with pytest.raises(InvalidGrammar) as caught:
        parse_gbnf('root ::= "a"\r\nroot ::= "b"\r\n')
    assert str(caught.value) == 'rule "root" is defined twice at line 2, column 1\nroot ::= "b"\n^'


@pytest.mark.parametrize("constructor", ["Token", "ExcludeToken"])
@pytest.mark.parametrize("source", ['root ::= "a" | {}(1,\n  7)', 'root ::= "a" (= {}(1,\n  7))'])
def test_token_ids_are_checked_where_they_stand(source: str, constructor: str) -> None:
    refusals = {7: "token 7 is EOS"}
    with pytest.raises(InvalidGrammar, match=f"{constructor} cannot name this token: token 7 is EOS") as caught:
        parse_gbnf(source.format(constructor), token_error=refusals.get)
    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (2, 3)


def test_every_token_id_is_checked() -> None:
    asked: list[int] = []
    source = "root ::= Token(0, 10) ExcludeToken(42)"
    assert parse_gbnf(source, token_error=asked.append) == parse_gbnf(source)
    assert asked == [0, 10, 42]


def test_group_depth_is_bounded() -> None:
    for opening in ("(", '("a" | ', '("a" '):
        source = "root ::= " + opening * 10_000 + ")" * 10_000
        with pytest.raises(InvalidGrammar, match=f"MAX_GROUP_DEPTH = {MAX_GROUP_DEPTH}") as caught:
            parse_gbnf(source)
        assert caught.value.location is not None
        assert caught.value.location.column == 10 + MAX_GROUP_DEPTH * len(opening)


def test_source_size_is_bounded() -> None:
    for source in ("#" * (MAX_SOURCE_BYTES + 1), 'root ::= "' + "é" * (MAX_SOURCE_BYTES // 2) + '"'):
        with pytest.raises(ConstraintTooLarge, match=f"MAX_SOURCE_BYTES = {MAX_SOURCE_BYTES}"):
            parse_gbnf(source)


@pytest.mark.parametrize(
    "source",
    [
        'root ::= "' + "\\" * (MAX_SOURCE_BYTES - 100),
        "root ::= " + "[a" * (MAX_SOURCE_BYTES // 2 - 100),
        'root ::= "a"{' + "9" * (MAX_SOURCE_BYTES - 100) + "}",
        "root ::= Token(" + "9" * (MAX_SOURCE_BYTES - 100) + ")",
        "a." * (MAX_SOURCE_BYTES // 2 - 100),
        "root ::= " + "-" * (MAX_SOURCE_BYTES - 100),
    ],
    ids=["backslashes", "open classes", "count digits", "id digits", "dotted name", "long name"],
)
def test_large_nonsense_ends_in_a_located_error(source: str) -> None:
    with pytest.raises(InvalidGrammar) as caught:
        parse_gbnf(source)
    assert caught.value.location is not None
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("source", ['root ::= "a\ud800"', 'root ::= "a" # \udfff', "\udc80", 'root ::= "a"\n\ud800x'])
def test_lone_surrogates_in_the_text_are_located(source: str) -> None:
    with pytest.raises(InvalidGrammar, match="surrogate") as caught:
        parse_gbnf(source)
    location = caught.value.location
    assert location is not None
    place = next(offset for offset, character in enumerate(source) if "\ud800" <= character <= "\udfff")
    assert location.line == source.count("\n", 0, place) + 1
    assert location.line_text[location.column - 1] == source[place]
    assert "\ufffd" in str(caught.value)
    str(caught.value).encode("utf-8")


FRAGMENTS = [
    *(
        "root",
        " ::= ",
        "::=",
        "x ::= ",
        "x",
        '"a"',
        '"',
        "[a-c]",
        "[",
        "]",
        "^",
        "-",
        "(",
        ")",
        "(=",
        "|",
        "*",
        "+",
        "?",
    ),
    *(
        "{2,3}",
        "{",
        "}",
        ",",
        "2",
        ".",
        "\\",
        "\\x4",
        "#",
        "\n",
        "\r",
        " ",
        "Token(1)",
        "Token(",
        "Regex(",
        "é",
        "\ud800",
    ),
]


def read_or_refuse(source: str) -> ir.Grammar | InvalidGrammar:
    try:
        return parse_gbnf(source)
    except InvalidGrammar as error:
        return error


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
def test_any_text_is_read_or_refused_at_a_place_in_it(source: str) -> None:
    outcome = read_or_refuse(source)
    if isinstance(outcome, ir.Grammar):
        assert outcome.rules[outcome.root].name == "root"
        return
    assert outcome.location is not None
    line = source.split("\n")[outcome.location.line - 1]
    assert outcome.location.line_text == line.removesuffix("\r")
    assert 1 <= outcome.location.column <= len(line) + 1
