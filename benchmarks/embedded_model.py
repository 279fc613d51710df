"""What a constraint costs on the embedded model: seconds to prepare, microseconds a mask, tokens a second.

Every line is one request, greedy, run `NUM_RUNS` times in one process; `first` is the first run, which compiles the
grammar and meets every position for the first time, `then` is the median of the others. Free text comes first: its rate
is what the constrained ones are to be compared with.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from infernix import ConstraintObservation, Engine, GenerationResult, OutputConstraint, RequestOptions, SamplingOptions

NUM_RUNS = 3
EXAMPLES = Path(__file__).parents[1] / "examples"
PROMPT = [
    {"role": "system", "content": "You extract facts from text. You answer with one JSON object."},
    {"role": "user", "content": "Marie Dupont is a 34-year-old nurse who lives in Lyon with her two cats."},
]
CONSTRAINTS: dict[str, OutputConstraint | None] = {
    "free text": None,
    "choice": OutputConstraint.choice([f"Answer number {number}: {'x' * 20}" for number in range(100)]),
    "regex": OutputConstraint.regex(r"[A-Z][a-z]+( [a-z]+){10,20}\."),
    "grammar": OutputConstraint.grammar((EXAMPLES / "arithmetic.gbnf").read_text(encoding="utf-8")),
    "json object": OutputConstraint.json_object(),
    "json schema": OutputConstraint.json_schema((EXAMPLES / "person.schema.json").read_text(encoding="utf-8")),
}


def main() -> None:
    """Prints one line a constraint, to standard output."""
    with Engine.load() as engine:
        # Neither PyTorch's first forward pass nor the vocabulary's index belongs to the first line's figures.
        engine.generate(PROMPT, RequestOptions(max_new_tokens=4, constraint=OutputConstraint.regex("a+")))
        print("              prepare ms        mask µs          tokens/s   tokens")
        print("              first     then    first    then")
        for name, constraint in CONSTRAINTS.items():
            options = RequestOptions(max_new_tokens=48, constraint=constraint, sampling=SamplingOptions.greedy())
            print(line(name, [engine.generate(PROMPT, options) for _ in range(NUM_RUNS)]), flush=True)


def line(name: str, results: list[GenerationResult]) -> str:
    """The figures of one constraint."""
    rate = statistics.median(decode_rate(result) for result in results[1:])
    figures = f"{rate:16.1f} {results[0].num_generated_tokens:8d}"
    observations = [result.constraint for result in results if result.constraint is not None]
    if not observations:
        return f"{name:12}{'':33}{figures}"
    first, *others = observations
    prepare = f"{first.prepare_seconds * 1e3:7.1f} {median(others, prepare_ms):8.3f}"
    return f"{name:12}{prepare} {mask_us(first):8.1f} {median(others, mask_us):7.1f}{figures}"


def decode_rate(result: GenerationResult) -> float:
    """Tokens a second, without the first token."""
    return (result.num_generated_tokens - 1) / max(result.timings.decode_seconds, 1e-9)


def prepare_ms(observation: ConstraintObservation) -> float:
    """Milliseconds to parse and compile, or to find, the grammar."""
    return observation.prepare_seconds * 1e3


def mask_us(observation: ConstraintObservation) -> float:
    """Mean microseconds for one legal set."""
    return observation.mask_seconds * 1e6 / max(observation.mask_positions, 1)


def median(observations: list[ConstraintObservation], figure: Callable[[ConstraintObservation], float]) -> float:
    """The median of a figure."""
    return statistics.median(figure(observation) for observation in observations)


if __name__ == "__main__":
    main()
