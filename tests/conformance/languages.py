"""A schema's text -> its language under a real vocabulary, or what the compiler says against it."""

from __future__ import annotations

import gc
import json
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from benchmarks.vocabularies import BenchmarkVocabulary, smollm2
from infernix.errors import ConstraintError, UnsatisfiableJsonSchema
from infernix.matching import CompiledGrammar, ConfigurationTable, GrammarCompiler, warm_kernels
from infernix.options import OutputConstraint

COMPILE_SECONDS = 60
"""A compile that takes longer is broken off and reported."""

_NAMED_PARTS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_LISTED_PARTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_CACHE_BYTES = 64 << 20


class CompileTimeout(Exception):
    """A compile was broken off."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a schema does not compile: the error's code, its place, and the keyword there."""

    code: str
    pointer: str
    keyword: str
    message: str

    @property
    def is_unsatisfiable(self) -> bool:
        """The compiler says that no value satisfies the schema: a verdict on every instance."""
        return self.code == UnsatisfiableJsonSchema.code


@dataclass(frozen=True, slots=True)
class Outcome:
    """What compiling came to, in how many milliseconds of processor time."""

    language: Language | None
    refusal: Refusal | None
    milliseconds: float


class Language:
    """A compiled schema."""

    def __init__(self, grammar: CompiledGrammar, vocabulary: BenchmarkVocabulary) -> None:
        self.grammar = grammar
        self._vocabulary = vocabulary

    @property
    def table(self) -> ConfigurationTable:
        """The automaton over bytes."""
        return self.grammar.configurations

    def contains(self, text: bytes) -> bool:
        """Whether `text` belongs to the language, byte by byte."""
        matcher = self.grammar.new_matcher()
        return matcher.accept_bytes(text) and matcher.may_end

    def admits_tokens(self, text: bytes) -> bool:
        """Whether the tokens of `text` and the end token after them are legal, each by the mask of its position.

        AssertionError where a mask and the matcher do not agree on a token.
        """
        vocabulary = self._vocabulary.vocabulary
        matcher = self.grammar.new_matcher()
        row = np.zeros(vocabulary.num_mask_words, np.int32)
        for token in [*self._vocabulary.encode(text.decode()), min(vocabulary.eos_ids)]:
            matcher.fill(row)
            is_legal = bool(row.view(np.uint32)[token >> 5] >> np.uint32(token & 31) & 1)
            assert matcher.accept(token) == is_legal, f"mask and matcher disagree on token {token} in {text!r}"
            if not is_legal:
                return False
        return True


class SchemaCompiler:
    """Compiles schemas for SmolLM2's vocabulary, each time anew."""

    def __init__(self) -> None:
        self._vocabulary = smollm2()
        self._compiler = GrammarCompiler(self._vocabulary.vocabulary, _CACHE_BYTES)
        # What is shared by all grammars is worked out here: the kernels, the trie of the vocabulary and its slices.
        warm_kernels()
        self.compile("{}")

    @property
    def vocabulary(self) -> BenchmarkVocabulary:
        """The vocabulary and its tokenizer."""
        return self._vocabulary

    def compile(self, schema: str) -> Outcome:
        """Any other exception than a ConstraintError is a defect and goes through, with the schema as a note."""
        begin = time.process_time()
        language, refusal = None, None
        try:
            with _time_limit(COMPILE_SECONDS):
                grammar = self._compiler.compile(OutputConstraint.json_schema(schema)).grammar
            language = Language(grammar, self._vocabulary)
        except ConstraintError as error:
            pointer = getattr(error, "pointer", "")
            refusal = Refusal(error.code, pointer, refused_keyword(schema, pointer) or error.code, error.message)
        except CompileTimeout:
            refusal = Refusal("timeout", "", "timeout", f"not compiled within {COMPILE_SECONDS} s")
        except Exception as error:
            refusal = Refusal("crash", "", "crash", f"{type(error).__name__}: {error}")
        return Outcome(language, refusal, 1000 * (time.process_time() - begin))


def set_aside_other_objects() -> None:
    """Keeps what the process holds by now out of the garbage collector's rounds.

    A full round over a vocabulary takes a fifth of a second, and would be put down to whatever schema is compiled then.
    """
    gc.collect()
    gc.freeze()


def refused_keyword(schema: str, pointer: str) -> str:
    """The keyword that a pointer leads to: the last one on its way; "" where it names the root.

    A name below `properties` is no keyword, even if it is spelled like one.
    """
    try:
        place: Any = json.loads(schema)
    except (ValueError, RecursionError):
        return ""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    keyword = ""
    while steps:
        keyword = steps.pop(0)
        place = place.get(keyword) if isinstance(place, dict) else None
        is_list = isinstance(place, list)
        if not steps:
            break
        if keyword in _NAMED_PARTS or keyword in _LISTED_PARTS or (keyword == "items" and is_list):
            step = steps.pop(0)
            try:
                place = place[int(step)] if isinstance(place, list) else place[step] if place is not None else None
            except (LookupError, ValueError):
                place = None
        elif not isinstance(place, dict):
            break
    return keyword


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and max, rounded to microseconds where the values are milliseconds."""
    if not values:
        return {"p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    marks = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: round(float(np.percentile(values, mark)), 3) for name, mark in marks.items()}


def peak_megabytes() -> int:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise CompileTimeout

    previous: Callable[[int, FrameType | None], Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
