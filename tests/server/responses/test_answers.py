"""Responses of a live server, each asked for whole and as events."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from support.chat_output import xml_call
from support.responses_client import PATH, ask, body_of, calls_of, post, refusal, streamed, text_of

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LOOKUP = {
    "type": "function",
    "name": "lookup",
    "description": "Looks a city up.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}
NOTE = {"type": "function", "name": "note", "parameters": None, "strict": None}
CRM = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [NOTE, {**LOOKUP, "name": "find"}],
}
LOOKUP_CALL = xml_call("lookup", {"city": "Rome", "days": "3"})
NOTE_CALL = xml_call("note", {"text": "a"})


def schema_format(schema: Any) -> dict[str, Any]:
    return {"text": {"format": {"type": "json_schema", "name": "answer", "schema": schema}}}


def types_of(body: dict[str, Any]) -> list[str]:
    return [item["type"] for item in body["output"]]


def test_a_text(echo: httpx.Client) -> None:
    body = ask(echo, body_of("Good ok, naïve 在"))
    (message,) = body["output"]
    assert message == {
        "id": f"msg_{body['id'].removeprefix('resp_')}_0",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Good ok, naïve 在", "annotations": [], "logprobs": []}],
        "status": "completed",
    }
    assert (body["object"], body["status"], body["model"]) == ("response", "completed", "scripted")
    assert (body["error"], body["incomplete_details"]) == (None, None)
    assert body["completed_at"] >= body["created_at"]
    assert "constraint" not in body
    usage = body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}


def test_the_second_time_the_prompt_is_known(echo: httpx.Client) -> None:
    first = post(echo, body_of("asked for twice")).json()["usage"]
    second = post(echo, body_of("asked for twice")).json()["usage"]
    assert second["input_tokens_details"]["cached_tokens"] > first["input_tokens_details"]["cached_tokens"]
    assert second["input_tokens"] == first["input_tokens"]


def test_the_fields_of_the_request_are_repeated(echo: httpx.Client) -> None:
    schema = {"type": "string", "description": "b", "title": "a"}
    fields: dict[str, Any] = {
        **schema_format(schema),
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
        "max_output_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "tools": [NOTE, CRM],
        "tool_choice": "none",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "none"},
    }
    body = ask(echo, body_of('"ok"', **fields))
    for name in ("instructions", "metadata", "max_output_tokens", "temperature", "top_p", "tool_choice"):
        assert body[name] == fields[name]
    assert body["parallel_tool_calls"] is False
    assert body["store"] is False
    assert body["reasoning"] == {"effort": "none", "summary": None}
    named = {"type": "json_schema", "name": "answer", "description": None, "schema": schema, "strict": None}
    assert body["text"] == {"format": named, "verbosity": "medium"}
    assert list(body["text"]["format"]["schema"]) == list(schema)
    note = {"type": "function", "name": "note", "description": None, "parameters": None, "strict": False}
    assert body["tools"] == [note, {**CRM, "tools": [note, {**LOOKUP, "name": "find"}]}]


def test_what_is_repeated_is_spelled_as_it_came(echo: httpx.Client) -> None:
    schema = '{"type":"string","default":1e400,"examples":[1.50,0.1000000000000000055511151231257827]}'
    tool = '{"type":"function","name":"note","parameters":{"x":\n1e999,\r\n"y":"a\\nb"}}'
    text = json.dumps(body_of('"ok"'))[:-1]
    text += f', "tools": [{tool}], "text": {{"format": {{"type": "json_schema", "name": "x", "schema": {schema}}}}}'
    headers = {"content-type": "application/json"}
    whole = echo.post(PATH, content=text + "}", headers=headers)
    assert whole.status_code == 200, whole.text
    events = echo.post(PATH, content=text + ', "stream": true}', headers=headers)
    for answer in (whole.text, events.text):
        assert f'"schema":{schema}' in answer
        assert '"parameters":{"x":1e999,"y":"a\\nb"}' in answer


@pytest.mark.parametrize(
    "switch",
    [
        {"reasoning": {"effort": "high"}, "enable_thinking": None},
        {"reasoning": {"effort": "low"}, "enable_thinking": True},
        {"enable_thinking": None},
    ],
)
def test_thinking(echo: httpx.Client, switch: dict[str, Any]) -> None:
    body = ask(echo, body_of("let me see\n</think>\n\nok", **switch))
    reasoning, _ = body["output"]
    key = body["id"].removeprefix("resp_")
    assert reasoning == {
        "id": f"rs_{key}_0",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "let me see"}],
        "encrypted_content": None,
        "status": "completed",
    }
    assert text_of(body) == "ok"
    assert body["usage"]["output_tokens_details"]["reasoning_tokens"] > 0


def test_no_thinking(echo: httpx.Client) -> None:
    body = ask(echo, body_of("let me see\n</think>\n\nok", reasoning={"effort": "none"}, enable_thinking=None))
    assert (types_of(body), text_of(body)) == (["message"], "ok")


def test_a_thinking_budget_ends_the_thinking(echo: httpx.Client) -> None:
    asked = body_of("x" * 50 + "</think>\n\nok", enable_thinking=True, thinking_budget=5, max_output_tokens=40)
    body = ask(echo, asked)
    assert body["output"][0]["content"][0]["text"] == "xxxxx\nEnough."
    refused = refusal(echo, body_of(enable_thinking=True, thinking_budget=5, max_output_tokens=8))
    assert refused["code"] == "thinking_budget_capacity_insufficient"


def test_thinking_that_is_cut(echo: httpx.Client) -> None:
    body = ask(echo, body_of("x" * 50, enable_thinking=True, max_output_tokens=4))
    (reasoning,) = body["output"]
    assert (reasoning["type"], reasoning["status"], body["status"]) == ("reasoning", "incomplete", "incomplete")


@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"text": {"format": {"type": "json_object"}}}, '{"ok": 1}'),
        (schema_format(PERSON), '{"name": "lo", "age": 3}'),
        ({"structured_outputs": {"grammar": 'root ::= "ok" | "yes"'}}, "ok"),
        ({"structured_outputs": {"regex": "[a-c]+"}}, "abc"),
        ({"structured_outputs": {"choice": ["yes", "ok"]}}, "yes"),
        ({"structured_outputs": {"regex": ""}}, ""),
    ],
)
def test_constraints(echo: httpx.Client, constraint: dict[str, Any], wanted: str, thinking: bool) -> None:
    body = ask(echo, body_of(f"hm</think>\n\n{wanted}", enable_thinking=thinking, **constraint))
    assert types_of(body) == (["reasoning", "message"] if thinking else ["message"])
    assert text_of(body) == wanted
    record = body["constraint"]
    assert (record["complete"], record["terminated"]) == (True, True)
    assert record["branch"] == ("content" if wanted else record["branch"])
    assert record["mask_positions"] > 0
    assert set(record["timings_seconds"]) == {"prepare", "mask", "matcher"}
    assert record["cache"] in ("hit", "built", "waited")


def test_a_model_that_disobeys_is_held_to_the_schema(echo: httpx.Client) -> None:
    body = ask(echo, body_of("Here you are: ok", **schema_format({"enum": ["yes", "no"]})))
    assert json.loads(text_of(body)) in ("yes", "no")


def test_a_cut_json_text_is_said_to_be_incomplete(echo: httpx.Client) -> None:
    body = ask(echo, body_of('{"name": "looooooooooo"', max_output_tokens=6, **schema_format(PERSON)))
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert (body["output"][0]["status"], body["completed_at"]) == ("incomplete", None)
    assert (body["constraint"]["complete"], body["constraint"]["terminated"]) == (False, False)


def test_property_order_and_numbers_are_those_of_the_request(echo: httpx.Client) -> None:
    schema = '{"properties": {"zz": {"const": 1.50}, "aa": {"const": 2}}, "required": ["aa", "zz"], "type": "object", '
    schema += '"additionalProperties": false}'
    answer = json.loads(text_of(_with_raw_schema(echo, schema).json()))
    assert list(answer) == ["zz", "aa"]
    assert answer == {"zz": 1.5, "aa": 2}


def test_a_schema_number_that_would_be_rounded_is_refused_by_its_place(echo: httpx.Client) -> None:
    schema = '{"properties": {"a": {"type": "number", "maximum": 0.1000000000000000055511151231257827}}}'
    response = _with_raw_schema(echo, schema)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["param"]) == (
        "unsupported_json_schema",
        "text.format.schema/properties/a/maximum",
    )


def _with_raw_schema(echo: httpx.Client, schema: str) -> httpx.Response:
    text = json.dumps(body_of("{}"))[:-1]
    text += f', "text": {{"format": {{"type": "json_schema", "name": "x", "schema": {schema}}}}}}}'
    return echo.post(PATH, content=text, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": "required"},
        {"tool_choice": {"type": "function", "name": "lookup"}},
        {"tool_choice": "auto", "tool_constraints": "auto"},
        {"tool_constraints": "basic"},
        {},
    ],
)
def test_a_call(echo: httpx.Client, fields: dict[str, Any]) -> None:
    body = ask(echo, body_of(LOOKUP_CALL, tools=[LOOKUP, NOTE], **fields))
    (call,) = body["output"]
    key = body["id"].removeprefix("resp_")
    assert (
        call.items()
        >= {
            "id": f"fc_{key}_0",
            "type": "function_call",
            "call_id": f"call_{key}_0",
            "name": "lookup",
            "status": "completed",
        }.items()
    )
    assert json.loads(call["arguments"]) == {"city": "Rome", "days": 3}
    assert body["status"] == "completed"


def test_reasoning_text_and_calls_are_items_of_their_own(echo: httpx.Client) -> None:
    said = f"hm</think>\n\nok, {NOTE_CALL}\n{LOOKUP_CALL}"
    body = ask(echo, body_of(said, tools=[LOOKUP, NOTE], enable_thinking=True))
    assert types_of(body) == ["reasoning", "message", "function_call", "function_call"]
    assert [name for name, _ in calls_of(body)] == ["note", "lookup"]


def test_text_behind_a_free_call_is_another_message(echo: httpx.Client) -> None:
    body = ask(echo, body_of(f"a {NOTE_CALL} b", tools=[NOTE], tool_constraints="auto"))
    assert types_of(body) == ["message", "function_call", "message"]
    assert [item["content"][0]["text"].strip() for item in (body["output"][0], body["output"][2])] == ["a", "b"]


def test_two_calls_unless_only_one_is_allowed(echo: httpx.Client) -> None:
    two = f"{NOTE_CALL}\n{LOOKUP_CALL}"
    body = ask(echo, body_of(two, tools=[LOOKUP, NOTE]))
    assert [name for name, _ in calls_of(body)] == ["note", "lookup"]
    one = ask(echo, body_of(two, tools=[LOOKUP, NOTE], parallel_tool_calls=False))
    assert [name for name, _ in calls_of(one)] == ["note"]
    assert one["usage"]["output_tokens"] < body["usage"]["output_tokens"]


def test_allowed_tools(echo: httpx.Client) -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "note"}]}
    body = ask(echo, body_of(LOOKUP_CALL, tools=[LOOKUP, NOTE], tool_choice=choice, max_output_tokens=120))
    assert {name for name, _ in calls_of(body)} <= {"note"}
    body = ask(echo, body_of(NOTE_CALL, tools=[LOOKUP, NOTE], tool_choice=choice))
    assert [name for name, _ in calls_of(body)] == ["note"]
    assert body["tool_choice"] == choice


def test_no_call_where_none_is_allowed(echo: httpx.Client) -> None:
    body = ask(echo, body_of(f"ok {NOTE_CALL}", tools=[NOTE], tool_choice="none", max_output_tokens=60))
    assert types_of(body) == ["message"]
    assert text_of(body).startswith("ok ")


@pytest.mark.parametrize(
    "choice",
    [
        "auto",
        {"type": "function", "name": "find", "namespace": "crm"},
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "find", "namespace": "crm"}],
        },
    ],
)
def test_a_function_of_a_namespace(echo: httpx.Client, choice: Any) -> None:
    call_text = xml_call("crm.find", {"city": "Rome", "days": "3"})
    body = ask(echo, body_of(call_text, tools=[NOTE, CRM], tool_choice=choice))
    (call,) = body["output"]
    assert (call["name"], call["namespace"]) == ("find", "crm")
    assert json.loads(call["arguments"]) == {"city": "Rome", "days": 3}
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    history = [{"role": "user", "content": "?"}, call, result, {"role": "user", "content": "ok"}]
    assert text_of(ask(echo, body_of(history, tools=[CRM]))) == "ok"


def test_json_or_calls(echo: httpx.Client) -> None:
    fields = {"tools": [LOOKUP], **schema_format(PERSON)}
    called = ask(echo, body_of(LOOKUP_CALL, **fields))
    assert (types_of(called), called["constraint"]["branch"]) == (["function_call"], "tools")
    told = ask(echo, body_of('{"name": "lo", "age": 3}', **fields))
    assert (types_of(told), told["constraint"]["branch"]) == (["message"], "content")
    assert json.loads(text_of(told)) == {"name": "lo", "age": 3}


def test_a_cut_call_is_no_call(echo: httpx.Client) -> None:
    asked = body_of(f"{NOTE_CALL}\n{LOOKUP_CALL}", tools=[LOOKUP, NOTE], max_output_tokens=60)
    body = ask(echo, asked)
    assert body["status"] == "incomplete"
    assert [name for name, _ in calls_of(body)] == ["note"]
    events = streamed(echo, {**asked, "stream": True})
    begun = [event["item"]["name"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"]["name"] for event in events if event["type"] == "response.output_item.done"]
    assert (begun, done) == (["note", "lookup"], ["note"])


def test_a_tool_loop(echo: httpx.Client) -> None:
    first = ask(echo, body_of(LOOKUP_CALL, tools=[LOOKUP]))
    (call,) = first["output"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny ok"}
    asked = body_of([{"role": "user", "content": LOOKUP_CALL}, call, result], tools=[LOOKUP])
    assert text_of(ask(echo, asked)) == "sunny ok"
    result["output"] = [{"type": "input_text", "text": "sun"}, {"type": "input_text", "text": "ny"}]
    assert text_of(ask(echo, asked)) == "sunny"


@pytest.mark.parametrize(
    "begun",
    ['{"name": "Shang', [{"type": "output_text", "text": '{"name": "Sh'}, {"type": "output_text", "text": "ang"}]],
)
def test_continuation(echo: httpx.Client, begun: Any) -> None:
    items: list[dict[str, Any]] = [
        {"role": "user", "content": '{"name": "Shanghai", "age": 3}'},
        {"role": "assistant", "content": begun},
    ]
    body = ask(echo, body_of(items, **schema_format(PERSON)))
    assert text_of(body) == 'hai", "age": 3}'
    assert body["constraint"]["complete"]
    items[-1]["content"] = '{"nome'
    error = refusal(echo, body_of(items, **schema_format(PERSON)))
    assert error["param"].startswith("text.format.schema")


def test_seeds(echo: httpx.Client) -> None:
    def drawn(seed: int | None) -> str:
        return text_of(post(echo, body_of("", temperature=2.0, seed=seed, max_output_tokens=30)).json())

    assert drawn(-5) == drawn(2**64 - 5)


def test_limits(echo: httpx.Client) -> None:
    body = ask(echo, body_of("a" * 20, max_output_tokens=4))
    assert (text_of(body), body["status"], body["output"][0]["status"]) == ("aaaa", "incomplete", "incomplete")
    body = ask(echo, body_of("a", max_output_tokens=0))
    assert (body["output"], body["status"], body["usage"]["output_tokens"]) == ([], "incomplete", 0)


def test_a_full_context_ends_the_answer(echo: httpx.Client) -> None:
    body = ask(echo, body_of("a" * 1900))
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert refusal(echo, body_of("a" * 2100))["code"] == "context_length_exceeded"


def test_roles_parts_and_what_answers_look_like_when_they_come_back(echo: httpx.Client) -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hi", "type": "message", "id": "msg_1", "status": "completed"},
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "content": None,
            "encrypted_content": None,
            "status": None,
        },
        {
            "id": "msg_2",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {"type": "output_text", "text": "a", "annotations": [], "logprobs": None},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "o", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_text", "text": "k"},
            ],
        },
    ]
    assert text_of(ask(echo, body_of(items, instructions="Be kind."))) == "ok"
