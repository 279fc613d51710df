"""The engine's heart: what one turn of the worker does, without a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from infernix.engine.drafting import Drafting
from infernix.engine.intake import Intake, Stop
from infernix.engine.limits import CoreLimits
from infernix.engine.prefix_cache import PrefixCache
from infernix.engine.recorder import Recorder
from infernix.engine.request import PreparedRequest, Request
from infernix.engine.request_log import RequestLog
from infernix.engine.residency import Residency
from infernix.engine.settlement import forget_frames, result_of
from infernix.engine.states import RequestState
from infernix.engine.statistics import EngineStatistics, PauseRoute
from infernix.engine.units import UnitRunner
from infernix.engine.waiting import WaitingLine
from infernix.errors import EngineClosed, QueueTimeout, RequestError
from infernix.program.program import Program
from infernix.results import (
    FinishReason,
    GenerationEvent,
    GenerationResult,
    GenerationStarted,
    PublishedDelta,
    SpeculationBackend,
)

MAX_FAILED_UNITS = 8
"""So many units that fail one after another, without a good one between them, stop the engine."""


class EngineCore:
    """Requests, lanes and the Program. `submit`, `cancel`, `release`, `stop` and `statistics` may be called from any
    thread; `cycle` by one thread at a time, which is the worker: it alone changes requests and runs the Program.

    `clock` gives seconds that never go back; deadlines are readings of it.
    """

    def __init__(
        self,
        program: Program,
        limits: CoreLimits | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
        log: RequestLog | None = None,
        drafting: Drafting | None = None,
        backend: SpeculationBackend = SpeculationBackend.NONE,
    ) -> None:
        """`backend` is the network that `drafting` asks, if any."""
        self.limits = limits or CoreLimits()
        self.clock = clock
        self._backend = None if drafting is None else backend
        self.recorder = Recorder(clock, log, backend=self._backend)
        self._intake = Intake(self.limits, self.recorder, clock)
        self._program = program
        self._prefixes = PrefixCache(self.limits.max_cached_prefixes)
        self._residency = Residency(
            program,
            self._prefixes,
            self.recorder,
            num_lanes=self.limits.max_concurrency,
            snapshot_bytes=self.limits.snapshot_bytes,
        )
        self._units = UnitRunner(program, self._prefixes, self.recorder, clock, drafting)
        self._waiting = WaitingLine(max_bypasses=self.limits.max_concurrency)
        self._unanswered: dict[int, Request] = {}
        self._is_scan_due = False
        self._next_lane = 0
        self._num_failed_units = 0
        self._is_stopped = False

    @property
    def intake(self) -> Intake:
        """What submitting and consuming threads need."""
        return self._intake

    @property
    def is_stopped(self) -> bool:
        """Whether every request has been answered and none will run."""
        return self._is_stopped

    def submit(self, prepare: Callable[[], PreparedRequest], *, deadline: float | None = None) -> Request:
        """Takes a request in, prepared on the calling thread; see `Intake.submit`."""
        return self._intake.submit(prepare, deadline=deadline)

    def cancel(self, request: Request) -> None:
        """Asks for the request's end before its next unit."""
        self._intake.cancel(request)

    def release(self, request: Request) -> None:
        """The consumer lets go of the request: when that is done, its slot is free."""
        self._intake.release(request)

    def stop(self) -> None:
        """No request is taken any more; the next cycle answers all others with EngineClosed."""
        self._intake.close(EngineClosed("the engine is closed"))

    def statistics(self) -> EngineStatistics:
        """Where the requests are, and what was counted."""
        residency, pool = self._residency, self._program.pool
        return EngineStatistics(
            num_running=len(residency.residents),
            num_waiting=len(self._waiting),
            num_paused=len(residency.paused),
            num_outstanding=self._intake.num_outstanding,
            num_cached_prefixes=len(self._prefixes),
            num_cached_positions=self._prefixes.num_positions,
            num_free_positions=pool.num_free_positions,
            num_positions=pool.num_positions,
            counters=self.recorder.counters(),
            backend=self._backend or SpeculationBackend.NONE,
        )

    def wait(self, timeout: float | None = None) -> None:
        """Sleeps until a message comes, and takes it in, or for `timeout` seconds."""
        message = self._intake.wait(timeout)
        if message is None:
            return
        self._guarded(lambda: self._receive(message))

    def cycle(self) -> bool:
        """One turn: messages, deadlines, places, and then at most one round and one chunk. False: nothing was run.

        Control first, then the round, then one chunk: whoever has a token in sight does not wait for long prompts. A
        failure outside every unit stops the engine.
        """
        return bool(self._guarded(self._turn))

    @property
    def is_idle(self) -> bool:
        """Whether only a message could bring something to do."""
        return self._is_empty and not len(self._waiting) and not self._residency.paused

    def break_down(self, error: BaseException) -> None:
        """Answers every request after a failure that leaves nothing to rely on. Touches the Program no more."""
        self._is_stopped = True
        closed = _stopped_by(error)
        self._intake.close(closed)
        for request in self._all_unanswered():
            if not request.delivery.is_done:
                request.state = RequestState.FINISHED
                self.recorder.failed(request, closed)
                self._hand_over(request, (), error=closed)

    def advanced(self, request: Request, deltas: Sequence[PublishedDelta]) -> None:
        """Publishes what a unit brought."""
        request.is_protected = False
        request.move_to(request.ready_state)
        if deltas:
            self._hand_over(request, deltas)

    def ended(self, request: Request, reason: FinishReason, deltas: Sequence[PublishedDelta]) -> None:
        """Settles a request whose output has ended, and answers it."""
        try:
            result = result_of(request, reason, self.clock(), backend=self._backend)
        except Exception as error:
            self.failed(request, error)
            return
        self._settle(request)
        self.recorder.finished(request, result)
        self._hand_over(request, deltas, result=result)

    def failed(self, request: Request, error: BaseException) -> None:
        """Settles a request that cannot go on, and answers it."""
        forget_frames(error)
        request.session.discard_preview()
        self._settle(request)
        self.recorder.failed(request, error)
        self._hand_over(request, (), error=error)

    @property
    def _is_empty(self) -> bool:
        return not self._residency.residents

    def _receive(self, message: Request | Stop) -> None:
        if isinstance(message, Stop):
            self._close()
        elif message.is_finished:
            return
        else:
            if not message.is_known:
                message.is_known = True
                self._unanswered[message.number] = message
                self._waiting.append(message)
                self.recorder.submitted(message)
                self._is_scan_due = True
            if message.is_cancelled:
                self._cancel(message)

    def _cancel(self, request: Request) -> None:
        if request.state is RequestState.WAITING:
            self._waiting.remove(request)
        try:
            request.session.preview_terminal(FinishReason.CANCELLED)
            deltas = request.session.commit_preview()
        except Exception as error:
            self.failed(request, error)
        else:
            self.ended(request, FinishReason.CANCELLED, deltas)

    def _close(self, closed: EngineClosed | None = None) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        self._waiting.clear()
        for request in self._all_unanswered():
            self.failed(request, closed or EngineClosed("the engine was closed"))
        self._prefixes.clear()

    def _all_unanswered(self) -> list[Request]:
        """Whoever waits for an end, those included who were submitted before the intake closed and not yet taken in."""
        for message in self._intake.messages():
            if isinstance(message, Request) and not message.is_finished:
                self._unanswered.setdefault(message.number, message)
        return list(self._unanswered.values())

    def _settle(self, request: Request) -> None:
        """Takes a request out of everything but its consumer's hands."""
        self._residency.leave(request)
        request.copies = None
        self._is_scan_due = True
        request.move_to(RequestState.FINISHED)

    def _hand_over(
        self,
        request: Request,
        events: Sequence[GenerationEvent],
        *,
        result: GenerationResult | None = None,
        error: BaseException | None = None,
    ) -> None:
        if request.consumer_error is not None and result is not None:
            result, error = None, request.consumer_error
        try:
            request.delivery.publish(events, result=result, error=error)
        except BaseException as problem:  # the consumer's own, whatever it is; it is nobody else's business
            forget_frames(problem)
            request.consumer_error = problem
            request.delivery.fail_consumer(problem)
            self.cancel(request)
        if request.delivery.is_done:
            self._unanswered.pop(request.number, None)
            if request.is_released:
                self._intake.give_back(request)

    def _guarded(self, action: Callable[[], bool | None]) -> bool | None:
        try:
            return action()
        except BaseException as error:
            self.break_down(error)
            if not isinstance(error, Exception):
                raise
            return False

    def _turn(self) -> bool:
        for message in self._intake.messages():
            self._receive(message)
        if self._is_stopped:
            return False
        for request in self._waiting.take_expired(self.clock()):
            self.failed(request, QueueTimeout("the request's deadline passed before a place was free"))
        self._resume()
        if self._is_scan_due or (len(self._waiting) and self._is_empty):
            self._admit()
        controlled = self._in_state(RequestState.CONTROL_READY)
        if controlled:
            self._run(controlled, lambda requests: self._units.control(requests, self))
        has_decoded = self._decode(controlled)
        has_run_chunk = self._run_chunk()
        return bool(controlled) or has_decoded or has_run_chunk

    def _resume(self) -> None:
        while self._residency.paused:
            oldest = self._residency.paused[0]
            try:
                self._residency.resume()
                return
            except Exception as error:
                self.failed(oldest, error)

    def _admit(self) -> None:
        self._is_scan_due = False
        paused = self._residency.paused
        if self._residency.has_free_lane:
            self._waiting.scan(self._place, paused[0] if paused else None)

    def _place(self, request: Request) -> bool:
        """Whether a waiting request is one no more: it runs, or it has failed."""
        if not self._residency.has_free_lane:
            return False
        try:
            if not self._residency.admit(request):
                return False
        except Exception as error:
            self.failed(request, error)
            return True
        request.times.admitted = self.clock()
        self.recorder.admitted(request)
        started = GenerationStarted(len(request.prepared.prompt), request.counts.num_reused_prompt_tokens)
        self._hand_over(request, (started,))
        return True

    def _decode(self, controlled: Sequence[Request]) -> bool:
        """The round of all requests that can go on, oldest first where memory is short."""
        start = self.clock()
        rows = [request for request in self._in_state(RequestState.DECODE_READY) if request not in controlled]
        rows.sort(key=lambda request: (not request.is_protected, request.number))
        permitted = [request for request in rows if self._has_room(request)]
        if permitted:
            self._run(permitted, lambda requests: self._units.decode(requests, self, start))
        return bool(permitted)

    def _run_chunk(self) -> bool:
        """A chunk of one prompt or of one replay: lane after lane takes its turn, a protected request comes first."""
        lanes = self._residency.lanes
        in_turn = [*lanes[self._next_lane :], *lanes[: self._next_lane]]
        due = [
            request
            for request in in_turn
            if request is not None and request.state in (RequestState.PREFILL, RequestState.REPLAY)
        ]
        if not due:
            return False
        request = next((request for request in due if request.is_protected), due[0])
        assert request.lane is not None
        self._next_lane = (request.lane + 1) % len(lanes)
        if request.state is RequestState.REPLAY:
            self._run([request], self._replay)
        elif self._has_room(request):
            self._run([request], self._prefill)
        else:
            return False
        return True

    def _prefill(self, requests: Sequence[Request]) -> None:
        self._units.prefill(requests[0], self)

    def _replay(self, requests: Sequence[Request]) -> None:
        (request,) = requests
        self._units.replay(request)
        if not request.physical.num_tokens_to_replay:
            self._residency.restored(request, PauseRoute.REPLAY)

    def _has_room(self, request: Request) -> bool:
        """Whether a request has room for its unit; it may have been paused for an older one meanwhile."""
        if request.lane is None:
            return False
        try:
            return self._residency.reserve(request, request.num_unit_tokens)
        except Exception as error:
            self.failed(request, error)
            return False

    def _run(self, requests: Sequence[Request], unit: Callable[[Sequence[Request]], None]) -> None:
        """Runs a unit. One that fails takes with it the request that is to blame, or all of its own, and no other."""
        try:
            unit(requests)
        except Exception as error:
            culprit = self._units.culprit
            for request in requests if culprit is None else [culprit]:
                if not request.delivery.is_done:
                    self.failed(request, error)
            if isinstance(error, RequestError):
                return  # such as a bound of the matcher that the request met
            self.recorder.unit(failed=True)
            self._num_failed_units += 1
            if self._num_failed_units == MAX_FAILED_UNITS:
                closed = _stopped_by(error)
                self._intake.close(closed)
                self._close(closed)
        else:
            self._num_failed_units = 0

    def _in_state(self, state: RequestState) -> list[Request]:
        return [request for request in self._residency.lanes if request is not None and request.state is state]


def _stopped_by(error: BaseException) -> EngineClosed:
    closed = EngineClosed(f"the engine has stopped after a failure: {type(error).__name__}: {error}")
    closed.__cause__ = error
    forget_frames(closed)
    return closed
