"""Chat completions of a live server, each asked for whole and in chunks."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from support.chat_client import ask, chat_body, post, refusal, streamed
from support.chat_output import xml_call

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Looks a city up.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
NOTE = {"type": "function", "function": {"name": "note"}}
WRITE = {"type": "custom", "custom": {"name": "write", "description": "Writes a text.", "format": {"type": "text"}}}
LOOKUP_CALL = xml_call("lookup", {"city": "Rome", "days": "3"})
NOTE_CALL = xml_call("note", {"text": "a"})


def schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def message(body: dict[str, Any], index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = body["choices"][index]["message"]
    return found


def finish(body: dict[str, Any], index: int = 0) -> str:
    reason: str = body["choices"][index]["finish_reason"]
    return reason


def test_a_text(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("Good ok, naïve 在"))
    assert message(body) == {"role": "assistant", "content": "Good ok, naïve 在", "refusal": None}
    assert finish(body) == "stop"
    assert body["object"] == "chat.completion"
    assert body["model"] == "scripted"
    assert "constraint" not in body
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_the_second_time_the_prompt_is_known(echo: httpx.Client) -> None:
    first = post(echo, chat_body("asked twice")).json()["usage"]
    second = post(echo, chat_body("asked twice")).json()["usage"]
    assert second["prompt_tokens_details"]["cached_tokens"] > first["prompt_tokens_details"]["cached_tokens"]
    assert second["prompt_tokens"] == first["prompt_tokens"]


@pytest.mark.parametrize(
    "switch",
    [
        {"reasoning_effort": "high", "enable_thinking": None},
        {"enable_thinking": True},
        {"enable_thinking": None, "chat_template_kwargs": {"enable_thinking": True}},
        {"enable_thinking": None},
    ],
)
def test_thinking(echo: httpx.Client, switch: dict[str, Any]) -> None:
    body = ask(echo, chat_body("let me see\n</think>\n\nok", **switch))
    assert message(body)["reasoning_content"] == "let me see"
    assert message(body)["content"] == "ok"
    assert body["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


@pytest.mark.parametrize(
    "switch",
    [
        {"reasoning_effort": "none", "enable_thinking": None},
        {"enable_thinking": False},
        {"enable_thinking": None, "chat_template_kwargs": {"enable_thinking": False}},
    ],
)
def test_no_thinking(echo: httpx.Client, switch: dict[str, Any]) -> None:
    body = ask(echo, chat_body("let me see\n</think>\n\nok", **switch))
    assert "reasoning_content" not in message(body)
    assert message(body)["content"] == "ok"


def test_a_thinking_budget_ends_the_thinking(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("x" * 50 + "</think>\n\nok", enable_thinking=True, thinking_budget=5, max_tokens=40))
    assert message(body)["reasoning_content"] == "xxxxx\nEnough."
    refused = refusal(echo, chat_body(enable_thinking=True, thinking_budget=5, max_tokens=8))
    assert refused["code"] == "thinking_budget_capacity_insufficient"


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"response_format": {"type": "json_object"}}, '{"ok": 1}'),
        ({"response_format": schema_format(PERSON)}, '{"name": "lo", "age": 3}'),
        ({"structured_outputs": {"grammar": 'root ::= "ok" | "yes"'}}, "ok"),
        ({"structured_outputs": {"regex": "[a-c]+"}}, "abc"),
        ({"structured_outputs": {"choice": ["yes", "ok"]}}, "yes"),
        ({"structured_outputs": {"regex": ""}}, ""),
    ],
)
def test_constraints(echo: httpx.Client, constraint: dict[str, Any], wanted: str, thinking: bool) -> None:
    body = ask(echo, chat_body(f"hm</think>\n\n{wanted}", enable_thinking=thinking, **constraint))
    assert message(body)["content"] == wanted
    assert message(body).get("reasoning_content") == ("hm" if thinking else None)
    record = body["constraint"]
    assert (record["branch"], record["complete"], record["terminated"]) == ("content", True, True) if wanted else True
    assert record["mask_positions"] > 0
    assert set(record["timings_seconds"]) == {"prepare", "mask", "matcher"}
    assert record["cache"] in ("hit", "built", "waited")


def test_a_model_that_disobeys_is_held_to_the_schema(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("Here you are: ok", response_format=schema_format({"enum": ["yes", "no"]})))
    assert json.loads(message(body)["content"]) in ("yes", "no")


def test_a_cut_json_text_is_said_to_be_incomplete(echo: httpx.Client) -> None:
    body = ask(echo, chat_body('{"name": "looooooooooo"', response_format=schema_format(PERSON), max_tokens=6))
    assert finish(body) == "length"
    assert (body["constraint"]["complete"], body["constraint"]["terminated"]) == (False, False)


def test_property_order_and_numbers_are_those_of_the_request(echo: httpx.Client) -> None:
    text = json.dumps(chat_body("{}"))[:-1]
    schema = '{"properties": {"zz": {"const": 1.50}, "aa": {"const": 2}}, "required": ["aa", "zz"], "type": "object", '
    schema += '"additionalProperties": false}'
    text += ', "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": ' + schema + "}}}"
    body = echo.post("/v1/chat/completions", content=text, headers={"content-type": "application/json"}).json()
    answer = json.loads(message(body)["content"])
    assert list(answer) == ["zz", "aa"]
    assert answer == {"zz": 1.5, "aa": 2}


def test_a_schema_number_that_would_be_rounded_is_refused_by_its_place(echo: httpx.Client) -> None:
    text = json.dumps(chat_body("1"))[:-1]
    text += ', "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": '
    text += '{"properties": {"a": {"type": "number", "maximum": 0.1000000000000000055511151231257827}}}}}}'
    response = echo.post("/v1/chat/completions", content=text, headers={"content-type": "application/json"})
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "unsupported_json_schema"
    assert error["param"] == "response_format.json_schema.schema/properties/a/maximum"


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"tool_choice": "required"}, ["lookup"]),
        ({"tool_choice": {"type": "function", "function": {"name": "lookup"}}}, ["lookup"]),
        ({"tool_choice": "auto", "tool_constraints": "auto"}, ["lookup"]),
        ({"tool_constraints": "basic"}, ["lookup"]),
        ({}, ["lookup"]),
    ],
)
def test_a_call(echo: httpx.Client, fields: dict[str, Any], names: list[str]) -> None:
    body = ask(echo, chat_body(LOOKUP_CALL, tools=[LOOKUP, NOTE], **fields))
    calls = message(body)["tool_calls"]
    assert [call["function"]["name"] for call in calls] == names
    assert json.loads(calls[0]["function"]["arguments"]) == {"city": "Rome", "days": 3}
    assert message(body)["content"] is None
    assert finish(body) == "tool_calls"


def test_two_calls_unless_only_one_is_allowed(echo: httpx.Client) -> None:
    two = f"{NOTE_CALL}\n{LOOKUP_CALL}"
    body = ask(echo, chat_body(two, tools=[LOOKUP, NOTE]))
    assert [call["function"]["name"] for call in message(body)["tool_calls"]] == ["note", "lookup"]
    one = ask(echo, chat_body(two, tools=[LOOKUP, NOTE], parallel_tool_calls=False))
    assert [call["function"]["name"] for call in message(one)["tool_calls"]] == ["note"]
    assert one["usage"]["completion_tokens"] < body["usage"]["completion_tokens"]


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_allowed_tools(echo: httpx.Client, nested: bool, flat: bool) -> None:
    entry = {"type": "function", "name": "note"} if flat else {"type": "function", "function": {"name": "note"}}
    allowed = {"mode": "required", "tools": [entry]}
    choice = {"type": "allowed_tools", **({"allowed_tools": allowed} if nested else allowed)}
    body = ask(echo, chat_body(LOOKUP_CALL, tools=[LOOKUP, NOTE], tool_choice=choice, max_tokens=120))
    assert {call["function"]["name"] for call in message(body).get("tool_calls", [])} <= {"note"}
    body = ask(echo, chat_body(NOTE_CALL, tools=[LOOKUP, NOTE], tool_choice=choice))
    assert [call["function"]["name"] for call in message(body)["tool_calls"]] == ["note"]


def test_no_call_where_none_is_allowed(echo: httpx.Client) -> None:
    body = ask(echo, chat_body(f"ok {NOTE_CALL}", tools=[NOTE], tool_choice="none", max_tokens=60))
    assert "tool_calls" not in message(body)
    assert message(body)["content"].startswith("ok ")


@pytest.mark.parametrize("text", ["print('a')\n\"b\" \\ 在 \U0001f600", ""])
def test_a_custom_tool_gets_a_text(echo: httpx.Client, text: str) -> None:
    choice = {"type": "custom", "custom": {"name": "write"}}
    call = xml_call("write", {"input": text})
    body = ask(echo, chat_body(call, tools=[WRITE, LOOKUP], tool_choice=choice))
    (found,) = message(body)["tool_calls"]
    assert (found["type"], found["custom"]) == ("custom", {"name": "write", "input": text})


def test_json_or_calls(echo: httpx.Client) -> None:
    fields = {"tools": [LOOKUP], "response_format": schema_format(PERSON)}
    called = ask(echo, chat_body(LOOKUP_CALL, **fields))
    assert (finish(called), called["constraint"]["branch"]) == ("tool_calls", "tools")
    told = ask(echo, chat_body('{"name": "lo", "age": 3}', **fields))
    assert (finish(told), told["constraint"]["branch"]) == ("stop", "content")
    assert json.loads(message(told)["content"]) == {"name": "lo", "age": 3}


def test_a_cut_call_is_no_call(echo: httpx.Client) -> None:
    body = ask(echo, chat_body(f"{NOTE_CALL}\n{LOOKUP_CALL}", tools=[LOOKUP, NOTE], max_tokens=60))
    assert finish(body) == "length"
    assert [call["function"]["name"] for call in message(body)["tool_calls"]] == ["note"]


def test_a_tool_loop(echo: httpx.Client) -> None:
    asked = chat_body(LOOKUP_CALL, tools=[LOOKUP])
    call = message(ask(echo, asked))
    (made,) = call["tool_calls"]
    asked["messages"] += [call, {"role": "tool", "tool_call_id": made["id"], "content": "sunny ok"}]
    assert message(ask(echo, asked))["content"] == "sunny ok"


def test_samples(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("ok", n=3, response_format=schema_format({"type": "string"}), temperature=2.0))
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert "constraint" not in body
    for choice in body["choices"]:
        json.loads(choice["message"]["content"])
        assert choice["constraint"]["terminated"]
    single = ask(echo, chat_body("ok", response_format=schema_format({"type": "string"}), temperature=2.0))
    assert message(single) == message(body)
    assert body["usage"]["prompt_tokens"] == single["usage"]["prompt_tokens"]


def test_seeds(echo: httpx.Client) -> None:
    def drawn(seed: int | None) -> str:
        text: str = message(post(echo, chat_body("", temperature=2.0, seed=seed, max_tokens=30)).json())["content"]
        return text

    assert drawn(-5) == drawn(2**64 - 5)


def test_continuation(echo: httpx.Client) -> None:
    fields: dict[str, Any] = {"response_format": schema_format(PERSON)}
    asked = chat_body('{"name": "Shanghai", "age": 3}', **fields)
    asked["messages"].append({"role": "assistant", "content": '{"name": "Shang'})
    body = ask(echo, asked)
    assert message(body)["content"] == 'hai", "age": 3}'
    assert body["constraint"]["complete"]
    asked["messages"][-1]["content"] = '{"nome'
    error = refusal(echo, asked)
    assert error["param"].startswith("response_format.json_schema.schema")


@pytest.mark.parametrize("stop", ["lo", ["zz", "lo"]])
def test_stop_strings(echo: httpx.Client, stop: Any) -> None:
    body = ask(echo, chat_body("hello world", stop=stop))
    assert (message(body)["content"], finish(body)) == ("hel", "stop")


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_object"}},
        {"structured_outputs": {"regex": "a"}},
        {"tools": [NOTE]},
    ],
)
def test_stop_strings_and_constraints_exclude_each_other(echo: httpx.Client, fields: dict[str, Any]) -> None:
    assert refusal(echo, chat_body(stop="x", **fields))["param"] == "stop"
    assert refusal(echo, chat_body(ignore_eos=True, **fields))["param"] == "ignore_eos"


def test_stop_strings_beside_free_tools(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("hello", stop="lo", tools=[NOTE], tool_constraints="auto"))
    assert message(body)["content"] == "hel"


def test_limits(echo: httpx.Client) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        body = ask(echo, chat_body("a" * 20, **{name: 4}))
        assert (message(body)["content"], finish(body)) == ("aaaa", "length")
    body = ask(echo, chat_body("a", max_tokens=0))
    assert (message(body)["content"], finish(body), body["usage"]["completion_tokens"]) == ("", "length", 0)
    assert refusal(echo, chat_body(max_tokens=3, max_completion_tokens=4))["param"] == "max_tokens"


def test_a_full_context_ends_the_answer(echo: httpx.Client) -> None:
    body = ask(echo, chat_body("x", ignore_eos=True, messages=[{"role": "user", "content": "a" * 1900}]))
    assert finish(body) == "length"
    assert body["usage"]["total_tokens"] == 2001
    error = refusal(echo, chat_body("a" * 2100))
    assert error["code"] == "context_length_exceeded"


def test_roles_and_parts(echo: httpx.Client) -> None:
    parts = [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hi", "name": None},
        {"role": "assistant", "content": None, "refusal": "no", "tool_calls": None, "annotations": []},
        {"role": "user", "content": parts},
    ]
    assert message(ask(echo, chat_body(messages=messages)))["content"] == "ok"


def test_usage_comes_only_where_asked_for(echo: httpx.Client) -> None:
    chunks = streamed(echo, chat_body("ok", stream=True))
    assert all("usage" not in chunk for chunk in chunks)
    assert refusal_of_options(echo)["param"] == "stream_options"


def refusal_of_options(echo: httpx.Client) -> dict[str, Any]:
    response = post(echo, chat_body(stream_options={"include_usage": True}))
    assert response.status_code == 400
    error: dict[str, Any] = response.json()["error"]
    return error
