"""A grammar meets a vocabulary: which tokens are legal now, and what follows them."""

from infernix.matching.compiled import CompiledGrammar
from infernix.matching.compiler import Compilation, GrammarCompiler, compile_grammar
from infernix.matching.configurations import DEAD, ConfigurationTable
from infernix.matching.matcher import Companion, LookAhead, Matcher
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.matching.warmup import warm_kernels

__all__ = [
    "DEAD",
    "Companion",
    "Compilation",
    "CompiledGrammar",
    "ConfigurationTable",
    "GrammarCompiler",
    "LookAhead",
    "Matcher",
    "TokenClass",
    "Vocabulary",
    "compile_grammar",
    "warm_kernels",
]
