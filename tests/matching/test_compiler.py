"""One compiled grammar for all who ask for the same one: keys, threads, failures and memory."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from infernix.errors import (
    ConstraintDeadEnd,
    ConstraintError,
    ConstraintTooLarge,
    EmptyLanguage,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidRegex,
    TextLocation,
    UnsatisfiableJsonSchema,
    UnsupportedJsonSchema,
)
from infernix.grammar import ir
from infernix.matching import GrammarCompiler, masks
from infernix.matching import compiler as compiler_module
from infernix.matching import sources as sources_module
from infernix.matching.masks import VocabularyIndex
from infernix.options import OutputConstraint
from infernix.results import CacheAccess
from support.vocabularies import byte_vocabulary, nasty_vocabulary, text_vocabulary

VOCABULARY = byte_vocabulary()
GRAMMAR = OutputConstraint.grammar
SCHEMA = OutputConstraint.json_schema
CHOICE = OutputConstraint.choice
REGEX = OutputConstraint.regex


class Gate:
    """Stands in for `build_grammar`: counts builds and lets none through before it is opened."""

    def __init__(self, build: Callable[..., ir.Grammar]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self.is_open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.num_builds = 0
        self.num_inside = 0
        self.most_inside = 0
        self.failures: list[BaseException] = []

    def __call__(self, *arguments: Any) -> ir.Grammar:
        with self._lock:
            self.num_builds += 1
            self.num_inside += 1
            self.most_inside = max(self.most_inside, self.num_inside)
            failure = self.failures.pop(0) if self.failures else None
        self.entered.release()
        assert self.is_open.wait(60)
        with self._lock:
            self.num_inside -= 1
        if failure is not None:
            raise failure
        return self._build(*arguments)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(sources_module.build_grammar)
    monkeypatch.setattr(sources_module, "build_grammar", gate)
    yield gate
    gate.is_open.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


class TestKeys:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (CHOICE(["a", "b", ""]), CHOICE(["", "b", "a", "b"])),
            (GRAMMAR('root ::= "a"'), GRAMMAR('root ::= "a"')),
            (SCHEMA({"const": 1}), SCHEMA('{"const": 1}')),
            (OutputConstraint.json_object(), OutputConstraint.json_object()),
            (REGEX("a+"), REGEX("a+")),
        ],
    )
    def test_the_same_constraint_is_compiled_once(self, first: OutputConstraint, second: OutputConstraint) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        built, found = compiler.compile(first), compiler.compile(second)
        assert (built.access, found.access) == (CacheAccess.BUILT, CacheAccess.HIT)
        assert found.grammar is built.grammar

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (SCHEMA('{"enum": ["a b"]}'), SCHEMA('{"enum": ["a  b"]}')),
            (SCHEMA('{"enum": ["a", "b"]}'), SCHEMA('{"enum": ["b", "a"]}')),
            (SCHEMA('{"type": "string", "minLength": 1}'), SCHEMA('{"minLength": 1, "type": "string"}')),
            (SCHEMA('{"const": 1}'), SCHEMA('{"const":1}')),
            (SCHEMA('{"const": 1}'), SCHEMA('{"const": 1}', ignore_keywords=["format"])),
            (CHOICE(["a"]), REGEX("a")),
            (CHOICE(["ab"]), CHOICE(["a", "b"])),
            (CHOICE(["a\0b"]), CHOICE(["a", "b"])),
            (CHOICE([""]), CHOICE(["", "a"])),
            (SCHEMA("{}"), OutputConstraint.json_object()),
            (GRAMMAR('root ::= "a"'), GRAMMAR('root ::= "a" ')),
            (REGEX("\u00e9"), REGEX("e\u0301")),
        ],
    )
    def test_different_sources_are_different_entries(self, first: OutputConstraint, second: OutputConstraint) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        grammars = [compiler.compile(constraint).grammar for constraint in (first, second, first, second)]
        assert grammars[0] is grammars[2]
        assert grammars[1] is grammars[3]
        assert grammars[0] is not grammars[1]

    def test_the_empty_list_is_not_the_empty_string(self) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        compiler.compile(CHOICE([""]))
        with pytest.raises(InvalidChoice):
            compiler.compile(CHOICE([]))

    @pytest.mark.parametrize("choices", [["a", "\ud800"], ["\ud800", "a"]])
    def test_a_place_in_an_error_is_the_place_in_this_list(self, choices: list[str]) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        for constraint in (CHOICE(choices[::-1]), CHOICE(choices)):
            with pytest.raises(InvalidChoice) as caught:
                compiler.compile(constraint)
        assert caught.value.index == choices.index("\ud800")

    def test_vocabularies_have_compilers_of_their_own(self) -> None:
        constraint = CHOICE(["a"])
        grammars = [GrammarCompiler(vocabulary).compile(constraint) for vocabulary in (VOCABULARY, nasty_vocabulary())]
        assert [compilation.access for compilation in grammars] == [CacheAccess.BUILT] * 2
        assert grammars[0].grammar.vocabulary is not grammars[1].grammar.vocabulary


class TestLanguages:
    @pytest.mark.parametrize("constraint", [GRAMMAR('root ::= ""'), CHOICE([""]), REGEX("")])
    def test_a_text_may_be_empty_and_nothing_else(self, constraint: OutputConstraint) -> None:
        matcher = GrammarCompiler(VOCABULARY).compile(constraint).grammar.new_matcher()
        row = np.zeros(VOCABULARY.num_mask_words, np.int32)
        assert matcher.fill(row)
        assert np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() == [256]
        assert matcher.accept(256)

    def test_a_start_that_no_token_can_spell_is_a_dead_end(self) -> None:
        with pytest.raises(ConstraintDeadEnd):
            GrammarCompiler(text_vocabulary(["ab", "c"])).compile(GRAMMAR('root ::= "a" "c"'))

    @pytest.mark.parametrize("source", ["root ::= root", 'root ::= "a" root'])
    def test_a_grammar_without_a_text_is_invalid(self, source: str) -> None:
        with pytest.raises(InvalidGrammar, match="empty") as caught:
            GrammarCompiler(VOCABULARY).compile(GRAMMAR(source))
        assert caught.value.location is None

    def test_an_empty_language_of_another_kind_keeps_its_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sources_module, "build_grammar", lambda *_: ir.Grammar.of(ir.NOTHING))
        with pytest.raises(EmptyLanguage):
            GrammarCompiler(VOCABULARY).compile(REGEX("a"))


class TestThreads:
    def test_who_asks_for_a_build_under_way_waits_for_it(self, gate: Gate, pool: ThreadPoolExecutor) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        first = pool.submit(compiler.compile, CHOICE(["a", "b"]))
        gate.entered.acquire()
        others = [pool.submit(compiler.compile, CHOICE(["b", "a"])) for _ in range(5)]
        until(lambda: num_blocked(pool) == 5)
        gate.is_open.set()
        assert first.result().access is CacheAccess.BUILT
        assert [other.result().access for other in others] == [CacheAccess.WAITED] * 5
        assert {id(other.result().grammar) for other in others} == {id(first.result().grammar)}
        assert gate.num_builds == 1

    def test_two_builds_at_once_and_hits_wait_for_neither(self, gate: Gate, pool: ThreadPoolExecutor) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        gate.is_open.set()
        known = compiler.compile(CHOICE(["known"])).grammar
        with pytest.raises(InvalidRegex):
            compiler.compile(REGEX("("))
        gate.is_open.clear()
        builds = [pool.submit(compiler.compile, CHOICE([str(number)])) for number in range(6)]
        for _ in range(4):  # the two builds above, and the first two of these
            gate.entered.acquire()
        until(lambda: len(compiler._builds) == 6)
        found = compiler.compile(CHOICE(["known"]))
        assert (found.grammar, found.access) == (known, CacheAccess.HIT)
        with pytest.raises(InvalidRegex):
            compiler.compile(REGEX("("))
        assert gate.num_inside == 2
        assert compiler.num_cached_bytes > 0
        gate.is_open.set()
        assert [build.result().access for build in builds] == [CacheAccess.BUILT] * 6
        assert gate.most_inside == 2
        assert compiler._builds == {}

    def test_who_waits_for_a_failure_gets_it_too(self, gate: Gate, pool: ThreadPoolExecutor) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        builds = [pool.submit(compiler.compile, REGEX("(")) for _ in range(4)]
        gate.entered.acquire()
        until(lambda: num_blocked(pool) == 3)
        gate.is_open.set()
        errors = [build.exception() for build in builds]
        assert len({id(error) for error in errors}) == 4
        assert {str(error) for error in errors} == {str(errors[0])}
        assert gate.num_builds == 1

    @pytest.mark.parametrize("failure", [MemoryError(), KeyboardInterrupt(), RuntimeError("a defect")])
    def test_a_build_that_was_broken_off_is_none(
        self, gate: Gate, pool: ThreadPoolExecutor, failure: BaseException
    ) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        gate.failures.append(failure)
        first = pool.submit(compiler.compile, CHOICE(["a"]))
        gate.entered.acquire()
        others = [pool.submit(compiler.compile, CHOICE(["a"])) for _ in range(3)]
        until(lambda: num_blocked(pool) == 3)
        gate.is_open.set()
        assert first.exception() is failure
        accesses = sorted(other.result().access for other in others)
        assert accesses.count(CacheAccess.BUILT) == 1
        assert compiler.compile(CHOICE(["a"])).access is CacheAccess.HIT
        assert gate.num_builds == 2
        assert compiler._builds == {}
        # Neither slot was lost.
        gate.is_open.clear()
        builds = [pool.submit(compiler.compile, CHOICE([text])) for text in ("b", "c")]
        for _ in range(3):
            gate.entered.acquire()
        assert gate.num_inside == 2
        gate.is_open.set()
        assert [build.result().access for build in builds] == [CacheAccess.BUILT] * 2

    def test_the_vocabulary_is_indexed_once(self, monkeypatch: pytest.MonkeyPatch, pool: ThreadPoolExecutor) -> None:
        build_trie = masks.build_trie
        num_builds = 0

        def slow_build(vocabulary: Any) -> Any:
            nonlocal num_builds
            num_builds += 1
            threading.Event().wait(0.05)
            return build_trie(vocabulary)

        monkeypatch.setattr(masks, "build_trie", slow_build)
        compiler = GrammarCompiler(VOCABULARY)
        with pytest.raises(InvalidGrammar):
            compiler.compile(GRAMMAR("root"))
        assert num_builds == 0  # a text that cannot be read pays nothing
        list(pool.map(compiler.compile, [CHOICE([str(number)]) for number in range(4)]))
        assert num_builds == 1


def num_blocked(pool: ThreadPoolExecutor) -> int:
    """How many of the pool's threads wait for another thread's build."""
    frames = sys._current_frames()
    count = 0
    for thread in pool._threads:
        frame = frames.get(thread.ident or 0)
        names = [entry.name for entry in traceback.extract_stack(frame)] if frame is not None else []
        count += "compile" in names and "result" in names
    return count


def until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to this")


FAILING = [
    (GRAMMAR("root ::= ("), InvalidGrammar),
    (GRAMMAR("root ::= root"), InvalidGrammar),
    (GRAMMAR("root ::= <[999]>"), InvalidGrammar),
    (REGEX("(?<=a)b"), InvalidRegex),
    (CHOICE([]), InvalidChoice),
    (CHOICE(["a", "\ud800"]), InvalidChoice),
    (SCHEMA("{"), InvalidJsonSchema),
    (SCHEMA({"type": 3}), InvalidJsonSchema),
    (SCHEMA({"properties": {"a": {"not": {}}}, "type": "object", "required": ["a"]}), ConstraintError),
    (SCHEMA({"type": "array", "uniqueItems": True}), UnsupportedJsonSchema),
    (SCHEMA(False), UnsatisfiableJsonSchema),
]


class TestFailures:
    @pytest.mark.parametrize(("constraint", "kind"), FAILING)
    def test_a_failure_is_remembered_with_all_its_attributes(
        self, constraint: OutputConstraint, kind: type[ConstraintError]
    ) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        errors = []
        for _ in range(3):
            with pytest.raises(kind) as caught:
                compiler.compile(constraint)
            errors.append(caught.value)
        assert [type(error) for error in errors] == [type(errors[0])] * 3
        assert [str(error) for error in errors] == [str(errors[0])] * 3
        assert [vars(error) for error in errors] == [vars(errors[0])] * 3
        assert len({id(error) for error in errors}) == 3

    def test_a_failure_is_worked_out_once(self, gate: Gate) -> None:
        gate.is_open.set()
        compiler = GrammarCompiler(VOCABULARY)
        for _ in range(5):
            with pytest.raises(InvalidRegex):
                compiler.compile(REGEX("("))
        assert gate.num_builds == 1

    def test_every_caller_has_an_error_of_its_own(self, pool: ThreadPoolExecutor) -> None:
        compiler = GrammarCompiler(VOCABULARY)

        def ask(number: int) -> InvalidRegex:
            try:
                raise KeyError(number)
            except KeyError:
                try:
                    compiler.compile(REGEX("("))
                except InvalidRegex as error:
                    error.add_note(f"asked by {number}")
                    return error
            raise AssertionError("not refused")

        ask(0)
        depths = set()
        for number, error in enumerate(pool.map(ask, range(200))):
            depths.add(len(traceback.extract_tb(error.__traceback__)))
            assert error.__notes__ == [f"asked by {number}"]
            assert isinstance(error.__context__, KeyError)
            assert error.__context__.args == (number,)
        assert len(depths) == 1

    def test_what_is_remembered_keeps_no_frame_alive(self) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        for constraint, kind in FAILING:
            for _ in range(2):
                with pytest.raises(kind):
                    compiler.compile(constraint)
        kept = [outcome for outcome in compiler._cache._kept.values() if isinstance(outcome, ConstraintError)]
        assert len(kept) == len(FAILING)
        for error in kept:
            assert error.__traceback__ is None
            assert error.__context__ is None
            assert error.__cause__ is None

    def test_failures_count_with_the_texts_they_keep(self) -> None:
        compiler = GrammarCompiler(VOCABULARY)
        before = compiler.num_cached_bytes
        with pytest.raises(InvalidRegex) as caught:
            compiler.compile(REGEX("a" * 100_000 + "("))
        assert isinstance(caught.value.location, TextLocation)
        assert compiler.num_cached_bytes - before > 100_000

    def test_a_bound_of_the_matcher_is_a_failure_like_others(self, gate: Gate) -> None:
        gate.is_open.set()
        compiler = GrammarCompiler(VOCABULARY)
        gate.failures.append(ConstraintTooLarge("too large"))
        for _ in range(2):
            with pytest.raises(ConstraintTooLarge, match="too large"):
                compiler.compile(CHOICE(["a"]))
        assert gate.num_builds == 1


def test_compile_grammar_shares_nothing() -> None:
    grammar = ir.Grammar.of(ir.text("a"))
    compiled = compiler_module.compile_grammar(grammar, VOCABULARY)
    assert isinstance(compiled.index, VocabularyIndex)
    assert compiled.index is not compiler_module.compile_grammar(grammar, VOCABULARY).index
