"""Thousands of small requests on one engine, without a thread and without a clock."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random
from typing import Any

from infernix.engine.core import CoreLimits, EngineCore
from infernix.engine.handle import GenerationHandle
from infernix.errors import InfernixError
from infernix.program.program import Program
from tests.engine.simulation.catalogue import MAX_CONTEXT, Entry, catalogue
from tests.engine.simulation.memory_model import MemoryModel
from tests.engine.simulation.world import NUM_TOKENS, VOCABULARY, script

_NUM_OUTSTANDING = 6


class Soak:
    """An engine under pressure: four lanes, memory for hardly two requests, snapshots for one, few prefixes."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._now = 0.0
        model = MemoryModel(script, NUM_TOKENS, MAX_CONTEXT, is_recurrent=False)
        program = Program(
            model, VOCABULARY, prefill_chunk_tokens=24, max_rows=4, num_cache_positions=MAX_CONTEXT, num_sequences=12
        )
        self._pool: Any = program.pool
        limits = CoreLimits(4, _NUM_OUTSTANDING - 4, 1e9, snapshot_bytes=1500, max_cached_prefixes=4)
        self.core = EngineCore(program, limits, clock=self._clock)
        self._running: list[tuple[Entry, GenerationHandle]] = []

    def run(self, num_requests: int) -> None:
        """So many requests, a tenth of them cancelled; afterwards nothing is under way."""
        rng, num_left = self._rng, num_requests
        while num_left or self._running:
            while num_left and len(self._running) < _NUM_OUTSTANDING and rng.random() < 0.7:
                num_left -= 1
                entry = rng.choice(catalogue())
                request = self.core.submit(entry.prepare)
                self._running.append((entry, GenerationHandle(self.core.intake, request, self)))
            self.core.cycle()
            if self._running and rng.random() < 0.01:
                rng.choice(self._running)[1].cancel()
            self._collect()
        assert self.core.is_idle
        statistics = self.core.statistics()
        assert statistics.num_outstanding == statistics.num_running == statistics.num_paused == 0
        self._pool.check_held_by([entry.prefix.cache for entry in self.core._prefixes._entries.values()])

    def close(self) -> None:
        """The end: all memory is free."""
        self.core.stop()
        self.core.cycle()
        self._pool.check_held_by([])

    def _collect(self) -> None:
        going_on = []
        for entry, handle in self._running:
            if not handle.is_done:
                going_on.append((entry, handle))
                continue
            try:
                result = handle.result()
            except InfernixError as error:
                entry.check_error(error)
            else:
                entry.check(result)
        self._running = going_on

    def _clock(self) -> float:
        self._now += 0.001
        return self._now


def growth_of_memory(soak: Soak, num_requests: int) -> int:
    """Bytes that Python holds more after so many requests than before them."""
    tracemalloc.start()
    try:
        soak.run(50)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        soak.run(num_requests)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
