"""Where requests come in: slots, the preparation on the caller's thread, and the worker's messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

from infernix.engine.limits import CoreLimits
from infernix.engine.recorder import Recorder
from infernix.engine.request import PreparedRequest, Request, RequestTimes
from infernix.engine.slots import Slots
from infernix.errors import EngineClosed, QueueTimeout


class Stop:
    """The message that ends the service."""


class Intake:
    """Used by submitting and consuming threads, and emptied by the worker."""

    def __init__(self, limits: CoreLimits, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._pending_timeout_seconds = limits.pending_timeout_seconds
        self._recorder = recorder
        self._clock = clock
        self._slots = Slots(limits.max_concurrency + limits.max_pending_requests)
        # Requests that are new or cancelled. Its `put` may be called in the middle of anything, as when a handle is
        # dropped or a signal is handled.
        self._messages: SimpleQueue[Request | Stop] = SimpleQueue()

    @property
    def num_outstanding(self) -> int:
        """Slots that are taken."""
        return self._slots.num_outstanding

    @property
    def is_open(self) -> bool:
        """Whether requests are taken."""
        return self._slots.is_open

    def check_open(self) -> None:
        """Raises EngineClosed where no request is taken any more."""
        self._slots.check_open()

    def submit(self, prepare: Callable[[], PreparedRequest], *, deadline: float | None = None) -> Request:
        """Takes a slot, prepares the request here, on the calling thread and outside every lock, and lines it up.

        `deadline` is when it must have a place at the latest; None: `pending_timeout_seconds` from now. Preparing does
        not move it. Raises QueueTimeout, Overloaded, EngineClosed, and what `prepare` raises; the slot is then free
        again.
        """
        submitted = self._clock()
        due = submitted + self._pending_timeout_seconds if deadline is None else deadline
        number: int | None = None
        try:
            if submitted >= due:
                raise QueueTimeout("the request's deadline has passed")
            number = self._slots.take()
            prepared = prepare()
            ready = self._clock()
            if ready >= due:
                raise QueueTimeout("the request's deadline passed while it was prepared")
            request = Request(number, prepared, due, RequestTimes(submitted, ready))
            self._slots.when_open(lambda: self._messages.put(request))
        except BaseException as error:
            if number is not None:
                self._slots.give_back(number)
            self._recorder.rejected(error)
            raise
        return request

    def cancel(self, request: Request) -> None:
        """Asks the worker for the request's end."""
        if not request.is_cancelled:
            request.is_cancelled = True
            self._messages.put(request)

    def release(self, request: Request) -> None:
        """The consumer lets go of the request. Its slot is free when that is done too, whichever comes last."""
        request.is_released = True
        if request.delivery.is_done:
            self.give_back(request)

    def give_back(self, request: Request) -> None:
        """Frees the request's slot."""
        self._slots.give_back(request.number)

    def close(self, error: EngineClosed) -> None:
        """Takes no request any more, for this reason, and tells the worker to stop."""
        if self._slots.close(error):
            self._messages.put(Stop())

    def messages(self) -> Iterator[Request | Stop]:
        """The messages that are there, one after another as they are taken in."""
        while not self._messages.empty():
            yield self._messages.get()

    def wait(self, timeout: float | None) -> Request | Stop | None:
        """The next message, awaited; None after `timeout` seconds without one."""
        try:
            return self._messages.get(timeout=timeout)
        except Empty:
            return None
