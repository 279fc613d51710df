"""The engines that are compared, each behind the calls that it offers for the purpose, called in its fastest way.

All run on one thread and keep no cache between two compilations. What cannot be asked of an engine raises Refused.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Case, SourceKind
from benchmarks.vocabularies import BenchmarkVocabulary
from infernix.errors import ConstraintError
from infernix.grammar.json_values import json_object_grammar
from infernix.matching import CompiledGrammar, GrammarCompiler, Matcher, TokenClass, warm_kernels

if TYPE_CHECKING:
    import llguidance
    import torch
    import xgrammar

NUM_DRAFTS = 15


class Refused(Exception):
    """The engine does not take the source; the message is its own."""


@dataclass(frozen=True)
class Walk:
    """One text's way through a grammar: the engine's own calls, bound to their arguments.

    fill         writes the mask of the next token into `row`, int32 [num_mask_words]
    accept       moves on by a token; False, for good, where it is not legal
    look_ahead   masks after each beginning of a list of at most NUM_DRAFTS legal drafts, the empty one and the whole
                 included; the place in the text stays
    may_end      whether the text is complete
    error        what the engine says went wrong; empty where it says nothing
    """

    row: NDArray[np.int32]
    fill: Callable[[], object]
    accept: Callable[[int], bool]
    look_ahead: Callable[[Sequence[int]], object]
    may_end: Callable[[], bool]
    error: Callable[[], str] = str


class Session(Protocol):
    """A compiled grammar and what was learnt while it was used."""

    def begin(self) -> Walk:
        """At the beginning of a text; the walk before it is over."""

    def num_rows_made(self) -> int | None:
        """A counter of rows that had to be worked out; None where the engine does not say or keeps none."""

    def kept_bytes(self) -> int | None:
        """Memory that stays while the grammar is in use, rows included; None where the engine does not say."""


class Engine(Protocol):
    """One engine with one vocabulary. `setup_seconds` is the time to take in the vocabulary."""

    name: str
    version: str
    setup_seconds: float

    def compile(self, case: Case) -> Session:
        """A fresh compilation; raises Refused."""


class InfernixEngine:
    """This project."""

    name = "infernix"
    version = version("infernix")

    def __init__(self, vocabulary: BenchmarkVocabulary) -> None:
        warm_kernels()
        begin = time.perf_counter()
        self._index = GrammarCompiler(vocabulary.vocabulary).index
        # The index is made by its first use.
        matcher = CompiledGrammar(json_object_grammar(), self._index).new_matcher()
        matcher.fill(np.zeros(vocabulary.vocabulary.num_mask_words, np.int32))
        matcher.accept(vocabulary.encode("a")[0])
        self.setup_seconds = time.perf_counter() - begin
        self._rows = np.zeros((NUM_DRAFTS + 1, vocabulary.vocabulary.num_mask_words), np.int32)

    def compile(self, case: Case) -> Session:
        try:
            return _InfernixSession(CompiledGrammar(case.grammar(), self._index), self._rows)
        except ConstraintError as error:
            raise Refused(_first_line(error)) from error


class _InfernixSession:
    def __init__(self, grammar: CompiledGrammar, rows: NDArray[np.int32]) -> None:
        self._grammar = grammar
        self._rows = rows

    def begin(self) -> Walk:
        matcher = self._grammar.new_matcher()
        return Walk(
            row=self._rows[0],
            fill=partial(matcher.fill, self._rows[0]),
            accept=matcher.accept,
            look_ahead=partial(self._look_ahead, matcher),
            may_end=lambda: matcher.may_end,
        )

    def _look_ahead(self, matcher: Matcher, drafts: Sequence[int]) -> object:
        return matcher.look_ahead(drafts, self._rows)

    def num_rows_made(self) -> int | None:
        return self._grammar.index.rows.clock

    def kept_bytes(self) -> int | None:
        return self._grammar.num_bytes + self._grammar.epoch.num_row_bytes


class XGrammarEngine:
    """xgrammar, its compiler on one thread and without its cache."""

    name = "xgrammar"

    def __init__(self, vocabulary: BenchmarkVocabulary) -> None:
        import xgrammar

        self.version = version("xgrammar")
        self._module = xgrammar
        begin = time.perf_counter()
        domain = vocabulary.vocabulary
        # A token without bytes is never legal there, which is what control tokens need.
        data = [
            data if token_class == TokenClass.TEXT else b""
            for data, token_class in zip(domain.token_bytes, domain.classes.tolist(), strict=True)
        ]
        self._tokenizer = xgrammar.TokenizerInfo(
            data,
            xgrammar.VocabType.RAW,
            vocab_size=domain.num_tokens,
            stop_token_ids=sorted(domain.eos_ids),
        )
        self.setup_seconds = time.perf_counter() - begin
        self._rows = xgrammar.allocate_token_bitmask(NUM_DRAFTS + 1, domain.num_tokens)

    def compile(self, case: Case) -> Session:
        compiler = self._module.GrammarCompiler(self._tokenizer, max_threads=1, cache_enabled=False)
        try:
            match case.kind:
                case SourceKind.JSON_SCHEMA:
                    grammar = compiler.compile_json_schema(case.source)
                case SourceKind.GBNF:
                    grammar = compiler.compile_grammar(case.source)
                case SourceKind.REGEX:
                    grammar = compiler.compile_regex(case.source)
                case SourceKind.CHOICE:
                    options = " | ".join(json.dumps(option, ensure_ascii=False) for option in json.loads(case.source))
                    grammar = compiler.compile_grammar(f"root ::= {options}")
                case SourceKind.INTERSECTION:
                    raise Refused("no intersection of expressions")
        except RuntimeError as error:
            raise Refused(_first_line(error)) from error
        return _XGrammarSession(self._module.GrammarMatcher(grammar), grammar.memory_size_bytes, self._rows)


class _XGrammarSession:
    def __init__(self, matcher: xgrammar.GrammarMatcher, num_bytes: int, rows: torch.Tensor) -> None:
        self._matcher = matcher
        self._num_bytes = num_bytes
        self._rows = rows

    def begin(self) -> Walk:
        self._matcher.reset()
        row: NDArray[np.int32] = self._rows[0].numpy()
        return Walk(
            row=row,
            fill=partial(self._matcher.fill_next_token_bitmask, self._rows, 0),
            accept=self._matcher.accept_token,
            look_ahead=self._look_ahead,
            may_end=self._matcher.is_completed,
        )

    def _look_ahead(self, drafts: Sequence[int]) -> None:
        fill, accept = self._matcher.fill_next_token_bitmask, self._matcher.accept_token
        for position, token in enumerate(drafts):
            fill(self._rows, position)
            accept(token)
        fill(self._rows, len(drafts))
        self._matcher.rollback(len(drafts))

    def num_rows_made(self) -> int | None:
        return None

    def kept_bytes(self) -> int | None:
        return self._num_bytes


class _TokenBytes:
    """What llguidance asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: BenchmarkVocabulary) -> None:
        domain = vocabulary.vocabulary
        self.tokens = list(domain.token_bytes)
        self.eos_token_id = min(domain.eos_ids)
        self.special_token_ids = np.flatnonzero(domain.classes != TokenClass.TEXT).tolist()
        self._encode = vocabulary.encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode())


class LLGuidanceEngine:
    """llguidance with its default slices."""

    name = "llguidance"

    def __init__(self, vocabulary: BenchmarkVocabulary) -> None:
        import llguidance
        from llguidance import TokenizerWrapper

        self.version = version("llguidance")
        self._module = llguidance
        begin = time.perf_counter()
        domain = vocabulary.vocabulary
        self._rows = np.zeros((NUM_DRAFTS + 1, domain.num_mask_words), np.int32)
        self._tokenizer = llguidance.LLTokenizer(
            TokenizerWrapper(_TokenBytes(vocabulary)), n_vocab=domain.num_tokens, eos_token=sorted(domain.eos_ids)
        )
        self.setup_seconds = time.perf_counter() - begin

    def compile(self, case: Case) -> Session:
        try:
            grammar = self._grammar(case)
        except ValueError as error:
            raise Refused(_first_line(error)) from error
        matcher = self._module.LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(_first_line(matcher.get_error()))
        return _LLGuidanceSession(matcher, self._rows)

    def _grammar(self, case: Case) -> str:
        match case.kind:
            case SourceKind.CHOICE:
                return self._module.grammar_from("choice", case.source)
            case SourceKind.INTERSECTION:
                terminal = " & ".join(
                    f"/{expression.replace('/', chr(92) + '/')}/" for expression in json.loads(case.source)
                )
                return self._module.grammar_from("lark", f"start: TEXT\nTEXT: {terminal}\n")
            case SourceKind.JSON_SCHEMA:
                return self._module.grammar_from("json_schema", case.source)
            case SourceKind.GBNF:
                return self._module.grammar_from("gbnf", case.source)
            case SourceKind.REGEX:
                return self._module.grammar_from("regex", case.source)


class _LLGuidanceSession:
    def __init__(self, matcher: llguidance.LLMatcher, rows: NDArray[np.int32]) -> None:
        self._matcher = matcher
        self._rows = rows
        self._row_bytes = rows.shape[1] * rows.itemsize

    def begin(self) -> Walk:
        # Not a copy of the matcher: that would leave what the lexer has learnt behind.
        self._matcher.reset()
        return Walk(
            row=self._rows[0],
            fill=partial(self._matcher.unsafe_compute_mask_ptr, self._rows.ctypes.data, self._row_bytes),
            accept=self._matcher.consume_token,
            look_ahead=self._look_ahead,
            may_end=self._matcher.is_accepting,
            error=self._matcher.get_error,
        )

    def _look_ahead(self, drafts: Sequence[int]) -> None:
        fill, accept, address = (
            self._matcher.unsafe_compute_mask_ptr,
            self._matcher.consume_token,
            self._rows.ctypes.data,
        )
        for token in drafts:
            fill(address, self._row_bytes)
            accept(token)
            address += self._row_bytes
        fill(address, self._row_bytes)
        self._matcher.rollback(len(drafts))

    def num_rows_made(self) -> int | None:
        return None

    def kept_bytes(self) -> int | None:
        return None


ENGINES: dict[str, Callable[[BenchmarkVocabulary], Engine]] = {
    "infernix": InfernixEngine,
    "xgrammar": XGrammarEngine,
    "llguidance": LLGuidanceEngine,
}


def _first_line(error: object) -> str:
    """The first line of a message, without the time and the source file that xgrammar puts before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return re.sub(r"^\[[0-9:]+\] \S+: ", "", lines[0])[:200] if lines else type(error).__name__
