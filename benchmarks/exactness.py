"""That drafts change no probability: `python -m benchmarks.exactness --help`.

Two proofs over random models, languages and drafters of toy size. The law of whole outputs is counted out, for ordinary
decoding from the definition of the target and for rounds with drafts through the code that samples, where chance takes
every turn once. And outputs are drawn through the Program, with prompts, mixed batches, masks, rounds, commits and the
random numbers of the engine. Exit code 1: a law was not met, or an output came that cannot be.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.draws import drawn_drafters, frequencies
from benchmarks.laws import Law, largest_deviation, ordinary_law, speculative_law
from benchmarks.toy_rounds import Drafter, OneHotDrafter, SparseDrafter, Tokens, ToyModel
from infernix.options import SamplingParameters

LARGEST_DEVIATION = 1e-12
"""What rounding may make of probabilities that are equal."""


@dataclass(frozen=True)
class Case:
    """A drafter on its model, and how long the outputs are."""

    drafter: Drafter
    num_tokens: int
    num_rounds: int


@dataclass(frozen=True)
class Effort:
    """How many cases are counted out, and how many outputs are drawn."""

    num_cases: int
    num_draws: int


FULL = Effort(num_cases=3_000, num_draws=1_000_000)
QUICK = Effort(num_cases=200, num_draws=12_800)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exactness", description="Compares decoding with drafts to decoding without."
    )
    parser.add_argument("--quick", action="store_true", help="fewer cases and draws: within a quarter of a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL

    deviation = 0.0
    for case in random_cases(effort.num_cases):
        deviation = max(deviation, exact_deviation(case))
    _progress(f"{effort.num_cases} laws counted out")
    drafters = drawn_drafters()
    drawn = frequencies(drafters, effort.num_draws // len(drafters))
    for number, found in enumerate(drawn, 1):
        impossible = "" if found.counts.keys() <= found.law.keys() else ", and outputs that cannot be"
        _progress(f"drafter {number} of {len(drawn)}: {found.variation:.5f} off, {found.limit:.5f} allowed{impossible}")
    result = {
        "cases": effort.num_cases,
        "largest_exact_deviation": deviation,
        "draws": sum(found.num_draws for found in drawn),
        "largest_total_variation": max(found.variation for found in drawn),
    }
    is_within = deviation <= LARGEST_DEVIATION and all(found.is_within for found in drawn)
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    return 0 if is_within else 1


def random_cases(num_cases: int) -> Iterator[Case]:
    """Cases of all kinds: every other one has one-hot proposals, the others draw theirs."""
    for seed in range(num_cases):
        rng = np.random.default_rng(seed)
        model = ToyModel(
            seed=seed,
            num_tokens=int(rng.integers(3, 7)),
            parameters=random_parameters(rng),
            is_constrained=bool(rng.random() < 0.7),
            has_failures=bool(rng.random() < 0.5),
        )
        if seed % 2:
            num_candidates = int(rng.integers(1, 5))
            drafter: Drafter = SparseDrafter(model, int(rng.integers(1, 4)), num_candidates)
        else:
            drafter = OneHotDrafter(model, int(rng.integers(1, 6)))
        yield Case(drafter, int(rng.integers(2, 5)), int(rng.integers(1, 3)))


def random_parameters(rng: np.random.Generator) -> SamplingParameters:
    """Parameters in which each cut and penalty is off in many cases; greedy in some."""
    return SamplingParameters(
        temperature=0.0 if rng.random() < 0.1 else float(rng.choice([0.5, 1.0, 2.0])),
        top_k=int(rng.choice([0, 0, 2, 3, 4, 20])),
        top_p=float(rng.choice([0.6, 0.9, 1.0, 1.0])),
        min_p=float(rng.choice([0.0, 0.0, 0.05, 0.2])),
        presence_penalty=float(rng.choice([0.0, 0.0, 1.5, -0.7])),
        frequency_penalty=float(rng.choice([0.0, 0.0, 0.6, -1.0])),
    )


def exact_deviation(case: Case) -> float:
    """The largest difference in the probability of an outcome between decoding with drafts and without."""
    known: dict[tuple[Tokens, int], Law] = {}
    ordinary = ordinary_law(case.drafter.model, (), case.num_tokens, known)
    return largest_deviation(ordinary, speculative_law(case.drafter, (), case.num_tokens, case.num_rounds, known))


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
