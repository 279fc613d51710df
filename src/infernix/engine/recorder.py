"""Counting and logging: every event of a request's life is told here once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from infernix.engine.request import Request
from infernix.engine.request_log import RequestLog
from infernix.engine.settlement import observation_of, speculation_of
from infernix.engine.statistics import ConstraintOutcome, Counters, PauseRoute, Rejection, RequestOutcome
from infernix.errors import (
    ConstraintDeadEnd,
    EngineClosed,
    InfernixError,
    NonFiniteLogits,
    Overloaded,
    QueueTimeout,
    RequestError,
)
from infernix.program.drafters.chain import DraftChain
from infernix.program.pending import PendingBatch, RowDecision
from infernix.results import ConstraintObservation, FinishReason, GenerationResult, SpeculationBackend

_OUTCOME_OF_ERROR: tuple[tuple[type[BaseException], RequestOutcome], ...] = (
    (ConstraintDeadEnd, RequestOutcome.DEAD_END),
    (NonFiniteLogits, RequestOutcome.NON_FINITE_LOGITS),
    (RequestError, RequestOutcome.REQUEST_ERROR),
    (QueueTimeout, RequestOutcome.QUEUE_TIMEOUT),
    (EngineClosed, RequestOutcome.CLOSED),
    (BaseException, RequestOutcome.FAILED),
)
_REJECTION_OF_ERROR: tuple[tuple[type[BaseException], Rejection], ...] = (
    (Overloaded, Rejection.OVERLOADED),
    (QueueTimeout, Rejection.QUEUE_TIMEOUT),
    (EngineClosed, Rejection.CLOSED),
    (RequestError, Rejection.INVALID),
    (BaseException, Rejection.FAILED),
)
THROUGHPUT_SECONDS = 10.0


class Recorder:
    """Keeps the counters and writes the request log, from the worker and from submitting threads.

    `clock` is the engine's; the log's times are those of `wall_clock`. `backend` as in `result_of`.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        log: RequestLog | None,
        wall_clock: Callable[[], float] = time.time,
        *,
        backend: SpeculationBackend | None = None,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._wall_clock = wall_clock
        self._log = log
        self._lock = threading.Lock()
        self._counters = Counters()
        self._last_throughput = clock()
        self._num_tokens_then = 0
        self._num_tokens = 0

    def counters(self) -> Counters:
        """A copy of the counters."""
        with self._lock:
            return self._counters.copy()

    def rejected(self, error: BaseException) -> None:
        """A request was not taken."""
        with self._lock:
            self._counters.rejections[_first(_REJECTION_OF_ERROR, error)] += 1
        self._write("request_rejected", **_error_fields(error))

    def submitted(self, request: Request) -> None:
        """A request waits for a place."""
        self._write(
            "request_start",
            request=request.number,
            prompt_tokens=len(request.prepared.prompt),
            max_new_tokens=request.prepared.budget.num_tokens,
            constrained=request.session.is_constrained,
        )

    def admitted(self, request: Request) -> None:
        """A request got its first place."""
        self._scheduling(request, "admitted", reused_prompt_tokens=request.counts.num_reused_prompt_tokens)

    def paused(self, request: Request, route: PauseRoute) -> None:
        """A request gave its place up."""
        request.times.paused_since = self._clock()
        with self._lock:
            self._counters.num_pauses += 1
        self._scheduling(request, "paused", route=route.value)

    def revoked(self, request: Request) -> None:
        """The copy of a paused request's state was dropped."""
        with self._lock:
            self._counters.num_revoked_snapshots += 1
        self._scheduling(request, "snapshot_revoked")

    def resumed(self, request: Request) -> None:
        """A paused request has a place again."""
        times = request.times
        if times.paused_since is not None:
            times.paused += self._clock() - times.paused_since
            times.paused_since = None
        self._scheduling(request, "resumed")

    def restored(self, request: Request, route: PauseRoute) -> None:
        """A paused request has all its memory again."""
        with self._lock:
            if route is PauseRoute.SNAPSHOT:
                self._counters.num_snapshot_restores += 1
            else:
                self._counters.num_replay_restores += 1
        self._scheduling(request, "restored", route=route.value)

    def unit(self, *, failed: bool = False) -> None:
        """A unit other than a decode round ran, or any unit failed."""
        with self._lock:
            self._counters.num_units += 1
            self._counters.num_failed_units += failed

    def drafts(
        self, chains: Sequence[DraftChain], nums_accepted: Sequence[int], wait_seconds: float, *, has_masks: bool
    ) -> None:
        """A decode round of an engine that drafts was committed: its rows' drafts, and how many of each are with it."""
        counters = self._counters
        with self._lock:
            for chain, num_accepted in zip(chains, nums_accepted, strict=True):
                counters.drafts.add(chain, num_accepted)
            counters.drafts.wait_seconds += wait_seconds
            counters.constraint_draft_wait_seconds += wait_seconds if has_masks else 0.0

    def round(self, batch: PendingBatch, decisions: Sequence[RowDecision], seconds: float) -> None:
        """A decode round was committed and published."""
        counters = self._counters
        num_rows = len(batch.rows)
        with self._lock:
            counters.num_units += 1
            counters.num_decode_rounds += 1
            counters.num_decode_rows += num_rows
            counters.round_seconds += seconds
            counters.forward_seconds += batch.forward_seconds
            counters.mask_wall_seconds += batch.mask_seconds
            counters.sampling_seconds += batch.sampling_seconds
        self._num_tokens += sum(decision.num_accepted for decision in decisions)
        if self._log is not None:
            self._tell_throughput()

    def not_drafted(self) -> None:
        """The drafts of a round could not be made."""
        with self._lock:
            self._counters.num_failed_drafts += 1

    def not_remembered(self) -> None:
        """A beginning could not be kept for later requests."""
        with self._lock:
            self._counters.num_failed_prefixes += 1

    def finished(self, request: Request, result: GenerationResult) -> None:
        """A request has its result."""
        with self._lock:
            counters = self._counters
            counters.requests[RequestOutcome(result.finish_reason.value)] += 1
            timings = result.timings
            counters.queue_seconds += timings.queue_seconds
            counters.request_seconds += timings.total_seconds
            if timings.first_token_seconds is not None:
                counters.first_token_seconds += timings.first_token_seconds
                counters.num_first_tokens += 1
            self._count_tokens(request, result.num_generated_tokens)
            if result.constraint is not None:
                self._count_constraint(result.constraint, failed=False)
        if self._log is not None:
            self._write(
                "request_done",
                request=request.number,
                finish_reason=result.finish_reason.value,
                prompt_tokens=result.num_prompt_tokens,
                reused_prompt_tokens=result.num_reused_prompt_tokens,
                generated_tokens=result.num_generated_tokens,
                cancelled=result.finish_reason is FinishReason.CANCELLED,
                tool_calls=len(result.tool_calls),
                timings=asdict(result.timings),
                scheduling=asdict(result.scheduling),
                speculation=None if result.speculation is None else asdict(result.speculation),
                constraint=None if result.constraint is None else result.constraint.record(),
            )

    def failed(self, request: Request, error: BaseException) -> None:
        """A request that was taken ended with an error."""
        observation: ConstraintObservation | None = None
        with suppress(Exception):  # what is wrong with the request may be its matcher
            observation = observation_of(request)
        with self._lock:
            self._counters.requests[_first(_OUTCOME_OF_ERROR, error)] += 1
            self._count_tokens(request, request.session.num_tokens)
            if observation is not None:
                self._count_constraint(observation, failed=True)
        speculation = speculation_of(request, self._backend)
        self._write(
            "request_error",
            request=request.number,
            **_error_fields(error),
            prompt_tokens=len(request.prepared.prompt),
            generated_tokens=request.session.num_tokens,
            speculation=None if speculation is None else asdict(speculation),
            constraint=None if observation is None else observation.record(),
        )

    def _count_tokens(self, request: Request, num_generated_tokens: int) -> None:
        self._counters.num_prompt_tokens += len(request.prepared.prompt)
        self._counters.num_reused_prompt_tokens += request.counts.num_reused_prompt_tokens
        self._counters.num_generated_tokens += num_generated_tokens

    def _count_constraint(self, observation: ConstraintObservation, *, failed: bool) -> None:
        counters = self._counters
        if failed:
            outcome = ConstraintOutcome.FAILED
        elif observation.terminated:
            outcome = ConstraintOutcome.TERMINATED
        else:
            outcome = ConstraintOutcome.COMPLETE if observation.complete else ConstraintOutcome.INCOMPLETE
        counters.constraint_requests[outcome] += 1
        counters.constraint_cache[observation.cache] += 1
        counters.constraint_prepare_seconds += observation.prepare_seconds
        counters.constraint_mask_seconds += observation.mask_seconds
        counters.constraint_matcher_seconds += observation.matcher_seconds
        counters.mask_positions += observation.mask_positions
        counters.mask_upload_bytes += observation.mask_upload_bytes

    def _scheduling(self, request: Request, change: str, **details: Any) -> None:
        self._write("request_scheduling", request=request.number, change=change, **details)

    def _tell_throughput(self) -> None:
        now = self._clock()
        seconds = now - self._last_throughput
        if seconds >= THROUGHPUT_SECONDS:
            num_tokens = self._num_tokens - self._num_tokens_then
            self._write(
                "throughput", seconds=seconds, decoded_tokens=num_tokens, tokens_per_second=num_tokens / seconds
            )
            self._last_throughput, self._num_tokens_then = now, self._num_tokens

    def _write(self, event: str, **details: Any) -> None:
        if self._log is None:
            return
        try:
            self._log.write({"event": event, "time": self._wall_clock(), **details})
        except Exception:
            with self._lock:
                self._counters.num_failed_observations += 1


def _first(table: tuple[tuple[type[BaseException], Any], ...], error: BaseException) -> Any:
    return next(label for kind, label in table if isinstance(error, kind))


def _error_fields(error: BaseException) -> dict[str, Any]:
    """What went wrong, without anything of the request's content."""
    code = error.code if isinstance(error, InfernixError) else "internal_error"
    return {"error": type(error).__name__, "code": code}
