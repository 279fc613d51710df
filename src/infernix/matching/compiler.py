"""The compile cache: one compiled grammar for all requests that ask for the same constraint."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from infernix.errors import ConstraintDeadEnd, ConstraintError, EmptyLanguage, InvalidGrammar
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.masks import VocabularyIndex
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import ConstraintKind, OutputConstraint
from infernix.results import CacheAccess

MAX_COLD_COMPILES = 2
DEFAULT_CACHE_BYTES = 256 << 20
# A failure is remembered too, so that a client that repeats it costs nothing; its message is all it keeps.
_FAILURE_BYTES = 1024

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

    Concurrent requests for the same constraint share one build; at most MAX_COLD_COMPILES different ones are built at
    a time, and what is in the cache never waits for them. The cache drops the least recently used entries beyond
    `cache_bytes`; a grammar that a request still holds outlives that.
    """

    def __init__(self, vocabulary: Vocabulary, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self.index = VocabularyIndex(vocabulary)
        self.cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self._cold_slots = threading.Semaphore(MAX_COLD_COMPILES)
        self._entries: OrderedDict[Hashable, Future[CompiledGrammar]] = OrderedDict()

    def compile(self, constraint: OutputConstraint) -> Compilation:
        """Raises a ConstraintError where the constraint cannot be used, the same one again for the same source."""
        key = _cache_key(constraint)
        with self._lock:
            future = self._entries.get(key)
            if future is not None:
                self._entries.move_to_end(key)
                access = CacheAccess.HIT if future.done() else CacheAccess.WAITED
            else:
                future = self._entries[key] = Future()
                access = CacheAccess.BUILT
        if access is CacheAccess.BUILT:
            self._build(constraint, key, future)
        return Compilation(future.result(), access)

    def _build(self, constraint: OutputConstraint, key: Hashable, future: Future[CompiledGrammar]) -> None:
        try:
            with self._cold_slots:
                future.set_result(self._compile_cold(constraint))
        except ConstraintError as error:
            # Kept without the frames of this build, which would keep all its work alive.
            future.set_exception(error.with_traceback(None))
        except BaseException as error:
            # Not the constraint's fault: who waits is told, who comes later tries again.
            with self._lock:
                self._entries.pop(key, None)
            future.set_exception(error)
        self.trim()

    def _compile_cold(self, constraint: OutputConstraint) -> CompiledGrammar:
        grammar = build_grammar(constraint, self._token_error)
        try:
            compiled = CompiledGrammar(grammar, self.index)
        except EmptyLanguage as error:
            if constraint.kind is ConstraintKind.GRAMMAR:
                raise InvalidGrammar(error.message) from None
            raise
        if not compiled.new_matcher().fill(np.zeros(self.index.vocabulary.num_mask_words, np.int32)):
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
        """What the cache keeps at present."""
        with self._lock:
            return sum(_entry_bytes(future) for future in self._entries.values())

    def trim(self) -> None:
        """Drops least recently used entries until the cache fits its budget; grammars grow while they are used."""
        with self._lock:
            sizes = {key: _entry_bytes(future) for key, future in self._entries.items() if future.done()}
            total = sum(sizes.values())
            for key, size in sizes.items():
                if total <= self.cache_bytes:
                    return
                del self._entries[key]
                total -= size


def _cache_key(constraint: OutputConstraint) -> Hashable:
    if constraint.kind is ConstraintKind.CHOICE and constraint.choices:
        return constraint.kind, frozenset(constraint.choices)
    return constraint.kind, constraint.source


def _entry_bytes(future: Future[CompiledGrammar]) -> int:
    if not future.done() or future.exception() is not None:
        return _FAILURE_BYTES
    return future.result().num_bytes


def compile_grammar(grammar: ir.Grammar, vocabulary: Vocabulary) -> CompiledGrammar:
    """A grammar compiled outside any cache."""
    return CompiledGrammar(grammar, VocabularyIndex(vocabulary))
