"""The bridge from the engine's worker to the event loop."""

from __future__ import annotations

import asyncio
import threading
from random import Random
from typing import Any

import pytest

from infernix.options import RequestOptions
from infernix.results import OutputDelta
from infernix.server.api_error import ApiError
from infernix.server.generation import Generation, merged_batches
from infernix.server.workers import Gate, Workers
from support.staged_engine import StagedHandle


@pytest.mark.parametrize("seed", range(5))
def test_every_event_comes_once_and_in_order(seed: int) -> None:
    """Several threads publish while the loop takes."""
    rng = Random(seed)
    handles = [StagedHandle(RequestOptions()) for _ in range(rng.randrange(1, 4))]

    def publish(handle: StagedHandle, pieces: list[str]) -> None:
        for piece in pieces:
            handle.publish(piece)
        handle.finish()

    async def collect() -> list[list[str]]:
        generations = [Generation(handle) for handle in handles]
        threads = [
            threading.Thread(target=publish, args=(handle, [f"{index}." for index in range(300)])) for handle in handles
        ]
        for thread in threads:
            thread.start()
        found: list[list[str]] = [[] for _ in handles]
        ended = []
        async for index, events in merged_batches(generations, asyncio.Event()):
            if events is None:
                ended.append(index)
            else:
                assert index not in ended
                found[index] += [event.text for event in events if isinstance(event, OutputDelta)]
        assert sorted(ended) == list(range(len(handles)))
        for thread in threads:
            thread.join()
        return found

    expected = [f"{index}." for index in range(300)]
    assert asyncio.run(collect()) == [expected] * len(handles)


def test_a_wake_after_the_loop_is_closed_is_harmless() -> None:
    handle = StagedHandle(RequestOptions())

    async def subscribe() -> None:
        Generation(handle)

    asyncio.run(subscribe())
    handle.publish("late")
    assert handle.take()[0] == OutputDelta(channel=handle._published[0].channel, text="late")  # type: ignore[union-attr]


def test_the_gate() -> None:
    gate = Gate(1)
    gate.enter()
    with pytest.raises(ApiError, match="1 requests are under way"):
        gate.enter()
    gate.leave()
    gate.enter()
    assert gate.num_inside == 1


def test_an_abandoned_result_is_handed_over() -> None:
    started, go_on = threading.Event(), threading.Event()
    abandoned: list[int] = []
    finished: list[str] = []

    def work() -> int:
        started.set()
        go_on.wait()
        return 5

    async def run() -> None:
        workers = Workers(1, "test")
        running = asyncio.ensure_future(
            workers.run(work, abandon=abandoned.append, finished=lambda: finished.append("running"))
        )
        waiting = asyncio.ensure_future(
            workers.run(lambda: 6, abandon=abandoned.append, finished=lambda: finished.append("waiting"))
        )
        await asyncio.to_thread(started.wait)
        for task in (running, waiting):
            task.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        await asyncio.sleep(0)
        assert finished == ["waiting"], "what never began is not waited for"
        go_on.set()
        while len(finished) < 2:
            await asyncio.sleep(0)
        workers.close()

    asyncio.run(run())
    assert abandoned == [5]


def test_errors_of_the_work_are_raised() -> None:
    def work() -> Any:
        raise ValueError("no")

    async def run() -> None:
        with pytest.raises(ValueError, match="no"):
            await Workers(1, "test").run(work)

    asyncio.run(run())
