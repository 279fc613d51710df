"""The serving benchmark: its figures, against a server whose model costs nothing.

This folder is no package: it would hide the package `benchmarks` that it tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from typing import Any

import pytest

from benchmarks import serving
from benchmarks.serving import Run
from infernix.grammar.build import build_grammar
from infernix.options import OutputConstraint
from support.live_server import answering, live_server

FIELDS = {"num_others", "schemas", "gap_p50_ms", "gap_p99_ms", "health_p50_ms", "health_max_ms", "num_answered"}


@pytest.fixture(scope="module")
def url(warmed_kernels: None) -> Iterator[str]:
    with (
        answering(lambda said: "</think>\n\n" + "1 " * 300 + "end", max_pending_requests=8) as engine,
        live_server(engine, model_id="smollm2") as server,
    ):
        yield server.url


@pytest.mark.parametrize("load", [(0, "none"), (2, "known"), (2, "new")])
def test_a_run_has_every_figure(url: str, load: tuple[int, str]) -> None:
    numbers = count()
    run = serving.measure(url, load, 100, numbers)
    assert (run.num_others, run.schemas) == load
    assert (next(numbers) > 0) == (load[1] == "new")
    assert 0 < run.gap_p50_ms <= run.gap_p99_ms
    assert 0 < run.health_p50_ms <= run.health_max_ms
    assert run.num_answered >= load[0]


def test_every_schema_is_new_and_can_be_enforced() -> None:
    schemas = [serving.new_schema(number) for number in range(5)]
    assert len({json.dumps(schema) for schema in schemas}) == 5
    for schema in schemas:
        build_grammar(OutputConstraint.json_schema(schema))


def test_percentiles() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [serving.percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 51.0, 100.0, 100.0]


def test_runs_take_turns_and_the_row_is_their_median() -> None:
    asked: list[tuple[int, str]] = []

    def measured(load: tuple[int, str]) -> Run:
        asked.append(load)
        return Run(*load, 1.0, float(len(asked)), 2.0, 3.0, 4)

    found = serving.rows(measured, 3)
    assert asked == [*serving.LOADS] * 3
    assert [(run.num_others, run.schemas) for run in found] == [*serving.LOADS]
    assert [run.gap_p99_ms for run in found] == [6.0, 7.0, 8.0, 9.0, 10.0]


def test_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    started: list[float] = []

    @contextmanager
    def server(switch_interval: float) -> Iterator[str]:
        started.append(switch_interval)
        yield "http://nowhere"

    def measure(url: str, load: tuple[int, str], num_tokens: int, numbers: Any) -> Run:
        num_others, schemas = load
        return Run(num_others, schemas, 10.0, 20.0 + 10 * num_others, 1.0, 2.0, num_others)

    monkeypatch.setattr(serving, "server", server)
    monkeypatch.setattr(serving, "measure", measure)
    assert serving.main(["--quick", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [set(row) for row in printed["rows"]] == [FIELDS | {"gap_p99_ratio"}] * 5
    assert [row["gap_p99_ratio"] for row in printed["rows"]] == [1.0, 1.5, 1.5, 2.0, 2.0]
    assert serving.main(["--switch-interval", "0.001"]) == 0
    assert capsys.readouterr().out.splitlines()[5].split() == ["2", "new", "10.0", "40.0", "2.00", "1.0", "2.0", "2"]
    assert started == [0.005, 0.001]
    assert set(asdict(measure("", (0, "none"), 0, None))) == FIELDS
