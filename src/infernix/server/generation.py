"""One request on the engine, as the event loop sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from infernix.results import GenerationEvent, GenerationResult
from infernix.server.api_error import ApiError, ErrorKind
from infernix.server.served_engine import ServedHandle


class Generation:
    """Wakes the event loop when the engine's worker has something new. The worker never waits for the loop."""

    def __init__(self, handle: ServedHandle) -> None:
        """To be made in the event loop that will take the events."""
        self._handle = handle
        self._news = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be woken
                loop.call_soon_threadsafe(self._news.set)

        handle.subscribe(wake)

    async def batches(self) -> AsyncIterator[Sequence[GenerationEvent]]:
        """The events, those that came together in one piece; ends after the last, also where an error ended them."""
        while True:
            self._news.clear()
            is_last = self._handle.is_done  # read before the events are: what is published is there when it is set
            events = self._handle.take()
            if events:
                yield events
            if is_last:
                return
            if not events:
                await self._news.wait()

    def result(self) -> GenerationResult:
        """The result of a request whose events have ended. Raises its error."""
        return self._handle.result()

    def close(self) -> None:
        """Lets go of the request, and ends it early where it is not done."""
        self._handle.close()


def cut_off_error() -> ApiError:
    """What is said where a stopping server does not wait for the answer any longer."""
    return ApiError(ErrorKind.UNAVAILABLE, "the server is stopping", code="service_unavailable")


async def merged_batches(
    generations: Sequence[Generation], cut_off: asyncio.Event
) -> AsyncIterator[tuple[int, Sequence[GenerationEvent] | None]]:
    """The events of several requests as they come, with the number of theirs; None once where a request has ended.

    Raises ApiError when `cut_off` is set, whatever the engine is busy with.
    """
    arrived: asyncio.Queue[tuple[int, Sequence[GenerationEvent] | None] | None] = asyncio.Queue()

    async def give_up() -> None:
        await cut_off.wait()
        arrived.put_nowait(None)

    async def forward(index: int) -> None:
        async for events in generations[index].batches():
            arrived.put_nowait((index, events))
        arrived.put_nowait((index, None))

    tasks = [asyncio.create_task(forward(index)) for index in range(len(generations))]
    tasks.append(asyncio.create_task(give_up()))
    try:
        num_open = len(generations)
        while num_open:
            found = await arrived.get()
            if found is None:
                raise cut_off_error()
            index, events = found
            num_open -= events is None
            yield index, events
    finally:
        for task in tasks:
            task.cancel()
