"""Failures reported against other engines that a matcher can have, each as its smallest case.

The references are public reports; what is tested is what is right, which is not always what was done about them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, ConstraintTooLarge, EmptyLanguage
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.gbnf import parse_gbnf
from infernix.matching import GrammarCompiler, LookAhead, Matcher, Vocabulary, compile_grammar, masks
from infernix.options import OutputConstraint
from support.vocabularies import (
    EMPTY_TEXT,
    EOS_IDS,
    NASTY_TOKENS,
    PADDING,
    THINK_CLOSE,
    THINK_CLOSE_AS_TEXT,
    TOOL_CALL,
    byte_vocabulary,
    nasty_token,
    nasty_vocabulary,
    spell,
    text_vocabulary,
)

E = EOS_IDS[0]
NOT_CONTENT = {THINK_CLOSE, TOOL_CALL, PADDING, EMPTY_TEXT}


def matcher_of(constraint: OutputConstraint | ir.Grammar | str, vocabulary: Vocabulary | None = None) -> Matcher:
    """A matcher for a constraint, a grammar, or GBNF text."""
    if isinstance(constraint, str):
        constraint = OutputConstraint.grammar(constraint)
    grammar = build_grammar(constraint) if isinstance(constraint, OutputConstraint) else constraint
    return compile_grammar(grammar, vocabulary or nasty_vocabulary()).new_matcher()


def ids(*texts: str) -> list[int]:
    return [nasty_token(text) for text in texts]


def bits(row: NDArray[np.int32]) -> set[int]:
    return {int(token) for token in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))}


def legal(matcher: Matcher, num_words: int = 2) -> set[int]:
    row = np.zeros(num_words, np.int32)
    matcher.fill(row)
    return bits(row)


def accept_all(matcher: Matcher, tokens: Sequence[int]) -> None:
    for token in tokens:
        assert matcher.accept(token), token


def look_ahead(matcher: Matcher, drafts: Sequence[int]) -> tuple[LookAhead, list[set[int]]]:
    rows = np.zeros((len(drafts) + 1, 2), np.int32)
    found = matcher.look_ahead(drafts, rows)
    return found, [bits(row) for row in rows[: found.num_ready]]


class TestSpeculation:
    def test_drafts_past_the_end_are_unreachable(self) -> None:
        """A complete answer became an error, because the window held drafts behind the end (vllm#42619, #44006)."""
        matcher = matcher_of('root ::= "ok"')
        found, rows = look_ahead(matcher, [*ids("ok"), E, *ids("\n", "a")])
        assert found == LookAhead(num_ready=2, dead_positions=0)
        assert rows == [{*ids("ok", "o")}, {*EOS_IDS}]
        assert matcher.preview([*ids("ok"), E, *ids("\n", "a")]) == 2
        matcher.confirm()
        assert matcher.is_terminated
        assert matcher.may_end

    def test_a_single_draft_that_ends_the_text(self) -> None:
        """The next mask was asked of a matcher that had ended (sglang#15050)."""
        matcher = matcher_of('root ::= "ok"')
        accept_all(matcher, ids("ok"))
        found, rows = look_ahead(matcher, [E])
        assert found == LookAhead(num_ready=1, dead_positions=0)
        assert rows == [{*EOS_IDS}]
        assert not matcher.is_terminated

    def test_a_terminated_matcher_takes_nothing_and_gives_no_mask(self) -> None:
        matcher = matcher_of('root ::= "ok"*')
        accept_all(matcher, [*ids("ok"), E])
        assert not any(matcher.accept(token) for token in range(len(NASTY_TOKENS)))
        with pytest.raises(RuntimeError):
            legal(matcher)

    def test_looking_over_the_end_and_back_leaves_no_trace(self) -> None:
        """After rolling back over the end a valid token was refused: a flag had survived (vllm#46272)."""
        matcher = matcher_of('root ::= "ok" "\\n"*')
        accept_all(matcher, ids("o"))
        before = legal(matcher)
        look_ahead(matcher, [*ids("k"), E])
        assert not matcher.is_terminated
        assert legal(matcher) == before
        mark = matcher.mark()
        accept_all(matcher, [*ids("k"), E])
        matcher.rollback(mark)
        assert not matcher.is_terminated
        assert not matcher.may_end
        accept_all(matcher, ids("k", "\n", "\n\n"))
        assert matcher.may_end

    def test_a_discarded_preview_over_the_end_leaves_no_trace(self) -> None:
        matcher = matcher_of('root ::= "ok" "\\n"*')
        assert matcher.preview([*ids("ok"), E]) == 2
        matcher.discard()
        assert not matcher.is_terminated
        accept_all(matcher, ids("ok", "\n"))

    @pytest.mark.parametrize("finish", [Matcher.confirm, Matcher.discard])
    def test_a_preview_is_finished_once(self, finish: object) -> None:
        matcher = matcher_of('root ::= "ok"')
        assert callable(finish)
        with pytest.raises(RuntimeError):
            finish(matcher)
        matcher.preview(ids("o"))
        with pytest.raises(RuntimeError):
            matcher.preview(ids("k"))
        with pytest.raises(RuntimeError):
            look_ahead(matcher, ids("k"))
        finish(matcher)
        with pytest.raises(RuntimeError):
            finish(matcher)

    def test_no_drafts_is_the_ordinary_step(self) -> None:
        """A draft length of zero broke the shape of the masks (TensorRT-LLM#15022)."""
        matcher = matcher_of('root ::= "ok"')
        found, rows = look_ahead(matcher, [])
        assert found == LookAhead(num_ready=1, dead_positions=0)
        assert rows == [legal(matcher)]

    def test_an_illegal_draft_has_the_mask_that_refuses_it(self) -> None:
        matcher = matcher_of('root ::= "[" ("1" | "0") "]"')
        found, rows = look_ahead(matcher, ids("[", "a", "]"))
        assert found == LookAhead(num_ready=2, dead_positions=0)
        assert rows[1] == {*ids("1", "0")}

    def test_samples_of_one_prompt_have_a_matcher_each(self) -> None:
        """Three samples moved one state (vllm#11312)."""
        compiled = compile_grammar(parse_gbnf('root ::= "ok" | "a" "b"'), nasty_vocabulary())
        first, second, third = (compiled.new_matcher() for _ in range(3))
        accept_all(first, ids("ok"))
        accept_all(second, ids("a"))
        assert (legal(first), legal(second)) == ({*EOS_IDS}, {*ids("b")})
        assert legal(third) == {*ids("ok", "o", "a"), 42}


class TestEnds:
    def test_every_end_token_waits_for_the_end(self) -> None:
        """The model stops on three ids, the mask knew one: the JSON ended in a string (vllm#42403)."""
        matcher = matcher_of(OutputConstraint.json_object())
        for token in ids('{"', "a", '":', " ", '"', "b"):
            assert not legal(matcher) & {*EOS_IDS}
            accept_all(matcher, [token])
        assert not legal(matcher) & {*EOS_IDS}
        accept_all(matcher, ids('"}'))
        assert legal(matcher) >= {*EOS_IDS}

    def test_each_end_token_ends_the_text(self) -> None:
        for end in EOS_IDS:
            matcher = matcher_of('root ::= "ok"')
            assert not matcher.accept(end)
            accept_all(matcher, [*ids("ok"), end])
            assert matcher.is_terminated

    def test_only_ends_are_legal_after_the_end_of_the_language(self) -> None:
        """The finished grammar wrote a mask of ones, and the model rambled on (vllm#29632)."""
        matcher = matcher_of(OutputConstraint.json_schema({"type": "boolean"}))
        accept_all(matcher, ids("true"))
        assert legal(matcher) == {*EOS_IDS}

    @pytest.mark.parametrize(
        ("constraint", "more"),
        [
            (OutputConstraint.regex(""), []),
            (OutputConstraint.choice(["", "ok"]), ["o", "ok"]),
            (OutputConstraint.grammar('root ::= ""'), []),
            (OutputConstraint.grammar('root ::= "{"? '), ["{"]),
        ],
    )
    def test_an_empty_text_may_end_at_once(self, constraint: OutputConstraint, more: list[str]) -> None:
        """An empty expression hung the server (sglang#276)."""
        matcher = matcher_of(constraint)
        assert matcher.may_end
        assert legal(matcher) == {*EOS_IDS, *ids(*more)}
        assert matcher.accept(E)

    def test_a_choice_that_begins_another_may_end_or_go_on(self) -> None:
        matcher = matcher_of(OutputConstraint.choice(["a", "ab", "a,"]))
        accept_all(matcher, ids("a"))
        assert legal(matcher) == {*EOS_IDS, *ids("b", ",")}


class TestReservedTokens:
    def test_anything_is_not_control_padding_or_nothing(self) -> None:
        """A reserved token was the best one under `.*`, and the scheduler died of it (sglang#3108)."""
        anything = matcher_of(ir.Grammar.of(ir.Repeat(ir.ByteRange(0, 255), 0, None)))
        assert legal(anything) == set(range(len(NASTY_TOKENS))) - NOT_CONTENT
        assert not any(anything.accept(token) for token in NOT_CONTENT)
        text = legal(matcher_of("root ::= .*"))
        broken = {token for token in range(len(NASTY_TOKENS)) if not _begins_text(NASTY_TOKENS[token][0])}
        assert text == set(range(len(NASTY_TOKENS))) - NOT_CONTENT - broken

    def test_ids_that_do_not_exist_are_refused(self) -> None:
        matcher = matcher_of("root ::= .*")
        assert not matcher.accept(len(NASTY_TOKENS))
        assert not matcher.accept(10**6)
        assert not matcher.accept(-1)

    def test_bits_beyond_the_vocabulary_stay_clear(self) -> None:
        vocabulary = text_vocabulary(["a"] * 40)
        row = np.full(2, -1, np.int32)
        assert matcher_of('root ::= "a"*', vocabulary).fill(row)
        assert bits(row) == set(range(41))

    def test_a_control_token_spelled_in_text_is_text(self) -> None:
        """`</think>` inside a JSON string was taken for the token of that name (llama.cpp#24382)."""
        matcher = matcher_of(OutputConstraint.json_schema({"const": "a</think>b"}))
        accept_all(matcher, ids('"', "a"))
        assert legal(matcher) == {THINK_CLOSE_AS_TEXT}
        assert not matcher.accept(THINK_CLOSE)
        accept_all(matcher, [THINK_CLOSE_AS_TEXT, *ids("b", '"'), E])

    def test_a_named_control_token_is_not_its_letters(self) -> None:
        matcher = matcher_of(ir.Grammar.of(ir.sequence(ir.TokenSet((THINK_CLOSE,)), ir.text("ok"))))
        assert legal(matcher) == {THINK_CLOSE}
        accept_all(matcher, [THINK_CLOSE, *ids("ok"), E])

    def test_excluding_a_control_token_allows_no_other(self) -> None:
        matcher = matcher_of(ir.Grammar.of(ir.Repeat(ir.TokenSet((THINK_CLOSE,), excluded=True), 0, None)))
        assert legal(matcher) == set(range(len(NASTY_TOKENS))) - {THINK_CLOSE, TOOL_CALL, PADDING}


class TestDeadEnds:
    def test_nothing_legal_is_said_and_never_means_everything(self) -> None:
        """An empty mask turned constraining off, or chose token 0 (vllm#53665)."""
        matcher = matcher_of('root ::= "a" "z" | "ok"')
        accept_all(matcher, ids("a"))
        row = np.full(2, -1, np.int32)
        assert not matcher.fill(row)
        assert bits(row) == set()
        assert not matcher.may_end
        assert not any(matcher.accept(token) for token in range(len(NASTY_TOKENS)))

    def test_a_draft_may_lead_to_a_dead_end_that_the_target_avoids(self) -> None:
        matcher = matcher_of('root ::= "a" "z" | "ok"')
        found, rows = look_ahead(matcher, ids("a", "b"))
        assert found == LookAhead(num_ready=1, dead_positions=0b10)
        assert rows == [{*ids("a", "ok", "o"), 42}]
        accept_all(matcher, [*ids("ok"), E])

    def test_a_text_that_cannot_be_begun_is_a_request_error(self) -> None:
        with pytest.raises(ConstraintDeadEnd):
            GrammarCompiler(nasty_vocabulary()).compile(OutputConstraint.grammar('root ::= "z"'))

    @pytest.mark.parametrize("source", ["root ::= root", 'root ::= "a" root', "root ::= a\na ::= b\nb ::= a | a b"])
    def test_rules_that_never_end_are_refused(self, source: str) -> None:
        """A reference cycle without content took the process down (xgrammar#207)."""
        with pytest.raises(EmptyLanguage):
            matcher_of(source)

    def test_no_way_leads_into_a_rule_that_never_ends(self) -> None:
        matcher = matcher_of('root ::= "a" loop | "ok"\nloop ::= "b" loop')
        assert legal(matcher) == {*ids("ok", "o")}


class TestCharacters:
    def test_characters_split_over_tokens(self) -> None:
        """An enum in Chinese was read as Latin-1, and the model's own tokens were refused (xgrammar#418)."""
        matcher = matcher_of(OutputConstraint.json_schema({"enum": ["é在", "在"]}))
        accept_all(matcher, ids('"'))
        half, rest, cut = (NASTY_TOKENS.index((data, 0)) for data in (b"\xc3", b"\xa9", b"\xe5\x9c"))
        tail_and_quote = NASTY_TOKENS.index((b'\xa8"', 0))
        assert legal(matcher) == {half, *ids("é"), cut}
        accept_all(matcher, [half])
        assert legal(matcher) == {rest}
        accept_all(matcher, [rest])
        assert legal(matcher) == {cut}
        accept_all(matcher, [cut])
        assert legal(matcher) == {tail_and_quote}
        accept_all(matcher, [tail_and_quote, E])

    def test_a_token_ends_inside_a_repetition_bound(self) -> None:
        """The last character of a bounded string may be merged with the quote, but not with one character more."""
        matcher = matcher_of(OutputConstraint.json_schema({"type": "string", "maxLength": 3}))
        accept_all(matcher, ids('"', "a"))
        assert legal(matcher) >= {*ids("ok", '"', " ")}
        assert not legal(matcher) & {*ids("true", "name", '"}', '"]')}
        accept_all(matcher, ids("a"))
        assert not legal(matcher) & {*ids("ok", "},")}
        accept_all(matcher, ids("o"))
        assert legal(matcher) == {*ids('"')}


WHITESPACE = (" ", "\n", "\t", "\n\n")


class TestWhitespace:
    @pytest.mark.parametrize("preference", [WHITESPACE, tuple(reversed(WHITESPACE)), ("\t", " ", "\n\n", "\n")])
    def test_a_model_that_loves_whitespace_gets_32_characters_of_it(self, preference: tuple[str, ...]) -> None:
        """With every useful token masked, spaces were legal for ever (vllm#38696)."""
        matcher = matcher_of(OutputConstraint.json_object())
        for text in ['{"', "a", '":', "[", "true", ",", "1", "]", ",", '"', "b", '"', ":", "null", "}"]:
            if text not in ("a", "b", '{"') and text[0] != '"':
                run = self._run_of_whitespace(matcher, preference)
                assert run == 32, text
            accept_all(matcher, ids(text))
        self._run_of_whitespace(matcher, preference)
        assert matcher.accept(E)

    @staticmethod
    def _run_of_whitespace(matcher: Matcher, preference: tuple[str, ...]) -> int:
        num_characters = 0
        while True:
            text = next((text for text in preference if nasty_token(text) in legal(matcher)), None)
            if text is None:
                return num_characters
            accept_all(matcher, ids(text))
            num_characters += len(text)
            assert num_characters <= 32

    def test_whitespace_inside_a_string_is_content(self) -> None:
        matcher = matcher_of(OutputConstraint.json_object())
        accept_all(matcher, [*ids('{"'), *ids(" ") * 100, *ids("a", '":', '"'), *ids(" ") * 100, *ids('"}'), E])

    def test_pretty_printed_layout_is_legal(self) -> None:
        """A compact-only grammar pushes a model off the layout it would have chosen."""
        vocabulary = byte_vocabulary(["{\n", '    "', '": ', ",\n    ", "\n}"])
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array"}}}
        matcher = matcher_of(OutputConstraint.json_schema(schema), vocabulary)
        text = b'{\n    "a": 1,\n    "b": [\n        true\n    ]\n}'
        accept_all(matcher, [*spell(vocabulary, text), *vocabulary.eos_ids])


def _begins_text(data: bytes) -> bool:
    """Whether some UTF-8 text begins with `data`; a token without bytes is no beginning here."""
    if not data:
        return False
    tails = (b"", b"\x80", b"\x80\x80", b"\x98\x80", b"\xa8")
    for tail in tails:
        try:
            (data + tail).decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return False


def test_token_terminals_beyond_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "MAX_TERMINAL_BYTES", 100)
    vocabulary = nasty_vocabulary()
    compile_grammar(parse_gbnf("root ::= Token(1) | Token(2)"), vocabulary)
    with pytest.raises(ConstraintTooLarge, match="3 different token terminals take 150 bytes"):
        compile_grammar(parse_gbnf("root ::= Token(1) | Token(2) | Token(3)"), vocabulary)


def test_ids_outside_the_vocabulary_are_refused_whatever_is_remembered() -> None:
    """An id beyond the vocabulary must not be taken for a token of the next configuration."""
    vocabulary = byte_vocabulary()
    compiled = compile_grammar(parse_gbnf('root ::= "abc" | "bcd" | "cde"'), vocabulary)
    for text in (b"abc", b"bcd", b"cde"):
        matcher = compiled.new_matcher()
        assert all(matcher.accept(byte) for byte in text)
    for text in (b"", b"a", b"b", b"c", b"ab", b"bc", b"cd"):
        matcher = compiled.new_matcher()
        assert all(matcher.accept(byte) for byte in text)
        for byte in b"abcde":
            for beyond in (-1, 1, 2):
                assert not matcher.accept(byte + beyond * vocabulary.num_tokens)
