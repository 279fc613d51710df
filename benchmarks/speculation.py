"""What drafts bring on the embedded model: `python -m benchmarks.speculation [--quick] [--json]`.

Tasks whose answers repeat much of the prompt, and one whose answer does not, each greedy, with and without copies from
the request's own text. Both ways take turns, and a figure is the median over the runs:

tokens_per_second   tokens after the first by the wall time of the rounds
tokens_per_round    tokens after the first by rounds; 1 without drafts
draft_wait_us       microseconds that a round waited for its drafts
speculation, constraint   what the first run's result and the request log say of both: drafts that were right, rounds
                    without drafts, positions for which a legal set was computed, ...
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from infernix import (
    Engine,
    GenerationResult,
    OutputConstraint,
    RequestOptions,
    SamplingOptions,
    SpeculativeStatistics,
)

NUM_DRAFT_TOKENS = 15
MIN_MATCH = 4

LETTER = """Dear Ms. Okafor,
thank you for your order 4471-B of 12 March 2026. The blue ceramic lamp with brass fittings and the walnut
side table will leave our warehouse in Rotterdam on Thursday. Delivery to 18 Harbour Lane, Bristol takes three
working days. Please keep the receipt: the warranty of 36 months begins with the day of delivery."""
CODE = """def mean(values):
    total = 0.0
    for value in values:
        total = total + value
    return total / len(values)

def variance(values):
    center = mean(values)
    total = 0.0
    for value in values:
        total = total + (value - center) * (value - center)
    return total / len(values)"""


@dataclass(frozen=True)
class Task:
    """A request: what is asked, and the shape of the answer."""

    name: str
    prompt: str
    constraint: OutputConstraint | None
    max_new_tokens: int


def _text(max_length: int) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": max_length}


_ORDER = {
    "type": "object",
    "properties": {
        "customer": _text(40),
        "order_number": _text(20),
        "goods": {"type": "array", "items": _text(80), "minItems": 1, "maxItems": 4},
        "address": _text(60),
        "quotation": _text(200),
    },
    "required": ["customer", "order_number", "goods", "address", "quotation"],
    "additionalProperties": False,
}

TASKS = (
    Task(
        "extraction, JSON Schema",
        f"Extract the order as JSON. Quote the sentence about the delivery word for word.\n\n{LETTER}",
        OutputConstraint.json_schema(_ORDER),
        160,
    ),
    Task(
        "rewriting a letter, JSON Schema",
        f'Give back this letter word for word as {{"letter": ...}}, but for the year, which becomes 2027.\n\n{LETTER}',
        OutputConstraint.json_schema(
            {
                "type": "object",
                "properties": {"letter": {"type": "string", "minLength": 300, "maxLength": 600}},
                "required": ["letter"],
                "additionalProperties": False,
            }
        ),
        200,
    ),
    Task(
        "rewriting code, regex",
        f"Repeat this program word for word, with `total` renamed to `sum`. Answer with the program alone.\n\n{CODE}",
        OutputConstraint.regex(r"def mean\(values\):\n(    [^\n]*\n|\n|def [^\n]*\n){6,20}"),
        200,
    ),
    Task("rewriting a letter, free", f"Repeat this letter word for word.\n\n{LETTER}", None, 160),
    Task(
        "a story, regex",
        "Write a short story about a lighthouse.",
        OutputConstraint.regex(r"([A-Z][^.\n]{20,150}\. ?){4,8}"),
        160,
    ),
)


@dataclass(frozen=True)
class Row:
    """The figures of one task with one way to draft; the module says what they are."""

    task: str
    drafter: str
    num_tokens: int
    tokens_per_second: float
    tokens_per_round: float
    draft_wait_us: float
    speculation: SpeculativeStatistics | None
    constraint: dict[str, Any] | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table or, with --json, one object. Exit code 1: a drafter changed an answer."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speculation", description="What drafts bring.")
    parser.add_argument("--quick", action="store_true", help="one run instead of three, of two tasks")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    chosen = parser.parse_args(arguments)
    rows, is_same = measure(TASKS[:2] if chosen.quick else TASKS, num_runs=1 if chosen.quick else 3)
    if chosen.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1))
    else:
        titles = ("drafter", "tokens", "tokens/s", "a round", "accepted", "no drafts", "wait, us", "masks")
        print(f"{'task':34}" + "".join(f"{title:>10}" for title in titles))
        for row in rows:
            print(_line(row))
    if not is_same:
        print("an answer with drafts differs from the one without", file=sys.stderr)
    return 0 if is_same else 1


def _line(row: Row) -> str:
    drafts = row.speculation
    accepted = "-" if drafts is None else f"{drafts.num_accepted}/{drafts.num_drafted}"
    num_without = "-" if drafts is None else str(drafts.num_fallback_rounds)
    num_masks = "-" if row.constraint is None else str(row.constraint["mask_positions"])
    return (
        f"{row.task:34}{row.drafter:>10}{row.num_tokens:>10}{row.tokens_per_second:>10.1f}"
        f"{row.tokens_per_round:>10.2f}{accepted:>10}{num_without:>10}{row.draft_wait_us:>10.1f}{num_masks:>10}"
    )


def measure(tasks: Sequence[Task], num_runs: int) -> tuple[list[Row], bool]:
    """The figures of the tasks, and whether every answer was the same both ways."""
    with (
        Engine.load(max_concurrency=1, max_cached_prefixes=0) as plain,
        Engine.load(
            max_concurrency=1, max_cached_prefixes=0, ngram_draft_tokens=NUM_DRAFT_TOKENS, ngram_min_match=MIN_MATCH
        ) as copying,
    ):
        engines = {"none": plain, "ngram": copying}
        found: dict[tuple[str, str], list[GenerationResult]] = {}
        for _ in range(num_runs):
            for task in tasks:
                for drafter, engine in engines.items():
                    found.setdefault((task.name, drafter), []).append(_answer(engine, task))
    rows = [row_of(name, drafter, results) for (name, drafter), results in found.items()]
    is_same = all(
        found[task.name, "none"][0].token_ids == result.token_ids
        for task in tasks
        for drafter in engines
        for result in found[task.name, drafter]
    )
    return rows, is_same


def _answer(engine: Engine, task: Task) -> GenerationResult:
    options = RequestOptions(
        max_new_tokens=task.max_new_tokens, constraint=task.constraint, sampling=SamplingOptions.greedy()
    )
    return engine.generate([{"role": "user", "content": task.prompt}], options)


def row_of(task: str, drafter: str, results: Sequence[GenerationResult]) -> Row:
    """The figures of runs with one outcome."""
    first = results[0]
    num_tokens, num_rounds = first.num_generated_tokens - 1, first.scheduling.num_decode_rounds
    waits = [result.speculation.draft_wait_seconds for result in results if result.speculation is not None]
    return Row(
        task=task,
        drafter=drafter,
        num_tokens=num_tokens,
        tokens_per_second=statistics.median(num_tokens / result.timings.decode_seconds for result in results),
        tokens_per_round=num_tokens / num_rounds,
        draft_wait_us=statistics.median(waits) / num_rounds * 1e6 if waits else 0.0,
        speculation=first.speculation,
        constraint=None if first.constraint is None else first.constraint.record(),
    )


if __name__ == "__main__":
    sys.exit(main())
