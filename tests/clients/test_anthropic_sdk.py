"""Anthropic's own Python client against a live server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool
from pydantic import BaseModel

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits, Overloaded, QueueTimeout
from support.chat_output import xml_call
from support.live_server import MODEL, answering, live_server
from support.staged_engine import StagedEngine, saying


class Peak(BaseModel):
    """A mountain; the optional field becomes a union, the list a nested schema."""

    name: str
    height: float
    first_ascent: int | None
    climbers: list[str]


PEAK = Peak(name="Rigi", height=1797.5, first_ascent=None, climbers=["ok", "lo"])
LOOKUP = {
    "name": "lookup",
    "description": "Looks a mountain up.",
    "input_schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "metres": {"type": "boolean"}},
        "required": ["name", "metres"],
        "additionalProperties": False,
    },
    "strict": True,
}
ARGUMENTS = {"name": "Rigi", "metres": True}
LOOKUP_CALL = xml_call("lookup", {"name": "Rigi", "metres": "true"})
QUIET: Any = {"model": MODEL, "max_tokens": 400, "thinking": {"type": "disabled"}}
THINKING: Any = {"model": MODEL, "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.fixture(scope="module")
def client(warmed_kernels: None) -> Iterator[anthropic.Anthropic]:
    with (
        answering(lambda said: said) as engine,
        live_server(engine, api_key="key") as server,
        anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0) as found,
    ):
        yield found


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


def content(message: anthropic.types.Message) -> Any:
    """The blocks without the ids of calls, which differ from request to request."""
    blocks = [block.model_dump(exclude_unset=True) for block in message.content]
    return [{name: value for name, value in block.items() if name != "id"} for block in blocks]


def both(client: anthropic.Anthropic, **request: Any) -> anthropic.types.Message:
    """The message of `create`, after checking that the one that the stream helper puts together is the same."""
    whole = client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert content(final) == content(whole)
    assert (final.stop_reason, final.stop_sequence) == (whole.stop_reason, whole.stop_sequence)
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert events[-1].type == "message_stop"
    return whole


def test_a_text(client: anthropic.Anthropic) -> None:
    message = both(client, messages=user("Good ok, naïve 在"), system="Be brief.", **QUIET)
    assert content(message) == [{"type": "text", "text": "Good ok, naïve 在"}]
    assert (message.stop_reason, message.model, message.role) == ("end_turn", MODEL, "assistant")


def test_thinking(client: anthropic.Anthropic) -> None:
    message = both(client, messages=user("let me see\n</think>\n\nok"), **THINKING)
    thought, text = message.content
    assert isinstance(thought, anthropic.types.ThinkingBlock)
    assert (thought.thinking, bool(thought.signature)) == ("let me see", True)
    assert isinstance(text, anthropic.types.TextBlock)
    assert text.text == "ok"
    assert message.usage.output_tokens_details is not None
    assert message.usage.output_tokens_details.thinking_tokens > 0


def test_the_helper_sees_each_piece(client: anthropic.Anthropic) -> None:
    with client.messages.stream(messages=user("hm</think>\n\none two three"), **THINKING) as stream:
        pieces: dict[str, list[str]] = {"text": [], "thinking": []}
        for event in stream:
            if event.type == "text":
                pieces["text"].append(event.text)
            elif event.type == "thinking":
                pieces["thinking"].append(event.thinking)
    assert ("".join(pieces["text"]), "".join(pieces["thinking"])) == ("one two three", "hm")
    assert len(pieces["text"]) > 3


@pytest.mark.parametrize("options", [QUIET, THINKING])
def test_a_pydantic_class_gives_an_instance(client: anthropic.Anthropic, options: Any) -> None:
    asked = user(f"hm</think>\n\n{PEAK.model_dump_json()}")
    message = client.messages.parse(messages=asked, output_format=Peak, **options)
    assert message.parsed_output == PEAK
    with client.messages.stream(messages=asked, output_format=Peak, **options) as stream:
        stream.until_done()
        final = stream.get_final_message()
    assert final.parsed_output == PEAK
    # What came can be sent back as it is.
    turns = [*asked, {"role": "assistant", "content": message.content}, *user("ok")]
    again = client.messages.create(messages=turns, **QUIET)
    assert content(again) == [{"type": "text", "text": "ok"}]


def test_a_schema_as_it_is(client: anthropic.Anthropic) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["ok", "yes"]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    config: Any = {"format": {"type": "json_schema", "schema": schema}}
    message = both(client, messages=user("Sure!"), output_config=config, **QUIET)
    assert json.loads(content(message)[0]["text"])["a"] in ("ok", "yes")
    record: Any = message.model_extra
    assert (record["constraint"]["complete"], record["constraint"]["branch"]) == (True, "content")


def test_other_constraints_by_extra_body(client: anthropic.Anthropic) -> None:
    extra = {"structured_outputs": {"regex": "[a-c]+"}}
    message = both(client, messages=user("abc"), extra_body=extra, **QUIET)
    assert content(message) == [{"type": "text", "text": "abc"}]


def test_a_tool_loop(client: anthropic.Anthropic) -> None:
    turns = user(LOOKUP_CALL)
    first = both(client, messages=turns, tools=[LOOKUP], **QUIET)
    assert first.stop_reason == "tool_use"
    (call,) = first.content
    assert isinstance(call, anthropic.types.ToolUseBlock)
    assert (call.name, call.input) == ("lookup", ARGUMENTS)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "ok: 1797"}
    turns += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = both(client, messages=turns, tools=[LOOKUP], **QUIET)
    assert (content(second)[0]["text"], second.stop_reason) == ("ok: 1797", "end_turn")


def test_thinking_is_sent_back_with_its_signature(client: anthropic.Anthropic) -> None:
    turns = user(f"hm\n</think>\n\n{LOOKUP_CALL}")
    first = both(client, messages=turns, tools=[LOOKUP], **THINKING)
    assert [block.type for block in first.content] == ["thinking", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "x</think>\n\nok"}  # type: ignore[union-attr]
    turns += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = client.messages.create(messages=turns, tools=[LOOKUP], **THINKING)  # type: ignore[list-item]
    assert [block.type for block in second.content] == ["thinking", "text"]


@pytest.mark.parametrize(
    ("choice", "num_calls"),
    [
        ({"type": "auto"}, 2),
        ({"type": "any"}, 2),
        ({"type": "tool", "name": "lookup"}, 2),
        ({"type": "any", "disable_parallel_tool_use": True}, 1),
        ({"type": "none"}, 0),
    ],
)
def test_choices(client: anthropic.Anthropic, choice: Any, num_calls: int) -> None:
    asked = user(f"{LOOKUP_CALL}\n{LOOKUP_CALL}")
    message = both(client, messages=asked, tools=[LOOKUP], tool_choice=choice, **QUIET)
    assert [block.type for block in message.content].count("tool_use") == num_calls


def test_the_helper_sees_the_input_of_a_call_grow(client: anthropic.Anthropic) -> None:
    with client.messages.stream(messages=user(LOOKUP_CALL), tools=[LOOKUP], **QUIET) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
    assert json.loads("".join(pieces)) == ARGUMENTS
    assert len(pieces) > 3


def test_the_tool_runner_of_the_client(client: anthropic.Anthropic) -> None:
    seen: list[str] = []

    @beta_tool
    def lookup(name: str) -> str:
        """Looks a mountain up.

        Args:
            name: The mountain's name.
        """
        seen.append(name)
        return "ok: 1797"

    asked = user(xml_call("lookup", {"name": "Rigi"}))
    runner = client.beta.messages.tool_runner(messages=asked, tools=[lookup], **QUIET)
    final = runner.until_done()
    assert seen == ["Rigi"]
    (block,) = final.content
    assert block.type == "text"
    assert block.text == "ok: 1797"


def test_counting(client: anthropic.Anthropic) -> None:
    request: Any = {"messages": user("count me"), "tools": [LOOKUP], "system": "Be brief."}
    count = client.messages.count_tokens(model=MODEL, thinking={"type": "disabled"}, **request)
    usage = client.messages.create(**request, **QUIET).usage
    assert count.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_continuation(client: anthropic.Anthropic) -> None:
    turns = [*user('{"name": "lo"}'), {"role": "assistant", "content": '{"name"'}]
    config: Any = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    message = both(client, messages=turns, output_config=config, **QUIET)
    assert content(message) == [{"type": "text", "text": ': "lo"}'}]


def test_stop_sequences(client: anthropic.Anthropic) -> None:
    message = both(client, messages=user("one, two"), stop_sequences=[","], **QUIET)
    assert (content(message)[0]["text"], message.stop_reason, message.stop_sequence) == ("one", "stop_sequence", ",")


def test_errors_are_the_classes_of_the_client(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="temperature") as found:
        client.messages.create(messages=user("x"), extra_body={"temperature": 7}, **QUIET)
    assert found.value.type == "invalid_request_error"
    assert found.value.request_id
    config: Any = {"format": {"type": "json_schema", "schema": {"type": "string", "format": "date"}}}
    with (
        pytest.raises(anthropic.BadRequestError, match=r"output_config\.format\.schema/format"),
        client.messages.stream(messages=user("x"), output_config=config, **QUIET),
    ):
        pass
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="other").messages.create(messages=user("x"), **QUIET)
    with pytest.raises(anthropic.BadRequestError, match="tools"):
        client.messages.create(
            messages=user("x"), tools=[{"type": "web_search_20250305", "name": "web_search"}], **QUIET
        )


def test_the_asynchronous_client(client: anthropic.Anthropic) -> None:
    async def ask() -> tuple[anthropic.types.Message, anthropic.types.Message]:
        async with anthropic.AsyncAnthropic(base_url=client.base_url, api_key="key", max_retries=0) as other:
            message = await other.messages.create(messages=user("ok"), **QUIET)
            async with other.messages.stream(messages=user("ok"), **QUIET) as stream:
                return message, await stream.get_final_message()

    message, final = asyncio.run(ask())
    assert content(message) == content(final) == [{"type": "text", "text": "ok"}]


@pytest.mark.parametrize(
    ("error", "status"), [(Overloaded("full"), 529), (QueueTimeout("late"), 504), (NonFiniteLogits("nan"), 500)]
)
def test_errors_of_the_server(error: Exception, status: int) -> None:
    with (
        live_server(StagedEngine(lambda handle: handle.finish(error))) as server,
        anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0) as other,
        pytest.raises(anthropic.InternalServerError) as found,
    ):
        other.messages.create(messages=user("x"), **QUIET)
    assert found.value.status_code == status


def test_an_error_in_the_middle_of_a_stream() -> None:
    pieces: list[str] = []
    with (
        live_server(StagedEngine(saying("part", error=ConstraintDeadEnd("no way on")))) as server,
        anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0) as other,
        other.messages.stream(messages=user("x"), **QUIET) as stream,
        pytest.raises(anthropic.APIStatusError, match="no way on"),
    ):
        pieces.extend(stream.text_stream)
    assert pieces == ["part"]
