"""A submitted request in its consumer's hands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol

from infernix.engine.request import Request
from infernix.results import GenerationEvent, GenerationResult


class RequestDesk(Protocol):
    """Where a consumer says what it wants of its request."""

    def cancel(self, request: Request) -> None:
        """The request is to end."""
        ...

    def release(self, request: Request) -> None:
        """The consumer lets go of the request."""
        ...


class GenerationHandle:
    """Waits for a request, streams it, or cancels it; from any thread.

    The request runs by itself. What it publishes is kept until it is taken, so a slow consumer holds up nobody, and is
    taken once: by `stream` or by `take`. The handle keeps the request's slot until the end is collected (`wait`,
    `result`, the end of `stream`) or the handle is closed; closing or dropping it before the end cancels the request.
    """

    def __init__(self, desk: RequestDesk, request: Request, owner: object) -> None:
        """`owner` lives as long as the handle: the engine, which would close itself otherwise."""
        self._desk = desk
        self._request = request
        self._delivery = request.delivery
        self._owner = owner

    @property
    def request_id(self) -> int:
        """The engine's number for the request."""
        return self._request.number

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self._request.prepared.prompt)

    @property
    def is_done(self) -> bool:
        """Whether there is a result or an error; what was published before it may still wait to be taken."""
        return self._delivery.is_done

    @property
    def is_used_up(self) -> bool:
        """Whether the request is done and everything that it published was taken."""
        return self._delivery.is_used_up

    @property
    def is_cancelled(self) -> bool:
        """Whether cancellation was asked for."""
        return self._request.is_cancelled

    def wait(self, timeout: float | None = None) -> GenerationResult:
        """The result, awaited. Raises the error that the request ended with, and TimeoutError after `timeout` seconds;
        the request then goes on.
        """
        if not self.wait_for_end(timeout):
            raise TimeoutError(f"the request is not done after {timeout} seconds")
        return self.result()

    def wait_for_end(self, timeout: float | None = None) -> bool:
        """Whether the request is done within `timeout` seconds, by whatever end. None: waits for it."""
        return self._delivery.wait(timeout)

    def result(self) -> GenerationResult:
        """The result of a request that is done. Raises the error that it ended with; RuntimeError before the end."""
        if self.is_done:
            self._desk.release(self._request)
        return self._delivery.result()

    def stream(self) -> Iterator[GenerationEvent]:
        """What is published, as it comes: GenerationStarted first, then the output. After the last event it raises the
        error that the request ended with, if it did.
        """
        while (event := self._delivery.next_event()) is not None:
            yield event
        self.result()

    def take(self) -> list[GenerationEvent]:
        """What was published since the last time; never waits. After `is_done`, one more call gives the last of it."""
        return self._delivery.take()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Has the worker call back whenever there is something new to `take` or the request is done, and calls back at
        once if there is something already. The callback must not block. What it raises cancels the request, and is
        what `wait` and `result` raise.
        """
        self._delivery.subscribe(callback)

    def cancel(self) -> None:
        """Asks for an end before the request's next unit of work. The result then says CANCELLED and holds what was
        committed. Does nothing after the end.
        """
        self._desk.cancel(self._request)

    def close(self) -> None:
        """Cancels the request unless it is done, and lets go of it. Raises nothing, and may be called again."""
        if not self.is_done:
            self.cancel()
        self._delivery.abandon()
        self._desk.release(self._request)

    def __enter__(self) -> GenerationHandle:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
