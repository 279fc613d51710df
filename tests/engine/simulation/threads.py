"""Threads that use one engine as they like, each request checked against its answer alone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from infernix.engine import Engine
from infernix.engine.handle import GenerationHandle
from infernix.errors import EngineClosed, InfernixError, Overloaded
from infernix.results import FinishReason, GenerationStarted, OutputChannel, OutputDelta
from support.chat_engine import FORCED_TEXT
from support.chat_output import XML
from tests.engine.simulation.catalogue import MAX_CONTEXT, Entry, catalogue
from tests.engine.simulation.memory_model import MemoryModel
from tests.engine.simulation.world import NUM_TOKENS, counting_compiler, loaded_model, script

_PATIENCE_SECONDS = 300


def crowded_engine(*, max_pending_requests: int = 8, **options: Any) -> tuple[Engine, MemoryModel]:
    """An engine with four lanes and memory for two large requests."""
    model = MemoryModel(script, NUM_TOKENS, MAX_CONTEXT, is_recurrent=False)
    engine = Engine(
        loaded_model(XML, model),
        max_concurrency=4,
        max_pending_requests=max_pending_requests,
        pending_timeout_seconds=1e6,
        cache_tokens=MAX_CONTEXT,
        snapshot_bytes=1500,
        max_cached_prefixes=4,
        prefill_chunk_tokens=24,
        compiler=counting_compiler(),
        thinking_end=FORCED_TEXT,
        **options,
    )
    return engine, model


class Crowd:
    """Runs threads to their end and raises what any of them raised.

    `outcomes` counts how requests went.
    """

    def __init__(self, engine: Engine, *, may_close: bool = False, may_overload: bool = False) -> None:
        self._engine = engine
        self._allowed: tuple[type[InfernixError], ...] = (
            *((EngineClosed,) if may_close else ()),
            *((Overloaded,) if may_overload else ()),
        )
        self._problems: list[BaseException] = []
        self._lock = threading.Lock()
        self.outcomes: Counter[str] = Counter()

    def run(self, num_threads: int, num_requests: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        """So many requests by each thread."""
        catalogue()  # once, and not by every thread
        threads = [
            threading.Thread(target=self._guarded, args=(Random(number), num_requests)) for number in range(num_threads)
        ]
        for thread in threads:
            thread.start()
        meanwhile()
        for thread in threads:
            thread.join(_PATIENCE_SECONDS)
            assert not thread.is_alive(), "a thread waits for an answer that does not come"
        if self._problems:
            raise self._problems[0]

    def _guarded(self, rng: Random, num_requests: int) -> None:
        try:
            for _ in range(num_requests):
                self._one(rng, rng.choice(catalogue()))
        except BaseException as problem:
            self._problems.append(problem)

    def _one(self, rng: Random, entry: Entry) -> None:
        way = rng.choice((self._wait, self._wait, self._stream, self._subscribe, self._cancel, self._drop))
        try:
            handle = self._engine.submit(entry.prompt, entry.wanted.options)
            way(rng, entry, handle)
        except self._allowed as error:
            self._count(type(error).__name__)
        except InfernixError as error:
            entry.check_error(error)
            self._count(type(error).__name__)

    def _wait(self, rng: Random, entry: Entry, handle: GenerationHandle) -> None:
        result = handle.wait(_PATIENCE_SECONDS)
        entry.check(result)
        assert result.finish_reason is not FinishReason.CANCELLED
        self._count("waited")

    def _stream(self, rng: Random, entry: Entry, handle: GenerationHandle) -> None:
        content = ""
        for place, event in enumerate(handle.stream()):
            assert isinstance(event, GenerationStarted) == (place == 0)
            if isinstance(event, OutputDelta) and event.channel is OutputChannel.CONTENT:
                content += event.text
        result = handle.result()
        entry.check(result)
        assert content == result.text
        self._count("streamed")

    def _subscribe(self, rng: Random, entry: Entry, handle: GenerationHandle) -> None:
        is_done = threading.Event()
        events: list[object] = []

        def callback() -> None:
            was_done = handle.is_done
            events.extend(handle.take())
            if was_done:
                is_done.set()

        handle.subscribe(callback)
        assert is_done.wait(_PATIENCE_SECONDS)
        texts = [e.text for e in events if isinstance(e, OutputDelta) and e.channel is OutputChannel.CONTENT]
        result = handle.result()
        entry.check(result)
        assert "".join(texts) == result.text
        self._count("subscribed")

    def _cancel(self, rng: Random, entry: Entry, handle: GenerationHandle) -> None:
        num_events = rng.randint(0, 6)
        if num_events:
            for place, _ in enumerate(handle.stream(), 1):
                if place == num_events:
                    break
        handle.cancel()
        result = handle.wait(_PATIENCE_SECONDS)
        entry.check(result)
        self._count("cancelled" if result.finish_reason is FinishReason.CANCELLED else "cancelled too late")

    def _drop(self, rng: Random, entry: Entry, handle: GenerationHandle) -> None:
        if rng.random() < 0.5:
            handle.close()
        self._count("dropped")

    def _count(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1
