"""Free, constrained and mixed requests side by side: `python -m benchmarks.engine [--quick] [--json]`.

The embedded model says the same number of tokens to the same prompt, alone and eight at a time: free text that goes on
past its end, and a JSON Schema whose values do not end before. The mixes take turns, and a figure is the median over
the runs:

tokens_per_second       by the median wall time of the rounds in which all requests take part
tokens_per_cpu_second   all tokens by the processor's time, prompts and preparation included
overhead_ms_per_round   of such a round the median of what is neither the model's pass, nor legal sets, nor the choice
                        of tokens
mask_us_per_token       CPU time of one legal set
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from infernix import Engine, GenerationResult, OutputConstraint, RequestOptions, SamplingOptions
from infernix.engine import Counters

BATCHES = (1, 8)
MIXES = ("free", "constrained", "mixed")
DTYPES = ("float32", "float16", "int8")
PROMPT = [
    {"role": "system", "content": "You extract facts from text. You answer with JSON."},
    {"role": "user", "content": "List people with their age and city: Marie is 34 and lives in Lyon, Tom is 7."},
]
RECORDS = OutputConstraint.json_schema(
    {
        "type": "array",
        "minItems": 500,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 40},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "city": {"type": "string", "maxLength": 40},
            },
            "required": ["name", "age", "city"],
            "additionalProperties": False,
        },
    }
)


@dataclass(frozen=True)
class Row:
    """The figures of one mix; the module says what they are. `mask_us_per_token` is None without constraints."""

    batch: int
    mix: str
    dtype: str
    tokens_per_second: float
    tokens_per_cpu_second: float
    overhead_ms_per_round: float
    mask_us_per_token: float | None


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table, or with --json one object with `rows`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer tokens and runs, float32 and int8 only")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="repeat the flag; default: all")
    parsed = parser.parse_args(arguments)
    num_tokens, num_runs = (24, 2) if parsed.quick else (96, 5)
    rows: list[Row] = []
    for dtype in parsed.dtype or (("float32", "int8") if parsed.quick else DTYPES):
        rows += measure(dtype, num_tokens, num_runs)
    if parsed.json:
        json.dump({"rows": [asdict(row) for row in rows]}, sys.stdout)
        print()
        return
    print("dtype     batch  mix           tokens/s  per CPU s  overhead ms/round  mask us/token")
    for row in rows:
        mask = "-" if row.mask_us_per_token is None else f"{row.mask_us_per_token:.1f}"
        print(
            f"{row.dtype:9} {row.batch:5}  {row.mix:12} {row.tokens_per_second:9.1f} {row.tokens_per_cpu_second:10.1f}"
            f" {row.overhead_ms_per_round:18.3f} {mask:>14}"
        )


def measure(dtype: str, num_tokens: int, num_runs: int) -> list[Row]:
    """The rows of one number format, `num_tokens` a request, `num_runs` times each."""
    with Engine.load(device="cpu", dtype=dtype, max_concurrency=max(BATCHES)) as engine:
        for mix in ("free", "constrained"):  # compiles, and remembers the prompt, before anything is measured
            run(engine, dtype, 1, mix, 4)
        runs: dict[tuple[int, str], list[Row]] = {(batch, mix): [] for batch in BATCHES for mix in mixes_of(batch)}
        for _ in range(num_runs):
            for (batch, mix), rows in runs.items():
                rows.append(run(engine, dtype, batch, mix, num_tokens))
    return [median_of(rows) for rows in runs.values()]


def mixes_of(batch: int) -> tuple[str, ...]:
    """One request alone is not mixed."""
    return MIXES if batch > 1 else MIXES[:2]


def run(engine: Engine, dtype: str, batch: int, mix: str, num_tokens: int) -> Row:
    """One run of a mix. The last request's consumer reads the engine's counters in every round."""
    prompt = engine.prepare(PROMPT)
    readings: list[Counters] = []
    cpu = time.process_time()
    handles = [engine.submit(prompt, options_of(mix, number, num_tokens)) for number in range(batch)]
    handles[-1].subscribe(lambda: readings.append(engine.statistics().counters))
    results = [handle.wait() for handle in handles]
    cpu = time.process_time() - cpu
    readings.append(engine.statistics().counters)
    assert all(result.num_generated_tokens == num_tokens for result in results)
    return row_of(dtype, batch, mix, readings, cpu, results)


def options_of(mix: str, number: int, num_tokens: int) -> RequestOptions:
    """The options of a mix's request; of a mixed batch every second one is constrained."""
    sampling = SamplingOptions(temperature=0.7, top_p=0.95, seed=number)
    if mix == "constrained" or (mix == "mixed" and number % 2):
        return RequestOptions(num_tokens, RECORDS, sampling)
    return RequestOptions(num_tokens, None, sampling, ignore_eos=True)


def row_of(
    dtype: str,
    batch: int,
    mix: str,
    readings: Sequence[Counters],
    cpu_seconds: float,
    results: Sequence[GenerationResult],
) -> Row:
    """The figures of one run: medians over its full rounds."""
    rounds = [Round.between(before, after) for before, after in pairwise(readings)]
    full = [one for one in rounds if one.num_rows == batch]
    observations = [result.constraint for result in results if result.constraint is not None]
    num_masks = sum(observation.mask_positions for observation in observations)
    return Row(
        batch=batch,
        mix=mix,
        dtype=dtype,
        tokens_per_second=batch / statistics.median(one.seconds for one in full),
        tokens_per_cpu_second=sum(result.num_generated_tokens for result in results) / cpu_seconds,
        overhead_ms_per_round=statistics.median(one.overhead_seconds for one in full) * 1e3,
        mask_us_per_token=sum(observation.mask_seconds for observation in observations) / num_masks * 1e6
        if num_masks
        else None,
    )


@dataclass(frozen=True)
class Round:
    """What the counters say of the time between two readings, if one round lies between them."""

    num_rows: int
    seconds: float
    overhead_seconds: float

    @classmethod
    def between(cls, before: Counters, after: Counters) -> Round:
        """The round; one of no rows where there was none, or more than one."""
        if after.num_decode_rounds - before.num_decode_rounds != 1:
            return cls(0, 0.0, 0.0)
        seconds = after.round_seconds - before.round_seconds
        inside = sum(
            getattr(after, name) - getattr(before, name)
            for name in ("forward_seconds", "mask_wall_seconds", "sampling_seconds")
        )
        return cls(after.num_decode_rows - before.num_decode_rows, seconds, seconds - inside)


def median_of(rows: Sequence[Row]) -> Row:
    """The medians of several runs' figures."""
    first = rows[0]
    masks = [row.mask_us_per_token for row in rows if row.mask_us_per_token is not None]
    return Row(
        batch=first.batch,
        mix=first.mix,
        dtype=first.dtype,
        tokens_per_second=round(statistics.median(row.tokens_per_second for row in rows), 2),
        tokens_per_cpu_second=round(statistics.median(row.tokens_per_cpu_second for row in rows), 2),
        overhead_ms_per_round=round(statistics.median(row.overhead_ms_per_round for row in rows), 4),
        mask_us_per_token=round(statistics.median(masks), 2) if masks else None,
    )


if __name__ == "__main__":
    main()
