"""What a responses request may not ask for, and the fields that ask for nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.responses_client import PATH, ask, body_of, post, refusal, text_of

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CLOSED = {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "additionalProperties": False}
USER = {"role": "user", "content": "x"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "x"}


def formatted(**members: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", **members}}}


def group(*tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": "n", "description": "d", "tools": list(tools)}


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"what": 1}, "what", "unknown_parameter"),
        ({"guided_json": {}}, "guided_json", "unsupported_parameter"),
        ({"guided_regex": "a"}, "guided_regex", "unsupported_parameter"),
        ({"guided_choice": ["a"]}, "guided_choice", "unsupported_parameter"),
        ({"guided_grammar": "root ::= x"}, "guided_grammar", "unsupported_parameter"),
        ({"grammar": "root ::= x"}, "grammar", "unsupported_parameter"),
        ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
        ({"messages": []}, "messages", "unsupported_parameter"),
        ({"max_tokens": 5}, "max_tokens", "unsupported_parameter"),
        ({"stop": ["a"]}, "stop", "unsupported_parameter"),
        ({"n": 2}, "n", "unsupported_parameter"),
        ({"reasoning_effort": "low"}, "reasoning_effort", "unsupported_parameter"),
        ({"top_logprobs": 2}, "top_logprobs", "unsupported_parameter"),
        ({"include": ["reasoning.encrypted_content"]}, "include", "unsupported_parameter"),
        ({"include": ["message.output_text.logprobs"]}, "include", "unsupported_parameter"),
        ({"include": [["x"]]}, "include", "unsupported_parameter"),
        ({"background": True}, "background", "unsupported_parameter"),
        ({"conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
        ({"truncation": "auto"}, "truncation", "unsupported_parameter"),
        ({"max_tool_calls": 3}, "max_tool_calls", "unsupported_parameter"),
        ({"service_tier": "flex"}, "service_tier", "unsupported_parameter"),
        ({"moderation": {"model": "x"}}, "moderation", "unsupported_parameter"),
        ({"context_management": []}, "context_management", "unsupported_parameter"),
        ({"user": 3}, "user", "unsupported_parameter"),
        ({"metadata": {"a": 1}}, "metadata.a", "invalid_value"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata", "invalid_value"),
        ({"temperature": 3}, "temperature", "invalid_value"),
        ({"temperature": "1"}, "temperature", "invalid_value"),
        ({"top_p": -0.5}, "top_p", "invalid_value"),
        ({"seed": 1.5}, "seed", "invalid_value"),
        ({"max_output_tokens": -1}, "max_output_tokens", "invalid_value"),
        ({"max_output_tokens": True}, "max_output_tokens", "invalid_value"),
        ({"stream_options": {"what": 1}}, "stream_options.what", "unknown_parameter"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation", "invalid_value"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "invalid_value"),
        ({"reasoning": {"summary": "auto"}}, "reasoning.summary", "invalid_value"),
        ({"reasoning": {"max_tokens": 3}}, "reasoning.max_tokens", "unknown_parameter"),
        ({"reasoning": {"effort": "low"}}, "enable_thinking", "invalid_value"),
        ({"text": {"verbosity": "low"}}, "text.verbosity", "invalid_value"),
        ({"previous_response_id": "resp_0"}, "previous_response_id", "previous_response_not_found"),
        ({"tool_constraints": "strict"}, "tool_constraints", "invalid_value"),
        ({"tool_choice": "any"}, "tool_choice", "invalid_value"),
        ({"tool_choice": "required"}, "tool_choice", "invalid_tool_constraint"),
        ({"tool_choice": {"type": "file_search"}}, "tool_choice", "invalid_value"),
        ({"tool_choice": {"type": "function", "name": "g"}}, "tool_choice.name", "invalid_tool_constraint"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.mode", "missing_required_parameter"),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}},
            "tool_choice.tools[0]",
            "invalid_tool_constraint",
        ),
        (
            {"tool_choice": {"type": "function", "name": "f"}, "tools": [group(FUNCTION)]},
            "tool_choice.name",
            "invalid_tool_constraint",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "tool_type_not_supported"),
        ({"tools": [{"type": "custom", "name": "a"}]}, "tools[0]", "tool_type_not_supported"),
        ({"tools": [{"type": "mcp", "server_label": "a"}]}, "tools[0]", "tool_type_not_supported"),
        ({"tools": [{"type": "tool_search"}]}, "tools[0]", "tool_type_not_supported"),
        (
            {"tools": [FUNCTION, group({"type": "custom", "name": "a"})]},
            "tools[1].tools[0]",
            "tool_type_not_supported",
        ),
        ({"tools": [group()]}, "tools[0].tools", "invalid_value"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].function", "unknown_parameter"),
        ({"tools": [{**FUNCTION, "defer_loading": True}]}, "tools[0].defer_loading", "invalid_value"),
        ({"tools": [{**FUNCTION, "output_schema": {}}]}, "tools[0].output_schema", "invalid_value"),
        (
            {"tools": [{**FUNCTION, "allowed_callers": ["programmatic"]}]},
            "tools[0].allowed_callers[0]",
            "invalid_value",
        ),
        ({"tools": [{**FUNCTION, "async": True}]}, "tools[0].async", "invalid_value"),
        ({"tools": [{**FUNCTION, "name": ""}]}, "tools[0]", "invalid_tool_constraint"),
        ({"tools": [group({**FUNCTION, "name": "a" * 127})]}, "tools[0].tools[0]", "invalid_tool_constraint"),
        ({"tools": [FUNCTION, FUNCTION]}, "tools/0/name", "invalid_tool_constraint"),
        ({"tools": [{**FUNCTION, "name": "n.f"}, group(FUNCTION)]}, "tools/0/name", "invalid_tool_constraint"),
    ],
)
def test_refused(echo: httpx.Client, fields: dict[str, Any], param: str, code: str) -> None:
    error = refusal(echo, body_of(**fields))
    assert (error["param"], error["code"]) == (param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"{param}: ")


@pytest.mark.parametrize(
    ("given", "param", "code"),
    [
        (None, "input", "missing_required_parameter"),
        ([], "input", "missing_required_parameter"),
        (3, "input", "invalid_value"),
        ([{"content": "x"}], "input[0]", "invalid_value"),
        ([{"role": "user"}], "input[0].content", "missing_required_parameter"),
        ([{"role": "tool", "content": "x"}], "input[0].role", "invalid_value"),
        ([{**USER, "name": "Ann"}], "input[0].name", "unknown_parameter"),
        ([{**USER, "content": [{"type": "input_image", "image_url": "x"}]}], "input[0].content[0].image_url", None),
        ([{**USER, "content": [{"type": "output_text", "text": "x"}]}], "input[0].content[0].type", "invalid_value"),
        ([{"role": "assistant", "content": [{"type": "input_file"}]}], "input[0].content[0]", "invalid_value"),
        ([{"type": "web_search_call", "id": "x"}], "input[0]", "invalid_value"),
        ([USER, {"type": "item_reference", "id": "msg_0_0"}], "input[1].id", "item_not_found"),
        ([USER, {"id": "x"}], "input[1].id", "item_not_found"),
        ([USER, CALL], "input[1]", "invalid_value"),
        ([USER, {**CALL, "arguments": "[]"}, RESULT], "input[1].arguments", "invalid_value"),
        ([USER, {**CALL, "arguments": '{"a": NaN}'}, RESULT], "input[1].arguments", "invalid_value"),
        ([USER, {**CALL, "arguments": "[" * 100_000}, RESULT], "input[1].arguments", "invalid_value"),
        ([USER, {**CALL, "async": True}, RESULT], "input[1].async", "invalid_value"),
        ([USER, RESULT], "input[1].call_id", "invalid_value"),
        ([USER, CALL, {**RESULT, "name": "g"}], "input[2].name", "invalid_value"),
        ([USER, {"type": "reasoning", "summary": []}], "input[1]", "invalid_value"),
        (
            [USER, {"type": "reasoning", "summary": [], "encrypted_content": "x"}, USER],
            "input[1].encrypted_content",
            "invalid_value",
        ),
        ([USER, {"role": "assistant", "content": ""}], "input", "invalid_prompt"),
    ],
)
def test_refused_items(echo: httpx.Client, given: Any, param: str, code: str | None) -> None:
    error = refusal(echo, body_of(given))
    assert (error["param"], error["code"]) == (param, code or "unknown_parameter")


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"text": {"format": {"type": "json_object", "x": 1}}}, "text.format.x", "unknown_parameter"),
        ({"text": {"format": {"type": "text", "x": 1}}}, "text.format.x", "unknown_parameter"),
        ({"text": {"format": {"type": "yaml"}}}, "text.format", "invalid_value"),
        ({"text": {"what": 1}}, "text.what", "unknown_parameter"),
        (formatted(schema={}), "text.format.name", "missing_required_parameter"),
        (formatted(name="a", json_schema={}), "text.format.json_schema", "unknown_parameter"),
        (formatted(name="a b", schema={}), "text.format.name", "invalid_value"),
        (formatted(name="a", schema="x"), "text.format.schema", "invalid_json_schema"),
        (
            formatted(name="a", schema={"properties": {"b": {"uniqueItems": True}}}),
            "text.format.schema/properties/b/uniqueItems",
            "unsupported_json_schema",
        ),
        (formatted(name="a", schema=False, strict=False), "text.format.schema", "unsatisfiable_json_schema"),
        ({"structured_outputs": {}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs", "invalid_value"),
        ({"structured_outputs": {"grammar": 'root ::= "a'}}, "structured_outputs.grammar", "invalid_grammar"),
        ({"structured_outputs": {"regex": "(?=a)"}}, "structured_outputs.regex", "invalid_regex"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice", "invalid_choice"),
        (
            {"structured_outputs": {"regex": "a"}, "text": {"format": {"type": "json_object"}}},
            "structured_outputs.regex",
            "invalid_value",
        ),
        (
            {"tools": [FUNCTION, {**FUNCTION, "name": "g", "strict": True, "parameters": CLOSED}]},
            "tools/1/parameters/properties/a/format",
            "unsupported_json_schema",
        ),
        (
            {"tools": [FUNCTION, group(FUNCTION, {**FUNCTION, "name": "g", "strict": True, "parameters": CLOSED})]},
            "tools/1/tools/1/parameters/properties/a/format",
            "unsupported_json_schema",
        ),
        ({"tools": [{**FUNCTION, "parameters": []}]}, "tools/0/parameters", "invalid_tool_constraint"),
    ],
)
def test_refused_constraints(echo: httpx.Client, fields: dict[str, Any], param: str, code: str) -> None:
    error = refusal(echo, body_of(**fields))
    assert (error["param"], error["code"]) == (param, code)


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "u", "safety_identifier": "s", "service_tier": "auto", "truncation": "disabled"},
        {"prompt_cache_key": "k", "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "implicit"}},
        {"include": [], "background": False, "top_logprobs": 0, "n": 1},
        {"include": ["web_search_call.action.sources", "file_search_call.results"]},
        {"text": {"format": {"type": "text"}, "verbosity": "medium"}, "tools": [], "tool_choice": "auto"},
        {"reasoning": {"effort": None, "summary": None, "context": "auto", "mode": "standard"}},
        dict.fromkeys(("user", "include", "conversation", "prompt", "stop", "text", "tools", "tool_choice", "seed")),
        dict.fromkeys(("instructions", "metadata", "reasoning", "max_output_tokens", "structured_outputs", "stream")),
    ],
)
def test_fields_that_ask_for_nothing(echo: httpx.Client, fields: dict[str, Any]) -> None:
    assert text_of(ask(echo, body_of("ok", **fields))) == "ok"


def test_only_a_stream_has_options(echo: httpx.Client) -> None:
    response = post(echo, body_of(stream_options={}))
    assert (response.status_code, response.json()["error"]["param"]) == (400, "stream_options")


def test_another_model_is_not_found(echo: httpx.Client) -> None:
    error = refusal(echo, body_of(model="gpt"), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    response = post(echo, {"input": "x"})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("path", [PATH, f"{PATH}/input_tokens"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"model": "scripted", "model": "scripted"}',
        '{"seed": NaN}',
        '{"input": "\\ud800"}',
        '{"input": ' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"tools": [{"type": "function", "parameters": ' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "}]}",
    ],
)
def test_bodies_that_are_no_request(echo: httpx.Client, path: str, text: str) -> None:
    response = echo.post(path, content=text, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
