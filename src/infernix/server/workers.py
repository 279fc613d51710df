"""Work that must not run on the event loop: a bounded number of requests, each on a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from infernix.server.api_error import ApiError, ErrorKind

ResultT = TypeVar("ResultT")


class Gate:
    """How many requests may be under way. Lives in one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._num_inside = 0

    @property
    def num_inside(self) -> int:
        """Requests under way."""
        return self._num_inside

    def enter(self) -> None:
        """Raises ApiError where there is no room; nobody waits here."""
        if self._num_inside >= self._limit:
            raise ApiError(
                ErrorKind.OVERLOADED, f"{self._limit} requests are under way, no more fit", code="server_overloaded"
            )
        self._num_inside += 1

    def leave(self) -> None:
        """Once for each `enter`."""
        self._num_inside -= 1


class Workers:
    """Threads, one for each request that a gate lets in, so that a slow compilation holds up nobody else."""

    def __init__(self, num_threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix=name)

    async def run(
        self,
        work: Callable[[], ResultT],
        *,
        abandon: Callable[[ResultT], None] = lambda _: None,
        finished: Callable[[], None] = lambda: None,
    ) -> ResultT:
        """The result of `work`, which runs on a thread.

        The thread cannot be stopped: where the caller is cancelled first, `abandon` is given, on that thread, the
        result that nobody waits for any more. `finished` is called in the event loop when the thread is free again.
        """
        loop = asyncio.get_running_loop()

        def finish(_: Future[ResultT]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody counts any more
                loop.call_soon_threadsafe(finished)

        future: Future[ResultT] = self._pool.submit(work)
        future.add_done_callback(finish)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: _abandon(done, abandon))
            raise

    def close(self) -> None:
        """Takes no more work; what runs goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _abandon(done: Future[ResultT], abandon: Callable[[ResultT], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        abandon(done.result())
