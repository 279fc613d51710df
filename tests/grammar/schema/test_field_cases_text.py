"""Failures reported against other engines about characters and white space in the text of a schema: whole kinds.

The references are public reports, reduced; what is tested is what is right, which is not always what was done about
them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from infernix.matching import GrammarCompiler, Matcher
from infernix.options import OutputConstraint
from support.compiled_language import CompiledLanguage
from support.vocabularies import byte_vocabulary, spell, text_vocabulary

# "在线" is e5 9c a8 e7 ba bf, "离线" e7 a6 bb e7 ba bf, "é" c3 a9, "😀" f0 9f 98 80: nearly all are cut inside.
CUT_CHARACTERS = (
    *(b"\xe5\x9c", b"\xa8\xe7", b"\xba\xbf", b"\xe7\xa6", b"\xbb", b'"\xe7\xa6', b"\xe7", b'\xbf"'),
    *(b"\xc3", b"\xa9\xf0\x9f", b"\x98\x80", b'"', b"{", b"}", b":", b"1"),
)


class TestCharacters:
    """An enum in Chinese was read as Latin-1, and the model's own tokens were refused (xgrammar#418)."""

    @pytest.mark.parametrize(
        ("schema", "text"),
        [
            ({"enum": ["在线", "离线"]}, '"在线"'),
            ({"enum": ["在线", "离线"]}, '"离线"'),
            ({"const": "é😀"}, '"é😀"'),
            ({"type": "string"}, '"é😀在线"'),
            ({"type": "string", "maxLength": 4}, '"é😀在线"'),
            ({"type": "string", "pattern": "^[一-龥]+线$"}, '"离线"'),
            ({"type": "string", "pattern": "线", "minLength": 2}, '"在线"'),
            ({"properties": {"在线": {"const": 1}}, "required": ["在线"]}, '{"在线":1}'),
            ({"properties": {"在": {}}, "additionalProperties": {"const": 1}}, '{"在线":1}'),
            ({"enum": [{"离线": "在线"}]}, '{"离线":"在线"}'),
        ],
    )
    def test_text_is_written_directly_whatever_the_tokens(self, schema: Any, text: str) -> None:
        vocabulary = text_vocabulary(CUT_CHARACTERS)
        compiler = GrammarCompiler(vocabulary)
        for source in (json.dumps(schema), json.dumps(schema, ensure_ascii=False)):
            matcher = compiler.compile(OutputConstraint.json_schema(source)).grammar.new_matcher()
            tokens = spell(vocabulary, text.encode())
            assert all(map(matcher.accept, tokens)), source
            assert matcher.may_end

    @pytest.mark.parametrize("text", ['"在线"', '"离线"'])
    def test_no_other_byte_goes_on_inside_a_character(self, text: str) -> None:
        language = CompiledLanguage({"enum": ["在线", "离线", "在"]})
        data = text.encode()
        texts = ['"在线"'.encode(), '"离线"'.encode(), '"在"'.encode()]
        for length in range(len(data)):
            following = {other[length] for other in texts if other[:length] == data[:length]}
            matcher = language.grammar.new_matcher()
            assert matcher.accept_bytes(data[:length])
            mark = matcher.mark()
            found = set()
            for byte in range(256):
                if matcher.accept(byte):
                    found.add(byte)
                    matcher.rollback(mark)
                    mark = matcher.mark()
            assert found == following, data[:length]


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"enum": ["x", None]}},
        "kind": {"const": {"a": [1, {"b": True}], "c": "\t"}},
        "more": {},
    },
    "required": ["name", "tags"],
    "additionalProperties": {"anyOf": [{"type": "array", "items": {"type": "number", "minimum": 0}}, {"type": "null"}]},
}
PERSON_TOKENS = [
    *["{", '"name"', ":", '" \\n\\t "', ",", '"tags"', ":", "[", "-12", ",", '"x"', ",", "null", "]"],
    *[",", '"kind"', ":", "{", '"a"', ":", "[", "1", ",", "{", '"b"', ":", "true", "}", "]", ",", '"c"', ":", '"\\t"'],
    *["}", ",", '"more"', ":", "{", '"k"', ":", "[", "[", "]", ",", "1e5", "]", "}"],
    *[",", '"other"', ":", "[", "0.5", ",", "2", "]", ",", '"last"', ":", "null", "}"],
]
MIXED_RUNS = (" " * 32, "\n" * 32, "\t" * 32, "\r\n" * 16, " \t\n\r" * 8)


class TestWhitespaceRuns:
    """A string was closed too early, every useful token was masked, and spaces stayed legal for ever (omlx#2990,
    vllm#38696, xgrammar#412)."""

    def test_each_slot_takes_32_characters_of_any_kind_and_no_more(self) -> None:
        language = CompiledLanguage(PERSON)
        assert "".join(PERSON_TOKENS) in language
        for slot in range(1, len(PERSON_TOKENS)):
            before, after = "".join(PERSON_TOKENS[:slot]), "".join(PERSON_TOKENS[slot:])
            for run in MIXED_RUNS:
                assert before + run + after in language, (slot, run)
                for more in " \t\n\r":
                    assert before + run + more + after not in language, (slot, run)
                    assert before + more + run + after not in language, (slot, run)
            for other in ("\f", "\v", "\xa0", "\u2028", "\ufeff", "//"):
                assert before + other + after not in language, (slot, other)

    def test_no_white_space_stands_before_or_after_the_whole_value(self) -> None:
        text = "".join(PERSON_TOKENS)
        for schema, value in ((PERSON, text), ({}, text), ({"type": "integer"}, "1"), ({"const": [1]}, "[1]")):
            language = CompiledLanguage(schema)
            assert value in language
            for space in " \t\n\r":
                assert space + value not in language
                assert value + space not in language

    def test_every_slot_may_be_full_at_once(self) -> None:
        assert MIXED_RUNS[4].join(PERSON_TOKENS) in CompiledLanguage(PERSON)

    @pytest.mark.parametrize("schema", [{"type": "string"}, {"const": " \n " * 40}, {"pattern": "^[ \\n]{120}$"}, {}])
    def test_white_space_inside_a_string_is_content(self, schema: Any) -> None:
        text = json.dumps(" \n " * 40)
        assert text in CompiledLanguage(schema)
        assert f'{{"a":{text}}}' in CompiledLanguage({"properties": {"a": schema}})
        assert "{" + text + ":1}" in CompiledLanguage({"additionalProperties": {"type": "integer"}})

    @pytest.mark.parametrize("merged", [(), ("  ", "\n\n", "\n    ", " " * 16, " " * 40, "\t\t\t", '", ', "},\n")])
    def test_a_model_that_wants_nothing_but_white_space_comes_to_an_end(self, merged: tuple[str, ...]) -> None:
        vocabulary = byte_vocabulary(merged)
        matcher = GrammarCompiler(vocabulary).compile(OutputConstraint.json_schema(PERSON)).grammar.new_matcher()
        for position, token in enumerate(PERSON_TOKENS):
            run = self._run_of_white_space(matcher, vocabulary.token_bytes)
            assert run == (32 if position else 0), token
            assert all(map(matcher.accept, token.encode()))
        assert self._run_of_white_space(matcher, vocabulary.token_bytes) == 0
        assert matcher.may_end

    @staticmethod
    def _run_of_white_space(matcher: Matcher, token_bytes: Any) -> int:
        """Takes the longest legal token of white space again and again; how many characters that is."""
        row = np.zeros((len(token_bytes) + 31) // 32, np.int32)
        num_characters = 0
        while True:
            matcher.fill(row)
            legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            blank = [token for token in legal if token_bytes[token] and not token_bytes[token].strip()]
            if not blank:
                return num_characters
            chosen = max(blank, key=lambda token: len(token_bytes[token]))
            assert matcher.accept(int(chosen))
            num_characters += len(token_bytes[chosen])
            assert num_characters <= 32


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"separators": (" , ", " : ")},
    {"indent": 0},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
    {"indent": 2, "separators": (",", " :  ")},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=json.dumps)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            PERSON,
            {"name": "A", "tags": [1, "x", None], "kind": {"a": [1, {"b": True}], "c": "\t"}, "more": {"k": [[]]}},
        ),
        (PERSON, {"name": "A", "tags": [], "other": [0.5, 2], "last": None}),
        ({"enum": [{"city": "Paris", "weather": {"now": [1, 2]}}]}, {"city": "Paris", "weather": {"now": [1, 2]}}),
        ({"type": "array", "items": {"type": "object", "required": ["a"]}}, [{"a": 1}, {"a": {"b": []}}]),
        ({}, {"a": [1, {"b": [None, True]}], "c": {}}),
    ],
)
def test_the_layout_that_a_model_prefers_is_legal(schema: Any, value: Any, layout: dict[str, Any]) -> None:
    """A grammar for compact JSON alone pushed models off their layout, and their answers got worse
    (webai-at-home#221: `{"city":"]Paris"}`)."""
    text = json.dumps(value, ensure_ascii=False, **layout)
    language = CompiledLanguage(schema)
    assert text in language
    assert text.replace("\n", "\r\n") in language
