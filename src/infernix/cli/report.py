"""The report on a finished request, for people: standard error gets it, never standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from infernix.results import (
    ConstraintObservation,
    FinishReason,
    GenerationResult,
    SpeculativeStatistics,
    ThinkingStatistics,
    ToolDiagnostics,
    ToolFallback,
)

_REASONS = {
    FinishReason.STOP_TOKEN: "the model ended its answer",
    FinishReason.STOP_STRING: "a text that ends the answer came (--stop)",
    FinishReason.OUTPUT_LIMIT: "the output limit was reached (--max-new)",
    FinishReason.CONTEXT_CAPACITY: "the context is full (--max-context)",
    FinishReason.CANCELLED: "interrupted with Ctrl-C",
}

_FALLBACKS = {
    ToolFallback.MALFORMED_STRUCTURE: "what began like a call is printed as text: it has not the form of one",
    ToolFallback.DUPLICATE_PARAMETER: "a call is printed as text: an argument comes twice with different values",
    ToolFallback.INVALID_TOOL_NAME: "a call is printed as text: its name cannot be one",
    ToolFallback.UNDECLARED_TOOL: "a call is printed as text: there is no tool of its name",
    ToolFallback.TRAILING_CONTENT: "text follows the calls",
    ToolFallback.TRUNCATED_TAIL: "what began like a call is printed as text: it is not complete",
}


def print_progress(message: str) -> None:
    """Says what takes a while."""
    print(message, file=sys.stderr, flush=True)


def report_lines(result: GenerationResult, *, with_token_ids: bool = False) -> Iterator[str]:
    """The lines of the report, without line ends."""
    if with_token_ids:
        yield "token ids:  " + " ".join(map(str, result.token_ids))
    yield finish_line(result)
    timings = result.timings
    yield (
        f"tokens:     {result.num_prompt_tokens} in the prompt ({timings.prefill_seconds:.2f} s), "
        f"{result.num_generated_tokens} generated{_rate(result)}"
    )
    if result.thinking is not None:
        yield f"thinking:   {_thinking(result.thinking)}"
    if result.tool_diagnostics is not None and result.tool_diagnostics.marker_seen:
        yield from _tool_lines(result.tool_diagnostics)
    if result.constraint is not None:
        yield from _constraint_lines(result.constraint)
    if result.speculation is not None:
        yield from _draft_lines(result.speculation)


def finish_line(result: GenerationResult) -> str:
    """Why the answer ended."""
    return f"finished:   {result.finish_reason.value}: {_REASONS[result.finish_reason]}"


def _rate(result: GenerationResult) -> str:
    # The first token belongs to the prefill: the rate is that of the tokens after it.
    num_decoded = result.num_generated_tokens - 1
    if num_decoded < 1 or result.timings.decode_seconds <= 0:
        return ""
    return f" ({num_decoded / result.timings.decode_seconds:.1f} tokens/s)"


def _thinking(thinking: ThinkingStatistics) -> str:
    budget = "" if thinking.budget is None else f" of {thinking.budget} allowed"
    forced = f"; {thinking.num_injected_tokens} put in to end it" if thinking.was_forced else ""
    return f"{thinking.num_model_tokens} tokens{budget}{forced}"


def _tool_lines(tools: ToolDiagnostics) -> Iterator[str]:
    yield f"tool calls: {tools.num_calls or 'none'} complete"
    if tools.was_recovered:
        yield "            read although not written as asked"
    notes = (
        (tools.num_empty_arguments_omitted, "empty and left out"),
        (tools.num_mismatched_arguments, "not of the declared type"),
        (tools.num_duplicates_repaired, "given twice with one value"),
    )
    for count, what in notes:
        if count:
            yield f"            arguments {what}: {count}"
    if tools.fallback is not None:
        yield f"            {_FALLBACKS[tools.fallback]}"


def _constraint_lines(constraint: ConstraintObservation) -> Iterator[str]:
    shape = "complete" if constraint.complete else "NOT complete: the text may not end here"
    end = "terminated" if constraint.terminated else "not terminated"
    yield f"constraint: {shape}, {end}; compiled grammar {constraint.cache.value}"
    yield (
        f"            {constraint.mask_positions} mask positions; prepare {constraint.prepare_seconds * 1e3:.1f} ms, "
        f"masks {constraint.mask_seconds * 1e3:.1f} ms, matcher {constraint.matcher_seconds * 1e3:.1f} ms"
    )


def _draft_lines(drafts: SpeculativeStatistics) -> Iterator[str]:
    sources = ((drafts.copies, "copied"), (drafts.network, f"from {drafts.backend.value}"))
    told = [f"{counts.num_accepted} of {counts.num_drafted} {what}" for counts, what in sources if counts.num_drafted]
    yield f"drafts:     {', '.join(told) + ' were right' if told else 'none'}"
    yield (
        f"            {drafts.num_rounds} rounds with drafts, {drafts.num_fallback_rounds} without; "
        f"{drafts.draft_wait_seconds * 1e3:.1f} ms to make them"
    )
