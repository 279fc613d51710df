"""That drafts change no probability: `python -m benchmarks.exactness --help`.

Two proofs over random models, languages and drafters of toy size. The law of whole outputs is counted out, for ordinary
decoding from the definition of the target and for rounds with drafts through the code that samples, where chance takes
every turn once. And outputs are drawn, with the random numbers of the engine. Exit code 1: a law was not met.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.laws import Law, largest_deviation, ordinary_law, speculative_law, total_variation
from benchmarks.toy_rounds import EOS, Chain, Drafter, OneHotDrafter, SparseDrafter, Tokens, ToyModel, counted
from infernix.ops.acceptance import DraftedRow, verify
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import sample_token
from infernix.options import SamplingParameters

LARGEST_DEVIATION = 1e-12
"""What rounding may make of probabilities that are equal."""
_FALSE_ALARM_PROBABILITY = 1e-9
_ROWS_A_CALL = 64


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
QUICK = Effort(num_cases=200, num_draws=6_400)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exactness", description="Compares decoding with drafts to decoding without."
    )
    parser.add_argument("--quick", action="store_true", help="fewer cases and draws: within ten seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL

    deviation = 0.0
    for case in random_cases(effort.num_cases):
        deviation = max(deviation, exact_deviation(case))
    _progress(f"{effort.num_cases} laws counted out")
    variation, is_within = 0.0, deviation <= LARGEST_DEVIATION
    cases = drawn_cases()
    for number, case in enumerate(cases, 1):
        found, limit = variation_of_draws(case, effort.num_draws // len(cases))
        variation, is_within = max(variation, found), is_within and found <= limit
        _progress(f"drawn case {number} of {len(cases)}: {found:.5f} off, {limit:.5f} allowed")
    result = {
        "cases": effort.num_cases,
        "largest_exact_deviation": deviation,
        "draws": effort.num_draws // len(cases) * len(cases),
        "largest_total_variation": variation,
    }
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


def drawn_cases() -> list[Case]:
    """Cases whose outputs are drawn: both kinds of proposals, free and constrained, with cuts and penalties or none."""
    plain = SamplingParameters(seed=20)
    cut = replace(plain, temperature=0.8, top_k=4, top_p=0.9, min_p=0.05, presence_penalty=0.5, frequency_penalty=0.3)
    cases: list[Case] = []
    for number, (parameters, is_constrained) in enumerate([(plain, False), (plain, True), (cut, False), (cut, True)]):
        model = ToyModel(100 + number, 6, parameters, is_constrained)
        cases += [Case(OneHotDrafter(model, 2), 3, 1), Case(SparseDrafter(model, 2, 4), 3, 1)]
    return cases


def variation_of_draws(case: Case, num_draws: int) -> tuple[float, float]:
    """The total variation between drawn outputs and their law, and the most that chance may make of it.

    An output is one round and what ordinary decoding adds to it. The limit is the expectation's upper bound, half of
    sqrt(outcomes / draws), and McDiarmid's inequality on top of it.
    """
    model = case.drafter.model
    law = ordinary_law(model, (), case.num_tokens, {})
    stride = case.num_tokens + 1
    found: Counter[Tokens] = Counter()
    for first in range(0, num_draws, _ROWS_A_CALL):
        positions = [stride * number for number in range(first, min(first + _ROWS_A_CALL, num_draws))]
        rows = [_drawn_row(case, position) for position in positions]
        for position, output in zip(positions, verify(rows, model.domain), strict=True):
            found[_continued(case, output.tokens, position)] += 1
    limit = math.sqrt(len(law) / num_draws) / 2 + math.sqrt(-math.log(_FALSE_ALARM_PROBABILITY) / (2 * num_draws))
    return total_variation({text: count / num_draws for text, count in found.items()}, law), limit


def _drawn_row(case: Case, position: int) -> DraftedRow:
    model, num_drafts = case.drafter.model, min(case.drafter.num_drafts, case.num_tokens - 1)
    chain: Chain = case.drafter.drawn((), num_drafts, model.parameters.seed, position)
    return model.row((), chain.drafts, chain.proposals, position=position)


def _continued(case: Case, text: Tokens, position: int) -> Tokens:
    model = case.drafter.model
    while len(text) < case.num_tokens and EOS not in text:
        row = model.row(text, ())
        number = uniform(model.parameters.seed, position + len(text), Purpose.DECODE)
        mask = None if row.masks is None else row.masks.words[0]
        text += (sample_token(row.logits[0], model.domain, mask, model.parameters, counted(text), number),)
    return text


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
