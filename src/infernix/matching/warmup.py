"""Compiling the kernels ahead of the first request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from infernix.grammar import ir
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.configurations import ConfigurationTable
from infernix.matching.jit import kernels
from infernix.matching.masks import VocabularyIndex
from infernix.matching.vocabulary import TokenClass, Vocabulary

NOTICE_SECONDS = 1.0
NOTICE = "Compiling the matching kernels, once per installation: about half a minute ..."


def warm_kernels(progress: Callable[[str], None] | None = None) -> None:
    """Compiles every kernel, or loads it from the cache on disk: about half a minute once per installation.

    Runs a small grammar with recursion, a token terminal, an automaton and enough growth to call each kernel with the
    argument types that requests use. Safe to call from a background thread, and again. `progress` receives one line,
    from a thread of its own, if kernels are still being compiled after a second; never after the return.
    """
    with _notice(progress):
        _call_every_kernel()


def _call_every_kernel() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"", b""], [TokenClass.TEXT] * 2 + [TokenClass.CONTROL, TokenClass.EOS])
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    word = ir.Automaton(2, ((0, 0x63, 0x63, 1),), frozenset({1}))
    bracket = ir.sequence(ir.text("a"), root, ir.text("b"))
    builder.define(root, ir.choice(bracket, ir.TokenSet((2,)), ir.sequence(root, root), word))
    index = VocabularyIndex(vocabulary)
    index.trie.prefixes(atoms=0)
    compiled = CompiledGrammar(builder.build(root), index)
    matcher = compiled.new_matcher()
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    matcher.accept_bytes(b"a" * 300)
    matcher.accept(2)
    while matcher.accept(1):
        matcher.fill(row)
    ConfigurationTable.of(builder.build(root)).import_from(compiled.configurations, compiled.configurations.start)


@contextmanager
def _notice(progress: Callable[[str], None] | None) -> Iterator[None]:
    """Says after a second that kernels are being compiled, if they are: loading them can be slow, too."""
    if progress is None:
        yield
        return

    def say() -> None:
        if any(kernel.stats.cache_misses for kernel in kernels()):
            progress(NOTICE)

    timer = threading.Timer(NOTICE_SECONDS, say)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
