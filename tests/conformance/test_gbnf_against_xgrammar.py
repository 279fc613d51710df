"""Masks of the shipped GBNF grammars, compared bit by bit with XGrammar's along real texts.

XGrammar reads the grammar text itself, so its parser, its compiler and its matcher are all independent of ours.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import xgrammar
from numpy.typing import NDArray

from infernix.grammar.gbnf import parse_gbnf
from infernix.matching import Matcher, Vocabulary, compile_grammar
from support.recognizer import Recognizer
from support.shared_data import shared_data
from support.vocabularies import byte_vocabulary, spell, text_vocabulary

TEXTS: dict[str, list[str]] = {
    "arithmetic": ["x +1 = 3\n", "(a1*(b_2 -12)) /7= \tz \n1=1\n", "0=0\n\n\n2*2*2=(eight)\n"],
    "c": [
        "int main(){int x = 5+y*2;while(x<10){x = x+1;}return\n\tx;}",
        "float half(float x){return x/2;}char f(){for(int i = 0; i!=n; i = i+1){g (i, -i);}if(a>=b){}else{//no\n}}",
        "int c(){/* stars * and ** // inside */h (f(1), ( 2 ));}",
    ],
    "chess": [
        "1. e4 e5\n2. Nf3 Nc6\n3. Bb5 a6\n",
        "1. d4 d5\n2. exd6+ Ra1xa8#\n10. O-O O-O-O\n",
        "1. a8=Q Nbxd7\n99. e4 e5\n",
    ],
    "english": ["Hello, world!", "A \\ and a `quote` [1]{2}\nnext\tline ^_^", "1 2 3"],
    "japanese": ["こんにちは、世界。", "カタカナ と\nひらがな", "日本語の文"],
    "json": [
        '{"name": "Zoë", "age":41, "tags":["a","b",[]], "ok":true}',
        '{ "text":"quote \\" and \\u00e9\\n","number":-12.5e+19,"none":null ,"在":"😀"}',
        '{\n  "list":[\n    1,\n    {"deep":{"deeper":{}}}\n  ]\n}',
    ],
    "vllm-sql": ["SELECTcol_1fromtable_1wherecol_1=1", "SELECTcol_2fromtable_2wherecol_1=2"],
}

# Pieces as a trained vocabulary has them: words with their space, runs of space, punctuation in clusters.
MERGED = [
    *("the", " the", " world", "Hello", "Hello,", "world!", " and", " a", "in", "int", "int ", "return", "main"),
    *("while", "  ", "    ", "\n  ", "\n\n", "\t", " =", " = ", "==", "<=", "){", "();", ";}", "}}", "/*", "*/", "//"),
    *("**", "+1", '":', '": ', '": "', '","', '", "', '"]', '{"', "{\n", '"}', "},", "[]", "{}", "[[", "true", "null"),
    *("name", '\\"', "\\u00", "12", "123", "0.5", "e+", "O-O", "1. ", ". ", "Nf3", "e4", " e5", "x", "=Q", "#\n"),
    *("+\n", "+ ", "SELECT", "col", "col_", "_1", "from", "fromtable_", "where", "1=1", "=1", "(a", "a1", "b_2"),
    *("é", "ë", "在", "こん", "にち", "は、", "世界", "。", "カタ", "日本", "の", "😀"),
]
# Characters cut where a byte-level vocabulary cuts them.
CUT = [
    *(b"\xe3\x81", b"\x93\xe3", b"\x82\x93", b"\xe6\x97", b"\xa5\xe6\x9c", b"\xe4\xb8\x96\xe7", b"\xf0\x9f"),
    *(b'\x98\x80"', b"o\xc3"),
]
ASCII = [bytes([byte]) for byte in (*b"\t\n", *range(0x20, 0x7F))]

VOCABULARIES: dict[str, Vocabulary] = {
    "bytes": byte_vocabulary([*MERGED, *CUT]),
    # Without most single bytes above ASCII, as in vocabularies that spell a rare character only in part.
    "pieces": text_vocabulary(
        [*ASCII, *MERGED, *CUT, *(bytes([byte]) for byte in range(0x80, 0x100, 3))], eos=["</s>", "<|im_end|>"]
    ),
}


def xgrammar_source(name: str, source: str) -> str:
    """XGrammar 0.2.9 does not read an alternative that is empty; an empty literal says the same."""
    if name == "json":
        assert 'ws ::= | " "' in source
        return source.replace('ws ::= | " "', 'ws ::= "" | " "')
    return source


class XGrammarMatcher:
    """The few calls that are needed of XGrammar's matcher."""

    def __init__(self, source: str, vocabulary: Vocabulary) -> None:
        information = xgrammar.TokenizerInfo(
            list(vocabulary.token_bytes),
            vocab_type=xgrammar.VocabType.RAW,
            stop_token_ids=sorted(vocabulary.eos_ids),
        )
        compiler = xgrammar.GrammarCompiler(information, max_threads=1, cache_enabled=False)
        self._matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(xgrammar.Grammar.from_ebnf(source)))

    def fill(self, row: NDArray[np.int32]) -> None:
        # False says that everything is allowed and that the row is as it was.
        if not self._matcher.fill_next_token_bitmask(row[np.newaxis]):
            row[:] = -1

    def accept(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))


def legal_tokens(matcher: Matcher | XGrammarMatcher, vocabulary: Vocabulary) -> set[int]:
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    matcher.fill(row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.num_tokens]
    return {int(token) for token in np.flatnonzero(bits)}


@pytest.mark.parametrize("vocabulary_name", VOCABULARIES)
@pytest.mark.parametrize("name", TEXTS)
def test_masks_along_texts(name: str, vocabulary_name: str) -> None:
    vocabulary = VOCABULARIES[vocabulary_name]
    source = shared_data(f"gbnf/{name}.gbnf").read_text(encoding="utf-8")
    grammar = parse_gbnf(source)
    compiled = compile_grammar(grammar, vocabulary)
    recognizer = Recognizer(grammar)
    num_spellings = 0
    for text in TEXTS[name]:
        for rng in (None, Random(1), Random(2)):
            try:
                tokens = spell(vocabulary, text.encode(), rng)
            except ValueError:
                continue
            num_spellings += 1
            matcher = compiled.new_matcher()
            peer = XGrammarMatcher(xgrammar_source(name, source), vocabulary)
            for position, token in enumerate([*tokens, min(vocabulary.eos_ids)]):
                before = b"".join(vocabulary.token_bytes[token] for token in tokens[:position])
                ours, theirs = legal_tokens(matcher, vocabulary), legal_tokens(peer, vocabulary)
                # XGrammar 0.2.9 offers the end token at the start of english.gbnf, to which no empty text belongs. So
                # the plain recognizer is the judge of ends, and XGrammar of everything else.
                assert ours & vocabulary.eos_ids == (vocabulary.eos_ids if recognizer.matches(before) else set())
                only_ours = [vocabulary.token_bytes[token] for token in ours - theirs - vocabulary.eos_ids]
                only_theirs = [vocabulary.token_bytes[token] for token in theirs - ours - vocabulary.eos_ids]
                assert (only_ours, only_theirs) == ([], []), f"after {before!r} of {text!r}"
                assert token in ours, f"after {before!r} of {text!r}"
                assert matcher.accept(token)
                assert peer.accept(token)
            assert matcher.is_terminated
    assert num_spellings >= 3
