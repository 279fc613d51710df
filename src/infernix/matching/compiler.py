"""Compiling constraints: one compiled grammar for all requests that ask for the same one."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from infernix.errors import ConstraintDeadEnd, ConstraintError, EmptyLanguage, InvalidGrammar
from infernix.grammar import ir
from infernix.matching.compile_cache import CompileCache, Outcome
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.masks import VocabularyIndex
from infernix.matching.sources import ConstraintSource, GrammarSource
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import ConstraintKind, OutputConstraint
from infernix.results import CacheAccess

MAX_COLD_COMPILES = 2
DEFAULT_CACHE_BYTES = 256 << 20
# Of the cache's bytes, one part in this many is for mask rows and one for slices of the vocabulary, the rest for
# grammars and remembered failures.
SHARES = 4

ErrorT = TypeVar("ErrorT", bound=ConstraintError)

_CLASS_REFUSALS = {
    TokenClass.CONTROL: "is a control token: framing rules own it",
    TokenClass.EOS: "ends the sequence: it is legal by itself where the language may end",
    TokenClass.NEVER: "is never generated",
}


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiled grammar and how it was come by."""

    grammar: CompiledGrammar
    access: CacheAccess


class GrammarCompiler:
    """Compiles constraints for one vocabulary, on the calling thread.

    Two constraints are the same where their keys are (`infernix.matching.sources`). Concurrent requests for the same
    constraint share one build; at most MAX_COLD_COMPILES different ones are built at a time, and what is in the cache
    never waits for them. Failures are remembered like grammars.

    `cache_bytes` bounds what is kept: a quarter is for mask rows (never less than two rows), a quarter for slices of
    the vocabulary (never less than the last one), the rest for grammars and failures. Whatever was not used for the
    longest time goes first; a grammar that a request holds outlives that.
    """

    def __init__(self, vocabulary: Vocabulary, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        share = cache_bytes // SHARES
        self.index = VocabularyIndex(vocabulary, row_bytes=share, slice_bytes=share)
        self.cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self._index_lock = threading.Lock()
        self._cold_slots = threading.Semaphore(MAX_COLD_COMPILES)
        self._cache = CompileCache(cache_bytes - 2 * share)
        # Builds under way; the outcome is None where a build was broken off.
        self._builds: dict[bytes, Future[Outcome | None]] = {}

    def compile(self, constraint: OutputConstraint | GrammarSource) -> Compilation:
        """Raises a ConstraintError where the constraint cannot be used, an equal one again for the same source."""
        source = ConstraintSource(constraint) if isinstance(constraint, OutputConstraint) else constraint
        key = source.cache_key
        while True:
            with self._lock:
                known = self._cache.get(key)
                build = self._builds.get(key)
                if known is None and build is None:
                    own_build = self._builds[key] = Future()
            if known is not None:
                return Compilation(_grammar_of(known), CacheAccess.HIT)
            if build is None:
                return Compilation(self._build(source, key, own_build), CacheAccess.BUILT)
            outcome = build.result()
            if outcome is not None:
                return Compilation(_grammar_of(outcome), CacheAccess.WAITED)
            # What broke the build off was not the constraint's fault: perhaps it goes well here.

    def _build(self, source: GrammarSource, key: bytes, build: Future[Outcome | None]) -> CompiledGrammar:
        outcome: Outcome | None = None
        try:
            with self._cold_slots:
                grammar = self._compile_cold(source)
            outcome = grammar
            return grammar
        except ConstraintError as error:
            outcome = _fresh(error)
            raise
        finally:
            with self._lock:
                del self._builds[key]
                if outcome is not None:
                    self._cache.put(key, outcome)
            build.set_result(outcome)

    def _compile_cold(self, source: GrammarSource) -> CompiledGrammar:
        grammar = source.build(self._token_error)
        with self._index_lock:  # the first two constraints must not both work it out
            _ = self.index.slices
        try:
            compiled = CompiledGrammar(grammar, self.index)
        except EmptyLanguage as error:
            if source.content_kind is ConstraintKind.GRAMMAR:
                raise InvalidGrammar(error.message) from None
            raise
        matcher = compiled.new_matcher()
        source.advance_to_content(matcher)
        if not matcher.fill(np.zeros(self.index.vocabulary.num_mask_words, np.int32)):
            raise ConstraintDeadEnd("no token of this vocabulary can begin a text of the constraint")
        return compiled

    def _token_error(self, token: int) -> str | None:
        """Why a grammar's text may not name `token`, or None where it may."""
        vocabulary = self.index.vocabulary
        if token >= vocabulary.num_tokens:
            return f"token {token} is out of range: the vocabulary has {vocabulary.num_tokens} tokens"
        refusal = _CLASS_REFUSALS.get(TokenClass(int(vocabulary.classes[token])))
        return None if refusal is None else f"token {token} {refusal}"

    @property
    def num_cached_bytes(self) -> int:
        """What is kept at present: grammars, failures, mask rows and slices."""
        num_slice_bytes = self.index.slices.num_bytes if self.index.has_slices else 0
        with self._lock:
            return self._cache.num_bytes + self.index.rows.num_bytes + num_slice_bytes

    @property
    def num_live_bytes(self) -> int:
        """Grammars that are not kept any more, but that requests still use."""
        with self._lock:
            return self._cache.num_live_bytes


def _grammar_of(outcome: Outcome) -> CompiledGrammar:
    if isinstance(outcome, ConstraintError):
        raise _fresh(outcome)
    return outcome


def _fresh(error: ErrorT) -> ErrorT:
    """An equal error that nobody has raised yet.

    A raised one gains a traceback each time, which keeps the frames of all its callers alive, and notes are its own.
    """
    fresh = type(error).__new__(type(error), *error.args)
    vars(fresh).update((name, value) for name, value in vars(error).items() if name != "__notes__")
    return fresh


def compile_grammar(grammar: ir.Grammar, vocabulary: Vocabulary) -> CompiledGrammar:
    """A grammar compiled outside any cache."""
    return CompiledGrammar(grammar, VocabularyIndex(vocabulary))
