"""What a Messages request may not ask for, and the fields that ask for nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from infernix.server.messages.body import COUNT_IDLE_FIELDS, IDLE_FIELDS
from support.messages_client import ask, messages_body, post, refusal

COUNT = "/v1/messages/count_tokens"
TOOL = {"name": "f", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "hi"}
USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "http://example.com/a.png"}}
CAPACITY = "thinking_budget_capacity_insufficient"
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}


def asked(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def answered(*blocks: Any, then: Any = (USER,)) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", "content": list(blocks)}, *then]}


def tool(**fields: Any) -> dict[str, Any]:
    return {"tools": [{**TOOL, **fields}]}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"what": 1}, "what: unknown field"),
        ({"guided_json": {}}, "guided_json: not known here: use output_config.format"),
        ({"guided_regex": "a"}, "guided_regex: not known here: use structured_outputs.regex"),
        ({"guided_choice": ["a"]}, "guided_choice: "),
        ({"guided_grammar": "root ::= x"}, "guided_grammar: "),
        ({"grammar": "root ::= x"}, "grammar: not known here: use structured_outputs.grammar"),
        ({"json_schema": {}}, "json_schema: "),
        ({"response_format": {"type": "json_object"}}, "response_format: not known here: use output_config.format"),
        ({"output_format": {}}, "output_format: an old form: use output_config.format"),
        ({"stop": ["a"]}, "stop: not known here: use stop_sequences"),
        ({"container": "x"}, "container: "),
        ({"inference_geo": "eu"}, "inference_geo: "),
        ({"speed": "fast"}, "speed: "),
        ({"service_tier": "priority"}, "service_tier: "),
        ({"diagnostics": {}}, "diagnostics: "),
        ({"context_management": {}}, "context_management: "),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers: "),
        ({"thread": {"type": "create"}}, "thread: conversations are not kept here"),
        ({"metadata": "x"}, "metadata: expected an object"),
        ({"model": ""}, "model: "),
        ({"model": 3}, "model: "),
        ({"max_tokens": 0}, "max_tokens: "),
        ({"max_tokens": "9"}, "max_tokens: "),
        ({"temperature": 1.5}, "temperature: "),
        ({"temperature": True}, "temperature: "),
        ({"top_p": -0.5}, "top_p: "),
        ({"top_k": -1}, "top_k: "),
        ({"seed": 2**64}, "seed: "),
        ({"stop_sequences": [""]}, "stop_sequences: "),
        ({"stop_sequences": ["a"] * 17}, "stop_sequences: "),
        ({"stop_sequences": [3]}, "stop_sequences[0]: "),
        ({"thinking": {"type": "enabled", "budget_tokens": 1023}}, "thinking.budget_tokens: "),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: missing"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1024},
            "thinking.budget_tokens: expected fewer than max_tokens",
        ),
        ({"thinking": {"type": "adaptive", "display": "summarized"}}, "thinking.display: "),
        ({"thinking": {"type": "adaptive", "budget_tokens": 2000}}, "thinking.budget_tokens: unknown field"),
        ({"thinking": {"type": "between_tools"}}, "thinking: "),
        ({"thinking": True}, "thinking: "),
        ({"messages": []}, "messages: "),
        ({"messages": "hi"}, "messages: "),
        ({"messages": [{"content": "x"}]}, "messages[0]: a message has a role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]: a message has a role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content: missing"),
        ({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}, "messages[0].name: unknown field"),
        (asked(), "messages[0].content: "),
        (asked(IMAGE), "messages[0].content[0]: a block of a user is of type text or tool_result"),
        (asked(TEXT, DOCUMENT), "messages[0].content[1]: a block of a user"),
        (asked({"type": "thinking", "thinking": "x", "signature": ""}), "messages[0].content[0]: "),
        (asked({"type": "text"}), "messages[0].content[0].text: missing"),
        (asked({**TEXT, "citations": [{}]}), "messages[0].content[0].citations: "),
        (asked({**TEXT, "cache_control": {"type": "forever"}}), "messages[0].content[0].cache_control.type: "),
        (asked(RESULT), "messages[0].content[0].tool_use_id: no call with this id"),
        (answered({"type": "redacted_thinking", "data": "x"}), "messages[1].content[0]: a block of an assistant"),
        (answered({"type": "thinking", "thinking": "x"}), "messages[1].content[0].signature: missing"),
        (
            answered(TEXT, {"type": "thinking", "thinking": "x", "signature": "y"}),
            "messages[1].content[1]: thinking comes before",
        ),
        (answered(USE, TEXT), "messages[1].content[1]: texts come before calls"),
        (answered(USE, USE), "messages[1].content[1].id: an earlier call has this id"),
        (answered({**USE, "input": [1]}), "messages[1].content[0].input: expected an object"),
        (answered({**USE, "input": "{}"}), "messages[1].content[0].input: expected an object"),
        (answered({**USE, "caller": {"type": "code"}}), "messages[1].content[0].caller.type: "),
        (
            answered(USE, then=[{"role": "user", "content": [TEXT, RESULT]}]),
            "messages[2].content[1]: results of calls come before texts",
        ),
        (
            answered(USE, then=[{"role": "user", "content": [{**RESULT, "content": [IMAGE]}]}]),
            "messages[2].content[0].content[0]: only blocks of type text",
        ),
        (answered(USE, then=()), "messages[1].content: the results of its calls must follow"),
        (answered(then=()), "messages[1].content: the last message is continued"),
        ({**answered(TEXT, then=()), "thinking": {"type": "adaptive"}}, "thinking: an answer that was begun"),
        ({"system": [IMAGE]}, "system[0]: only blocks of type text"),
        ({"system": 3}, "system: "),
        (tool(type="web_search_20250305"), "tools[0]: a tool has no type, or is of type custom"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]: a tool has no type"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema: missing"),
        ({"tools": ["f"]}, "tools[0]: "),
        (tool(input_schema=True), "tools[0].input_schema: expected an object"),
        (tool(input_schema="x"), "tools[0].input_schema: expected an object"),
        (tool(parameters={}), "tools[0].parameters: unknown field"),
        (tool(defer_loading=True), "tools[0].defer_loading: "),
        (tool(allowed_callers=["code_execution_20250825"]), "tools[0].allowed_callers[0]: "),
        (tool(name=""), "tools[0]: "),
        (tool(name="a<b"), "tools[0]: "),
        (tool(input_examples=[3]), "tools[0].input_examples[0]: expected an object"),
        (
            tool(input_schema={"type": "object", "examples": [{}]}, input_examples=[{}]),
            "tools[0].input_examples: the schema has examples of its own",
        ),
        (tool(strict=True), "tools/0/input_schema"),
        ({"tools": [TOOL, TOOL]}, "tools/0/name: "),
        ({"tools": [TOOL], "tool_choice": "auto"}, "tool_choice: a tool choice is of type"),
        ({"tools": [TOOL], "tool_choice": {"type": "required"}}, "tool_choice: a tool choice is of type"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "tool_choice.name: no tool 'g' is declared"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "none", "disable_parallel_tool_use": True}},
            "tool_choice.disable_parallel_tool_use: unknown field",
        ),
        ({"tool_choice": {"type": "any"}}, "tool_choice: "),
        ({"tool_constraints": "none"}, "tool_constraints: "),
        (
            {"output_config": {"format": {"type": "json_object"}}},
            "output_config.format: a format is of type json_schema",
        ),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format: a format is of type json_schema"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: missing"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {}, "name": "x"}}},
            "output_config.format.name: unknown field",
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": [1]}}},
            "output_config.format.schema: expected an object",
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"properties": {"a": {"format": "date"}}}}}},
            "output_config.format.schema/properties/a/format: ",
        ),
        ({"output_config": {"effort": "low"}}, "output_config.effort: "),
        ({"output_config": {"task_budget": {}}}, "output_config.task_budget: unknown field"),
        ({"structured_outputs": {}}, "structured_outputs: expected exactly one"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs: expected exactly one"),
        ({"structured_outputs": {"json": {}}}, "structured_outputs.json: unknown field"),
        ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex: "),
        ({"structured_outputs": {"grammar": ""}}, "structured_outputs.grammar: "),
        ({"structured_outputs": {"choice": ["a", 1]}}, "structured_outputs.choice[1]: "),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice: "),
        (
            {
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
                "structured_outputs": {"regex": "a"},
            },
            "structured_outputs.regex: only one output constraint",
        ),
        ({"tools": [TOOL], "structured_outputs": {"regex": "a"}}, "structured_outputs.regex: "),
    ],
)
def test_refused_with_its_place(echo: httpx.Client, fields: dict[str, Any], place: str) -> None:
    message = refusal(echo, messages_body(**fields))
    assert message.startswith(place), message


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"what": 1}, "unknown_parameter"),
        ({"speed": "fast"}, "unsupported_parameter"),
        ({"thread": {"type": "create"}}, "thread_unsupported_request"),
        ({"structured_outputs": {"regex": "("}}, "invalid_regex"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1030}, CAPACITY),
    ],
)
def test_an_error_has_a_code(echo: httpx.Client, fields: dict[str, Any], code: str) -> None:
    error = post(echo, messages_body(**fields)).json()["error"]
    assert error["details"] == {"error_code": code}


def test_a_stream_is_true_or_false(echo: httpx.Client) -> None:
    response = post(echo, messages_body(stream="yes"))
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("stream: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"user_id": "u"}},
        {"service_tier": "auto"},
        {"service_tier": "standard_only"},
        {"cache_control": {"type": "ephemeral"}},
        {"speed": "standard"},
        {"mcp_servers": []},
        {"user_profile_id": "u"},
        dict.fromkeys(IDLE_FIELDS),
        {"output_config": {"effort": "high"}},
        {"output_config": {"format": None, "effort": None}},
        {"stop_sequences": []},
        {"tools": []},
        {"max_tokens": None},
        {"model": "claude-opus-4-8"},
        asked({**TEXT, "text": "ok", "citations": None, "cache_control": {"type": "ephemeral", "ttl": "1h"}}),
        tool(
            type="custom",
            description="Does it.",
            cache_control={"type": "ephemeral"},
            eager_input_streaming=True,
            defer_loading=False,
            allowed_callers=["direct"],
            strict=False,
        ),
    ],
)
def test_fields_that_ask_for_nothing(echo: httpx.Client, fields: dict[str, Any]) -> None:
    message = ask(echo, messages_body("ok", **fields))
    assert message["content"] == [{"type": "text", "text": "ok"}]


def test_examples_of_a_tool_are_in_the_prompt_and_bind_nothing(echo: httpx.Client) -> None:
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    for schema in (closed, {"type": "object"}, {}):
        body = messages_body("ok", tools=[{**TOOL, "input_schema": schema, "input_examples": [{"b": 1.50}]}])
        assert ask(echo, body)["content"][0]["text"] == "ok"
    strict = {**TOOL, "input_schema": closed, "input_examples": [{"b": 1}], "strict": True}
    message = ask(echo, messages_body("ok", tools=[strict], tool_choice={"type": "any"}, max_tokens=200))
    assert message["content"][0]["type"] == "tool_use"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"max_tokens": 5}, "max_tokens: unknown field"),
        ({"stream": True}, "stream: unknown field"),
        ({"metadata": {}}, "metadata: unknown field"),
        ({"guided_json": {}}, "guided_json: "),
        ({"messages": []}, "messages: "),
        (asked(IMAGE), "messages[0].content[0]: "),
        ({"tools": [{**TOOL, "name": ""}]}, "tools[0]: "),
    ],
)
def test_a_count_is_as_strict(echo: httpx.Client, fields: dict[str, Any], place: str) -> None:
    body = {"model": "x", "messages": [USER], **fields}
    response = post(echo, body, COUNT)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith(place)


def test_a_count_takes_what_sdks_send(echo: httpx.Client) -> None:
    body = {"model": "x", "messages": [USER]}
    plain = post(echo, body, COUNT).json()
    idle = dict.fromkeys(COUNT_IDLE_FIELDS) | {"cache_control": {"type": "ephemeral"}}
    choice = {"tool_choice": {"type": "auto"}, "structured_outputs": {"regex": "("}}
    assert post(echo, {**body, **idle, **choice}, COUNT).json() == plain


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/messages", messages_body()), (COUNT, {"model": "x", "messages": [USER]})]
)
def test_versions(echo: httpx.Client, path: str, body: dict[str, Any]) -> None:
    for version in ("2023-06-01", "2026-10-21"):
        assert echo.post(path, json=body, headers={"anthropic-version": version}).status_code == 200
    for version in ("2023-01-01", "latest", ""):
        response = echo.post(path, json=body, headers={"anthropic-version": version})
        assert response.status_code == 400
        assert response.json()["error"]["message"].startswith("anthropic-version: ")


@pytest.mark.parametrize("path", ["/v1/messages", COUNT])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"\xff", b"[" * 10000])
def test_what_is_no_json(echo: httpx.Client, path: str, content: bytes) -> None:
    response = echo.post(path, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_a_path_below_is_answered_in_the_same_form(echo: httpx.Client) -> None:
    missing = echo.post("/v1/messages/batches", json={})
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
    wrong = echo.get("/v1/messages")
    assert (wrong.status_code, wrong.json()["type"]) == (405, "error")
