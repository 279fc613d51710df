"""The report on a finished request, for people: standard error gets it, never standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from infernix.results import ConstraintObservation, FinishReason, GenerationResult

_REASONS = {
    FinishReason.STOP_TOKEN: "the model ended its answer",
    FinishReason.OUTPUT_LIMIT: "the output limit was reached (--max-new)",
    FinishReason.CONTEXT_CAPACITY: "the context is full (--max-context)",
    FinishReason.CANCELLED: "interrupted with Ctrl-C",
}


def print_progress(message: str) -> None:
    """Says what takes a while."""
    print(message, file=sys.stderr, flush=True)


def report_lines(result: GenerationResult, *, with_token_ids: bool = False) -> Iterator[str]:
    """The lines of the report, without line ends."""
    if with_token_ids:
        yield "token ids:  " + " ".join(map(str, result.token_ids))
    yield f"finished:   {result.finish_reason.value}: {_REASONS[result.finish_reason]}"
    timings = result.timings
    yield (
        f"tokens:     {result.num_prompt_tokens} in the prompt ({timings.prefill_seconds:.2f} s), "
        f"{result.num_generated_tokens} generated{_rate(result)}"
    )
    if result.constraint is not None:
        yield from _constraint_lines(result.constraint)


def _rate(result: GenerationResult) -> str:
    # The first token belongs to the prefill: the rate is that of the tokens after it.
    num_decoded = result.num_generated_tokens - 1
    if num_decoded < 1 or result.timings.decode_seconds <= 0:
        return ""
    return f" ({num_decoded / result.timings.decode_seconds:.1f} tokens/s)"


def _constraint_lines(constraint: ConstraintObservation) -> Iterator[str]:
    shape = "complete" if constraint.complete else "NOT complete: the text may not end here"
    end = "terminated" if constraint.terminated else "not terminated"
    yield f"constraint: {shape}, {end}; compiled grammar {constraint.cache.value}"
    yield (
        f"            {constraint.mask_positions} mask positions; prepare {constraint.prepare_seconds * 1e3:.1f} ms, "
        f"masks {constraint.mask_seconds * 1e3:.1f} ms, matcher {constraint.matcher_seconds * 1e3:.1f} ms"
    )
