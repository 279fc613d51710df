"""How much others are in the way: gaps between the tokens of a stream, and `/health`, while others bring new schemas.

    python -m benchmarks.serving [--quick] [--json] [--switch-interval SECONDS]

A server with the embedded model runs in a process of its own. One client streams an answer; none, one or two others
send requests for one token, each with a schema that was never seen, or, to tell what is the compilation's part, always
with the same. Reported are medians over several runs: of the p50 and p99 of the gaps, of that p99 as a multiple of the
quiet server's, and of the usual and the slowest `/health`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count, pairwise, repeat
from typing import Any

import httpx

_CHAT = "/v1/chat/completions"
_MODEL = "smollm2"
_SERVER = (
    "import sys; sys.setswitchinterval(float(sys.argv.pop(1)));"
    " from infernix.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
_DEFAULT_SWITCH_INTERVAL = 0.005

Load = tuple[int, str]
"""How many others there are, and what their schemas are."""

LOADS: tuple[Load, ...] = ((0, "none"), (1, "known"), (1, "new"), (2, "known"), (2, "new"))


@dataclass(frozen=True)
class Run:
    """One stream beside `num_others` clients, of whose requests `num_answered` were answered; milliseconds.

    schemas   those of the others: `new` ones, a `known` one, or none
    """

    num_others: int
    schemas: str
    gap_p50_ms: float
    gap_p99_ms: float
    health_p50_ms: float
    health_max_ms: float
    num_answered: int


def new_schema(number: int) -> dict[str, Any]:
    """A schema of everyday size that no other number has."""
    properties: dict[str, Any] = {
        f"field_{number}_{index}": {
            "anyOf": [{"type": "string", "maxLength": 20 + index}, {"type": "integer"}, {"enum": ["a", index]}]
        }
        for index in range(12)
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed; at least one value."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(url: str, load: Load, num_tokens: int, new_numbers: Iterator[int]) -> Run:
    """One stream of so many tokens, with what the others and `/health` do meanwhile."""
    num_others, schemas = load
    numbers = new_numbers if schemas == "new" else repeat(-1)
    done = threading.Event()
    health: list[float] = []
    answered: list[int] = []
    with httpx.Client(base_url=url, timeout=120) as client:
        threads = [threading.Thread(target=_watch_health, args=(url, done, health))]
        threads += [
            threading.Thread(target=_ask_always, args=(url, done, numbers, answered)) for _ in range(num_others)
        ]
        for thread in threads:
            thread.start()
        try:
            gaps = _gaps(client, num_tokens)
        finally:
            done.set()
            for thread in threads:
                thread.join()
    return Run(
        num_others,
        schemas,
        statistics.median(gaps),
        percentile(gaps, 0.99),
        statistics.median(health),
        max(health),
        len(answered),
    )


def _gaps(client: httpx.Client, num_tokens: int) -> list[float]:
    """Milliseconds between the pieces of one answer, which a constraint of its own keeps from ending."""
    body = {
        "model": _MODEL,
        "messages": [{"role": "user", "content": "Count."}],
        "structured_outputs": {"regex": "([0-9]+ )*end"},
        "max_tokens": num_tokens,
        "temperature": 0,
        "stream": True,
    }
    times: list[float] = []
    with client.stream("POST", _CHAT, json=body) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if '"delta":{"content":"' in line:
                times.append(time.perf_counter())
    return [1000 * (after - before) for before, after in pairwise(times)]


def _watch_health(url: str, done: threading.Event, found: list[float]) -> None:
    with httpx.Client(base_url=url, timeout=120) as client:
        while not found or not done.is_set():
            begin = time.perf_counter()
            assert client.get("/health").status_code == 200
            found.append(1000 * (time.perf_counter() - begin))
            done.wait(0.02)


def _ask_always(url: str, done: threading.Event, numbers: Iterator[int], answered: list[int]) -> None:
    with httpx.Client(base_url=url, timeout=120) as client:
        while not answered or not done.is_set():
            number = next(numbers)
            json_schema = {"name": "x", "schema": new_schema(number)}
            body = {
                "model": _MODEL,
                "messages": [{"role": "user", "content": "Hi"}],
                "response_format": {"type": "json_schema", "json_schema": json_schema},
                "max_tokens": 1,
            }
            assert client.post(_CHAT, json=body).status_code == 200
            answered.append(number)


@contextmanager
def server(switch_interval: float) -> Iterator[str]:
    """A server in a process of its own, at this address."""
    command = [sys.executable, "-c", _SERVER, str(switch_interval), "serve", "--port", "0", "--max-context", "2048"]
    with subprocess.Popen([*command, "--model-id", _MODEL], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split(" at ")[1].split()[0]
        finally:
            process.terminate()
            process.wait(30)


def median_of(runs: Sequence[Run]) -> Run:
    """The medians of each figure of runs under the same load."""
    first = asdict(runs[0])
    figures = {name: statistics.median(getattr(run, name) for run in runs) for name in first if name != "schemas"}
    return Run(**{**first, **figures})


def rows(measured: Callable[[Load], Run], num_runs: int) -> list[Run]:
    """One row for each load; the runs take turns, so that a slow minute hits them all."""
    runs = [[measured(load) for load in LOADS] for _ in range(num_runs)]
    return [median_of(same) for same in zip(*runs, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--switch-interval",
        type=float,
        default=_DEFAULT_SWITCH_INTERVAL,
        help="Python's, in the server (default 0.005)",
    )
    options = parser.parse_args(arguments)
    num_tokens, num_runs = (60, 1) if options.quick else (300, 5)
    numbers = count()
    with server(options.switch_interval) as url:
        measure(url, (1, "known"), 10, numbers)  # what is loaded and compiled only once
        found = rows(lambda load: measure(url, load, num_tokens, numbers), num_runs)
    ratios = [run.gap_p99_ms / found[0].gap_p99_ms for run in found]
    if options.json:
        whole = [{**asdict(run), "gap_p99_ratio": ratio} for run, ratio in zip(found, ratios, strict=True)]
        print(json.dumps({"switch_interval": options.switch_interval, "rows": whole}))
        return 0
    print("others  schemas  gap p50 ms  gap p99 ms  ratio  health p50 ms  health max ms  answered")
    for run, ratio in zip(found, ratios, strict=True):
        print(
            f"{run.num_others:6}  {run.schemas:>7}  {run.gap_p50_ms:10.1f}  {run.gap_p99_ms:10.1f}  {ratio:5.2f}"
            f"  {run.health_p50_ms:13.1f}  {run.health_max_ms:13.1f}  {run.num_answered:8}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
