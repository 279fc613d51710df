"""What a request ends with: its result, or the error of a row that failed."""

from __future__ import annotations

import traceback
from dataclasses import replace

from infernix.engine.draft_counters import total
from infernix.engine.request import Request
from infernix.errors import ConstraintDeadEnd, InfernixError, InternalError, NonFiniteLogits
from infernix.ops.acceptance import RowFailure
from infernix.program.drafters.chain import DraftSource
from infernix.results import (
    ConstraintObservation,
    FinishReason,
    GenerationResult,
    GenerationTimings,
    SchedulingStatistics,
    SpeculationBackend,
    SpeculativeStatistics,
)

_EXCERPT_CHARACTERS = 40


def result_of(
    request: Request, reason: FinishReason, now: float, *, backend: SpeculationBackend | None = None
) -> GenerationResult:
    """The result of a request whose output has ended, at `now` on the engine's clock.

    `backend` is what drafts for the engine beside copies; None: it does not draft.
    """
    session, counts = request.session, request.counts
    return GenerationResult(
        text=session.text,
        token_ids=session.token_ids,
        num_prompt_tokens=len(request.prepared.prompt),
        finish_reason=reason,
        constraint=observation_of(request),
        timings=_timings(request, now),
        reasoning=session.reasoning,
        tool_calls=session.tool_calls,
        thinking=session.thinking_statistics,
        tool_diagnostics=session.tool_diagnostics,
        matched_stop_string=session.matched_stop_string,
        num_reused_prompt_tokens=counts.num_reused_prompt_tokens,
        scheduling=SchedulingStatistics(
            num_bypassed=counts.num_bypassed,
            num_pauses=counts.num_pauses,
            num_snapshot_restores=counts.num_snapshot_restores,
            num_replay_restores=counts.num_replay_restores,
            num_prefill_units=counts.num_prefill_units,
            num_decode_rounds=counts.num_decode_rounds,
            num_control_units=counts.num_control_units,
        ),
        request_id=request.number,
        speculation=speculation_of(request, backend),
    )


def observation_of(request: Request) -> ConstraintObservation | None:
    """What is known of a request's constraint at its committed output; None where there is none."""
    observation = request.session.observe_constraint()
    return None if observation is None else replace(observation, mask_upload_bytes=request.counts.mask_upload_bytes)


def speculation_of(request: Request, backend: SpeculationBackend | None) -> SpeculativeStatistics | None:
    """What drafts have brought to a request so far; None in an engine that does not draft."""
    if backend is None:
        return None
    drafts = request.counts.drafts
    return SpeculativeStatistics(
        num_rounds=drafts.num_rounds,
        num_fallback_rounds=drafts.num_fallback_rounds,
        num_drafted=total(drafts.num_drafted),
        num_accepted=total(drafts.num_accepted),
        accepted_per_position=tuple(drafts.accepted_per_position),
        backend=backend,
        copies=drafts.of(DraftSource.COPY),
        network=drafts.of(DraftSource.NETWORK),
        draft_wait_seconds=drafts.wait_seconds,
    )


def row_error(request: Request, failure: RowFailure) -> InfernixError:
    """The error of a request whose row failed: it says where in the output that was."""
    num_tokens = request.session.num_tokens
    match failure:
        case RowFailure.NON_FINITE_LOGITS:
            return NonFiniteLogits(f"the model gave no finite score to any legal token after {num_tokens} new tokens")
        case RowFailure.DEAD_END:
            excerpt = request.session.text[-_EXCERPT_CHARACTERS:]
            return ConstraintDeadEnd(
                f"after {num_tokens} new tokens, ending in {excerpt!r}, no token of the model's vocabulary can"
                " continue a text of the constraint's language"
            )


def forget_frames(error: BaseException) -> None:
    """Takes the tracebacks off an error and its causes. Unexpected ones keep the lines, as a note.

    A traceback has every function that still ran or had run, with all that they had in their hands: whoever keeps the
    error would keep the Program and its memory with it, also that of an engine that is closed.
    """
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        found = pending.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        pending += (found.__cause__, found.__context__)
        if found.__traceback__ is None:
            continue
        if isinstance(found, InternalError) or not isinstance(found, InfernixError):
            found.add_note(f"in the engine:\n{''.join(traceback.format_tb(found.__traceback__))}".rstrip())
        found.__traceback__ = None


def _timings(request: Request, now: float) -> GenerationTimings:
    times, prepared = request.times, request.prepared
    start = times.submitted - prepared.prompt_seconds
    paused = times.paused + (0.0 if times.paused_since is None else now - times.paused_since)
    first, last, admitted = times.first_token, times.last_token, times.admitted
    return GenerationTimings(
        prepare_seconds=prepared.prompt_seconds + prepared.prepare_seconds,
        prefill_seconds=times.prefill,
        decode_seconds=times.decode,
        total_seconds=now - start,
        queue_seconds=(now if admitted is None else admitted) - times.ready,
        prompt_wall_seconds=0.0 if first is None or admitted is None else first - admitted,
        generation_wall_seconds=0.0 if first is None or last is None else last - first,
        decode_share_seconds=times.decode_share,
        paused_seconds=paused,
        replay_seconds=times.replay,
        first_token_seconds=None if first is None else first - start,
    )
