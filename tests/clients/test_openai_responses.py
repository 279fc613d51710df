"""OpenAI's own Python client on responses of a live server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.lib._pydantic import to_strict_json_schema

from infernix.errors import ConstraintDeadEnd
from support.live_server import MODEL, answering, live_server
from support.peaks import LOOKUP_CALL, PEAK, Lookup, Peak
from support.staged_engine import StagedEngine, saying

PEAK_TEXT = PEAK.model_dump_json()
NO_THINKING: Any = {"effort": "none"}


@pytest.fixture(scope="module")
def client(warmed_kernels: None) -> Iterator[openai.OpenAI]:
    with (
        answering(lambda said: said) as engine,
        live_server(engine, api_key="key") as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="key", max_retries=0) as found,
    ):
        yield found


def test_a_text_with_reasoning_before_it(client: openai.OpenAI) -> None:
    response = client.responses.create(model=MODEL, input="hm\n</think>\n\nok", instructions="Be brief.")
    assert response.output_text == "ok"
    reasoning, message = response.output
    assert reasoning.type == "reasoning"
    assert reasoning.content is not None
    assert [part.text for part in reasoning.content] == ["hm"]
    assert message.type == "message"
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    counted = client.responses.input_tokens.count(model=MODEL, input="hm\n</think>\n\nok", instructions="Be brief.")
    assert counted.input_tokens == response.usage.input_tokens


def test_every_object_is_of_the_types_that_the_client_declares(client: openai.OpenAI) -> None:
    """The client itself never validates what it gets."""
    tool: Any = openai.pydantic_function_tool(Lookup)["function"]
    options: Any = {
        "model": MODEL,
        "input": f"hm</think>\n\nok {LOOKUP_CALL}",
        "tools": [{"type": "function", **tool}],
        "instructions": "x",
        "metadata": {"a": "b"},
        "reasoning": {"effort": "low"},
    }
    whole = client.responses.create(**options)
    kept = client.responses.retrieve(whole.id)
    assert kept == whole
    for value in (whole, *client.responses.create(**options, stream=True)):
        # By aliases: `schema` and `async` are called otherwise in the client's classes.
        type(value).model_validate_json(value.model_dump_json(by_alias=True))
    for item in client.responses.input_items.list(whole.id):
        type(item).model_validate_json(item.model_dump_json(by_alias=True))


def test_a_pydantic_class_gives_an_instance(client: openai.OpenAI) -> None:
    asked = f"hm</think>\n\n{PEAK_TEXT}"
    response = client.responses.parse(model=MODEL, input=asked, text_format=Peak)
    assert response.output_parsed == PEAK
    with client.responses.stream(model=MODEL, input=asked, text_format=Peak) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_parsed == PEAK
    assert final.output_text == response.output_text
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == PEAK_TEXT
    (done,) = (event for event in events if event.type == "response.output_text.done")
    assert done.parsed == PEAK
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_a_parsed_answer_can_be_sent_back(client: openai.OpenAI) -> None:
    asked: Any = [{"role": "user", "content": PEAK_TEXT}]
    response = client.responses.parse(model=MODEL, input=asked, text_format=Peak, reasoning=NO_THINKING)
    asked += response.output
    asked.append({"role": "user", "content": "ok"})
    assert client.responses.create(model=MODEL, input=asked, reasoning=NO_THINKING).output_text == "ok"


def tool_of_responses() -> Any:
    return {
        "type": "function",
        "name": "Lookup",
        "description": Lookup.__doc__,
        "parameters": to_strict_json_schema(Lookup),
        "strict": True,
    }


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_tool_loop(client: openai.OpenAI, is_stored: bool) -> None:
    options: Any = {"model": MODEL, "tools": [tool_of_responses()], "reasoning": NO_THINKING, "store": is_stored}
    items: Any = [{"role": "user", "content": LOOKUP_CALL}]
    first = client.responses.create(input=items, **options)
    (call,) = first.output
    assert call.type == "function_call"
    assert Lookup.model_validate_json(call.arguments) == Lookup(name="Rigi", metres=True)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "ok 1797.5"}
    if is_stored:
        second = client.responses.create(input=[result], previous_response_id=first.id, **options)
    else:
        second = client.responses.create(input=[*items, call, result], **options)
    assert second.output_text == "ok 1797.5"


def test_parsed_arguments_in_a_stream(client: openai.OpenAI) -> None:
    tool: Any = openai.pydantic_function_tool(Lookup)
    with client.responses.stream(
        model=MODEL, input=LOOKUP_CALL, tools=[tool], reasoning=NO_THINKING, tool_choice="required"
    ) as stream:
        events = list(stream)
        (call,) = stream.get_final_response().output
    assert call.type == "function_call"
    assert call.parsed_arguments == Lookup(name="Rigi", metres=True)
    deltas = [event for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(event.delta for event in deltas) == call.arguments
    assert deltas[-1].snapshot == call.arguments


def test_extensions(client: openai.OpenAI) -> None:
    response = client.responses.create(
        model=MODEL,
        input="yes",
        reasoning=NO_THINKING,
        extra_body={"structured_outputs": {"choice": ["yes", "no"]}, "seed": 3, "tool_constraints": "basic"},
    )
    assert response.output_text == "yes"
    record: Any = response.model_extra
    assert record["constraint"]["complete"]


def test_kept_responses(client: openai.OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="ok", reasoning=NO_THINKING)
    assert client.responses.retrieve(first.id).output_text == "ok"
    (item,) = client.responses.input_items.list(first.id)
    assert item.type == "message"
    second = client.responses.create(
        model=MODEL, input="lo", previous_response_id=first.id, reasoning=NO_THINKING, store=False
    )
    assert (second.output_text, second.previous_response_id) == ("lo", first.id)
    client.responses.delete(first.id)
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
        with pytest.raises(openai.NotFoundError):
            ask(first.id)
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model=MODEL, input="lo", previous_response_id=first.id)
    assert (raised.value.code, raised.value.param) == ("previous_response_not_found", "previous_response_id")


def test_a_cut_answer_is_incomplete_and_goes_on(client: openai.OpenAI) -> None:
    options: Any = {"model": MODEL, "reasoning": NO_THINKING}
    first = client.responses.create(input="hello", max_output_tokens=2, **options)
    assert (first.status, first.output_text) == ("incomplete", "he")
    assert first.incomplete_details is not None
    assert first.incomplete_details.reason == "max_output_tokens"
    second = client.responses.create(input=[], previous_response_id=first.id, **options)
    assert (second.status, second.output_text) == ("completed", "llo")
    with client.responses.stream(input="hello", max_output_tokens=2, **options) as stream:
        *_, last = stream
    assert last.type == "response.incomplete"
    assert last.response.output_text == "he"


def test_errors_are_those_of_the_client(client: openai.OpenAI) -> None:
    ask: Any = client.responses.create
    with pytest.raises(openai.BadRequestError) as raised:
        ask(model=MODEL, input="x", tools=[{"type": "web_search"}])
    assert (raised.value.param, raised.value.code) == ("tools[0]", "tool_type_not_supported")
    schema = {"type": "object", "properties": {"a": {"format": "date"}}}
    with pytest.raises(openai.BadRequestError) as raised:
        ask(model=MODEL, input="x", text={"format": {"type": "json_schema", "name": "x", "schema": schema}})
    assert raised.value.param == "text.format.schema/properties/a/format"
    with pytest.raises(openai.NotFoundError):
        ask(model="gpt-6", input="x")
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").responses.create(model=MODEL, input="x")


def test_a_failure_in_mid_stream_is_an_event() -> None:
    engine = StagedEngine(saying("so", "me", error=ConstraintDeadEnd("no token fits")))
    with (
        live_server(engine) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client,
    ):
        with client.responses.stream(model=MODEL, input="x") as stream:
            *_, last = stream
        assert last.type == "response.failed"
        assert last.response.error is not None
        assert last.response.error.code == "constraint_dead_end"


def test_the_stream_is_the_whole(client: openai.OpenAI) -> None:
    options: Any = {"model": MODEL, "input": f"hm</think>\n\n{PEAK_TEXT}", "store": False}
    options["text"] = {"format": {"type": "json_object"}}
    whole = client.responses.create(**options)
    *_, last = client.responses.create(**options, stream=True)
    assert last.type == "response.completed"
    assert json.loads(last.response.output_text) == json.loads(PEAK_TEXT)
    assert last.response.output_text == whole.output_text
