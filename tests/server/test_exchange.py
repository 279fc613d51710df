"""The way of a request through the server, with an engine that does only what the test says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from infernix.errors import (
    ConstraintDeadEnd,
    EngineClosed,
    InvalidGrammar,
    NonFiniteLogits,
    Overloaded,
    QueueTimeout,
)
from infernix.results import FinishReason, GenerationStarted
from infernix.server.app import build_app
from infernix.server.settings import ServerSettings
from support.asgi_call import AsgiCall
from support.chat_client import PATH, chat_body
from support.live_server import MODEL
from support.staged_engine import StagedEngine, saying

BODY = chat_body("hi")
STREAM = chat_body("hi", stream=True)


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def write(self, record: Any) -> None:
        self.records.append(record)


def serving(
    test: Callable[[Any, StagedEngine, Log], Coroutine[Any, Any, None]],
    play: Any = None,
    **settings: Any,
) -> None:
    """Runs a test in an event loop, and checks that no slot and no request is left behind."""

    async def run() -> None:
        engine = StagedEngine(play) if play else StagedEngine()
        log = Log()
        app = build_app(engine, ServerSettings(MODEL, **settings), log)
        service = app.state.service
        await asyncio.wait_for(test(app, engine, log), 60)
        while service.gate.num_inside:
            await asyncio.sleep(0)
        assert len([record for record in log.records if record["event"] == "response"]) == sum(counts(app).values())
        service.close()

    asyncio.run(run())


def counts(app: Any) -> dict[str, float]:
    """The requests by their outcome."""
    text = app.state.service.metrics.text().decode()
    return {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "infernix_requests_total" and sample.value
    }


async def submitted(engine: StagedEngine, number: int = 1) -> Any:
    """The handle, once the request has come to the engine and is watched."""
    while len(engine.handles) < number:
        await asyncio.sleep(0.001)
    handle = engine.handles[number - 1]
    await asyncio.to_thread(handle.is_subscribed.wait)
    return handle


@pytest.mark.parametrize(
    ("error", "status", "code", "outcome"),
    [
        (InvalidGrammar("no"), 400, "invalid_grammar", "rejected"),
        (ConstraintDeadEnd("no"), 400, "constraint_dead_end", "rejected"),
        (Overloaded("full"), 429, "server_overloaded", "rejected"),
        (QueueTimeout("late"), 503, "request_queue_timeout", "rejected"),
        (EngineClosed("closed"), 503, "service_unavailable", "failed"),
        (NonFiniteLogits("nan"), 500, "non_finite_logits", "failed"),
        (ValueError("a detail"), 500, "internal_error", "failed"),
    ],
)
@pytest.mark.parametrize("body", [BODY, STREAM])
@pytest.mark.parametrize("at_submit", [True, False])
def test_errors_before_the_answer_begins(
    error: Exception, status: int, code: str, outcome: str, body: Any, at_submit: bool
) -> None:
    def play(handle: Any) -> None:
        if at_submit:
            raise error
        handle.finish(error)

    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, body)
        await call.task
        assert call.status == status
        assert call.json()["error"]["code"] == code
        assert "detail" not in call.json()["error"]["message"]
        assert counts(app) == {outcome: 1}
        headers = dict(call.sent[0]["headers"])
        assert (b"retry-after" in headers) == (status == 429)
        assert headers[b"x-request-id"].decode() == log.records[-1]["request_id"]
        assert (log.records[-1]["outcome"], log.records[-1]["code"]) == (outcome, code)

    serving(test, play)


@pytest.mark.parametrize("error", [ConstraintDeadEnd("no way on"), NonFiniteLogits("nan"), ValueError("a detail")])
def test_an_error_in_the_middle_of_a_stream_ends_it(error: Exception) -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, STREAM)
        await call.task
        *events, last, rest = call.body.split(b"\n\n")
        assert (call.status, rest) == (200, b"")
        assert len(events) == 2
        assert last.startswith(b'data: {"error":{"message":')
        assert b"detail" not in last
        assert b"[DONE]" not in call.body
        assert "infernix_response_failures_total 1.0" in app.state.service.metrics.text().decode()

    serving(test, saying("part", error=error))


def test_pieces_go_out_as_they_come() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, STREAM)
        handle = await submitted(engine)
        assert call.sent == []
        handle.publish(GenerationStarted(7, 0))
        await call.until(lambda call: b'"role":"assistant"' in call.body)
        for piece in ("one", "two", "three"):
            handle.publish(piece)
            await call.until(lambda call, piece=piece: f'"content":"{piece}"'.encode() in call.body)  # type: ignore[misc]
        handle.finish()
        await call.task
        assert call.body.endswith(b"data: [DONE]\n\n")
        assert counts(app) == {"completed": 1}
        assert log.records[-1]["requests"] == [0]

    serving(test)


def test_a_silent_stream_is_kept_alive() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, STREAM)
        handle = await submitted(engine)
        handle.publish(GenerationStarted(7, 0))
        await call.until(lambda call: call.body.count(b": keep-alive\n\n") >= 3)
        handle.publish("x")
        handle.finish()
        await call.task
        assert call.body.endswith(b"data: [DONE]\n\n")

    serving(test, keep_alive_seconds=0.01)


@pytest.mark.parametrize("body", [BODY, STREAM])
@pytest.mark.parametrize("stage", ["body", "prepare", "queue", "started", "output"])
def test_a_client_that_goes_away_cancels_its_request(body: Any, stage: str) -> None:
    in_thread, go_on = threading.Event(), threading.Event()

    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        def prepare(_: Any) -> None:
            in_thread.set()
            go_on.wait()

        if stage == "prepare":
            engine.prepare_hook = prepare
        call = AsgiCall(app, PATH, body if stage != "body" else None)
        if stage == "body":
            call.feed(b'{"model":', more=True)
        elif stage == "prepare":
            await asyncio.to_thread(in_thread.wait)
        else:
            handle = await submitted(engine)
            if stage in ("started", "output"):
                handle.publish(GenerationStarted(7, 0))
            if stage == "output":
                handle.publish("some")
                if body is STREAM:
                    await call.until(lambda call: b"some" in call.body)
        call.hang_up()
        await call.task
        assert counts(app) == {"cancelled": 1}
        if stage == "prepare":
            assert app.state.service.gate.num_inside == 1, "the thread is not free yet"
            go_on.set()
            while not engine.handles:
                await asyncio.sleep(0.001)
        if stage != "body":
            await asyncio.to_thread(engine.handles[0].is_cancelled.wait)

    serving(test)


def test_the_gate_refuses_what_does_not_fit_at_once() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        calls = [AsgiCall(app, PATH, BODY) for _ in range(2)]
        handles = [await submitted(engine, number) for number in (1, 2)]
        extra = AsgiCall(app, PATH, BODY)
        await extra.task
        assert (extra.status, extra.json()["error"]["code"]) == (429, "server_overloaded")
        for handle in handles:
            handle.publish(GenerationStarted(7, 0), "ok")
            handle.finish()
        for call in calls:
            await call.task
            assert call.status == 200
        assert counts(app) == {"completed": 2, "rejected": 1}

    serving(test, max_outstanding=2)


def test_a_sample_that_does_not_fit_takes_the_others_with_it() -> None:
    def play(handle: Any) -> None:
        if len(engines[0].handles) == 3:
            raise Overloaded("full")

    engines: list[StagedEngine] = []

    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        engines.append(engine)
        call = AsgiCall(app, PATH, {**BODY, "n": 3})
        await call.task
        assert call.status == 429
        assert [handle.is_cancelled.is_set() for handle in engine.handles[:2]] == [True, True]

    serving(test, play)


@pytest.mark.parametrize("body", [BODY, STREAM])
def test_an_answer_that_the_server_cut_off_is_an_error(body: Any) -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, body)
        await call.task
        assert b"service_unavailable" in call.body
        assert b"[DONE]" not in call.body

    serving(test, saying("part", finish_reason=FinishReason.CANCELLED))


PATHS = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
}


@pytest.mark.parametrize(
    ("path", "marks"),
    [
        ("/v1/chat/completions", [b'data: {"error":{"message":', b'"code":"service_unavailable"']),
        ("/v1/responses", [b"event: response.failed\n", b'"code":"service_unavailable"']),
        ("/v1/messages", [b"event: error\n", b'"error_code":"service_unavailable"']),
    ],
)
def test_a_stream_that_a_stopping_server_cuts_off_says_so(path: str, marks: list[bytes]) -> None:
    """Also where the engine is busy and ends nothing."""

    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, path, {"model": MODEL, "stream": True, **PATHS[path]})
        handle = await submitted(engine)
        handle.publish(GenerationStarted(7, 2), "part")
        await call.until(lambda call: b"part" in call.body)
        app.state.service.cut_off.set()
        await call.task
        assert handle.is_cancelled.is_set()
        last, rest = call.body.split(b"\n\n")[-2:]
        assert (rest, [mark for mark in marks if mark not in last]) == (b"", [])
        assert call.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}
        assert counts(app) == {"failed": 1}

    serving(test)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stage", ["prepared", "submitted", "started"])
def test_a_stopping_server_answers_whom_it_cuts_off(path: str, stage: str) -> None:
    go_on = threading.Event()

    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        if stage == "prepared":
            engine.prepare_hook = lambda prompt: go_on.wait()
        call = AsgiCall(app, path, {"model": MODEL, "stream": stage == "submitted", **PATHS[path]})
        if stage == "prepared":
            while not app.state.service.gate.num_inside:
                await asyncio.sleep(0.001)
        else:
            handle = await submitted(engine)
        if stage == "started":
            handle.publish(GenerationStarted(7, 2), "part")
        app.state.service.cut_off.set()
        await call.task
        go_on.set()
        assert call.status == 503
        assert b"service_unavailable" in call.body
        while app.state.service.gate.num_inside:
            await asyncio.sleep(0.001)
        assert all(handle.is_cancelled.is_set() for handle in engine.handles)

    serving(test)


def test_a_client_that_takes_nothing_is_gone_after_a_while() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, STREAM)
        handle = await submitted(engine)
        call.stall()
        handle.publish(GenerationStarted(7, 2), "part")
        await call.task
        assert handle.is_cancelled.is_set()
        assert counts(app) == {"cancelled": 1}

    serving(test, send_seconds=0.01)


def test_a_slow_body_is_given_up() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH)
        call.feed(b"{", more=True)
        await call.task
        assert (call.status, call.json()["error"]["code"]) == (408, "body_timeout")

    serving(test, body_timeout_seconds=0.01)


def test_long_bodies_are_refused() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        announced = AsgiCall(app, PATH, content_length=str(64 << 20))
        await announced.task
        found = AsgiCall(app, PATH)
        for _ in range(3):
            found.feed(b" " * 400, more=True)
        await found.task
        for call in (announced, found):
            assert (call.status, call.json()["error"]["code"]) == (413, "request_too_large")

    serving(test, max_body_bytes=1000)


def test_all_bodies_together_are_bounded() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        first = AsgiCall(app, PATH)
        first.feed(b" " * 900, more=True)
        await first.until_taken()
        second = AsgiCall(app, PATH)
        second.feed(b" " * 200, more=True)
        await second.task
        assert (second.status, second.json()["error"]["code"]) == (429, "server_overloaded")
        first.hang_up()
        await first.task

    serving(test, max_pending_body_bytes=1000)


def test_only_json_is_taken() -> None:
    async def test(app: Any, engine: StagedEngine, log: Log) -> None:
        call = AsgiCall(app, PATH, BODY, content_type="text/plain")
        await call.task
        assert (call.status, call.json()["error"]["code"]) == (415, "unsupported_media_type")
        call = AsgiCall(app, PATH, BODY, content_type="Application/JSON; charset=utf-8")
        handle = await submitted(engine)
        handle.finish()
        await call.task
        assert call.status == 200

    serving(test)
