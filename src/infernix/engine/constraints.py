"""From what an answer may be to its matcher, on the calling thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from infernix.frontend.constraint import ConstraintState, TokenMatcher
from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.tools.companions import NameCompanions
from infernix.matching.matcher import Companion
from infernix.matching.sources import GrammarSource
from infernix.matching.vocabulary import Vocabulary
from infernix.results import CacheAccess


class MatchableGrammar(Protocol):
    """A compiled grammar: immutable, shared by requests."""

    def new_matcher(self, companion: Companion | None = None) -> TokenMatcher:
        """A matcher at the start of the language."""
        ...


class CompiledConstraint(Protocol):
    """What compiling gives: the grammar, and whether it had to be built."""

    @property
    def grammar(self) -> MatchableGrammar:
        """The compiled grammar."""
        ...

    @property
    def access(self) -> CacheAccess:
        """Found, built or awaited."""
        ...


class ConstraintCompiler(Protocol):
    """A thread-safe compiler with a cache, for one vocabulary (the core's GrammarCompiler)."""

    def compile(self, constraint: GrammarSource) -> CompiledConstraint:
        """Raises a ConstraintError for a constraint that cannot be used, one that no token can begin included."""
        ...


class ConstraintService:
    """Prepares constraints. The compiler is made at the first one: free text never pays for it."""

    def __init__(self, make_compiler: Callable[[], ConstraintCompiler], vocabulary: Vocabulary) -> None:
        self._make_compiler = make_compiler
        self._companions = NameCompanions(vocabulary)
        self._compiler: ConstraintCompiler | None = None
        self._lock = threading.Lock()

    def prepare(self, grammar: OutputGrammar) -> ConstraintState:
        """A new matcher at the start of an answer.

        Raises a ConstraintError, ConstraintDeadEnd where no token of the vocabulary can begin a text.
        """
        start = time.thread_time()
        compilation = self._ready_compiler().compile(grammar)
        matcher = compilation.grammar.new_matcher(self._companions.companion(grammar))
        return ConstraintState(matcher, compilation.access, prepare_seconds=time.thread_time() - start)

    def _ready_compiler(self) -> ConstraintCompiler:
        with self._lock:
            if self._compiler is None:
                self._compiler = self._make_compiler()
            return self._compiler
