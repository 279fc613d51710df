"""What the pacing of drafts saves and costs: `python -m benchmarks.pacing [--quick] [--json]`.

The answers to the tasks of `benchmarks.speculation` are gone through once more with copies of three kinds: none, as
long as they can be, and paced. Drafts change no answer, so the rounds and drafts that an engine would have follow from
the text alone; they are counted, not timed. What they come to depends on what a column more costs beside a round
without drafts, which is measured on the embedded model for several rows at once:

column      seconds for one more column of every row, by those for a round of the same rows, row by row
speed       tokens a round without drafts would take, by what the rounds and columns come to, over all tasks
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from benchmarks.speculation import MIN_MATCH, NUM_DRAFT_TOKENS, TASKS
from infernix import Engine, RequestOptions, SamplingOptions
from infernix.matching.vocabulary import TokenClass
from infernix.models import LanguageModel, LoadedModel, open_model
from infernix.models.model import ModelRow
from infernix.program.drafters.ngram import NgramDrafter
from infernix.program.drafters.pacing import DraftPace

WAYS = ("none", "full", "paced")
NUM_CONTEXT_TOKENS = 200
NUM_COLUMNS = 8


@dataclass(frozen=True)
class Text:
    """One task's prompt and answer, and how many tokens it might have had."""

    task: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    budget: int


@dataclass(frozen=True)
class Rounds:
    """How many rounds an answer takes behind its first token, and the drafts in them."""

    task: str
    way: str
    num_tokens: int
    num_rounds: int
    num_drafted: int
    num_right: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints two tables or, with --json, one object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pacing", description="What pacing drafts brings.")
    parser.add_argument("--quick", action="store_true", help="two tasks, and a column's cost for one row")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    loaded = open_model()
    texts = _answered(loaded, 2 if chosen.quick else len(TASKS))
    is_boundary = loaded.tokenizer.vocabulary().classes != TokenClass.TEXT
    rounds = [rounds_of(text, way, is_boundary) for text in texts for way in WAYS]
    costs = {num_rows: column_cost(loaded.model, num_rows) for num_rows in ([1] if chosen.quick else [1, 4, 8])}
    speeds = {
        num_rows: {way: speed([each for each in rounds if each.way == way], cost) for way in WAYS}
        for num_rows, cost in costs.items()
    }
    if chosen.json:
        document = {"rounds": [asdict(each) for each in rounds], "column": costs, "speed": speeds}
        print(json.dumps(document, indent=1))
        return 0
    print(f"{'task':34}{'copies':>8}{'tokens':>8}{'rounds':>8}{'a round':>9}{'right':>7}{'refused':>9}")
    for each in rounds:
        print(
            f"{each.task:34}{each.way:>8}{each.num_tokens:>8}{each.num_rounds:>8}"
            f"{each.num_tokens / each.num_rounds:>9.2f}{each.num_right:>7}{each.num_drafted - each.num_right:>9}"
        )
    print(f"\n{'rows':>4}{'column':>9}" + "".join(f"{way:>8}" for way in WAYS))
    for num_rows, cost in costs.items():
        print(f"{num_rows:>4}{cost:>9.3f}" + "".join(f"{speeds[num_rows][way]:>8.2f}" for way in WAYS))
    return 0


def rounds_of(text: Text, way: str, is_boundary: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Rounds:
    """Goes through an answer round by round, as `engine.drafting` does for a request without a network."""
    answer, capacity = text.answer, len(text.prompt) + text.budget
    drafter = NgramDrafter(is_boundary, num_draft_tokens=NUM_DRAFT_TOKENS, capacity=capacity, min_match=MIN_MATCH)
    drafter.append(text.prompt)
    drafter.append(answer[:1])
    pace = DraftPace()
    done, num_rounds, num_drafted, num_right = 1, 0, 0, 0
    while done < len(answer):
        chain = () if way == "none" else drafter.propose()[: text.budget - done - 1]
        drafts = chain[: pace.extent(len(chain))] if way == "paced" else chain
        if chain and not drafts:
            pace.passed()
        right = 0
        while right < len(drafts) and (drafts[right],) == answer[done + right : done + right + 1]:
            right += 1
        if drafts:
            pace.judged(right, is_refused=right < len(drafts))
        drafter.append(answer[done : done + right + 1])
        done += right + 1
        num_rounds, num_drafted, num_right = num_rounds + 1, num_drafted + len(drafts), num_right + right
    return Rounds(text.task, way, len(answer) - 1, num_rounds, num_drafted, num_right)


def speed(rounds: Sequence[Rounds], column: float) -> float:
    """How much faster than without drafts, where a column costs so much of a round: geometric mean over the tasks."""
    logs = [math.log(each.num_tokens / (each.num_rounds + column * each.num_drafted)) for each in rounds]
    return math.exp(statistics.fmean(logs))


def column_cost(model: LanguageModel, num_rows: int, num_runs: int = 9) -> float:
    """Processor time of a column more for each row, by that of a round with one column a row; medians."""
    pool = model.new_pool(num_rows * 2 * NUM_CONTEXT_TOKENS, num_rows)
    caches = [pool.new_cache(2 * NUM_CONTEXT_TOKENS) for _ in range(num_rows)]
    model.forward_rows([ModelRow(list(range(NUM_CONTEXT_TOKENS)), cache) for cache in caches])
    seconds: dict[int, list[float]] = {1: [], NUM_COLUMNS: []}
    for _ in range(num_runs):
        for num_columns, found in seconds.items():
            rows = [ModelRow(list(range(num_columns)), cache, num_columns) for cache in caches]
            start = time.process_time()
            model.forward_rows(rows)
            found.append(time.process_time() - start)
            for cache in caches:
                cache.truncate(NUM_CONTEXT_TOKENS)
    one, many = statistics.median(seconds[1]), statistics.median(seconds[NUM_COLUMNS])
    return (many - one) / (NUM_COLUMNS - 1) / one


def _answered(loaded: LoadedModel, num_tasks: int) -> list[Text]:
    """Greedy answers of the embedded model; with drafts, which make them no other ones and take less time."""
    texts = []
    with Engine(loaded, ngram_draft_tokens=NUM_DRAFT_TOKENS, ngram_min_match=MIN_MATCH) as engine:
        for task in TASKS[:num_tasks]:
            prepared = engine.prepare([{"role": "user", "content": task.prompt}])
            options = RequestOptions(
                max_new_tokens=task.max_new_tokens, constraint=task.constraint, sampling=SamplingOptions.greedy()
            )
            result = engine.submit(prepared, options).wait()
            texts.append(Text(task.name, tuple(prepared.tokens), result.token_ids, task.max_new_tokens))
    return texts


if __name__ == "__main__":
    sys.exit(main())
