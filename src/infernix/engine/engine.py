"""The engine: one model, and many requests on it at once."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType

import torch

from infernix.engine.constraints import ConstraintCompiler, ConstraintService
from infernix.engine.core import EngineCore
from infernix.engine.drafting import Drafting
from infernix.engine.handle import GenerationHandle
from infernix.engine.limits import (
    CoreLimits,
    check_integer,
    check_seconds,
    checked_limits,
    checked_ngram,
    context_and_cache,
)
from infernix.engine.preparation import Preparation
from infernix.engine.prompt import Prompt
from infernix.engine.request_log import RequestLog
from infernix.engine.speculation import checked_speculation, open_drafter
from infernix.engine.statistics import EngineStatistics
from infernix.engine.stream import GenerationStream
from infernix.engine.worker import Worker
from infernix.errors import InvalidOptions, InvalidPrompt
from infernix.frontend.prompt import PreparedPrompt
from infernix.frontend.thinking import DEFAULT_FORCED_END, encode_forced_end
from infernix.matching.vocabulary import Vocabulary
from infernix.models import LoadedModel, open_model
from infernix.options import RequestOptions, SamplingParameters, shown_value
from infernix.program.drafters.ngram import DEFAULT_MIN_MATCH
from infernix.program.program import DEFAULT_PREFILL_CHUNK_TOKENS, Program
from infernix.results import GenerationResult, SpeculationBackend

DEFAULT_GRAMMAR_CACHE_BYTES = 256 << 20
DEFAULT_LIMITS = CoreLimits()
DTYPES = ("auto", "float32", "bfloat16", "float16", "int8")
# Far above any use, and far below what an operating system refuses, which PyTorch answers with a crash.
MAX_THREADS = 1024


class Engine:
    """Generates text with one model. All methods may be called from any thread.

    A request is prepared on the calling thread, its constraint compiled there, without holding up the others. One
    worker thread runs all of them together: at most `max_concurrency` have a place, a round gives each a token, and the
    chunks of prompts come between rounds. What a request gets does not depend on what else runs, but for the rounding
    of a model whose numbers change a little with the number of rows beside it.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        max_concurrency: int = DEFAULT_LIMITS.max_concurrency,
        max_pending_requests: int = DEFAULT_LIMITS.max_pending_requests,
        pending_timeout_seconds: float = DEFAULT_LIMITS.pending_timeout_seconds,
        max_context: int | None = None,
        cache_tokens: int | None = None,
        snapshot_bytes: int = DEFAULT_LIMITS.snapshot_bytes,
        max_cached_prefixes: int = DEFAULT_LIMITS.max_cached_prefixes,
        ngram_draft_tokens: int = 0,
        ngram_min_match: int = DEFAULT_MIN_MATCH,
        speculation: str = SpeculationBackend.NONE.value,
        draft_tokens: int | None = None,
        draft_model: str | Path | None = None,
        grammar_cache_bytes: int = DEFAULT_GRAMMAR_CACHE_BYTES,
        prefill_chunk_tokens: int = DEFAULT_PREFILL_CHUNK_TOKENS,
        compiler: ConstraintCompiler | None = None,
        thinking_end: str = DEFAULT_FORCED_END,
        request_log: RequestLog | None = None,
    ) -> None:
        """What is fixed at the start:

        max_concurrency           requests that run together, 1..64
        max_pending_requests      requests beyond them that may wait; one more is Overloaded
        pending_timeout_seconds   how long a request may wait for a place; then it is a QueueTimeout
        max_context               tokens of a prompt and its output, at most the model's; None: as many as the model and
                                  `cache_tokens` allow
        cache_tokens              tokens that there is memory for in all; None: for as many full requests as can run,
                                  up to 32768 tokens or one `max_context`
        snapshot_bytes            host memory for the state of paused requests; those beyond it are run again
        max_cached_prefixes       beginnings of prompts that are remembered for later requests; 0: none
        ngram_draft_tokens        drafts a round that are copied from a request's own text, 0..63; 0: none
        ngram_min_match           tokens before such a copy that must be the same, 4..64
        speculation               a network that drafts where nothing is copied: "none", "mtp" (the predictor of a
                                  Qwen3.5 or Qwen3.8-Flash-Next checkpoint), "dflash" or "dflash2" (drafters for a
                                  Qwen3.5 model)
        draft_tokens              its drafts a round at most: mtp 1..5 (None: 3), the others 1..15 (None: 7) and no more
                                  than their blocks have
        draft_model               the directory of a "dflash" or "dflash2" drafter
        grammar_cache_bytes       bounds the compiled grammars that are kept
        prefill_chunk_tokens      tokens of a prompt that run between two rounds
        compiler                  may be shared by engines with the same vocabulary; None: one of its own
        thinking_end              the text that ends a model's thinking when its budget is used up
        request_log               receives a record of what becomes of each request

        Raises InvalidOptions for a number out of range, for a text that the tokenizer does not keep and for drafts that
        cannot be had; ModelLoadError where the drafter's files are not what they should be.
        """
        limits = checked_limits(
            CoreLimits(
                max_concurrency=max_concurrency,
                max_pending_requests=max_pending_requests,
                pending_timeout_seconds=pending_timeout_seconds,
                snapshot_bytes=snapshot_bytes,
                max_cached_prefixes=max_cached_prefixes,
            )
        )
        self._loaded = loaded
        self._max_context, num_positions = context_and_cache(
            max_context, cache_tokens, available=loaded.model.max_context, max_concurrency=max_concurrency
        )
        check_integer("prefill_chunk_tokens", prefill_chunk_tokens, 1, 2**31 - 1)
        ngram = checked_ngram(ngram_draft_tokens, ngram_min_match)
        vocabulary = loaded.tokenizer.vocabulary()
        speculative = checked_speculation(speculation, draft_tokens, draft_model)
        drafter = open_drafter(speculative, loaded, vocabulary.num_tokens)
        num_neural_drafts = 0 if drafter is None else drafter.num_drafts
        self._compiler_source = _CompilerSource(vocabulary, grammar_cache_bytes, compiler)
        constraints = ConstraintService(self._compiler_source, vocabulary)
        forced_end = encode_forced_end(loaded.tokenizer, loaded.framing, thinking_end)
        self._preparation = Preparation(loaded, constraints, forced_end, self._max_context)
        try:
            program = Program(
                loaded.model,
                vocabulary,
                prefill_chunk_tokens=prefill_chunk_tokens,
                max_rows=max_concurrency,
                num_cache_positions=num_positions,
                # A prefix is kept beside the request that it was taken from.
                num_sequences=max_concurrency + max_cached_prefixes + 1,
                num_draft_tokens=max(ngram.num_draft_tokens, num_neural_drafts),
                drafter=drafter,
            )
        except (RuntimeError, MemoryError) as error:  # PyTorch raises its own kinds of RuntimeError
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InvalidOptions(
                f"there is no memory for {num_positions} tokens: {reason}", field="cache_tokens"
            ) from error
        drafting = None
        if ngram.num_draft_tokens or num_neural_drafts:
            drafting = Drafting(program, vocabulary, ngram, num_neural_drafts=num_neural_drafts)
        core = EngineCore(program, limits, log=request_log, drafting=drafting, backend=speculative.backend)
        self._intake = core.intake
        # None after `close`, so that the pool's memory is given back.
        self._core: EngineCore | None = core
        self._last_statistics = core.statistics()
        self._worker = Worker(core)
        # Also where an engine is forgotten, and at the end of the interpreter.
        self._finalizer = weakref.finalize(self, self._worker.stop)

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        device: str = "auto",
        dtype: str = "auto",
        num_threads: int = 1,
        progress: Callable[[str], None] | None = None,
        max_concurrency: int = DEFAULT_LIMITS.max_concurrency,
        max_pending_requests: int = DEFAULT_LIMITS.max_pending_requests,
        pending_timeout_seconds: float = DEFAULT_LIMITS.pending_timeout_seconds,
        max_context: int | None = None,
        cache_tokens: int | None = None,
        snapshot_bytes: int = DEFAULT_LIMITS.snapshot_bytes,
        max_cached_prefixes: int = DEFAULT_LIMITS.max_cached_prefixes,
        ngram_draft_tokens: int = 0,
        ngram_min_match: int = DEFAULT_MIN_MATCH,
        speculation: str = SpeculationBackend.NONE.value,
        draft_tokens: int | None = None,
        draft_model: str | Path | None = None,
        grammar_cache_bytes: int = DEFAULT_GRAMMAR_CACHE_BYTES,
        prefill_chunk_tokens: int = DEFAULT_PREFILL_CHUNK_TOKENS,
        thinking_end: str = DEFAULT_FORCED_END,
        request_log: RequestLog | None = None,
    ) -> Engine:
        """Opens a model: the path of a local Hugging Face directory, or None or "smollm2" for the embedded one.

        A directory holds config.json, tokenizer.json and safetensors files; a GGUF file by itself is refused.
        `device` is "auto", "cpu" or "cuda"; `dtype` the number format of the weights, as `open_model` has it.
        `num_threads` is for the whole process, since PyTorch has one setting. `progress` receives lines about slow
        steps, from other threads too. The rest is fixed as for an engine that is made around a loaded model.

        Raises ModelLoadError; InvalidOptions for a number out of range.
        """
        if isinstance(num_threads, bool) or not isinstance(num_threads, int) or not 1 <= num_threads <= MAX_THREADS:
            raise InvalidOptions(
                f"expected an integer of 1..{MAX_THREADS}, got {shown_value(num_threads)}", field="num_threads"
            )
        if dtype not in DTYPES:
            raise InvalidOptions(f"expected one of {', '.join(DTYPES)}, got {shown_value(dtype)}", field="dtype")
        torch.set_num_threads(num_threads)
        # The first compilation of the matching kernels takes many seconds, once in an installation; it is not a daemon,
        # because the interpreter must not end in the middle of it.
        warm_up = threading.Thread(target=_warm_kernels, args=(progress,), name="infernix-warm-kernels")
        warm_up.start()
        engine = cls(
            open_model(model, device=device, dtype=dtype, progress=progress),
            max_concurrency=max_concurrency,
            max_pending_requests=max_pending_requests,
            pending_timeout_seconds=pending_timeout_seconds,
            max_context=max_context,
            cache_tokens=cache_tokens,
            snapshot_bytes=snapshot_bytes,
            max_cached_prefixes=max_cached_prefixes,
            ngram_draft_tokens=ngram_draft_tokens,
            ngram_min_match=ngram_min_match,
            speculation=speculation,
            draft_tokens=draft_tokens,
            draft_model=draft_model,
            grammar_cache_bytes=grammar_cache_bytes,
            prefill_chunk_tokens=prefill_chunk_tokens,
            thinking_end=thinking_end,
            request_log=request_log,
        )
        engine._compiler_source.warm_up = warm_up
        return engine

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self._loaded.name

    @property
    def max_context(self) -> int:
        """Tokens of prompt and output together, of which the last needs no room."""
        return self._max_context

    @property
    def sampling_defaults(self) -> SamplingParameters:
        """How tokens are drawn where a request does not say."""
        return self._loaded.sampling_defaults

    @property
    def is_available(self) -> bool:
        """Whether requests are taken: the engine is neither closed nor stopped by failures."""
        return self._intake.is_open

    def prepare(self, prompt: Prompt) -> PreparedPrompt:
        """A prompt as tokens, for `submit`. Raises InvalidPrompt, or InvalidToolConstraint for malformed tools."""
        return self._preparation.prompt(prompt)

    def count_tokens(self, prompt: Prompt) -> int:
        """How many tokens a prompt has; no constraint is looked at. Raises as `prepare`."""
        return len(self.prepare(prompt).tokens)

    def submit(
        self,
        prepared: PreparedPrompt,
        options: RequestOptions | None = None,
        *,
        pending_deadline: float | None = None,
    ) -> GenerationHandle:
        """Prepares a request on this thread, which compiles its constraint where that is new, and lines it up.

        `pending_deadline` is the `time.perf_counter` at which it must have a place; None: `pending_timeout_seconds`
        from now. Raises a RequestError if the request cannot be honoured, Overloaded where as many are under way as the
        engine takes, QueueTimeout where the deadline passes meanwhile, and EngineClosed.
        """
        if options is not None and not isinstance(options, RequestOptions):
            raise InvalidOptions(f"expected RequestOptions, got {type(options).__name__}", field="options")
        if not isinstance(prepared, PreparedPrompt):
            raise InvalidPrompt(f"`submit` takes what `prepare` gives, not {type(prepared).__name__}")
        if pending_deadline is not None:
            check_seconds("pending_deadline", pending_deadline)
        chosen = options or RequestOptions()
        if chosen.constraint is not None or prepared.tools:
            # Once in an installation this takes many seconds, and it is no work of this request: no deadline runs.
            self._compiler_source.wait_for_kernels()
        self._worker.ensure_running()  # before there is a request that would wait for it in vain
        request = self._intake.submit(lambda: self._preparation.request(prepared, chosen), deadline=pending_deadline)
        return GenerationHandle(self._intake, request, self)

    def generate(self, prompt: Prompt, options: RequestOptions | None = None) -> GenerationResult:
        """The whole answer to one request.

        A text is continued as it stands, special tokens spelled in it included; messages, alone or in a ChatPrompt with
        tools, go through the chat template; token ids are taken as they are.

        Raises as `submit`, a QueueTimeout also while the request waits, ConstraintDeadEnd and NonFiniteLogits also in
        the middle of the text; the engine stays usable.
        """
        with self._start(prompt, options) as handle:
            return handle.wait()

    def stream(self, prompt: Prompt, options: RequestOptions | None = None) -> GenerationStream:
        """The answer in pieces. The request is prepared here, so a request that is wrong fails here."""
        return GenerationStream(self._start(prompt, options))

    def statistics(self) -> EngineStatistics:
        """Where the requests are now, and what was counted since the beginning."""
        core = self._core
        if core is not None:
            return core.statistics()
        return replace(self._last_statistics, num_outstanding=self._intake.num_outstanding)

    def close(self) -> None:
        """Ends the service: requests that are not done, and later ones, fail with EngineClosed.

        Returns when the worker has ended. The memory for tokens is given back then, that of the weights when the engine
        and its handles are dropped.
        """
        self._finalizer()
        self._worker.stop()  # also where another thread closes at the same time: both wait for the end
        core = self._core
        if core is not None:
            self._last_statistics = core.statistics()
            self._core = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, prompt: Prompt, options: RequestOptions | None) -> GenerationHandle:
        self._intake.check_open()
        return self.submit(self.prepare(prompt), options)


class _CompilerSource:
    """Gives the compiler to the first constrained request. It knows nothing of its engine, which ends with its last
    reference. `warm_up` is the thread that makes the matching kernels ready, if there is one.
    """

    def __init__(self, vocabulary: Vocabulary, cache_bytes: int, compiler: ConstraintCompiler | None) -> None:
        self._vocabulary = vocabulary
        self._cache_bytes = cache_bytes
        self._compiler = compiler
        self.warm_up: threading.Thread | None = None

    def __call__(self) -> ConstraintCompiler:
        if self._compiler is not None:
            return self._compiler
        from infernix.matching import GrammarCompiler

        self.wait_for_kernels()
        return GrammarCompiler(self._vocabulary, cache_bytes=self._cache_bytes)

    def wait_for_kernels(self) -> None:
        """Returns when the matching kernels are compiled."""
        if self.warm_up is not None:
            self.warm_up.join()
        else:
            _warm_kernels_once()


@cache
def _warm_kernels_once() -> None:
    _warm_kernels(None)


def _warm_kernels(progress: Callable[[str], None] | None) -> None:
    from infernix.matching import warm_kernels

    # What fails here fails again where a constrained request needs it, and is told there instead of as a traceback.
    with contextlib.suppress(Exception):
        warm_kernels(progress)
