"""The engine benchmark: its output's shape, on a model that costs nothing.

This folder is no package: it would hide the package `benchmarks` that it tests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from numpy.typing import ArrayLike

from benchmarks import engine as benchmark
from benchmarks.engine import Round, Row
from infernix.engine import Counters, GenerationHandle
from support.chat_engine import chat_engine
from support.chat_output import CHAT, JSON_AS_TEXT

FIELDS = {
    "batch",
    "mix",
    "dtype",
    "tokens_per_second",
    "tokens_per_cpu_second",
    "overhead_ms_per_round",
    "mask_us_per_token",
}


@pytest.mark.parametrize(("batch", "mix"), [(1, "free"), (1, "constrained"), (3, "mixed")])
def test_a_run_has_every_figure(batch: int, mix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(1).standard_normal((64, CHAT.num_tokens))
    is_read = threading.Event()
    subscribe = GenerationHandle.subscribe

    def subscribe_first(handle: GenerationHandle, callback: Callable[[], None]) -> None:
        subscribe(handle, callback)
        is_read.set()

    def script(so_far: tuple[int, ...]) -> ArrayLike:
        assert is_read.wait(10)  # a model as fast as this one would be done before anybody looks
        return table[len(so_far) % 64]

    monkeypatch.setattr(GenerationHandle, "subscribe", subscribe_first)
    engine = chat_engine(script, JSON_AS_TEXT, max_concurrency=8)
    row = benchmark.run(engine, "float32", batch, mix, 12)
    assert (row.batch, row.mix, row.dtype) == (batch, mix, "float32")
    assert row.tokens_per_second > 0
    assert row.tokens_per_cpu_second > 0
    assert row.overhead_ms_per_round > 0
    assert (row.mask_us_per_token is None) == (mix == "free")


def test_only_single_rounds_count() -> None:
    first = Counters(num_decode_rounds=3, num_decode_rows=9, round_seconds=1.0, forward_seconds=0.5)
    second = Counters(
        num_decode_rounds=4,
        num_decode_rows=17,
        round_seconds=3.0,
        forward_seconds=1.5,
        mask_wall_seconds=0.25,
        sampling_seconds=0.25,
    )
    assert Round.between(first, second) == Round(8, 2.0, 0.5)
    assert Round.between(first, Counters(num_decode_rounds=5)).num_rows == 0


def test_the_median_and_the_printed_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row(8, "mixed", "int8", speed, speed / 2, 0.5, 3.0) for speed in (10.0, 30.0, 20.0)]
    assert benchmark.median_of(rows) == Row(8, "mixed", "int8", 20.0, 10.0, 0.5, 3.0)
    asked: list[tuple[str, int, int]] = []

    def measure(dtype: str, num_tokens: int, num_runs: int) -> list[Row]:
        asked.append((dtype, num_tokens, num_runs))
        return [Row(1, "free", dtype, 1.0, 1.0, 0.5, None)]

    monkeypatch.setattr(benchmark, "measure", measure)
    benchmark.main(["--quick", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert [set(row) for row in printed["rows"]] == [FIELDS] * 2
    assert [row["dtype"] for row in printed["rows"]] == [dtype for dtype, _, _ in asked] == ["float32", "int8"]
    benchmark.main(["--dtype", "float16"])
    assert capsys.readouterr().out.splitlines()[1].split() == ["float16", "1", "free", "1.0", "1.0", "0.500", "-"]
    assert set(asdict(rows[0])) == FIELDS
