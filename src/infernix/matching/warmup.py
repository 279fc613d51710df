"""Compiling the kernels ahead of the first request."""

from __future__ import annotations

import numpy as np

from infernix.grammar import ir
from infernix.matching.compiled import CompiledGrammar
from infernix.matching.configurations import ConfigurationTable
from infernix.matching.masks import VocabularyIndex
from infernix.matching.vocabulary import TokenClass, Vocabulary


def warm_kernels() -> None:
    """Compiles every kernel, or loads it from numba's cache on disk: about 20 seconds once per installation.

    Runs a small grammar with recursion, a token terminal and enough growth to call each kernel with the argument types
    that requests use. Safe to call from a background thread, and again.
    """
    vocabulary = Vocabulary([b"a", b"b", b"", b""], [TokenClass.TEXT] * 2 + [TokenClass.CONTROL, TokenClass.EOS])
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    builder.define(
        root, ir.choice(ir.sequence(ir.text("a"), root, ir.text("b")), ir.TokenSet((2,)), ir.sequence(root, root))
    )
    compiled = CompiledGrammar(builder.build(root), VocabularyIndex(vocabulary))
    matcher = compiled.new_matcher()
    row = np.zeros(vocabulary.num_mask_words, np.int32)
    matcher.accept_bytes(b"a" * 70)
    matcher.accept(2)
    while matcher.accept(1):
        matcher.fill(row)
    ConfigurationTable.of(builder.build(root)).import_from(compiled.configurations, compiled.configurations.start)
