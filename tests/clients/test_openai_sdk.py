"""OpenAI's own Python client against a live server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from support.chat_output import xml_call
from support.live_server import MODEL, answering, live_server
from support.peaks import LOOKUP_CALL, PEAK, Lookup, Peak


@pytest.fixture(scope="module")
def client(warmed_kernels: None) -> Iterator[openai.OpenAI]:
    with (
        answering(lambda said: said) as engine,
        live_server(engine, api_key="key") as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="key", max_retries=0) as found,
    ):
        yield found


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL


def test_a_pydantic_class_gives_an_instance(client: openai.OpenAI) -> None:
    asked = user(f"hm</think>\n\n{PEAK.model_dump_json()}")
    completion = client.chat.completions.parse(model=MODEL, messages=asked, response_format=Peak)
    assert completion.choices[0].message.parsed == PEAK
    with client.chat.completions.stream(model=MODEL, messages=asked, response_format=Peak) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == PEAK
    assert "".join(event.delta for event in events if event.type == "content.delta") == PEAK.model_dump_json()


def test_a_tool_loop_with_typed_arguments(client: openai.OpenAI) -> None:
    tools = [openai.pydantic_function_tool(Lookup)]
    messages = user(LOOKUP_CALL)
    options: Any = {"model": MODEL, "tools": tools, "reasoning_effort": "none"}
    first = client.chat.completions.parse(messages=messages, **options).choices[0]
    assert first.finish_reason == "tool_calls"
    (call,) = first.message.tool_calls or ()
    assert call.function.parsed_arguments == Lookup(name="Rigi", metres=True)
    messages += [first.message, {"role": "tool", "tool_call_id": call.id, "content": "ok: 1797"}]
    second = client.chat.completions.parse(messages=messages, **options).choices[0]
    assert (second.message.content, second.finish_reason) == ("ok: 1797", "stop")


def test_the_streaming_helper_sees_the_same_call(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=user(LOOKUP_CALL), tools=[openai.pydantic_function_tool(Lookup)], reasoning_effort="none"
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    (done,) = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert done.parsed_arguments == Lookup(name="Rigi", metres=True)
    pieces = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert json.loads("".join(pieces)) == {"name": "Rigi", "metres": True}
    assert final.choices[0].finish_reason == "tool_calls"


def test_a_custom_tool(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model=MODEL,
        messages=user(xml_call("run", {"input": "1 + 1"})),
        tools=[{"type": "custom", "custom": {"name": "run"}}],
        tool_choice={"type": "custom", "custom": {"name": "run"}},
        reasoning_effort="none",
    )
    (call,) = completion.choices[0].message.tool_calls or ()
    assert call.type == "custom"
    assert (call.custom.name, call.custom.input) == ("run", "1 + 1")


def test_plain_chunks_and_usage(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=user("hm</think>\n\nok lo"), stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "ok lo"
    reasoning = "".join((delta.model_extra or {}).get("reasoning_content", "") for delta in deltas)
    assert reasoning == "hm"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens_details.reasoning_tokens == 2


def test_own_fields_go_into_the_extra_body(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model=MODEL,
        messages=user("yes"),
        extra_body={"structured_outputs": {"choice": ["yes", "no"]}, "enable_thinking": False},
    )
    assert completion.choices[0].message.content == "yes"
    assert (completion.model_extra or {})["constraint"]["terminated"] is True


def test_errors_are_the_clients_own(client: openai.OpenAI) -> None:
    options: Any = {"model": MODEL, "messages": user("x")}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**options, logprobs=True)
    assert (refused.value.param, refused.value.code) == ("logprobs", "unsupported_parameter")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**{**options, "model": "gpt"})
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="other").models.list()
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(**options, response_format=Peak, max_completion_tokens=3)


def test_a_stream_that_is_closed_early_leaves_nothing_behind(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=user("a" * 500), stream=True, reasoning_effort="none", max_tokens=400
    )
    next(iter(stream))
    stream.close()
    completion = client.chat.completions.create(model=MODEL, messages=user("ok"), reasoning_effort="none")
    assert completion.choices[0].message.content == "ok"
