"""One request through the three protocols: one grammar, and for one seed one answer, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.chat_output import JSON_AS_TEXT, xml_call
from support.live_server import answering, live_server
from support.three_protocols import ask_all, bodies, refuse_all

SCHEMA = {
    "type": "object",
    "properties": {"zip": {"type": "string", "maxLength": 6}, "age": {"type": "integer"}},
    "required": ["zip", "age"],
    "additionalProperties": False,
}
NOTE = {"name": "note", "description": "Notes.", "strict": True, "parameters": SCHEMA}
OTHER = {"name": "other", "parameters": {"type": "object"}}
NOTE_CALL = xml_call("note", {"zip": "a", "age": "3"})
OTHER_CALL = xml_call("other", {"x": "y"})
NOTED = ("note", '{"zip": "a", "age": 3}')
SAMPLED = {"temperature": 1.0, "seed": 11}


@pytest.fixture(scope="module")
def client(warmed_kernels: None) -> Iterator[httpx.Client]:
    """A server whose model says what it was asked."""
    with (
        answering(lambda said: said, max_context=3000) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as found,
    ):
        yield found


CONSTRAINTS: dict[str, dict[str, Any]] = {
    "schema": {"schema": SCHEMA},
    "any": {"schema": {}},
    "grammar": {"outputs": {"grammar": 'root ::= "ok" [0-9]+'}},
    "regex": {"outputs": {"regex": "ok[0-9]+"}},
    "choice": {"outputs": {"choice": ["ok1", "ok2", ""]}},
    "tool": {"tools": [NOTE], "choice": "required"},
    "named": {"tools": [NOTE, OTHER], "choice": ("note",)},
    "auto": {"tools": [NOTE, OTHER]},
    "one": {"tools": [NOTE, OTHER], "parallel": False},
    "json or calls": {"schema": SCHEMA, "tools": [NOTE]},
    "json, no calls": {"schema": SCHEMA, "tools": [NOTE], "choice": "none"},
}


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("thinking", [False, True])
def test_one_grammar_and_one_answer(client: httpx.Client, name: str, thinking: bool) -> None:
    """At a temperature, so that it is the seed's answer and not only the likeliest; cut where it would not end."""
    request = CONSTRAINTS[name] | {"thinking": thinking, "limit": 120}
    first = ask_all(client, "hm</think>\n\nok1", **request, **SAMPLED)
    assert first.caches[0] in ("built", "hit")  # engines of other tests share the compiler
    assert first.caches[1:] == ("hit", "hit")
    assert first.one.reasoning == ("hm" if thinking else "")
    assert dict(first.one.record)["mask_positions"] > 0
    assert ask_all(client, "hm</think>\n\nok1", **request, **SAMPLED).caches == ("hit",) * 3


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize(
    ("said", "request_", "text", "calls"),
    [
        ("free", {}, "free", []),
        ('{"zip": "a", "age": 3}', {"schema": SCHEMA}, '{"zip": "a", "age": 3}', []),
        (NOTE_CALL, {"tools": [NOTE]}, "", [NOTED]),
        (NOTE_CALL, {"tools": [NOTE], "schema": SCHEMA}, "", [NOTED]),
        (f"{NOTE_CALL}\n{NOTE_CALL}", {"tools": [NOTE], "parallel": False}, "", [NOTED]),
        (f"{NOTE_CALL}\n{NOTE_CALL}", {"tools": [NOTE]}, "", [NOTED] * 2),
        (f"{NOTE_CALL}\n{NOTE_CALL}", {"tools": [NOTE, OTHER], "choice": ("note",)}, "", [NOTED]),
        (f"ok\n{OTHER_CALL}", {"tools": [NOTE, OTHER]}, "ok\n", [("other", '{"x": "y"}')]),
        (f"ok {OTHER_CALL} so", {"tools": [OTHER], "tool_constraints": "auto"}, "ok  so", [("other", '{"x": "y"}')]),
    ],
)
def test_what_the_model_wants_comes_through(
    client: httpx.Client, said: str, request_: dict[str, Any], text: str, calls: list[Any], thinking: bool
) -> None:
    answer = ask_all(client, f"hm</think>\n\n{said}", thinking=thinking, **request_).one
    assert (answer.text, list(answer.calls), answer.end) == (text, calls, "stop")
    assert answer.reasoning == ("hm" if thinking else "")


def test_a_begun_answer_goes_on_under_its_constraint(client: httpx.Client) -> None:
    answer = ask_all(client, '{"zip": "a", "age": 3}', schema=SCHEMA, continued='{"zip": ').one
    assert answer.text == '"a", "age": 3}'
    assert json.loads('{"zip": ' + answer.text) == {"zip": "a", "age": 3}


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ({"schema": {"type": "string", "format": "date"}}, "unsupported_json_schema", ".schema/format: "),
        ({"schema": {"type": "strin"}}, "invalid_json_schema", ".schema/type: "),
        ({"schema": {"allOf": [{"const": 1}, {"const": 2}]}}, "unsatisfiable_json_schema", ".schema"),
        ({"outputs": {"regex": "("}}, "invalid_regex", "structured_outputs.regex: "),
        ({"outputs": {"grammar": "root ::= x"}}, "invalid_grammar", "structured_outputs.grammar: "),
        ({"outputs": {"choice": []}}, "invalid_choice", "structured_outputs.choice: "),
        ({"outputs": {"choice": ["a"]}, "schema": SCHEMA}, "invalid_value", "only one output constraint"),
        ({"outputs": {"choice": ["a"], "regex": "a"}}, "invalid_value", "exactly one"),
        ({"outputs": {"regex": "a"}, "tools": [NOTE]}, None, ""),
        ({"tools": [NOTE, NOTE]}, "invalid_tool_constraint", "tools/0"),
        ({"tools": [NOTE], "choice": ("gone",)}, "invalid_tool_constraint", "tool_choice."),
        ({"guided_json": {}}, "unsupported_parameter", "guided_json: "),
        ({"nonsense": 1}, "unknown_parameter", "nonsense: "),
    ],
)
def test_one_mistake_is_refused_by_all(
    client: httpx.Client, request_: dict[str, Any], code: str | None, message: str
) -> None:
    for protocol, (found, text) in refuse_all(client, "ok", **request_).items():
        assert message in text, protocol
        assert found == code or code is None, protocol


def test_thinking_that_the_model_cannot_do_is_refused_by_its_field(warmed_kernels: None) -> None:
    with (
        answering(lambda said: said, JSON_AS_TEXT) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as plain,
    ):
        refused = refuse_all(plain, "ok", thinking=True)
        assert {name: message.partition(":")[0] for name, (_, message) in refused.items()} == {
            "chat": "enable_thinking",
            "responses": "enable_thinking",
            "messages": "thinking",
        }
        for field in ("reasoning_effort", "chat_template_kwargs"):
            body = bodies("ok")["chat"] | {"enable_thinking": None}
            body[field] = "high" if field == "reasoning_effort" else {"enable_thinking": True}
            error = plain.post("/v1/chat/completions", json=body).json()["error"]
            assert error["param"].startswith(field)


def test_a_budget_without_room_is_refused_by_its_field(client: httpx.Client) -> None:
    asked = bodies("ok", thinking=True, limit=1026)
    asked["chat"]["thinking_budget"] = asked["responses"]["thinking_budget"] = 1025
    asked["messages"]["thinking"] = {"type": "enabled", "budget_tokens": 1025}
    for name, field in [("chat", "thinking_budget"), ("responses", "thinking_budget")]:
        path = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}[name]
        error = client.post(path, json=asked[name]).json()["error"]
        assert (error["code"], error["param"]) == ("thinking_budget_capacity_insufficient", field)
    error = client.post("/v1/messages", json=asked["messages"]).json()["error"]
    assert error["message"].startswith("thinking.budget_tokens: ")


def test_a_prompt_that_is_too_long_is_refused_by_its_field(client: httpx.Client) -> None:
    refused = refuse_all(client, "\u00e9" * 3000)
    assert {code for code, _ in refused.values()} == {"context_length_exceeded"}
    places = {name: message.partition(":")[0] for name, (_, message) in refused.items()}
    assert places == {"chat": "messages", "responses": "input", "messages": "messages"}


def test_parameters_that_are_null_are_none(client: httpx.Client) -> None:
    """Clients write null for a function without parameters; Anthropic's protocol asks for a schema."""
    said = xml_call("note", {"x": "y"})
    asked = bodies(said, tools=[{"name": "note", "parameters": None}], choice="required")
    chat = client.post("/v1/chat/completions", json=asked["chat"]).json()
    (call,) = chat["choices"][0]["message"]["tool_calls"]
    (item,) = client.post("/v1/responses", json=asked["responses"]).json()["output"]
    assert call["function"]["arguments"] == item["arguments"] == '{"x":"y"}'
    assert client.post("/v1/messages", json=asked["messages"]).status_code == 400
