"""One request through the three protocols: one grammar, and for one seed one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.chat_client import chat_body
from support.chat_output import xml_call
from support.live_server import answering, live_server
from support.messages_client import messages_body
from support.responses_client import body_of

SCHEMA = {
    "type": "object",
    "properties": {"zip": {"type": "string", "maxLength": 6}, "age": {"type": "integer"}},
    "required": ["zip", "age"],
    "additionalProperties": False,
}
NOTE = {"name": "note", "description": "Notes.", "strict": True}
Answers = dict[str, dict[str, Any]]


@pytest.fixture
def client(warmed_kernels: None) -> Iterator[httpx.Client]:
    """A server that has compiled nothing yet that the tests ask for."""
    with (
        answering(lambda said: said) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as found,
    ):
        yield found


def answers(client: httpx.Client, question: str, **fields: dict[str, Any]) -> Answers:
    """The whole answers; `fields` are those of each protocol."""
    bodies = {
        "chat": ("/v1/chat/completions", chat_body(question, **fields["chat"])),
        "responses": ("/v1/responses", body_of(question, **fields["responses"])),
        "messages": ("/v1/messages", messages_body(question, **fields["messages"])),
    }
    found = {name: client.post(path, json=body) for name, (path, body) in bodies.items()}
    assert {response.status_code for response in found.values()} == {200}, [each.text for each in found.values()]
    return {name: response.json() for name, response in found.items()}


def texts(found: Answers) -> set[str]:
    return {
        found["chat"]["choices"][0]["message"]["content"],
        found["responses"]["output"][-1]["content"][0]["text"],
        found["messages"]["content"][-1]["text"],
    }


def calls(found: Answers) -> list[tuple[str, Any]]:
    (chat,) = found["chat"]["choices"][0]["message"]["tool_calls"]
    (response,) = found["responses"]["output"]
    (message,) = found["messages"]["content"]
    return [
        (chat["function"]["name"], json.loads(chat["function"]["arguments"])),
        (response["name"], json.loads(response["arguments"])),
        (message["name"], message["input"]),
    ]


def test_one_schema_and_one_seed(client: httpx.Client) -> None:
    named = {"type": "json_schema", "name": "x", "schema": SCHEMA}
    fields: dict[str, dict[str, Any]] = {
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
        "responses": {"text": {"format": named}},
        "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    }
    for each in fields.values():
        each |= {"temperature": 1.0, "seed": 11}
    found = answers(client, "x", **fields)
    (text,) = texts(found)
    assert list(json.loads(text)) == ["zip", "age"]
    caches = [found[name]["constraint"]["cache"] for name in ("chat", "responses", "messages")]
    assert caches[0] in ("built", "hit")  # engines of other tests share the compiler
    assert caches[1:] == ["hit", "hit"]


@pytest.mark.parametrize(
    "outputs", [{"grammar": 'root ::= "ok" [0-9]+'}, {"regex": "ok[0-9]+"}, {"choice": ["ok1", "ok2"]}]
)
def test_the_same_extension(client: httpx.Client, outputs: dict[str, Any]) -> None:
    fields = {"structured_outputs": outputs, "temperature": 1.0, "seed": 3}
    found = answers(client, "ok1", chat=fields, responses=fields, messages=fields)
    assert len(texts(found)) == 1
    assert [found[name]["constraint"]["cache"] for name in ("responses", "messages")] == ["hit", "hit"]


def test_the_same_call(client: httpx.Client) -> None:
    found = answers(
        client,
        xml_call("note", {"zip": "a", "age": "3"}),
        chat={"tools": [{"type": "function", "function": {**NOTE, "parameters": SCHEMA}}]},
        responses={"tools": [{"type": "function", **NOTE, "parameters": SCHEMA}]},
        messages={"tools": [{**NOTE, "input_schema": SCHEMA}]},
    )
    assert calls(found) == [("note", {"zip": "a", "age": 3})] * 3
    assert [found[name]["constraint"]["cache"] for name in ("responses", "messages")] == ["hit", "hit"]


def test_the_same_prompt(client: httpx.Client) -> None:
    found = answers(client, "count me", chat={}, responses={}, messages={})
    usage = found["messages"]["usage"]
    assert (
        found["chat"]["usage"]["prompt_tokens"]
        == found["responses"]["usage"]["input_tokens"]
        == usage["input_tokens"] + usage["cache_read_input_tokens"]
    )
