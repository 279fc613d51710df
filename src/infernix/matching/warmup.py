"""Compiling the kernels ahead of the first request."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from infernix.grammar import ir
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.configurations import ConfigurationTable
from infernix.matching.far_states import stand_ins
from infernix.matching.jit import is_kept, kernel_cache_directory, kernels, numba_is_off
from infernix.matching.loops import loop_tables
from infernix.matching.masks import VocabularyIndex
from infernix.matching.network import MIN_AUTOMATON_STATES, build_network
from infernix.matching.row_making import make_rows
from infernix.matching.stepping import advance
from infernix.matching.transplant import transplant
from infernix.matching.vocabulary import TokenClass, Vocabulary

NOTICE_SECONDS = 1.0
NOTICE = "Compiling the matching kernels, once per installation: some 20 seconds ..."

_INT32, _INT64, _UINT8, _UINT32 = (np.zeros(0, kind) for kind in (np.int32, np.int64, np.uint8, np.uint32))
_UINT8_ROWS = np.zeros((0, 0), np.uint8)
_ARENA = (_INT32, _INT64)
# More than half of all compilation. These kernels have most of what they call in common: one process compiles them all.
# The arguments have the types that requests use.
_STEPPING: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (advance, (*_ARENA, 0, _UINT8, 0, 0, 0, _UINT8_ROWS)),
    (make_rows, (*_ARENA, _INT64, _INT64, _INT64, *[0] * 5, _UINT32, _INT64)),
    (transplant, (*_ARENA, *_ARENA, 0, _INT32, _INT32)),
)


def warm_kernels(progress: Callable[[str], None] | None = None) -> None:
    """Compiles every kernel, or loads it from the cache on disk: some 20 seconds once per installation.

    Runs a small grammar with recursion, a token terminal, an automaton and enough growth to call each kernel with the
    argument types that requests use. Where nothing is on disk, another process compiles a part of the kernels at the
    same time. Safe to call from a background thread, and again. `progress` receives one line, from a thread of its own,
    if kernels are still being compiled after a second; never after the return.
    """
    with _notice(progress):
        if not numba_is_off() and not is_kept(*_STEPPING[0]):
            helper = _start_helper()
            _call_what_takes_no_step()
            if helper is not None:
                helper.wait()
        # What the other process has not done, for whatever reason, is done here.
        _call_every_kernel()


def compile_stepping() -> None:
    """What the other process does."""
    for kernel, arguments in _STEPPING:
        _compile(kernel, arguments)


def _compile(kernel: Any, arguments: tuple[Any, ...]) -> None:
    kernel.compile(tuple(map(kernel.typeof_pyval, arguments)))


def _start_helper() -> subprocess.Popen[bytes] | None:
    if not sys.executable or (os.cpu_count() or 1) < 2:
        return None
    code = f"import sys; sys.path[:] = {sys.path!r}; from infernix.matching.warmup import compile_stepping as f; f()"
    # The same folder, also where this process has found no other place than a temporary one.
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(kernel_cache_directory()).parent)}
    with suppress(OSError):
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return None


def _small_grammar() -> ir.Grammar:
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    word = ir.Automaton(2, ((0, 0x63, 0x63, 1),), frozenset({1}))
    bracket = ir.sequence(ir.text("a"), root, ir.text("b"))
    builder.define(root, ir.choice(bracket, ir.TokenSet((2,)), ir.sequence(root, root), word))
    return builder.build(root)


def _find_far_states() -> None:
    """Calls what only large automata need, and those that count characters."""
    edges = tuple((state, 0x20, 0x7A, state + 1) for state in range(MIN_AUTOMATON_STATES))
    automaton = ir.Automaton(MIN_AUTOMATON_STATES + 1, edges, frozenset({MIN_AUTOMATON_STATES}))
    network = build_network(ir.Grammar.of(automaton))
    stand_ins(network, max_token_bytes=1)
    loop_tables(network, np.arange(network.num_states, dtype=np.int32))


def _vocabulary_index() -> VocabularyIndex:
    vocabulary = Vocabulary([b"a", b"b", b"", b""], [TokenClass.TEXT] * 2 + [TokenClass.CONTROL, TokenClass.EOS])
    index = VocabularyIndex(vocabulary)
    index.trie.prefixes(atoms=0)
    return index


def _call_what_takes_no_step() -> None:
    """Calls the kernels that the other process has no part in."""
    _find_far_states()
    network = build_network(_small_grammar())
    loop_tables(network, stand_ins(network, max_token_bytes=1))
    _vocabulary_index()


def _call_every_kernel() -> None:
    _call_what_takes_no_step()
    index = _vocabulary_index()
    compiled = CompiledGrammar(_small_grammar(), index)
    matcher = compiled.new_matcher()
    row = np.zeros(index.vocabulary.num_mask_words, np.int32)
    matcher.accept_bytes(b"a" * 300)
    matcher.accept(2)
    while matcher.accept(1):
        matcher.fill(row)
    ConfigurationTable.of(_small_grammar()).import_from(compiled.configurations, compiled.configurations.start)


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
