from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from infernix.errors import ConstraintTooLarge, InfernixError, InvalidRegex
from infernix.grammar import ir, regex_syntax
from infernix.grammar.regex import parse_regex
from infernix.grammar.regex_syntax import Alternative, Pattern, parse_pattern
from support.recognizer import Recognizer
from support.shared_data import shared_data


def _matches(regex: str, text: str) -> bool:
    return Recognizer(parse_regex(regex)).matches(text.encode())


def _class_of(regex: str) -> set[int]:
    """The code points of an expression that is one class."""
    body = parse_regex(regex).rules[0].body
    assert isinstance(body, ir.CharacterClass)
    return {code_point for low, high in body.ranges for code_point in range(low, high + 1)}


SCALAR_VALUES = set(range(0x110000)) - set(range(0xD800, 0xE000))


def test_every_curated_expression() -> None:
    wrong: list[tuple[str, str]] = []
    lines = shared_data("regex/curated.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        case: dict[str, Any] = json.loads(line)
        try:
            recognizer = Recognizer(parse_regex(case["regex"]))
        except InfernixError as error:
            wrong += [(case["id"], str(error))] if case["verdict"] == "match" else []
            continue
        wrong += [(case["id"], "not refused")] if case["verdict"] == "refuse" else []
        wrong += [(case["id"], text) for text in case["accept"] if not recognizer.matches(text.encode())]
        wrong += [(case["id"], text) for text in case["reject"] if recognizer.matches(text.encode())]
    assert len(lines) == 64
    assert wrong == []


class TestLanguage:
    @pytest.mark.parametrize(
        ("regex", "accepted", "refused"),
        [
            ("", [""], ["a", "\n"]),
            ("^$", [""], ["a"]),
            ("^(.*)$", ["", "a b"], ["a\n"]),
            ("^(|.*)$", ["", "a b"], ["a\n"]),
            ("a||b", ["", "a", "b"], ["ab"]),
            ("()*x", ["x"], ["", "xx"]),
            ("(a*)*b", ["b", "aab"], ["a", ""]),
            ("ab*", ["a", "abb"], ["abab"]),
            ("é*", ["", "éé"], ["\u00c3"]),
            ("(ab)*", ["", "abab"], ["abb"]),
            ("a{2}", ["aa"], ["a", "aaa"]),
            ("a{2,}", ["aa", "aaaaa"], ["a"]),
            ("a{2,3}", ["aa", "aaa"], ["a", "aaaa"]),
            ("a{0}b", ["b"], ["ab"]),
            ("a{00002}", ["aa"], ["a"]),
            ("(?:a|b)c|d", ["ac", "bc", "d"], ["a", "dc"]),
            ("^a|b$", ["a", "b"], ["ab", "ac"]),
            ("]}", ["]}"], ["]"]),
            ("{}", ["{}"], ["{"]),
            ('{"a": \\d}', ['{"a": 1}'], ['{"a": }']),
            ('{ "a" }', ['{ "a" }'], ["{}"]),
            ("[[a]", ["[", "a"], ["[a]"]),
            ("[.*+?(){}|$^]", list(".*+?(){}|$^"), ["\\"]),
            ("[a-]", ["a", "-"], ["b"]),
            ("[-a]", ["a", "-"], ["b"]),
            ("[a-c-e]", ["a", "b", "-", "e"], ["d"]),
            ("[+--]", ["+", ",", "-"], ["."]),
            ("[\\w-]", ["_", "-"], ["."]),
            ("[a][^a]", ["ab"], ["aa", "ba"]),
            ("[^a][a]", ["ba"], ["aa", "ab"]),
            ("a\nb", ["a\nb"], ["ab"]),
            ("[😀-😏]", ["😃"], ["🙀", "\ufffd"]),
            ("\\x41\\u00e9\\t\\n\\r\\v\\f\\0\\cJ\\cj", ["Aé\t\n\r\v\f\0\n\n"], ["A"]),
            ("[\\b\\x41-\\u0043]", ["\b", "B"], ["b"]),
            ("\\^\\$\\\\\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/", ["^$\\.*+?()[]{}|/"], [""]),
            ("\\-\\_\\ \\\"\\'\\@\\:\\,\\#\\<\\>", ["-_ \"'@:,#<>"], [""]),
        ],
    )
    def test_members(self, regex: str, accepted: list[str], refused: list[str]) -> None:
        recognizer = Recognizer(parse_regex(regex))
        assert [text for text in accepted if not recognizer.matches(text.encode())] == []
        assert [text for text in refused if recognizer.matches(text.encode())] == []

    @pytest.mark.parametrize("quantifier", ["*", "+", "?", "{2}", "{2,}", "{2,5}"])
    def test_lazy_repetition_is_the_same_set(self, quantifier: str) -> None:
        assert parse_regex(f"(?:ab|c){quantifier}?") == parse_regex(f"(?:ab|c){quantifier}")

    def test_a_capturing_group_is_a_group(self) -> None:
        assert parse_regex("(a|b)+(c)") == parse_regex("(?:a|b)+(?:c)")

    def test_a_piece_of_a_character_is_a_prefix_and_no_member(self) -> None:
        recognizer = Recognizer(parse_regex("[é-ë]"))
        assert recognizer.is_prefix(b"\xc3")
        assert not recognizer.matches(b"\xc3")
        assert not recognizer.is_prefix(b"\xc3\xac")

    def test_neighbouring_literals_are_joined(self) -> None:
        assert parse_regex("a(?:bc)\\d\\x41é").rules[0].body == ir.Sequence(
            (ir.Literal(b"abc"), ir.CharacterClass(((0x30, 0x39),)), ir.Literal("Aé".encode()))
        )


class TestClasses:
    def test_digits_and_word_characters_are_ascii(self) -> None:
        assert _class_of("\\d") == set(map(ord, "0123456789"))
        assert _class_of("\\w") == {ord(c) for c in map(chr, range(128)) if c.isalnum() or c == "_"}

    def test_white_space_is_that_of_ecmascript(self) -> None:
        spaces = {code_point for code_point in SCALAR_VALUES if unicodedata.category(chr(code_point)) == "Zs"}
        others = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0xFEFF, 0x2028, 0x2029}
        assert _class_of("\\s") == spaces | others
        assert len(_class_of("\\s")) == 25

    def test_dot_excludes_the_line_terminators(self) -> None:
        assert _class_of(".") == SCALAR_VALUES - {0x0A, 0x0D, 0x2028, 0x2029}

    @pytest.mark.parametrize("letter", ["d", "w", "s"])
    def test_complements(self, letter: str) -> None:
        complement = SCALAR_VALUES - _class_of(f"\\{letter}")
        assert _class_of(f"\\{letter.upper()}") == complement
        assert _class_of(f"[^\\{letter}]") == complement
        assert _class_of(f"[\\{letter.upper()}]") == complement
        assert _class_of(f"[^\\{letter.upper()}]") == _class_of(f"\\{letter}")

    def test_a_range_over_the_surrogates_does_not_have_them(self) -> None:
        assert _class_of("[\\ud7ff-\\ue000]") == {0xD7FF, 0xE000}
        assert _class_of("[\\0-\\uffff]") == {code_point for code_point in SCALAR_VALUES if code_point < 0x10000}
        assert _class_of("[^\\0-\\uffff]") == set(range(0x10000, 0x110000))
        assert _class_of("[\\s\\S]") == SCALAR_VALUES

    def test_a_union(self) -> None:
        assert _class_of("[a-cb-d\\dx]") == set(map(ord, "abcdx0123456789"))


class TestErrors:
    @pytest.mark.parametrize(
        ("regex", "column", "message"),
        [
            ("*abc", 1, "nothing to repeat"),
            ("a|+", 3, "nothing to repeat"),
            ("a(?*)", 2, "unknown kind of group"),
            ("(?:*)", 4, "nothing to repeat"),
            ("{2}", 1, "nothing to repeat"),
            ("^*", 2, "nothing to repeat"),
            ("a**", 3, "cannot be repeated"),
            ("a{2}{3}", 5, "cannot be repeated"),
            ("a*??", 4, "cannot be repeated"),
            ("a*+", 3, "possessive"),
            ("a++", 3, "possessive"),
            ("a{2}+", 5, "possessive"),
            ("ab{3,2}", 3, "wrong order"),
            ("a{", 2, "not a repetition"),
            ("a{,5}", 2, "not a repetition"),
            ("a{1,x}", 2, "not a repetition"),
            ("a{1", 2, "not a repetition"),
            ("a{ 3 }", 2, "not a repetition"),
            ("a(b", 2, "not closed"),
            ("a(b(c)", 2, "not closed"),
            ("ab)", 3, "closes no group"),
            ("a[b", 2, "not closed"),
            ("[a-", 1, "not closed"),
            ("[a\\]", 1, "not closed"),
            ("a[]b", 2, "class is empty"),
            ("a[^]b", 2, "for any character"),
            ("a[^\\s\\S]", 2, "no character"),
            ("[^\\0-\U0010ffff]", 1, "no character"),
            ("[az-a]", 3, "wrong order"),
            ("[\\w-z]", 2, "class escape"),
            ("[a-\\d]", 2, "class escape"),
            ("[[:alpha:]]", 2, "POSIX"),
            ("[a[:^digit:]]", 3, "POSIX"),
            ("ab\\", 3, "nothing follows"),
            ("(a)\\1", 4, "back-reference"),
            ("\\k<a>", 1, "back-reference"),
            ("[\\1]", 2, "octal"),
            ("\\01", 1, "octal"),
            ("a\\bc", 2, "word boundaries"),
            ("a\\Bc", 2, "word boundaries"),
            ("[\\B]", 2, "word boundaries"),
            ("\\p{L}", 1, "property"),
            ("[\\P{L}]", 2, "property"),
            ("\\Aa", 1, "anchor"),
            ("a\\Z", 2, "anchor"),
            ("a\\z", 2, "anchor"),
            ("\\h", 1, "unknown escape"),
            ("\\a", 1, "unknown escape"),
            ("\\é", 1, "unknown escape"),
            ("\\\n", 1, "unknown escape"),
            ("\\xA", 1, "two hexadecimal"),
            ("\\x+1", 1, "two hexadecimal"),
            ("\\u00g0", 1, "four hexadecimal"),
            ("\\u{1F600}", 1, "write \\uNNNN"),
            ("\\c1", 1, "ASCII letter"),
            ("\\c", 1, "ASCII letter"),
            ("a\\ud83d\\ude00", 2, "surrogate escapes"),
            ("[\\ude00]", 2, "surrogate escapes"),
            ("\\uDFFF", 1, "surrogate escapes"),
            ("a\ud83db", 2, "lone surrogate"),
            ("(?=a)", 1, "lookahead"),
            ("a(?!a)", 2, "lookahead"),
            ("(?<=a)b", 1, "lookbehind"),
            ("(?<!a)b", 1, "lookbehind"),
            ("(?<year>a)", 1, "named groups"),
            ("(?P<year>a)", 1, "named groups"),
            ("(?>a)", 1, "atomic"),
            ("(?#a)", 1, "comments"),
            ("(?i)a", 1, "flags"),
            ("(?i:a)", 1, "flags"),
            ("(?-s:a)", 1, "flags"),
            ("(?", 1, "unknown kind of group"),
            ("a^b", 2, "^ is supported only"),
            ("(^a$)", 2, "^ is supported only"),
            ("^^a", 2, "^ is supported only"),
            ("a$b", 2, "$ is supported only"),
            ("(a$)", 3, "$ is supported only"),
            ("a$$", 2, "$ is supported only"),
            ("a$*", 2, "$ is supported only"),
        ],
    )
    def test_place_and_reason(self, regex: str, column: int, message: str) -> None:
        with pytest.raises(InvalidRegex) as caught:
            parse_regex(regex)
        location = caught.value.location
        assert location is not None
        assert (location.line, location.column) == (regex[: column - 1].count("\n") + 1, column)
        assert message in caught.value.message

    def test_a_place_on_a_later_line(self) -> None:
        with pytest.raises(InvalidRegex) as caught:
            parse_regex("a\nb\\q")
        location = caught.value.location
        assert location is not None
        assert (location.line, location.column, location.line_text) == (2, 2, "b\\q")


class TestBounds:
    def test_group_depth(self) -> None:
        deepest = "(a|b" * 256 + ")*" * 256
        assert _matches(deepest, "aaba")
        with pytest.raises(InvalidRegex, match="MAX_GROUP_DEPTH") as caught:
            parse_regex("(" * 10_000 + ")" * 10_000)
        assert caught.value.location is not None
        assert caught.value.location.column == 257

    def test_source_size(self) -> None:
        parse_regex("é" * (regex_syntax.MAX_SOURCE_BYTES // 2))
        with pytest.raises(ConstraintTooLarge, match="MAX_SOURCE_BYTES"):
            parse_regex("é" * (regex_syntax.MAX_SOURCE_BYTES // 2) + "a")

    @pytest.mark.parametrize("counts", ["{100001}", "{0,100001}", "{100001,}", "{1000000}", "{" + "9" * 5_000 + "}"])
    def test_counts(self, counts: str) -> None:
        with pytest.raises(ConstraintTooLarge, match="MAX_REPEAT_COUNT") as caught:
            parse_regex("a" + counts)
        assert caught.value.location is not None
        assert caught.value.location.column == 2

    def test_the_largest_count(self) -> None:
        assert parse_regex("a{0,100000}").rules[0].body == ir.Repeat(ir.Literal(b"a"), 0, 100_000)

    @pytest.mark.parametrize(
        ("regex", "column"),
        [
            ("((a{1,1000}){1,1000}){1,1000}", 22),
            ("(a{100000}){101}", 12),
            ("(?:a{100,}b{9900}){1001}", 19),
            ("(?:" + "a*" * 101 + "){100000}", 207),
            ("a{100000}" * 101, 901),
            ("(?:" + "a{100000}" * 50 + ")(?:" + "b{100000}" * 50 + ")c", 909),
        ],
    )
    def test_nested_counts(self, regex: str, column: int) -> None:
        with pytest.raises(ConstraintTooLarge, match=f"MAX_EXPANDED_CHARACTERS.* column {column}\n"):
            parse_regex(regex)

    @pytest.mark.parametrize("regex", ["(a{100000}){100}", "((ab{0,99}){100}){0,1000}", "(?:a{0}){100000}"])
    def test_the_largest_nested_counts(self, regex: str) -> None:
        parse_regex(regex)

    def test_a_long_alternation(self) -> None:
        body = parse_regex("|".join(f"item{number}" for number in range(50_000))).rules[0].body
        assert isinstance(body, ir.Choice)
        assert len(body.options) == 50_000


class TestPattern:
    @pytest.mark.parametrize(
        ("regex", "anchors"),
        [
            ("", [(False, False)]),
            ("a", [(False, False)]),
            ("^a", [(True, False)]),
            ("a$", [(False, True)]),
            ("^(a|b)$", [(True, True)]),
            ("^$", [(True, True)]),
            ("^", [(True, False)]),
            ("$", [(False, True)]),
            ("^a|b$|c|", [(True, False), (False, True), (False, False), (False, False)]),
            ("^a$|b", [(True, True), (False, False)]),
            ("\\^a\\$", [(False, False)]),
            ("[$^]", [(False, False)]),
        ],
    )
    def test_anchors_of_top_level_alternatives(self, regex: str, anchors: list[tuple[bool, bool]]) -> None:
        pattern = parse_pattern(regex)
        assert [(one.anchored_start, one.anchored_end) for one in pattern.alternatives] == anchors

    def test_bodies(self) -> None:
        assert parse_pattern("^ab|$") == Pattern(
            (Alternative(True, False, ir.Literal(b"ab")), Alternative(False, True, ir.EMPTY))
        )

    def test_anchors_do_not_change_the_whole_match(self) -> None:
        assert parse_regex("^a+$|^b|c$") == parse_regex("a+|b|c")
