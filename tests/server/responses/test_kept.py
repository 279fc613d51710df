"""Responses that are kept: asked for again, listed, continued and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from infernix.messages import ChatPrompt, Message
from infernix.results import FinishReason, OutputChannel, OutputDelta
from infernix.tools import ToolCall, ToolCallDelta
from support.live_server import live_server
from support.responses_client import PATH, body_of, checked, events_in, post, refusal
from support.staged_engine import StagedEngine, saying


def thought(text: str) -> OutputDelta:
    return OutputDelta(OutputChannel.REASONING, text)


def call(index: int, name: str, arguments: str) -> tuple[ToolCallDelta, ToolCallDelta]:
    return ToolCallDelta(index, name, ""), ToolCallDelta(index, None, arguments)


class Server:
    """A client, and the engine behind what it talks to."""

    def __init__(self, client: httpx.Client, engine: StagedEngine) -> None:
        self.client = client
        self.engine = engine

    def answer(self, given: Any, *events: Any, result: Any = None, **fields: Any) -> dict[str, Any]:
        """The response that is kept of an answer that publishes these events."""
        self.engine.play = saying(*events, **(result or {}))
        response = post(self.client, body_of(given, store=True, **fields))
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    def items(self, body: dict[str, Any], **query: Any) -> dict[str, Any]:
        response = self.client.get(f"{PATH}/{body['id']}/input_items", params={"order": "asc", **query})
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    @property
    def messages(self) -> list[Message]:
        """What the engine was asked last."""
        prompt = self.engine.prompts[-1]
        assert isinstance(prompt, ChatPrompt)
        return [message for message in prompt.messages if isinstance(message, Message)]


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    engine = StagedEngine()
    with live_server(engine, max_stored_responses=5) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield Server(client, engine)


def test_a_kept_response_is_the_one_that_was_sent(served: Server) -> None:
    body = served.answer("hi", "some", metadata={"a": "b"})
    assert body["store"] is True
    found = served.client.get(f"{PATH}/{body['id']}", params={"include": "file_search_call.results"})
    assert (found.status_code, found.json()) == (200, body)
    stream = post(served.client, body_of("hi", store=True, stream=True))
    streamed = checked(events_in(stream.text))
    assert served.client.get(f"{PATH}/{streamed['id']}").json() == streamed


def test_an_answer_that_is_not_to_be_kept_is_not(served: Server) -> None:
    served.engine.play = saying("some")
    body = post(served.client, body_of("hi", store=False)).json()
    assert body["store"] is False
    assert_not_kept(served.client, body["id"])


def assert_not_kept(client: httpx.Client, response_id: str) -> None:
    path = f"{PATH}/{response_id}"
    for response in (client.get(path), client.get(f"{path}/input_items"), client.delete(path)):
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (404, "response_not_found")
    error = refusal(client, body_of("x", previous_response_id=response_id))
    assert (error["param"], error["code"]) == ("previous_response_id", "previous_response_not_found")


def test_a_deleted_response_is_gone_but_not_what_followed_it(served: Server) -> None:
    first = served.answer("one", "uno")
    second = served.answer("two", "due", previous_response_id=first["id"])
    deleted = served.client.delete(f"{PATH}/{first['id']}")
    assert deleted.json() == {"id": first["id"], "object": "response", "deleted": True}
    assert_not_kept(served.client, first["id"])
    served.answer("three", "tre", previous_response_id=second["id"])
    assert [message.content for message in served.messages] == ["one", "uno", "two", "due", "three"]


def test_only_so_many_are_kept(served: Server) -> None:
    bodies = [served.answer("hi", "x") for _ in range(6)]
    assert_not_kept(served.client, bodies[0]["id"])
    assert served.client.get(f"{PATH}/{bodies[1]['id']}").status_code == 200


def test_a_response_goes_on_from_all_that_was_said_but_not_from_the_instructions(served: Server) -> None:
    tool = {"type": "function", "name": "f", "strict": False, "parameters": {}}
    first = served.answer(
        "one",
        thought("hm"),
        "well",
        *call(0, "f", '{"a": 1.50}'),
        *call(1, "f", "{}"),
        instructions="Be kind.",
        tools=[tool],
    )
    assert [message.role for message in served.messages] == ["system", "user"]
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": item["call_id"][-1]}
        for item in first["output"]
        if item["type"] == "function_call"
    ]
    served.answer(results, "ok", previous_response_id=first["id"], instructions="Be brief.", tools=[tool])
    ids = [item["call_id"] for item in first["output"][2:]]
    assert served.messages == [
        Message("system", "Be brief."),
        Message("user", "one"),
        Message("assistant", "well", "hm", (ToolCall("f", '{"a": 1.50}'), ToolCall("f", "{}"))),
        Message("tool", "0", name="f", tool_call_id=ids[0]),
        Message("tool", "1", name="f", tool_call_id=ids[1]),
    ]
    assert not served.engine.prompts[-1].continue_final


def test_an_answer_that_was_cut_goes_on_where_it_stopped(served: Server) -> None:
    cut = {"finish_reason": FinishReason.OUTPUT_LIMIT}
    first = served.answer("count", "one ", result=cut)
    second = served.answer([], "two ", previous_response_id=first["id"], result=cut)
    assert served.engine.prompts[-1].continue_final
    assert [item["content"][0]["text"] for item in served.items(second)["data"]] == ["count", "one "]
    served.answer([], "three", previous_response_id=second["id"])
    assert served.messages == [Message("user", "count"), Message("assistant", "one two ")]
    third = served.answer("and?", "x", previous_response_id=second["id"])
    assert [message.content for message in served.messages] == ["count", "one two ", "and?"]
    assert len(served.items(third)["data"]) == 3


def test_the_items_that_a_response_was_made_from(served: Server) -> None:
    call_item = {"type": "function_call", "call_id": "c", "name": "f", "namespace": "n", "arguments": "{}"}
    given = [
        {"role": "developer", "content": "a"},
        {"role": "user", "content": [{"type": "input_text", "text": "b"}, {"type": "input_text", "text": "c"}]},
        {"type": "reasoning", "id": "rs_own", "summary": [], "content": [{"type": "reasoning_text", "text": "d"}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "e"}, {"type": "refusal", "refusal": "f"}]},
        call_item,
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "g"}]},
        {"role": "user", "content": "h"},
    ]
    body = served.answer(given, "ok")
    key = body["id"].removeprefix("resp_")
    listed = served.items(body)
    texts = [{"type": "input_text", "text": text} for text in "abch"]
    assert listed["data"] == [
        {"id": f"msg_{key}_in0", "type": "message", "role": "developer", "content": texts[:1], "status": "completed"},
        {"id": f"msg_{key}_in1", "type": "message", "role": "user", "content": texts[1:3], "status": "completed"},
        {**given[2], "status": "completed"},
        {
            "id": f"msg_{key}_in3",
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "e", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "f"},
            ],
            "status": "completed",
        },
        {"id": f"fc_{key}_in4", **call_item, "status": "completed"},
        {
            "id": f"fco_{key}_in5",
            "type": "function_call_output",
            "call_id": "c",
            "output": "g",
            "status": "completed",
        },
        {"id": f"msg_{key}_in6", "type": "message", "role": "user", "content": texts[3:], "status": "completed"},
    ]
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert (listed["first_id"], listed["last_id"]) == (f"msg_{key}_in0", f"msg_{key}_in6")
    followed = served.answer("next", "ok", previous_response_id=body["id"])
    told = served.messages
    assert [item["type"] for item in served.items(followed)["data"]][-2:] == ["message", "message"]
    assert served.items(followed)["data"][:7] == listed["data"]
    served.answer([*listed["data"], body["output"][0], {"role": "user", "content": "next"}], "ok")
    assert served.messages == told, "the listed items say the same when they are sent"


def test_pages_of_items(served: Server) -> None:
    body = served.answer([{"role": "user", "content": str(number)} for number in range(25)], "ok")

    def page(**query: Any) -> tuple[list[str], bool]:
        found = served.client.get(f"{PATH}/{body['id']}/input_items", params=query).json()
        return [item["content"][0]["text"] for item in found["data"]], found["has_more"]

    assert page() == ([str(number) for number in range(24, 4, -1)], True)
    after = f"msg_{body['id'].removeprefix('resp_')}_in5"
    assert page(after=after) == (["4", "3", "2", "1", "0"], False)
    assert page(after=after, order="asc", limit=2) == (["6", "7"], True)
    last = after.replace("in5", "in24")
    assert served.items(body, after=last)["first_id"] is None


@pytest.mark.parametrize(
    ("path", "param", "code"),
    [
        ("?stream=true", "stream", "invalid_value"),
        ("?starting_after=3", "starting_after", "unknown_parameter"),
        ("?include=message.output_text.logprobs", "include", "unsupported_parameter"),
        ("/input_items?limit=0", "limit", "invalid_value"),
        ("/input_items?limit=101", "limit", "invalid_value"),
        ("/input_items?limit=x", "limit", "invalid_value"),
        ("/input_items?order=up", "order", "invalid_value"),
        ("/input_items?after=msg_0", "after", "item_not_found"),
        ("/input_items?include[]=reasoning.encrypted_content", "include", "unsupported_parameter"),
    ],
)
def test_refused_queries(served: Server, path: str, param: str, code: str) -> None:
    body = served.answer("hi", "x")
    response = served.client.get(f"{PATH}/{body['id']}{path}")
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["param"], error["code"]) == (param, code)


def test_an_item_by_its_id(served: Server) -> None:
    first = served.answer("one", "uno")
    (said,) = first["output"]
    asked = served.items(first)["first_id"]
    references = [{"type": "item_reference", "id": asked}, {"id": said["id"]}, {"role": "user", "content": "two"}]
    served.answer(references, "due")
    assert [message.content for message in served.messages] == ["one", "uno", "two"]
    error = refusal(served.client, body_of([{"type": "item_reference", "id": f"{said['id']}1"}]))
    assert (error["param"], error["code"]) == ("input[0].id", "item_not_found")


def test_an_item_is_referred_to_once(served: Server) -> None:
    first = served.answer("one", "uno")
    error = refusal(served.client, body_of([{"id": first["output"][0]["id"]}] * 2))
    assert (error["param"], error["code"]) == ("input[1].id", "invalid_value")


def test_what_was_kept_is_bounded_in_a_request() -> None:
    engine = StagedEngine(saying("ok"))
    with live_server(engine, max_body_bytes=1000) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        kept: list[str] = []
        for previous in (False, True, True, True):
            fields = {"previous_response_id": kept[-1]} if previous else {}
            kept.append(post(client, body_of("x" * 700, store=True, **fields)).json()["id"])
        error = refusal(client, body_of("x", previous_response_id=kept[-1]))
        assert (error["param"], error["code"]) == ("previous_response_id", "context_length_exceeded")
        kept.append(post(client, body_of("x" * 700, store=True)).json()["id"])
        references = [{"id": f"msg_{response_id.removeprefix('resp_')}_in0"} for response_id in kept]
        error = refusal(client, body_of(references))
        assert (error["param"], error["code"]) == ("input[4].id", "context_length_exceeded")
        assert post(client, body_of(references[:4])).status_code == 200


def test_a_conversation_that_cannot_go_on_from_here(served: Server) -> None:
    first = served.answer("one", *call(0, "f", "{}"))
    error = refusal(served.client, body_of([], previous_response_id=first["id"]))
    assert error["param"] == "previous_response_id"
    assert "call without its result" in error["message"]


def test_counting_tokens_never_submits_or_compiles(served: Server) -> None:
    first = served.answer("one", "uno")
    num_requests = len(served.engine.handles)
    body = {
        "model": "scripted",
        "input": "four",
        "instructions": "sys",
        "previous_response_id": first["id"],
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {"uniqueItems": True}}},
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}],
        "tool_choice": "auto",
        "reasoning": {"effort": "none"},
    }
    response = served.client.post(f"{PATH}/input_tokens", json=body)
    # The staged engine counts characters.
    assert response.json() == {"object": "response.input_tokens", "input_tokens": len("sysoneunofour")}
    assert len(served.engine.handles) == num_requests
    del body["model"]
    assert served.client.post(f"{PATH}/input_tokens", json=body).status_code == 200
    for fields, param in (
        ({"stream": True}, "stream"),
        ({"personality": "friendly"}, "personality"),
        ({"tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name"),
        ({"previous_response_id": "resp_0"}, "previous_response_id"),
        ({"guided_json": {}}, "guided_json"),
    ):
        refused = served.client.post(f"{PATH}/input_tokens", json=body | fields)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_what_is_kept_is_json_that_says_the_same(served: Server) -> None:
    text = 'a\n"b"\\ \u2028 在 \U0001f600'
    body = served.answer(text, text)
    again = served.client.get(f"{PATH}/{body['id']}")
    assert json.loads(again.content) == body
    assert served.items(body)["data"][0]["content"][0]["text"] == text
