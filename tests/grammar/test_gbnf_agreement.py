"""The language of GBNF text is the one that XGrammar reads from it, wherever XGrammar reads it at all."""

from __future__ import annotations

import itertools
from random import Random

import pytest
import xgrammar
from xgrammar.testing import _get_matcher_from_grammar

from infernix.errors import InvalidGrammar
from infernix.grammar.gbnf import parse_gbnf
from support.recognizer import Recognizer
from support.shared_data import shared_data

# Grammar text, the alphabet of the strings to try, their greatest length.
SMALL_GRAMMARS = [
    ('root ::= ""', "a", 2),
    ('root ::= () | "a"', "a", 2),
    ('root ::= "a" "b" | "c" "d"', "abcd", 3),
    ('root ::= ("a" | "b" "c")* "d"', "abcd", 4),
    ('root ::= "a"? "b"+ "c"*', "abc", 5),
    ('root ::= ("a" "b"?)+', "ab", 6),
    ('root ::= "a"{2}', "a", 5),
    ('root ::= ("a" | "bb"){2,}', "ab", 6),
    ('root ::= ("a" | "aa"){1,3} "b"', "ab", 8),
    ('root ::= ("a"{2} | "b"?){ 2 , 3 }', "ab", 7),
    ('root ::= "a"{0} "b"{0,1}', "ab", 3),
    ('root ::= "a" root "b" | ""', "ab", 6),
    ('root ::= "a" root | "b"', "ab", 5),
    ('root ::= root "a" | "b"', "ab", 5),
    ('root ::= root "+" root | "a"', "a+", 7),
    ('root ::= x root "b" | "c"\nx ::= "a"?', "abc", 5),
    ('root ::= a\na ::= b "x" | "y"\nb ::= a "z" | ""', "xyz", 5),
    ('root ::= "(" root ")" root | ""', "()", 8),
    ('root ::= a-1\n a-1 ::= _b | "x"\n\n_b ::= c.d\n  "y"\n  | "z" # end\nc.d ::= [xy]', "xyz", 3),
    ("root ::= [a-cx]", "abcdxy-", 2),
    ("root ::= [^a-c]", "abcd\n", 2),
    ("root ::= [a-] [-b] [c-e-g]", "abcdefg-", 3),
    ("root ::= [+--]+", "+,-.", 2),
    (r"root ::= [\^a] [b^] [\]\[\-]", "ab^[]-\\", 3),
    ("root ::= [^^]", "a^", 2),
    ("root ::= [^]", "a^]\n", 2),
    (r'root ::= "\n\r\t\\\"" | [\n\r\t\\"]', '\n\r\t\\"', 2),
    (r'root ::= "\x41\u0042\U00000043" | [\x41-\x43]', "ABC", 3),
    (r'root ::= "\a\b" | "\f\v" | "\e\0"', "\a\b\f\v\x1b\0", 2),
    (r'root ::= "\xe9" | "\u20ac" | "\U0001F600" | [\u00e9-\u00eb]{2}', "éêë€😀", 2),
    ('root ::= "é" [ü€]* | [😀-😂]', "éü€😀😂", 3),
    ('root ::= x "b"\nx ::= "a" | "c" (= "b")', "abc", 3),
]


def verdicts_of_xgrammar(source: str, texts: list[str]) -> list[bool]:
    matcher = _get_matcher_from_grammar(xgrammar.Grammar.from_ebnf(source))
    verdicts = []
    for text in texts:
        matcher.reset()
        verdicts.append(matcher.accept_string(text) and matcher.is_completed())
    return verdicts


def assert_same_language(source: str, texts: list[str]) -> int:
    """Compares the verdict on each text; returns how many belong to the language."""
    recognizer = Recognizer(parse_gbnf(source))
    verdicts = [recognizer.matches(text.encode()) for text in texts]
    expected = verdicts_of_xgrammar(source, texts)
    assert [pair for pair in zip(texts, verdicts, expected, strict=True) if pair[1] != pair[2]] == []
    return sum(verdicts)


@pytest.mark.parametrize(("source", "alphabet", "max_length"), SMALL_GRAMMARS, ids=[row[0] for row in SMALL_GRAMMARS])
def test_all_short_strings(source: str, alphabet: str, max_length: int) -> None:
    texts = [
        "".join(letters) for length in range(max_length + 1) for letters in itertools.product(alphabet, repeat=length)
    ]
    assert 0 < assert_same_language(source, texts) < len(texts)


SAMPLES = {
    "arithmetic.gbnf": ["a = (1 +b_2*3)\n", "x=1\ny=2\n", "1*2-3=(4/5)\n"],
    "c.gbnf": ["int main(){return 1+2;}", "float f(char c){if(a<b){g (a,1);}else{/* x */}// y\n}", "int f(){x=1;}"],
    "chess.gbnf": ["1. e4 e5\n2. Nf3 Nc6\n", "1. O-O O-O-O\n10. exd8=Q+ Kxe1#\n"],
    "english.gbnf": ["Hello, world!", "a-b [c] \\d ^_`{|}~\tx"],
    "japanese.gbnf": ["こんにちは", "日本語 カタカナ\n。"],
    "json.gbnf": ['{"a": [1, -2.5e+1, "x\\n\\u00e9😀", null], "b": {}}', '{\n    "a":true}', '{"k":{"l":[[],{}]}}'],
    "vllm-sql.gbnf": ["SELECTcol_1fromtable_2wherecol_2=1", "SELECTcol_2fromtable_1wherecol_1=2"],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_shipped_grammar_on_damaged_texts(name: str) -> None:
    source = shared_data(f"gbnf/{name}").read_text(encoding="utf-8")
    source = source.replace("ws ::= |", 'ws ::= "" |')  # XGrammar has no empty alternatives
    rng = Random(7)
    texts = list(SAMPLES[name])
    for sample in SAMPLES[name]:
        for _ in range(60):
            first, last = sorted((rng.randrange(len(sample) + 1), rng.randrange(len(sample) + 1)))
            texts.append(sample[:first] + rng.choice(("", rng.choice(sample), sample[first:last] * 2)) + sample[last:])
            texts.append(sample[:first] + rng.choice(sample) + sample[first + 1 :])
    assert len(SAMPLES[name]) <= assert_same_language(source, texts) < len(texts)


@pytest.mark.parametrize(
    "source",
    [
        'root ::= "a"\nroot ::= "b"',
        "root ::= x",
        'x ::= "a"',
        "root ::=",
        'root ::= "a',
        "root ::= [a",
        'root ::= ("a"',
        'root ::= "a")',
        "root ::= [z-a]",
        r"root ::= [\d]",
        r'root ::= "\q"',
        r'root ::= "\u12"',
        "root ::= *",
        'root ::= "a"+*',
        'root ::= "a"{3,2}',
        'root ::= "a"{,3}',
        'root ::= "a"{x}',
        "root ::= Token()",
        "root ::= Token(1,)",
        "root ::= Token(-1)",
        'root ::= "a" (=)',
        'root ::= "a" (= "b") "c"',
        'root ::= ("a" (= "b")) "c"',
        'root ::= "a" (= missing)',
        'root = "a"',
        "root ::= 'a'",
    ],
)
def test_refused_by_both(source: str) -> None:
    with pytest.raises(RuntimeError):
        xgrammar.Grammar.from_ebnf(source)
    with pytest.raises(InvalidGrammar):
        parse_gbnf(source)
