"""What one request hands over to its consumer: events, and in the end a result or an error."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from infernix.results import GenerationEvent, GenerationResult


class Delivery:
    """Filled by the worker, emptied by the consumer, from any thread. Events wait here, so a slow consumer holds up
    nobody; there are no more of them than the request's own output makes.

    The lock may be taken again by the thread that has it: a handle can be dropped, or a signal handled, anywhere.
    """

    def __init__(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        # Who waits for the end alone is not woken for every token.
        self._ended = threading.Condition(lock)
        self._events: deque[GenerationEvent] = deque()
        self._result: GenerationResult | None = None
        self._error: BaseException | None = None
        self._is_abandoned = False
        self._callback: Callable[[], None] | None = None
        self._has_subscriber = False

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error; events may still wait to be taken."""
        return self._result is not None or self._error is not None

    @property
    def is_used_up(self) -> bool:
        """Whether there is a result or an error, and no event any more."""
        with self._changed:
            return self.is_done and not self._events

    def publish(
        self,
        events: Sequence[GenerationEvent],
        *,
        result: GenerationResult | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Hands over events, and with them the end where there is one. Raises what the consumer's callback raises."""
        with self._changed:
            if not self._is_abandoned:
                self._events += events
            self._end(result, error)
            self._changed.notify_all()
            callback = self._callback
            if self.is_done:
                self._ended.notify_all()
                self._callback = None  # it may well hold the handle, which would hold it in turn
        if callback is not None and (events or self.is_done):
            callback()

    def fail_consumer(self, error: BaseException) -> None:
        """What the consumer raised is what the request ends with for it. The callback is not called again."""
        with self._changed:
            self._callback = None
            if self.is_done:
                self._end(None, error)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Calls back after each publication, and at once if there is something already."""
        if not callable(callback):
            raise TypeError(f"a subscriber is something to call, not {type(callback).__name__}")
        with self._changed:
            if self._has_subscriber:
                raise RuntimeError("the request has a subscriber")
            self._has_subscriber = True
            is_due = bool(self._events) or self.is_done
            if not self.is_done:
                self._callback = callback
        if is_due:
            callback()

    def take(self) -> list[GenerationEvent]:
        """All events that are there."""
        with self._changed:
            events = list(self._events)
            self._events.clear()
            return events

    def next_event(self) -> GenerationEvent | None:
        """The next event, awaited; None after the last."""
        with self._changed:
            while not self._events and not self.is_done:
                self._changed.wait()
            return self._events.popleft() if self._events else None

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the end came within `timeout` seconds."""
        with self._ended:
            return self._ended.wait_for(lambda: self.is_done, timeout)

    def result(self) -> GenerationResult:
        """The result of a request that is done. Raises the error that it ended with."""
        with self._changed:
            result, error = self._result, self._error
        if error is not None:
            # Raised again and again its traceback would grow each time.
            raise error.with_traceback(None)
        if result is None:
            raise RuntimeError("the generation has not finished")
        return result

    def abandon(self) -> None:
        """Nobody will take events any more."""
        with self._changed:
            self._is_abandoned = True
            self._callback = None
            self._events.clear()

    def _end(self, result: GenerationResult | None, error: BaseException | None) -> None:
        """The error comes first: `is_done` is asked without the lock, and never becomes false again."""
        self._error = error
        self._result = result
