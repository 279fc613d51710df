"""What GBNF text means: its language, and the form it is read into."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator

import pytest

from infernix.grammar import ir
from infernix.grammar.gbnf import MAX_GROUP_DEPTH, MAX_REPETITION, MAX_SOURCE_BYTES, parse_gbnf
from infernix.grammar.unicode import character_class
from support.recognizer import Recognizer
from support.shared_data import shared_data

ANY = character_class((), negated=True)


def root_body(source: str) -> ir.Expression:
    """The root rule's expression for a grammar that is `root ::= <source>`."""
    grammar = parse_gbnf(f"root ::= {source}")
    return grammar.rules[grammar.root].body


def members(source: str, candidates: Iterator[str] | list[str]) -> set[str]:
    recognizer = Recognizer(parse_gbnf(source))
    return {candidate for candidate in candidates if recognizer.matches(candidate.encode())}


def strings(alphabet: str, max_length: int) -> Iterator[str]:
    """All strings over `alphabet` up to `max_length`."""
    for length in range(max_length + 1):
        for letters in itertools.product(alphabet, repeat=length):
            yield "".join(letters)


LANGUAGES = {
    "literal": ('root ::= "ab"', "ab", 3, {"ab"}),
    "empty literal": ('root ::= ""', "a", 2, {""}),
    "empty group": ('root ::= "a" () "b"', "ab", 3, {"ab"}),
    "sequence binds tighter than alternatives": ('root ::= "a" "b" | "c"', "abc", 2, {"ab", "c"}),
    "group": ('root ::= "a" ("b" | "c")', "abc", 3, {"ab", "ac"}),
    "first alternative empty": ('root ::= | "a"', "a", 2, {"", "a"}),
    "last alternative empty": ('root ::= "a" |', "a", 2, {"", "a"}),
    "middle alternative empty": ('root ::= "a" | | "b"', "ab", 2, {"", "a", "b"}),
    "all alternatives empty": ("root ::= |", "a", 2, {""}),
    "group with an empty alternative": ('root ::= ("a" | ) "b"', "ab", 3, {"ab", "b"}),
    "star": ('root ::= "a"*', "a", 3, {"", "a", "aa", "aaa"}),
    "plus": ('root ::= "a"+', "a", 3, {"a", "aa", "aaa"}),
    "question mark": ('root ::= "a"?', "a", 3, {"", "a"}),
    "repetition takes the last element only": ('root ::= "a" "b"*', "ab", 3, {"a", "ab", "abb"}),
    "exact count": ('root ::= "a"{2}', "a", 4, {"aa"}),
    "count from": ('root ::= "a"{2,}', "a", 4, {"aa", "aaa", "aaaa"}),
    "count between": ('root ::= "a"{1,3}', "a", 4, {"a", "aa", "aaa"}),
    "count of zero": ('root ::= "a"{0}', "a", 2, {""}),
    "repetition in parentheses repeated": ('root ::= ("a"{2}){2}', "a", 6, {"aaaa"}),
    "class": ("root ::= [abx-z]", "abcxyz", 1, {"a", "b", "x", "y", "z"}),
    "negated class": ("root ::= [^a]", "ab\n", 2, {"b", "\n"}),
    "negated class of nothing": ("root ::= [^]", "a]\n", 1, {"a", "]", "\n"}),
    "hyphen at the ends of a class": ("root ::= [-a] [b-]", "ab-", 2, {"-b", "--", "ab", "a-"}),
    "hyphen after a range": ("root ::= [a-c-e]", "abcde-", 1, {"a", "b", "c", "-", "e"}),
    "escaped hyphen makes no range": (r"root ::= [a\-c]", "abc-", 1, {"a", "-", "c"}),
    "range to a hyphen": ("root ::= [+--]", "+,-.", 1, {"+", ",", "-"}),
    "caret not in front": ("root ::= [a^]", "a^b", 1, {"a", "^"}),
    "escaped caret in front": (r"root ::= [\^a]", "a^b", 1, {"a", "^"}),
    "any character": ('root ::= . "a"', "a\né😀", 2, {"aa", "\na", "éa", "😀a"}),
    "name next to any character": ('root ::= x. .x\nx ::= "a"', "ab", 4, {"aaaa", "aaba", "abaa", "abba"}),
    "left recursion": ('root ::= root "a" | "b"', "ab", 4, {"b", "ba", "baa", "baaa"}),
    "right recursion": ('root ::= "a" root | "b"', "ab", 4, {"b", "ab", "aab", "aaab"}),
    "hidden left recursion": ('root ::= x root "b" | "c"\nx ::= "a"?', "abc", 3, {"c", "cb", "cbb", "acb"}),
    "mutual recursion": ('root ::= "a" x\nx ::= "b" root | ""', "ab", 4, {"a", "aba"}),
    "middle recursion": ('root ::= "a" root "b" |', "ab", 4, {"", "ab", "aabb"}),
    "recursion without an end": ('root ::= "a" root', "a", 3, set()),
    "rule that is only itself": ("root ::= root", "ab", 2, set()),
    "annotation without effect": ('root ::= x "b"\nx ::= "a" | "c" (= "zzz" root)', "abcz", 2, {"ab", "cb"}),
    "annotation with alternatives": ('root ::= "a" (="b" | [c-d]*)', "abc", 2, {"a"}),
    "annotation after an empty alternative": ('root ::= "a" | (= "b")', "ab", 2, {"a", ""}),
    "unused rule": ('root ::= "a"\nspare ::= root | spare', "a", 2, {"a"}),
}


@pytest.mark.parametrize(("source", "alphabet", "max_length", "expected"), LANGUAGES.values(), ids=LANGUAGES)
def test_language(source: str, alphabet: str, max_length: int, expected: set[str]) -> None:
    assert members(source, strings(alphabet, max_length)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r'"\n\r\t\a\b\f\v\e\0"', b"\n\r\t\x07\x08\x0c\x0b\x1b\x00"),
        (r'"\\ \" \' \[ \] \- \/ \. \{"', b"\\ \" ' [ ] - / . {"),
        (r'"\x41\x7f"', b"A\x7f"),
        (r'"\xe9"', b"\xc3\xa9"),
        (r'"\u00E9\u20ac"', "é€".encode()),
        (r'"\U0001F600"', "😀".encode()),
        (r'"\x41bc\u0041bc"', b"AbcAbc"),
        (r'"\0012"', b"\x00012"),
        ('"é😀\t#|("', "é😀\t#|(".encode()),
        ('"[a-z]*"', b"[a-z]*"),
    ],
)
def test_literal_escapes_are_code_points(source: str, expected: bytes) -> None:
    assert root_body(source) == ir.Literal(expected)


@pytest.mark.parametrize(
    ("source", "ranges"),
    [
        (r"[\n\t\x41-\x43]", [(9, 10), (0x41, 0x43)]),
        (r"[\]\-\\\[]", [(0x2D, 0x2D), (0x5B, 0x5D)]),
        (r"[[\]]", [(0x5B, 0x5B), (0x5D, 0x5D)]),
        (r"[\u00e9\U0001F600-\U0001F602]", [(0xE9, 0xE9), (0x1F600, 0x1F602)]),
        ("[😀-😂é]", [(0xE9, 0xE9), (0x1F600, 0x1F602)]),
        ('["#|]', [(0x22, 0x23), (0x7C, 0x7C)]),
        (r"[^\x00-\x1f]", [(0x20, 0xD7FF), (0xE000, 0x10FFFF)]),
        (r"[\ud000-\uffff]", [(0xD000, 0xD7FF), (0xE000, 0xFFFF)]),
        ("[cab]", [(0x61, 0x63)]),
    ],
)
def test_class_ranges_are_normalised_scalar_values(source: str, ranges: list[tuple[int, int]]) -> None:
    assert root_body(source) == ir.CharacterClass(tuple(ranges))


def test_any_character_is_every_scalar_value() -> None:
    assert root_body(".") == ANY == ir.CharacterClass(((0, 0xD7FF), (0xE000, 0x10FFFF)))


def test_layout_means_nothing() -> None:
    spread = """
        # comment with "quotes" and ::=
        root   # the entry
          ::=
            "a" # first
            | ( "b"   # second
            "c" )

            {
              2 , 3
            }
        x ::= "d"
    """
    plain = 'root::="a"|("b""c"){2,3} x::="d"'
    assert parse_gbnf(spread) == parse_gbnf(plain)
    assert parse_gbnf(spread.replace("\n", "\r\n")) == parse_gbnf(plain)
    assert parse_gbnf("\ufeff" + spread) == parse_gbnf(plain)


def test_rule_names() -> None:
    names = ["a", "A", "a-b", "a_b", "-a", "_a", "a1", "1a", "12", "a.b", "a.b.c-d", "root-1", "Token", "Regex"]
    source = f"root ::= {' '.join(names)}\n" + "\n".join(f'{name} ::= "<{index}>"' for index, name in enumerate(names))
    assert Recognizer(parse_gbnf(source)).matches("".join(f"<{index}>" for index in range(len(names))).encode())


def test_rules_are_known_by_their_exact_spelling() -> None:
    grammar = parse_gbnf('root ::= a-b a_b aB\na-b ::= "1"\na_b ::= "2"\naB ::= "3"')
    assert Recognizer(grammar).matches(b"123")
    assert [rule.name for rule in grammar.rules] == ["root", "a-b", "a_b", "aB"]


def test_single_parts_stand_for_themselves() -> None:
    assert root_body('(("a"))') == ir.text("a")
    assert root_body('"a" ("b" "c")') == ir.sequence(ir.text("a"), ir.sequence(ir.text("b"), ir.text("c")))
    assert root_body('("a" | "b")+') == ir.Repeat(ir.choice(ir.text("a"), ir.text("b")), 1, None)
    assert root_body("()") == ir.EMPTY


def test_token_terminals() -> None:
    assert root_body("Token(3)") == ir.TokenSet((3,))
    assert root_body("Token ( 7, 3 , 007\n, 2147483647 )*") == ir.Repeat(ir.TokenSet((3, 7, 2**31 - 1)), 0, None)
    assert root_body("ExcludeToken(3, 1)") == ir.TokenSet((1, 3), excluded=True)
    assert root_body('"a" Token(0) "b"') == ir.sequence(ir.text("a"), ir.TokenSet((0,)), ir.text("b"))


def test_largest_count_and_deepest_group() -> None:
    assert root_body(f'"a"{{0,{MAX_REPETITION}}}') == ir.Repeat(ir.text("a"), 0, MAX_REPETITION)
    assert members("root ::= " + "(" * MAX_GROUP_DEPTH + '"a"' + ")" * MAX_GROUP_DEPTH, ["", "a", "aa"]) == {"a"}


def test_deep_groups_keep_their_language_in_shallow_trees() -> None:
    grammar = parse_gbnf("root ::= " + '("a" ' * MAX_GROUP_DEPTH + '| "b"' + ")?" * MAX_GROUP_DEPTH)
    recognizer = Recognizer(grammar)
    for num_letters in (0, 1, 31, 32, 33, 64, MAX_GROUP_DEPTH):
        assert recognizer.matches(b"a" * num_letters)
    assert recognizer.matches(b"a" * (MAX_GROUP_DEPTH - 1) + b"b")
    assert not recognizer.is_prefix(b"a" * (MAX_GROUP_DEPTH + 1))
    assert not recognizer.is_prefix(b"ab")
    assert max(height(rule.body) for rule in grammar.rules) < 110


def height(expression: ir.Expression) -> int:
    match expression:
        case ir.Sequence(parts) | ir.Choice(parts):
            return 1 + max(map(height, parts), default=0)
        case ir.Repeat(part, _, _):
            return 1 + height(part)
        case _:
            return 1


def test_long_lists_are_read_flat() -> None:
    options = root_body(" | ".join(f'"item{index}"' for index in range(100_000)))
    assert isinstance(options, ir.Choice)
    assert len(options.options) == 100_000
    items = root_body('"a" [b] ' * 20_000)
    assert isinstance(items, ir.Sequence)
    assert len(items.items) == 40_000


def test_source_at_the_size_bound_is_read() -> None:
    source = 'root ::= "a" # é'
    assert parse_gbnf(source + "x" * (MAX_SOURCE_BYTES - len(source.encode()))) == parse_gbnf(source)


SHIPPED = {
    "arithmetic.gbnf": (["a = (1 +b_2*3)\n", "x=1\ny=2\n"], ["", "x=1", "1+=2\n", "(1=2\n"], "x=(1"),
    "c.gbnf": (
        ["", "int main(){return 1+2;}", "int f(int a){if(a<b){g (a);}else{/* * */}// x\n}"],
        ["int", "int f(){return 1}", "main(){}"],
        "int f(){while(a==b){",
    ),
    "chess.gbnf": (
        ["1. e4 e5\n2. Nf3 Nc6\n", "1. O-O O-O-O\n10. exd8=Q+ Kxe1#\n"],
        ["1. e4 e5\n", "1. e9 e5\n"],
        "1. N",
    ),
    "english.gbnf": (["Hello, world!", "a-b [c] \\d ^_`{|}~\tx"], ["", " a", "a ", "a  b", "é"], "Hello, "),
    "japanese.gbnf": (["こんにちは", "日本語 カタカナ\n。"], ["", "abc", "日本語 ", "日本語abc"], "日本 "),
    "json.gbnf": (
        ["{}", '{"a": [1, -2.5e+1, "x\\n\\u00e9😀", null], "b": {}}', '{\n    "a":true}'],
        ["", "[]", '{"a":01}', '{"a":"\n"}', '{"a":1,}', '{ "a":1} x', "{}  "],
        '{"a": [tr',
    ),
    "vllm-sql.gbnf": (["SELECTcol_1fromtable_2wherecol_2=1"], ["SELECT col_1", "SELECTcol_3"], "SELECTcol_"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_grammar(name: str) -> None:
    inside, outside, prefix = SHIPPED[name]
    recognizer = Recognizer(parse_gbnf(shared_data(f"gbnf/{name}").read_text(encoding="utf-8")))
    assert [text for text in inside if not recognizer.matches(text.encode())] == []
    assert [text for text in outside if recognizer.matches(text.encode())] == []
    assert recognizer.is_prefix(prefix.encode())
    assert not recognizer.matches(prefix.encode())


def test_every_shipped_grammar_is_tested() -> None:
    assert {path.name for path in shared_data("gbnf").glob("*.gbnf")} == set(SHIPPED)


def test_indented_rules() -> None:
    source = textwrap.indent('root ::= a\na ::= "x"\n  | "y"\n', "    ")
    assert members(source, ["x", "y", "xy"]) == {"x", "y"}
