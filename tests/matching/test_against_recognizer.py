"""The matching core against the plain recognizer: every bit of every mask along random walks.

`INFERNIX_CONFORMANCE_CASES=N` runs N random grammars more than the ones that always run. A failure names its family and
seed; `check_case(family, seed)` runs that one case again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, EmptyLanguage
from infernix.grammar import ir
from infernix.matching import DEAD, CompiledGrammar, compile_grammar
from infernix.matching.matcher import Matcher
from infernix.matching.vocabulary import TokenClass, Vocabulary
from support.random_grammars import ALPHABET, FAMILIES, fixed_grammars, random_grammar
from support.recognizer import Recognizer, State
from support.vocabularies import nasty_vocabulary, random_vocabulary, text_vocabulary

CASES_PER_FAMILY = 20
ADDITIONAL_CASES = int(os.environ.get("INFERNIX_CONFORMANCE_CASES", "0"))
WALK_LENGTH = 10
NUM_DRAFTS = 5


class Pair:
    """A matcher and the recognizer's state for the same tokens; every method compares the two."""

    def __init__(self, grammar: ir.Grammar, vocabulary: Vocabulary, compiled: CompiledGrammar, label: str) -> None:
        self.vocabulary = vocabulary
        self.recognizer = Recognizer(grammar)
        self.matcher: Matcher = compiled.new_matcher()
        self.state: State = self.recognizer.start()
        self.label = label
        self.grammar = grammar
        self.tokens: list[int] = []
        self._legal_by_state: dict[State, set[int]] = {}

    def describe(self) -> str:
        """Everything needed to look at a failure by hand."""
        rules = "\n".join(f"  {index}: {rule.body}" for index, rule in enumerate(self.grammar.rules))
        tokens = [
            (token, data, TokenClass(int(self.vocabulary.classes[token])).name)
            for token, data in enumerate(self.vocabulary.token_bytes)
        ]
        return f"{self.label}\n{rules}\ntokens: {tokens}\nafter: {self.tokens}"

    def legal(self) -> set[int]:
        """The legal tokens according to the recognizer."""
        if self.state not in self._legal_by_state:
            self._legal_by_state[self.state] = self.recognizer.legal_tokens(self.state, self.vocabulary)
        return self._legal_by_state[self.state]

    def check_row(self, row: NDArray[np.int32], expected: set[int]) -> None:
        found = unpack(row)
        assert found == expected, f"{self.describe()}\nmissing {expected - found}, too many {found - expected}"

    def check_mask(self) -> set[int]:
        """The mask, the end and the flag of termination at this position."""
        expected = self.legal()
        row = new_row(self.vocabulary)
        assert self.matcher.is_terminated == self.state.is_terminated, self.describe()
        if self.state.is_terminated:
            with pytest.raises(RuntimeError, match="terminated"):
                self.matcher.fill(row)
            return expected
        assert self.matcher.fill(row) == bool(expected), self.describe()
        self.check_row(row, expected)
        assert self.matcher.may_end == self.recognizer.may_end(self.state), self.describe()
        return expected

    def check_every_accept(self, legal: set[int]) -> None:
        """Each token is accepted exactly where its bit is set; refused, it leaves everything as it was."""
        illegal = [token for token in range(self.vocabulary.num_tokens) if token not in legal]
        for token in illegal:
            assert not self.matcher.accept(token), f"{self.describe()}\ntoken {token}"
        self.check_mask()
        outer_mark = self.matcher.mark()
        for token in illegal:
            assert not self.matcher.accept(token), f"{self.describe()}\ntoken {token}"
        self.check_mask()
        for token in sorted(legal):
            mark = self.matcher.mark()
            assert self.matcher.accept(token), f"{self.describe()}\ntoken {token}"
            self.matcher.rollback(mark)
        self.check_mask()
        self.matcher.rollback(outer_mark)
        self.check_mask()

    def advance(self, token: int) -> None:
        """Accepts a legal token on both sides."""
        assert self.matcher.accept(token), self.describe()
        self.follow(token)

    def follow(self, token: int) -> None:
        """Moves the recognizer alone, where the matcher has moved already."""
        after = self.recognizer.accept(self.state, token, self.vocabulary)
        assert after is not None
        self.state = after
        self.tokens.append(token)

    def check_rollback(self, rng: Random, length: int) -> None:
        """A few tokens ahead and back again, once through each position on the way."""
        baseline, tokens, outset = self.matcher.mark(), list(self.tokens), self.state
        marks = []
        for _ in range(length):
            legal = sorted(self.legal())
            if not legal:
                break
            marks.append((self.matcher.mark(), self.state, list(self.tokens)))
            self.advance(rng.choice(legal))
            self.check_mask()
        if marks:
            mark, self.state, self.tokens = rng.choice(marks)
            self.matcher.rollback(mark)
            self.check_mask()
        self.matcher.rollback(baseline)
        self.state, self.tokens = outset, tokens
        self.check_mask()

    def draw_drafts(self, rng: Random) -> list[int]:
        """Mostly legal tokens in a row, sometimes followed or broken by arbitrary ones."""
        drafts: list[int] = []
        state: State | None = self.state
        for _ in range(rng.randint(0, NUM_DRAFTS)):
            legal = sorted(self.recognizer.legal_tokens(state, self.vocabulary)) if state is not None else []
            token = rng.choice(legal) if legal and rng.random() < 0.85 else rng.randrange(self.vocabulary.num_tokens)
            drafts.append(token)
            if state is not None:
                state = self.recognizer.accept(state, token, self.vocabulary)
        return drafts

    def check_look_ahead(self, drafts: list[int]) -> None:
        """The same loop over positions on the recognizer's side."""
        if self.state.is_terminated:
            with pytest.raises(RuntimeError, match="terminated"):
                self.matcher.look_ahead(drafts, np.zeros((len(drafts) + 1, self.vocabulary.num_mask_words), np.int32))
            return
        expected_rows: list[set[int]] = []
        dead_positions = 0
        state: State | None = self.state
        for position in range(len(drafts) + 1):
            assert state is not None
            legal = self.recognizer.legal_tokens(state, self.vocabulary)
            if not legal:
                dead_positions = 1 << position
                break
            expected_rows.append(legal)
            if position == len(drafts) or drafts[position] not in legal:
                break
            state = self.recognizer.accept(state, drafts[position], self.vocabulary)
            if state is not None and state.is_terminated:
                break
        rows = np.full((len(drafts) + 1, self.vocabulary.num_mask_words), -1, np.int32)
        found = self.matcher.look_ahead(drafts, rows)
        where = f"{self.describe()}\ndrafts {drafts}"
        assert found.num_ready == len(expected_rows), where
        assert found.dead_positions == dead_positions, where
        for row, expected in zip(rows, expected_rows, strict=False):
            self.check_row(row, expected)
        self.check_mask()

    def check_preview(self, drafts: list[int], *, confirm: bool) -> None:
        """A preview takes the longest legal prefix and stops behind an end token; it can be kept or given back."""
        outset, tokens = self.state, list(self.tokens)
        expected_length = 0
        for token in drafts:
            if token not in self.legal():
                break
            self.follow(token)
            expected_length += 1
        where = f"{self.describe()}\npreview of {drafts}"
        assert self.matcher.preview(drafts) == expected_length, where
        assert self.matcher.is_terminated == self.state.is_terminated, where
        with pytest.raises(RuntimeError):
            self.matcher.look_ahead([], np.zeros((1, self.vocabulary.num_mask_words), np.int32))
        if confirm:
            self.matcher.confirm()
        else:
            self.matcher.discard()
            self.state, self.tokens = outset, tokens
        self.check_mask()


def new_row(vocabulary: Vocabulary) -> NDArray[np.int32]:
    """A row full of ones, so that words that are left alone show up."""
    return np.full(vocabulary.num_mask_words, -1, np.int32)


def unpack(row: NDArray[np.int32]) -> set[int]:
    """The numbers of the bits that are set, those beyond the vocabulary included."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return {int(index) for index in np.flatnonzero(bits)}


def compile_or_refuse(grammar: ir.Grammar, vocabulary: Vocabulary) -> CompiledGrammar | None:
    """The compiled grammar; None where the recognizer agrees that the language is empty or cannot be begun."""
    recognizer = Recognizer(grammar)
    if recognizer.is_empty:
        with pytest.raises(EmptyLanguage):
            compile_grammar(grammar, vocabulary)
        return None
    if not recognizer.legal_tokens(recognizer.start(), vocabulary):
        try:
            return compile_grammar(grammar, vocabulary)
        except ConstraintDeadEnd:
            return None
    return compile_grammar(grammar, vocabulary)


def walk(pair: Pair, rng: Random, length: int, *, thorough: bool = True) -> None:
    """Random tokens to the end or to `length`, comparing everything on the way."""
    for _ in range(length):
        legal = pair.check_mask()
        if thorough:
            pair.check_every_accept(legal)
            pair.check_look_ahead(pair.draw_drafts(rng))
            pair.check_rollback(rng, rng.randint(0, 3))
            pair.check_preview(pair.draw_drafts(rng), confirm=False)
        if not legal or pair.state.is_terminated:
            return
        if thorough and rng.random() < 0.2:
            pair.check_preview(pair.draw_drafts(rng), confirm=True)
            continue
        content = sorted(legal - pair.vocabulary.eos_ids)
        pair.advance(rng.choice(content if content and rng.random() < 0.93 else sorted(legal)))
    pair.check_mask()


def check_bytes(grammar: ir.Grammar, compiled: CompiledGrammar, rng: Random, where: str) -> None:
    """The same questions byte by byte, without a vocabulary."""
    recognizer = Recognizer(grammar)
    state, configuration = recognizer.start(), compiled.configurations.start
    for _ in range(WALK_LENGTH):
        allowed = recognizer.allowed_bytes(state)
        assert compiled.configurations.allowed_bytes(configuration) == allowed, where
        assert compiled.configurations.may_end(configuration) == recognizer.may_end(state), where
        if not allowed:
            return
        byte = rng.choice(allowed)
        forbidden = rng.randrange(256)
        assert (compiled.configurations.step_byte(configuration, forbidden) != DEAD) == (forbidden in allowed), where
        after = recognizer.step_byte(state, byte)
        assert after is not None
        state, configuration = after, compiled.configurations.step_byte(configuration, byte)
        assert configuration >= 0, where


def check_case(family: str, seed: int) -> bool:
    """One random grammar with one random vocabulary; False if there was nothing to walk through."""
    rng = Random(f"{family} {seed}")
    vocabulary = random_vocabulary(rng, rng.choice((ALPHABET[:2], ALPHABET[:3], ALPHABET[:5], ALPHABET)))
    by_class = {
        token_class: tuple(np.flatnonzero(vocabulary.classes == token_class).tolist()) for token_class in TokenClass
    }
    token_ids = by_class[TokenClass.TEXT] + by_class[TokenClass.CONTROL] if rng.random() < 0.35 else ()
    reserved_ids = by_class[TokenClass.EOS] + by_class[TokenClass.NEVER]
    grammar = random_grammar(rng, family, token_ids, reserved_ids)
    compiled = compile_or_refuse(grammar, vocabulary)
    if compiled is None:
        return False
    label = f"check_case({family!r}, {seed!r})"
    for number in range(3):
        pair = Pair(grammar, vocabulary, compiled, f"{label}, walk {number}")
        walk(pair, rng, WALK_LENGTH, thorough=number == 0)
    check_bytes(grammar, compiled, rng, f"{label}, bytes")
    return True


@pytest.mark.parametrize("family", FAMILIES)
def test_random_grammars(family: str) -> None:
    num_cases = CASES_PER_FAMILY + ADDITIONAL_CASES // len(FAMILIES)
    num_walked = sum(check_case(family, seed) for seed in range(num_cases))
    assert num_walked > num_cases // 2


# Merged tokens of the letters that the fixed grammars use, some with the cut inside a character.
FIXED_VOCABULARY = text_vocabulary(
    [
        *("a", "b", "c", "+", "*", "(", ")"),
        *("aa", "aaa", "aaaaaaa", "ab", "ba", "bb", "abc", "ac", "cb", "bab", "(a", "a)", "+a", "a+a", ")*("),
        *("é", "è", "在", "éè", b"\xa9\xe5", b"\x98\x80\xc3"),
        *(bytes([byte]) for byte in sorted(set("éè在😀".encode()))),
    ],
    control=["a"],
    eos=["</s>", "a"],
    never=["<pad>"],
)


@pytest.mark.parametrize("name", fixed_grammars())
def test_fixed_grammars(name: str) -> None:
    grammar = fixed_grammars()[name]
    compiled = compile_grammar(grammar, FIXED_VOCABULARY)
    rng = Random(name)
    for number in range(4):
        walk(Pair(grammar, FIXED_VOCABULARY, compiled, f"{name}, walk {number}"), rng, 12, thorough=number == 0)
        check_bytes(grammar, compiled, rng, name)


@pytest.mark.parametrize("name", ["s_s", "s_s_s_empty", "sums", "balanced", "hidden_left", "long_count", "unit_cycle"])
def test_long_texts(name: str) -> None:
    """Far from the start, where an error in sharing positions would have had time to show."""
    grammar = fixed_grammars()[name]
    pair = Pair(grammar, FIXED_VOCABULARY, compile_grammar(grammar, FIXED_VOCABULARY), name)
    rng = Random(name)
    for position in range(30):
        legal = pair.check_mask() if position % 6 == 0 else pair.legal()
        content = sorted(legal - FIXED_VOCABULARY.eos_ids)
        if not content:
            break
        pair.advance(rng.choice(content))
    pair.check_mask()


def test_matchers_of_one_grammar_do_not_disturb_each_other() -> None:
    grammar = fixed_grammars()["sums"]
    compiled = compile_grammar(grammar, FIXED_VOCABULARY)
    rng = Random(5)
    pairs = [Pair(grammar, FIXED_VOCABULARY, compiled, f"matcher {number}") for number in range(4)]
    for _ in range(40):
        pair = rng.choice(pairs)
        content = sorted(pair.check_mask() - FIXED_VOCABULARY.eos_ids)
        pair.advance(rng.choice(content))
    for pair in pairs:
        pair.check_mask()


JSON_LIKE_TEXTS = ir.choice(
    ir.text('{"name": "a"}'), ir.text('{"ok": [true, null]}'), ir.text('[{"a":1},{"b":"é"}]'), ir.text("{}\n\n")
)


@pytest.mark.parametrize(
    "body",
    [
        JSON_LIKE_TEXTS,
        ir.Repeat(ir.choice(*(ir.text(text) for text in ("{", "}", '"', ":", ",", "]", " ", "\n"))), 0, 5),
        ir.sequence(ir.text('"'), ir.Repeat(ir.CharacterClass(((0x20, 0x21), (0x23, 0xD7FF))), 0, 4), ir.text('"')),
        ir.Repeat(ir.ByteRange(0, 255), 2, 3),
    ],
)
def test_nasty_vocabulary(body: ir.Expression) -> None:
    vocabulary = nasty_vocabulary()
    compiled = compile_grammar(ir.Grammar.of(body), vocabulary)
    rng = Random(7)
    for number in range(6):
        walk(Pair(ir.Grammar.of(body), vocabulary, compiled, f"walk {number}"), rng, 14, thorough=number == 0)


def _endless() -> ir.Grammar:
    builder = ir.GrammarBuilder()
    rule = builder.declare("root")
    builder.define(rule, ir.sequence(ir.text("a"), rule))
    return builder.build(rule)


@pytest.mark.parametrize(
    "make", [_endless, lambda: ir.Grammar.of(ir.NOTHING), lambda: ir.Grammar.of(ir.RuleReference(0))]
)
def test_an_empty_language_is_refused(make: Callable[[], ir.Grammar]) -> None:
    with pytest.raises(EmptyLanguage, match="no text belongs"):
        compile_grammar(make(), nasty_vocabulary())
