"""The engine: one model, and requests that take turns on it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import torch

from infernix.engine.constraints import ConstraintCompiler, ConstraintService
from infernix.engine.prompt import Prompt, prepare_prompt
from infernix.engine.run import GenerationRun, PreparedRequest
from infernix.engine.stream import GenerationStream
from infernix.errors import EngineClosed, InvalidOptions
from infernix.frontend.budget import OutputBudget
from infernix.frontend.opening import OutputModel, open_session, refuse_loose_options
from infernix.frontend.output_grammar import output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.thinking import DEFAULT_FORCED_END, encode_forced_end
from infernix.frontend.tools.selection import select_tools
from infernix.models import LoadedModel, open_model
from infernix.options import RequestOptions, resolve_sampling, shown_value
from infernix.program.program import DEFAULT_PREFILL_CHUNK_TOKENS, Program
from infernix.results import GenerationResult, PublishedDelta

DEFAULT_GRAMMAR_CACHE_BYTES = 256 << 20
# Far above any use, and far below what an operating system refuses, which PyTorch answers with a crash.
MAX_THREADS = 1024


class Engine:
    """Generates text with one model. All methods may be called from any thread.

    A request is prepared on the calling thread, its constraint compiled there, without holding up the others. The
    model then runs one unit (a chunk of a prompt, or one new token) at a time, and requests take turns unit by unit.
    What a request gets does not depend on what else runs.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        max_context: int | None = None,
        grammar_cache_bytes: int = DEFAULT_GRAMMAR_CACHE_BYTES,
        prefill_chunk_tokens: int = DEFAULT_PREFILL_CHUNK_TOKENS,
        compiler: ConstraintCompiler | None = None,
        thinking_end: str = DEFAULT_FORCED_END,
    ) -> None:
        """`max_context` (tokens) may be less than the model's; None: the model's. `compiler` may be shared by engines
        with the same vocabulary; None: one of its own, made for the first constrained request. `thinking_end` is the
        text that ends a model's thinking when its budget is used up. Raises InvalidOptions for a number out of range
        and for a text that the tokenizer does not keep.
        """
        self._loaded = loaded
        self._vocabulary = loaded.tokenizer.vocabulary()
        self._max_context = _checked_max_context(max_context, loaded.model.max_context)
        self._program = Program(loaded.model, self._vocabulary, prefill_chunk_tokens=prefill_chunk_tokens)
        self._warm_up: threading.Thread | None = None
        self._constraints = ConstraintService(
            lambda: compiler or self._new_compiler(grammar_cache_bytes), self._vocabulary
        )
        self._forced_end = encode_forced_end(loaded.tokenizer, loaded.framing, thinking_end)
        self._unit_lock = threading.Lock()
        self._is_closed = False

    @classmethod
    def load(
        cls,
        model: str | Path | None = None,
        *,
        device: str = "auto",
        num_threads: int = 1,
        max_context: int | None = None,
        grammar_cache_bytes: int = DEFAULT_GRAMMAR_CACHE_BYTES,
        thinking_end: str = DEFAULT_FORCED_END,
        progress: Callable[[str], None] | None = None,
    ) -> Engine:
        """Opens a model: the path of a local Hugging Face directory, or None or "smollm2" for the embedded one.

        A directory holds config.json, tokenizer.json and safetensors files; a GGUF file by itself is refused.
        `device` is "auto", "cpu" or "cuda". `num_threads` is for the whole process, since PyTorch has one setting.
        `max_context` (tokens) may be less than the model's; None: the model's. `grammar_cache_bytes` bounds the
        compiled grammars that are kept. `thinking_end` is the text that ends a model's thinking when its budget is
        used up. `progress` receives lines about slow steps, from other threads too.

        Raises ModelLoadError; InvalidOptions for a number out of range.
        """
        if isinstance(num_threads, bool) or not isinstance(num_threads, int) or not 1 <= num_threads <= MAX_THREADS:
            raise InvalidOptions(
                f"expected an integer of 1..{MAX_THREADS}, got {shown_value(num_threads)}", field="num_threads"
            )
        torch.set_num_threads(num_threads)
        # The first compilation of the matching kernels takes many seconds, once in an installation; it is not a daemon,
        # because the interpreter must not end in the middle of it.
        warm_up = threading.Thread(target=_warm_kernels, args=(progress,), name="infernix-warm-kernels")
        warm_up.start()
        engine = cls(
            open_model(model, device=device, progress=progress),
            max_context=max_context,
            grammar_cache_bytes=grammar_cache_bytes,
            thinking_end=thinking_end,
        )
        engine._warm_up = warm_up
        return engine

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self._loaded.name

    @property
    def max_context(self) -> int:
        """Tokens of prompt and output together, of which the last needs no room."""
        return self._max_context

    def generate(self, prompt: Prompt, options: RequestOptions | None = None) -> GenerationResult:
        """The whole answer to one request.

        A text is continued as it stands, special tokens spelled in it included; messages, alone or in a ChatPrompt with
        tools, go through the chat template; token ids are taken as they are.

        Raises a RequestError if the request cannot be honoured, ConstraintDeadEnd and NonFiniteLogits also in the
        middle of the text; the engine stays usable.
        """
        run = self._start(prompt, options)
        while not run.is_finished:
            self._advance(run)
        return run.result()

    def stream(self, prompt: Prompt, options: RequestOptions | None = None) -> GenerationStream:
        """The answer in pieces. The request is prepared here, so a request that is wrong fails here."""
        return GenerationStream(self._start(prompt, options), self._advance)

    def close(self) -> None:
        """Ends the service: open streams and later requests fail with EngineClosed.

        The model's memory is given back when the engine and its streams are dropped.
        """
        self._is_closed = True

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, prompt: Prompt, options: RequestOptions | None) -> GenerationRun:
        if self._is_closed:
            raise EngineClosed("the engine is closed")
        if options is not None and not isinstance(options, RequestOptions):
            raise InvalidOptions(f"expected RequestOptions, got {type(options).__name__}", field="options")
        return GenerationRun(self._program, self._prepare(prompt, options or RequestOptions()))

    def _prepare(self, prompt: Prompt, options: RequestOptions) -> PreparedRequest:
        started = time.perf_counter()
        prepared = prepare_prompt(prompt, self._loaded)
        budget = OutputBudget.of(options.max_new_tokens, len(prepared.tokens), self._max_context)
        content = options.constraint
        sampling = resolve_sampling(options.sampling, self._loaded.sampling_defaults, constrained=content is not None)
        framing = self._loaded.framing
        policy = select_tools(
            prepared.tools, options.tool_choice, framing.tool_style, None if content is None else content.kind
        )
        if prepared.phase is StartingPhase.RAW:
            policy = None  # a text to continue has no tools, and a mark of a call in it is text
            if options.thinking_budget is not None:
                raise InvalidOptions("a text to continue has no thinking apart from the rest", field="thinking_budget")
        grammar = output_grammar(framing, prepared.phase, policy, content)
        if grammar is not None:
            refuse_loose_options(options)
        session = open_session(
            OutputModel(self._vocabulary, framing, self._forced_end),
            prepared.phase,
            budget,
            options,
            constraint=None if grammar is None else self._constraints.prepare(grammar),
            policy=policy,
            continuation=prepared.continuation,
        )
        return PreparedRequest(
            prompt=list(prepared.tokens),
            budget=budget,
            sampling=sampling,
            session=session,
            started=started,
            prepare_seconds=time.perf_counter() - started,
        )

    def _advance(self, run: GenerationRun) -> tuple[PublishedDelta, ...]:
        with self._unit_lock:
            if run.is_finished:  # another thread asked for the same request's next piece at the same time
                return ()
            if self._is_closed and not run.is_cancelled:
                error = EngineClosed("the engine was closed")
                run.fail(error)
                raise error
            return run.step()

    def _new_compiler(self, cache_bytes: int) -> ConstraintCompiler:
        from infernix.matching import GrammarCompiler

        if self._warm_up is not None:
            self._warm_up.join()
        compiler: ConstraintCompiler = GrammarCompiler(self._vocabulary, cache_bytes=cache_bytes)
        return compiler


def _warm_kernels(progress: Callable[[str], None] | None) -> None:
    from infernix.matching import warm_kernels

    # What fails here fails again where a constrained request needs it, and is told there instead of as a traceback.
    with contextlib.suppress(Exception):
        warm_kernels(progress)


def _checked_max_context(asked: int | None, available: int) -> int:
    if asked is None:
        return available
    if isinstance(asked, bool) or not isinstance(asked, int):
        raise InvalidOptions(f"expected an integer, got {type(asked).__name__}", field="max_context")
    if not 1 <= asked <= available:
        message = f"{shown_value(asked)} is outside 1..{available}, what the model has"
        raise InvalidOptions(message, field="max_context")
    return asked
