"""Counting tokens beside the requests that generate."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from infernix.errors import InvalidPrompt
from infernix.server.app import build_app
from infernix.server.settings import ServerSettings
from support.asgi_call import AsgiCall
from support.live_server import MODEL
from support.staged_engine import StagedEngine

PATH = "/v1/messages/count_tokens"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "four"}]}


@dataclass
class CountingEngine(StagedEngine):
    """Counts as the test says."""

    count: Callable[[], int] = lambda: 4

    def count_tokens(self, prompt: Any) -> int:
        return self.count()


def counting(test: Callable[[Any, CountingEngine], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Runs a test in an event loop, and checks that every place is given back."""

    async def run() -> None:
        engine = CountingEngine()
        app = build_app(engine, ServerSettings(MODEL, **settings))
        await asyncio.wait_for(test(app, engine), 60)
        while app.state.service.count_gate.num_inside:
            await asyncio.sleep(0)
        app.state.service.close()

    asyncio.run(run())


def test_a_count_needs_no_place_among_the_requests() -> None:
    async def test(app: Any, engine: CountingEngine) -> None:
        app.state.service.gate.enter()
        call = AsgiCall(app, PATH, BODY)
        await call.task
        assert (call.status, call.json()) == (200, {"input_tokens": 4})

    counting(test, max_outstanding=1)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [(InvalidPrompt("no turn"), 400, "messages: no turn"), (ValueError("a secret"), 500, "internal error")],
)
def test_errors(error: Exception, status: int, message: str) -> None:
    def fail() -> int:
        raise error

    async def test(app: Any, engine: CountingEngine) -> None:
        engine.count = fail
        call = AsgiCall(app, PATH, BODY)
        await call.task
        assert (call.status, call.json()["error"]["message"]) == (status, message)

    counting(test)


def test_counts_that_do_not_fit_are_refused_and_others_go_on() -> None:
    go_on = threading.Event()

    def wait() -> int:
        go_on.wait()
        return 4

    async def test(app: Any, engine: CountingEngine) -> None:
        engine.count = wait
        gate = app.state.service.count_gate
        calls = []
        while not any(call.status for call in calls):
            calls.append(AsgiCall(app, PATH, BODY))
            await asyncio.sleep(0.001)
        assert gate.num_inside < len(calls) < 100
        gone = calls[0]
        gone.hang_up()
        go_on.set()
        for call in calls:
            await call.task
        refused = [call for call in calls if call.status == 529]
        assert {call.json()["error"]["type"] for call in refused} == {"overloaded_error"}
        assert [call.status for call in calls].count(200) == len(calls) - len(refused) > 1

    counting(test)
