"""Responses that fail, before their stream begins and after it did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits, QueueTimeout
from infernix.results import GenerationStarted, OutputChannel, OutputDelta
from infernix.tools import ToolCallDelta
from support.live_server import live_server
from support.responses_client import PATH, body_of, checked, events_in, post
from support.staged_engine import StagedEngine, StagedHandle, saying


@pytest.fixture(scope="module")
def engine() -> StagedEngine:
    return StagedEngine()


@pytest.fixture(scope="module")
def client(engine: StagedEngine) -> Iterator[httpx.Client]:
    with live_server(engine) as server, httpx.Client(base_url=server.url, timeout=60) as found:
        yield found


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (ConstraintDeadEnd("no token fits"), "constraint_dead_end", "invalid_request_error"),
        (NonFiniteLogits("not a number"), "non_finite_logits", "server_error"),
        (ValueError("secret"), "internal_error", "server_error"),
    ],
)
@pytest.mark.parametrize("constrained", [True, False])
def test_a_failure_in_mid_stream_is_the_last_event(
    client: httpx.Client, engine: StagedEngine, error: Exception, code: str, kind: str, constrained: bool
) -> None:
    engine.play = saying(OutputDelta(OutputChannel.REASONING, "hm"), "so", "me", error=error)
    fields = {"structured_outputs": {"regex": "some"}} if constrained else {}
    response = post(client, body_of("hi", stream=True, store=True, **fields))
    assert response.status_code == 200
    events = events_in(response.text)
    failed = checked(events)
    assert events[-1]["type"] == "response.failed"
    assert failed["status"] == "failed"
    assert (failed["error"]["code"], failed["error"]["type"]) == (code, kind)
    assert "secret" not in response.text
    assert failed["error"]["param"] == ("structured_outputs.regex" if constrained and "dead" in code else None)
    assert [item["type"] for item in failed["output"]] == ["reasoning"], "what was not finished is not in it"
    assert client.get(f"{PATH}/{failed['id']}").status_code == 404


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ConstraintDeadEnd("no token fits"), 400, "constraint_dead_end"),
        (QueueTimeout("late"), 503, "request_queue_timeout"),
        (NonFiniteLogits("not a number"), 500, "non_finite_logits"),
    ],
)
def test_a_failure_before_anything_is_an_error(
    client: httpx.Client, engine: StagedEngine, error: Exception, status: int, code: str, stream: bool
) -> None:
    engine.play = lambda handle: handle.finish(error)
    response = post(client, body_of("hi", stream=stream))
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def test_events_come_as_they_are_published(client: httpx.Client, engine: StagedEngine) -> None:
    handles: list[StagedHandle] = []

    def begin(handle: StagedHandle) -> None:
        handles.append(handle)
        handle.publish(GenerationStarted(7, 0))

    engine.play = begin
    with client.stream("POST", PATH, json=body_of("hi", stream=True)) as response:
        lines = response.iter_lines()
        assert response.status_code == 200
        (handle,) = handles
        for text in ("so", "me"):
            handle.publish(text)
            assert f'"delta":"{text}"' in next(line for line in lines if '.delta"' in line and "data" in line)
        handle.finish()
        assert "response.completed" in list(lines)[-3]


def test_a_whole_answer_and_a_streamed_one_end_the_same_when_the_events_come_at_once_or_one_by_one(
    client: httpx.Client, engine: StagedEngine
) -> None:
    pieces: list[Any] = [
        OutputDelta(OutputChannel.REASONING, "a"),
        OutputDelta(OutputChannel.REASONING, "b"),
        "c",
        ToolCallDelta(0, "f", ""),
        ToolCallDelta(0, None, '{"x"'),
        ToolCallDelta(0, None, ": 1}"),
        "d",
        ToolCallDelta(1, "g", "{"),
        ToolCallDelta(1, None, "}"),
    ]

    def one_by_one(handle: StagedHandle) -> None:
        for piece in (GenerationStarted(7, 2), *pieces):
            handle.publish(piece)
        handle.finish()

    outputs = []
    for play in (saying(*pieces), one_by_one):
        engine.play = play
        whole = post(client, body_of("hi")).json()
        streamed = checked(events_in(post(client, body_of("hi", stream=True)).text))
        for body in (whole, streamed):
            key = body["id"].removeprefix("resp_")
            outputs.append(str(body["output"]).replace(key, "KEY"))
            assert body["usage"]["input_tokens_details"]["cached_tokens"] == 0
        assert [item["type"] for item in whole["output"]] == [
            "reasoning",
            "message",
            "function_call",
            "message",
            "function_call",
        ]
        assert [item["id"] for item in whole["output"]] == [
            f"{prefix}_{whole['id'].removeprefix('resp_')}_{place}"
            for place, prefix in enumerate(("rs", "msg", "fc", "msg", "fc"))
        ]
    assert len(set(outputs)) == 1


def test_a_body_full_of_small_things_is_read_in_time_that_grows_with_it(
    client: httpx.Client, engine: StagedEngine
) -> None:
    """Each of these would take minutes if a thing were compared with all others."""
    engine.play = saying("ok")
    names = [{"type": "function", "name": f"f{number}"} for number in range(16_000)]
    chosen = {"tools": names, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": names}}
    thoughts = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]}] * 16_000
    asked = {"role": "user", "content": "hi"}
    for fields in (chosen, {"input": [*thoughts, asked]}, {"input": [asked] * 33_000}):
        response = client.post(PATH, json=body_of("hi") | fields, timeout=60)
        assert response.status_code == 200
    references = [{"id": f"msg_{number}_in0"} for number in range(30_000)]
    assert client.post(PATH, json=body_of([asked, *references]), timeout=60).status_code == 400
