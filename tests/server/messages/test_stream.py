"""Messages where the engine does only what the test says: what it is asked for, errors, and the order of blocks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from infernix.errors import ConstraintDeadEnd, EngineClosed, NonFiniteLogits, Overloaded, QueueTimeout
from infernix.messages import Message
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationStarted, OutputChannel, OutputDelta, ThinkingStatistics
from infernix.server.app import build_app
from infernix.server.settings import ServerSettings
from infernix.tools import ToolCall, ToolCallDelta, ToolChoice, ToolEnforcement, ToolMode
from support.asgi_call import AsgiCall
from support.live_server import MODEL
from support.messages_client import PATH, comparable, joined_events, messages_body, parsed_events
from support.staged_engine import StagedEngine, saying

TOOL = {"name": "f", "input_schema": {"type": "object"}}
JSON_FORMAT = {"type": "json_schema", "schema": {"const": 1.5}}
SAMPLED = SamplingOptions(temperature=0.5, top_k=3, top_p=0.25, seed=2**64 - 1)
AUTOMATIC = ToolEnforcement.AUTOMATIC
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "any"}
USE = {"type": "tool_use", "id": "u", "name": "f", "input": {"x": 1.5}}
RESULT = {"type": "tool_result", "tool_use_id": "u", "content": "no", "is_error": True}


def called(play: Callable[[Any], None], **fields: Any) -> AsgiCall:
    """A finished request, whose engine plays this."""

    async def run() -> AsgiCall:
        app = build_app(StagedEngine(play), ServerSettings(MODEL))
        call = AsgiCall(app, PATH, messages_body("hi", **fields))
        await asyncio.wait_for(call.task, 60)
        app.state.service.close()
        return call

    return asyncio.run(run())


def options_of(**fields: Any) -> RequestOptions:
    """What the engine is asked for."""
    found: list[RequestOptions] = []

    def play(handle: Any) -> None:
        found.append(handle.options)
        saying("ok")(handle)

    assert called(play, **fields).status == 200
    return found[0]


def thought(text: str) -> OutputDelta:
    return OutputDelta(OutputChannel.REASONING, text)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ConstraintDeadEnd("no"), 400, "invalid_request_error"),
        (Overloaded("full"), 529, "overloaded_error"),
        (QueueTimeout("late"), 504, "timeout_error"),
        (EngineClosed("closed"), 503, "api_error"),
        (NonFiniteLogits("nan"), 500, "api_error"),
        (ValueError("a secret"), 500, "api_error"),
    ],
)
def test_errors_before_the_answer_begins(error: Exception, status: int, kind: str, stream: bool) -> None:
    call = called(lambda handle: handle.finish(error), stream=stream)
    assert call.status == status
    body = call.json()
    assert (body["type"], body["error"]["type"]) == ("error", kind)
    assert "secret" not in body["error"]["message"]
    headers = dict(call.sent[0]["headers"])
    assert headers[b"request-id"].decode() == body["request_id"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ConstraintDeadEnd("no way on"), "invalid_request_error"), (ValueError("a secret"), "api_error")],
)
def test_an_error_in_the_middle_of_a_stream_ends_it(error: Exception, kind: str) -> None:
    call = called(saying("part", error=error), stream=True)
    *events, last = call.body.decode().split("\n\n")[:-1]
    assert call.status == 200
    assert [event.splitlines()[0] for event in events] == [
        "event: message_start",
        "event: ping",
        "event: content_block_start",
        "event: content_block_delta",
    ]
    name, data = last.splitlines()
    body = json.loads(data.removeprefix("data: "))
    assert (name, body["type"], body["error"]["type"]) == ("event: error", "error", kind)
    assert body["request_id"] == dict(call.sent[0]["headers"])[b"request-id"].decode()
    assert "secret" not in last


def test_the_start_comes_with_the_place_on_the_model() -> None:
    async def run() -> None:
        engine = StagedEngine()
        app = build_app(engine, ServerSettings(MODEL))
        call = AsgiCall(app, PATH, messages_body("hi", stream=True))
        while not engine.handles:
            await asyncio.sleep(0.001)
        (handle,) = engine.handles
        await asyncio.to_thread(handle.is_subscribed.wait)
        assert call.sent == []
        handle.publish(GenerationStarted(11, 4))
        await call.until(lambda call: b"event: ping" in call.body)
        start = parsed_events(call.body.decode())[0]
        usage = start["message"]["usage"]
        assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (7, 4, 0)
        for piece in ("one", "two"):
            handle.publish(piece)
            await call.until(lambda call, piece=piece: f'"text":"{piece}"'.encode() in call.body)  # type: ignore[misc]
        handle.finish()
        await call.task
        assert call.body.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize(
    ("events", "fields", "types", "stop_reason"),
    [
        (["a", "b"], {}, ["text"], "end_turn"),
        ([], {}, ["text"], "end_turn"),
        ([], {"finish_reason": FinishReason.OUTPUT_LIMIT}, [], "max_tokens"),
        ([], {"finish_reason": FinishReason.STOP_STRING, "matched_stop_string": "x"}, ["text"], "stop_sequence"),
        ([thought("hm")], {}, ["thinking", "text"], "end_turn"),
        ([thought("h"), thought("m"), "a"], {}, ["thinking", "text"], "end_turn"),
        ([ToolCallDelta(0, "f", ""), ToolCallDelta(0, None, '{"a":1}')], {}, ["tool_use"], "tool_use"),
        ([ToolCallDelta(0, "f", '{"a":1}')], {"finish_reason": FinishReason.OUTPUT_LIMIT}, ["tool_use"], "max_tokens"),
        (
            [thought("hm"), "a", ToolCallDelta(0, "f", "{}"), ToolCallDelta(1, "g", "{}"), "b"],
            {},
            ["thinking", "text", "tool_use", "tool_use", "text"],
            "tool_use",
        ),
        (
            ["a", ToolCallDelta(0, "f", "{}")],
            {"finish_reason": FinishReason.CONTEXT_CAPACITY},
            ["text", "tool_use"],
            "model_context_window_exceeded",
        ),
    ],
)
def test_blocks(events: Any, fields: dict[str, Any], types: list[str], stop_reason: str) -> None:
    fields = {**fields, "thinking": ThinkingStatistics(None, 2, 1), "num_reused_prompt_tokens": 2}
    whole = called(saying(*events, **fields)).json()
    assert [block["type"] for block in whole["content"]] == types
    assert whole["stop_reason"] == stop_reason
    assert whole["stop_sequence"] == fields.get("matched_stop_string")
    assert whole["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 2,
        "output_tokens": 3,
        "output_tokens_details": {"thinking_tokens": 3},
        "service_tier": "standard",
    }
    joined = joined_events(parsed_events(called(saying(*events, **fields), stream=True).body.decode()))
    for block in joined["content"]:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["input"])
    assert comparable(joined) == comparable(whole)


def test_a_call_that_was_cut_off_is_seen_in_the_stream_only() -> None:
    events = ("a", ToolCallDelta(0, "f", "{}"), ToolCallDelta(1, "g", '{"x":'))
    play = saying(*events, finish_reason=FinishReason.OUTPUT_LIMIT, tool_calls=(object(),), num_reused_prompt_tokens=2)
    whole = called(play).json()
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
    joined = joined_events(parsed_events(called(play, stream=True).body.decode()))
    assert [block["type"] for block in joined["content"]] == ["text", "tool_use", "tool_use"]
    assert joined["content"][2]["input"] == '{"x":'


def test_the_arguments_of_a_call_are_the_text_that_was_generated() -> None:
    arguments = '{ "b" : 1e999,\n"a": [' + "[" * 3000 + "]" * 3000 + '], "a": -0, "s": "\\ud83d\\ude00"}'
    call = called(saying(ToolCallDelta(0, "f", arguments)))
    assert f'"input":{arguments}'.encode() in call.body


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        ({"max_tokens": None}, {"max_new_tokens": 4000}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}, {"thinking_budget": 1024}),
        ({"thinking": {"type": "adaptive"}}, {"thinking_budget": None}),
        ({"stop_sequences": ["a", "b"]}, {"stop": ("a", "b")}),
        ({"temperature": 0.5, "top_p": 0.25, "top_k": 3, "seed": -1}, {"sampling": SAMPLED}),
        ({"temperature": 1, "seed": 5}, {"sampling": SamplingOptions(temperature=1.0, seed=5)}),
        ({"output_config": {"format": JSON_FORMAT}}, {"constraint": OutputConstraint.json_schema('{"const": 1.5}')}),
        ({"tools": [TOOL]}, {"tool_choice": ToolChoice()}),
        ({"tools": [TOOL], "tool_constraints": "auto"}, {"tool_choice": ToolChoice(enforcement=AUTOMATIC)}),
        (
            {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            {"tool_choice": ToolChoice(parallel=False)},
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "none"}}, {"tool_choice": ToolChoice(ToolMode.NONE)}),
        ({"tools": [TOOL], "tool_choice": {"type": "any"}}, {"tool_choice": ToolChoice(ToolMode.REQUIRED)}),
        (
            {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}},
            {"tool_choice": ToolChoice(ToolMode.REQUIRED, ("f",))},
        ),
        (
            {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
            {"tool_choice": ToolChoice.named("f")},
        ),
    ],
)
def test_options(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    options = options_of(**fields)
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("system", "messages", "expected"),
    [
        (None, [{"role": "user", "content": "a"}], [Message("user", "a")]),
        ("s", [{"role": "user", "content": "a"}], [Message("system", "s"), Message("user", "a")]),
        (
            None,
            [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "c"}, USE]},
                {"role": "user", "content": [RESULT, {"type": "text", "text": "d"}]},
                {"role": "user", "content": "e"},
            ],
            [
                Message("user", "ab"),
                Message("assistant", "c", reasoning="hm", tool_calls=(ToolCall("f", '{"x":1.50}'),)),
                Message("tool", "Error: no", name="f", tool_call_id="u"),
                Message("user", "d"),
                Message("user", "e"),
            ],
        ),
    ],
)
def test_conversations(system: str | None, messages: list[Any], expected: list[Message]) -> None:
    """The input of a call is the text that was sent."""
    text = json.dumps(messages_body(system=system, messages=messages)).replace("1.5}", "1.50}").replace('"x": ', '"x":')

    async def run() -> Any:
        engine = StagedEngine(saying("ok"))
        app = build_app(engine, ServerSettings(MODEL))
        call = AsgiCall(app, PATH, text.encode())
        await asyncio.wait_for(call.task, 60)
        assert call.status == 200, call.body
        return engine.prompts[0]

    prompt = asyncio.run(run())
    assert prompt.messages == expected
    assert (prompt.thinking, prompt.continue_final) == (False, False)
