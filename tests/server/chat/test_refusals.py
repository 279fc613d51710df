"""What a chat completion request may not ask for, and the fields that ask for nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.chat_client import ask, chat_body, post, refusal


def formatted(**json_schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "g", **fields}}


CLOSED = {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "additionalProperties": False}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"what": 1}, "what", "unknown_parameter"),
        ({"guided_json": {}}, "guided_json", "unsupported_parameter"),
        ({"guided_regex": "a"}, "guided_regex", "unsupported_parameter"),
        ({"guided_choice": ["a"]}, "guided_choice", "unsupported_parameter"),
        ({"guided_grammar": "root ::= x"}, "guided_grammar", "unsupported_parameter"),
        ({"grammar": "root ::= x"}, "grammar", "unsupported_parameter"),
        ({"logprobs": True}, "logprobs", "unsupported_parameter"),
        ({"top_logprobs": 2}, "top_logprobs", "unsupported_parameter"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter"),
        ({"store": True}, "store", "unsupported_parameter"),
        ({"service_tier": "flex"}, "service_tier", "unsupported_parameter"),
        ({"verbosity": "low"}, "verbosity", "unsupported_parameter"),
        ({"modalities": ["text", "audio"]}, "modalities", "unsupported_parameter"),
        ({"audio": {"voice": "x"}}, "audio", "unsupported_parameter"),
        ({"prediction": {"type": "content"}}, "prediction", "unsupported_parameter"),
        ({"moderation": {"model": "x"}}, "moderation", "unsupported_parameter"),
        ({"web_search_options": {}}, "web_search_options", "unsupported_parameter"),
        ({"functions": []}, "functions", "unsupported_parameter"),
        ({"function_call": "auto"}, "function_call", "unsupported_parameter"),
        ({"repetition_penalty": 1.1}, "repetition_penalty", "unsupported_parameter"),
        ({"user": 3}, "user", "unsupported_parameter"),
        ({"metadata": "x"}, "metadata", "unsupported_parameter"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"temperature": "1"}, "temperature", "invalid_value"),
        ({"temperature": True}, "temperature", "invalid_value"),
        ({"top_p": -0.5}, "top_p", "invalid_value"),
        ({"presence_penalty": 2.5}, "presence_penalty", "invalid_value"),
        ({"seed": 1.5}, "seed", "invalid_value"),
        ({"seed": 2**64}, "seed", "invalid_value"),
        ({"n": 0}, "n", "invalid_value"),
        ({"n": 100}, "n", "invalid_value"),
        ({"max_tokens": -1}, "max_tokens", "invalid_value"),
        ({"stop": ["a"] * 5}, "stop", "invalid_value"),
        ({"stop": [""]}, "stop", "invalid_options"),
        ({"stop": [3]}, "stop[0]", "invalid_value"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": "hi"}, "messages", "invalid_value"),
        ({"messages": [{"content": "x"}]}, "messages[0]", "invalid_value"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "invalid_value"),
        ({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}, "messages[0].name", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].image_url",
            "unknown_parameter",
        ),
        ({"messages": [{"role": "assistant"}]}, "messages[0].content", "invalid_value"),
        (
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": "call_1"}]},
            "messages[0].tool_call_id",
            "invalid_value",
        ),
        ({"reasoning_effort": "huge"}, "reasoning_effort", "invalid_value"),
        ({"reasoning_effort": "high"}, "reasoning_effort", "invalid_value"),
        ({"chat_template_kwargs": {"x": 1}}, "chat_template_kwargs.x", "unknown_parameter"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "enable_thinking", "invalid_value"),
        ({"stream_options": {"what": 1}}, "stream_options.what", "unknown_parameter"),
        ({"tool_choice": "any"}, "tool_choice", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_tool_constraint"),
        ({"tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice.function.name", None),
        (
            {"tool_choice": {"type": "custom", "custom": {"name": "f"}}, "tools": [FUNCTION]},
            "tool_choice.custom.name",
            None,
        ),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice", "missing_required_parameter"),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}},
            "tool_choice.tools[0]",
            "invalid_tool_constraint",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "tool_type_not_supported"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function", "invalid_tool_constraint"),
        ({"tools": [FUNCTION, FUNCTION]}, "tools/0/function/name", "invalid_tool_constraint"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "grammar"}}}]},
            "tools[0].custom.format.type",
            "invalid_value",
        ),
        ({"tool_constraints": "strict"}, "tool_constraints", "invalid_value"),
    ],
)
def test_refused(echo: httpx.Client, fields: dict[str, Any], param: str, code: str | None) -> None:
    error = refusal(echo, chat_body(**fields))
    assert (error["param"], error["code"]) == (param, code or "invalid_tool_constraint")
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"{param}: ")


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"response_format": {"type": "json_object", "x": 1}}, "response_format.x", "unknown_parameter"),
        ({"response_format": {"type": "text", "x": 1}}, "response_format.x", "unknown_parameter"),
        ({"response_format": {"type": "yaml"}}, "response_format", "invalid_value"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "missing_required_parameter"),
        (
            formatted(schema={}),
            "response_format.json_schema.name",
            "missing_required_parameter",
        ),
        (
            formatted(name="a b", schema={}),
            "response_format.json_schema.name",
            "invalid_value",
        ),
        (
            formatted(name="a", schema="x"),
            "response_format.json_schema.schema",
            "invalid_json_schema",
        ),
        (
            formatted(name="a", schema={"properties": {"b": {"uniqueItems": True}}}),
            "response_format.json_schema.schema/properties/b/uniqueItems",
            "unsupported_json_schema",
        ),
        (
            formatted(name="a", schema=False),
            "response_format.json_schema.schema",
            "unsatisfiable_json_schema",
        ),
        ({"structured_outputs": {}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"json": {}}}, "structured_outputs.json", "unknown_parameter"),
        ({"structured_outputs": {"grammar": ""}}, "structured_outputs.grammar", "invalid_grammar"),
        ({"structured_outputs": {"grammar": 'root ::= "a'}}, "structured_outputs.grammar", "invalid_grammar"),
        ({"structured_outputs": {"regex": "(?=a)"}}, "structured_outputs.regex", "invalid_regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice", "invalid_choice"),
        ({"structured_outputs": {"choice": "ab"}}, "structured_outputs.choice", "invalid_value"),
        (
            {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
            "structured_outputs.regex",
            "invalid_value",
        ),
        ({"structured_outputs": {"regex": "a"}, "tools": [FUNCTION]}, "structured_outputs.regex", "invalid_regex"),
        (
            {"tools": [FUNCTION, function(strict=True, parameters=CLOSED)]},
            "tools/1/function/parameters/properties/a/format",
            "unsupported_json_schema",
        ),
        (
            {"tools": [function(strict=True, parameters={"type": "object"})]},
            "tools/0/function/parameters",
            "unsupported_json_schema",
        ),
        ({"tools": [function(parameters=[])]}, "tools/0/function/parameters", "invalid_tool_constraint"),
    ],
)
def test_refused_constraints(echo: httpx.Client, fields: dict[str, Any], param: str, code: str) -> None:
    error = refusal(echo, chat_body(**fields))
    assert (error["param"], error["code"]) == (param, code)


def test_a_grammar_error_says_line_and_column(echo: httpx.Client) -> None:
    error = refusal(echo, chat_body(structured_outputs={"grammar": 'root ::= "a"\nroot ::= "b"'}))
    assert "line 2, column 1" in error["message"]
    assert echo.get("/health").status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "u", "safety_identifier": "s", "metadata": {"a": "b"}, "store": False, "service_tier": "auto"},
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}},
        {"verbosity": "medium", "modalities": ["text"], "logprobs": False, "top_logprobs": 0, "logit_bias": {}},
        {
            "repetition_penalty": 1.0,
            "n": 1,
            "response_format": {"type": "text"},
            "tools": [],
            "parallel_tool_calls": True,
        },
        dict.fromkeys(("user", "audio", "functions", "stop", "logprobs", "tools", "tool_choice", "seed", "n", "what")),
        {"stop": [], "structured_outputs": None, "guided_json": None, "max_tokens": 10, "max_completion_tokens": 10},
    ],
)
def test_fields_that_ask_for_nothing(echo: httpx.Client, fields: dict[str, Any]) -> None:
    fields = {name: value for name, value in fields.items() if name != "what"}
    assert ask(echo, chat_body("ok", **fields))["choices"][0]["message"]["content"] == "ok"


def test_another_model_is_not_found(echo: httpx.Client) -> None:
    error = refusal(echo, chat_body(model="gpt"), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{",
        '{"model": "scripted", "model": "scripted"}',
        '{"seed": NaN}',
        '{"temperature": 1e999}',
        '{"user": "\\ud800"}',
        '{"seed": ' + "9" * 5000 + "}",
        '{"messages": ' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"metadata": ' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "}",
    ],
)
def test_bodies_that_are_no_request(echo: httpx.Client, text: str) -> None:
    response = echo.post("/v1/chat/completions", content=text, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert post(echo, chat_body("ok")).status_code == 200
