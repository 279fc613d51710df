"""One request on its way: a unit at a time, each committed before the next."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from infernix.errors import ConstraintDeadEnd, InfernixError, InternalError, NonFiniteLogits
from infernix.frontend.budget import OutputBudget
from infernix.frontend.session import OutputSession
from infernix.options import SamplingParameters
from infernix.program.pending import PendingBatch, PendingRowFailure, RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from infernix.results import FinishReason, GenerationResult, GenerationTimings, PublishedDelta

_EXCERPT_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that needs nothing but units; `started` is a `time.perf_counter` value."""

    prompt: list[int]
    budget: OutputBudget
    sampling: SamplingParameters
    session: OutputSession
    started: float
    prepare_seconds: float


class GenerationRun:
    """Drives one request to its result. `step` must not run beside another unit of the same Program.

    Prefill and decode seconds are the wall time inside units, so waiting for other requests, or for a consumer
    between two pieces of a stream, is in neither; it is in the total.
    """

    def __init__(self, program: Program, request: PreparedRequest) -> None:
        self._program = program
        self._request = request
        self._session = request.session
        self._sequence: PhysicalSequence | None = None
        self._cancelled = threading.Event()
        self._prefill_seconds = 0.0
        self._decode_seconds = 0.0
        self._result: GenerationResult | None = None
        self._error: BaseException | None = None

    @property
    def is_finished(self) -> bool:
        """Whether there is a result or an error."""
        return self._result is not None or self._error is not None

    @property
    def is_cancelled(self) -> bool:
        """Whether cancellation was asked for."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Asks for an end before the next unit; from any thread, as often as one likes."""
        self._cancelled.set()

    def result(self) -> GenerationResult:
        """The result of a finished run. Raises the error it ended with."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RuntimeError("the generation has not finished")
        return self._result

    def step(self) -> tuple[PublishedDelta, ...]:
        """Runs one unit and returns what it published; afterwards the run may be finished.

        An error ends the run with nothing of the unit committed, and is raised here and from `result`.
        """
        if self.is_finished:
            raise RuntimeError("the generation has finished")
        try:
            return self._end(FinishReason.CANCELLED) if self.is_cancelled else self._run_unit()
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, error: BaseException) -> None:
        """Ends the run with an error."""
        self._error = error
        self._release()

    def _run_unit(self) -> tuple[PublishedDelta, ...]:
        started = time.perf_counter()
        session = self._session
        if self._sequence is None:
            self._sequence = self._program.start(
                self._request.prompt, self._request.budget.num_tokens, self._request.sampling
            )
        sequence = self._sequence
        masks = session if session.is_constrained else None
        deltas: tuple[PublishedDelta, ...] = ()
        if sequence.num_unprocessed_prompt_tokens:
            has_budget = self._request.budget.num_tokens > 0
            # A thinking budget of nothing is used up before the model has said a word.
            can_sample = has_budget and not session.pending_control_tokens
            batch = self._program.prefill_chunk(sequence, masks, sample=can_sample)
            if batch is not None:
                deltas = self._settle(batch)
            self._prefill_seconds += time.perf_counter() - started
            if not has_budget and not sequence.num_unprocessed_prompt_tokens:
                return self._end(self._request.budget.limit_reason)
        else:
            control = session.pending_control_tokens
            deltas = self._force(control) if control else self._settle(self._program.decode(sequence, masks))
            self._decode_seconds += time.perf_counter() - started
        if session.finish_reason is not None:
            self._finish(session.finish_reason)
        return deltas

    def _settle(self, batch: PendingBatch) -> tuple[PublishedDelta, ...]:
        """Preview, then the Program's commit, then the session's, and only then what a caller may see."""
        (row,) = batch.rows
        if row.failure is not None:
            self._program.commit(batch, [RowDecision(num_accepted=0, is_terminal=True)])
            raise self._row_error(row.failure)
        try:
            preview = self._session.preview_model(row.tokens)
            self._program.commit(batch, [RowDecision(preview.num_accepted, preview.is_terminal)])
        except BaseException:
            self._session.discard_preview()
            if row.sequence.is_pending:
                self._program.abort_pending(batch)
            raise
        return self._session.commit_preview()

    def _force(self, tokens: tuple[int, ...]) -> tuple[PublishedDelta, ...]:
        """Puts in the tokens that end the thinking: no forward pass, no sampling, no random number."""
        assert self._sequence is not None
        self._session.preview_control(tokens)
        try:
            self._program.append_forced_tokens(self._sequence, tokens)
        except BaseException:
            self._session.discard_preview()
            raise
        return self._session.commit_preview()

    def _row_error(self, failure: PendingRowFailure) -> InfernixError:
        num_tokens = len(self._session.token_ids)
        if failure is PendingRowFailure.NON_FINITE_LOGITS:
            return NonFiniteLogits(f"the model gave no finite score to any legal token after {num_tokens} new tokens")
        if failure is PendingRowFailure.DEAD_END:
            excerpt = self._session.text[-_EXCERPT_CHARACTERS:]
            return ConstraintDeadEnd(
                f"after {num_tokens} new tokens, ending in {excerpt!r}, no token of the model's vocabulary can"
                " continue a text of the constraint's language"
            )
        return InternalError(f"the unit failed: {failure}")

    def _end(self, reason: FinishReason) -> tuple[PublishedDelta, ...]:
        """An end without another token."""
        self._session.preview_terminal(reason)
        deltas = self._session.commit_preview()
        self._finish(reason)
        return deltas

    def _finish(self, reason: FinishReason) -> None:
        self._release()
        self._result = GenerationResult(
            text=self._session.text,
            token_ids=self._session.token_ids,
            num_prompt_tokens=len(self._request.prompt),
            finish_reason=reason,
            constraint=self._session.observe_constraint(),
            timings=GenerationTimings(
                prepare_seconds=self._request.prepare_seconds,
                prefill_seconds=self._prefill_seconds,
                decode_seconds=self._decode_seconds,
                total_seconds=time.perf_counter() - self._request.started,
            ),
            reasoning=self._session.reasoning,
            tool_calls=self._session.tool_calls,
            thinking=self._session.thinking_statistics,
            tool_diagnostics=self._session.tool_diagnostics,
            matched_stop_string=self._session.matched_stop_string,
        )

    def _release(self) -> None:
        if self._sequence is not None:
            self._sequence.release()
