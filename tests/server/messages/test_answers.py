"""Messages of a live server, each asked for whole and as events."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from support.chat_output import JSON_AS_TEXT, xml_call
from support.live_server import answering, live_server
from support.messages_client import ask, messages_body, post, refusal, streamed

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LOOKUP = {
    "name": "lookup",
    "description": "Looks a city up.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "number"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "strict": True,
}
NOTE = {"name": "note", "input_schema": {"type": "object"}}
LOOKUP_CALL = xml_call("lookup", {"city": "Rome", "days": "3"})
NOTE_CALL = xml_call("note", {"text": "a"})
THINKING = {"type": "adaptive"}


def schema_format(schema: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "schema": schema}}


def text_of(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def calls_of(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(block["name"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]


def ask_raw(client: httpx.Client, fields: str, question: str = "ok") -> httpx.Response:
    """Sends a body with these members, whose spelling is not Python's."""
    text = json.dumps(messages_body(question))[:-1] + f", {fields}}}"
    return client.post("/v1/messages", content=text, headers={"content-type": "application/json"})


def test_a_text(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("Good ok, naïve 在"))
    assert message["content"] == [{"type": "text", "text": "Good ok, naïve 在"}]
    assert (message["type"], message["role"], message["model"]) == ("message", "assistant", "scripted")
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    assert message["id"].startswith("msg_")
    assert message["usage"]["output_tokens_details"] == {"thinking_tokens": 0}
    assert "constraint" not in message


def test_the_second_time_the_prompt_is_known_and_the_start_says_so(echo: httpx.Client) -> None:
    body = messages_body("asked twice, here")
    first = post(echo, body).json()["usage"]
    second = streamed(echo, {**body, "stream": True})[0]["message"]["usage"]
    assert second["cache_read_input_tokens"] > first["cache_read_input_tokens"]
    assert sum(first[name] for name in ("input_tokens", "cache_read_input_tokens")) == sum(
        second[name] for name in ("input_tokens", "cache_read_input_tokens")
    )


@pytest.mark.parametrize("thinking", [{"thinking": THINKING}, {"thinking": None}])
def test_thinking(echo: httpx.Client, thinking: dict[str, Any]) -> None:
    message = ask(echo, messages_body("let me see\n</think>\n\nok", **thinking))
    thought, text = message["content"]
    assert (thought["type"], thought["thinking"]) == ("thinking", "let me see")
    assert text == {"type": "text", "text": "ok"}
    assert message["usage"]["output_tokens_details"]["thinking_tokens"] > 0
    again = ask(echo, messages_body("let me see\n</think>\n\nyes", **thinking))
    other = ask(echo, messages_body("let us see\n</think>\n\nok", **thinking))
    assert thought["signature"] == again["content"][0]["signature"] != other["content"][0]["signature"]


def test_no_thinking(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("let me see\n</think>\n\nok"))
    assert message["content"] == [{"type": "text", "text": "ok"}]


def test_a_thinking_budget_ends_the_thinking(echo: httpx.Client) -> None:
    enabled = {"type": "enabled", "budget_tokens": 1024}
    body = messages_body("x" * 20 + "</think>\n\nok", max_tokens=1100, thinking=enabled)
    assert ask(echo, body)["content"][0]["thinking"] == "x" * 20
    assert refusal(echo, {**body, "max_tokens": 1030}).startswith("thinking.budget_tokens: 1030 new tokens")


def test_a_model_that_cannot_think(warmed_kernels: None) -> None:
    with (
        answering(lambda said: said, JSON_AS_TEXT) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        for thinking in ({"type": "disabled"}, None):
            assert text_of(ask(client, messages_body("ok", thinking=thinking))) == "ok"
        assert "thinking" in refusal(client, messages_body("ok", thinking=THINKING))


def test_thinking_that_a_limit_cuts_is_signed_all_the_same(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("let me see", thinking=THINKING, max_tokens=4))
    (thought,) = message["content"]
    assert (thought["thinking"], bool(thought["signature"])) == ("let ", True)
    assert message["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("thinking", [THINKING, {"type": "disabled"}])
@pytest.mark.parametrize(
    ("constraint", "wanted"),
    [
        ({"output_config": schema_format({"type": "object"})}, '{"ok": 1}'),
        ({"output_config": schema_format(PERSON)}, '{"name": "lo", "age": 3}'),
        ({"structured_outputs": {"grammar": 'root ::= "ok" | "yes"'}}, "ok"),
        ({"structured_outputs": {"regex": "[a-c]+"}}, "abc"),
        ({"structured_outputs": {"choice": ["yes", "ok"]}}, "yes"),
        ({"structured_outputs": {"regex": ""}}, ""),
        ({"structured_outputs": {"choice": [""]}}, ""),
    ],
)
def test_constraints(echo: httpx.Client, constraint: dict[str, Any], wanted: str, thinking: dict[str, Any]) -> None:
    message = ask(echo, messages_body(f"hm</think>\n\n{wanted}", thinking=thinking, **constraint))
    assert message["content"][-1] == {"type": "text", "text": wanted}
    thoughts = [block["thinking"] for block in message["content"][:-1]]
    assert thoughts == (["hm"] if thinking is THINKING else [])
    record = message["constraint"]
    assert (record["complete"], record["terminated"]) == (True, True)
    assert record["mask_positions"] > 0
    assert set(record["timings_seconds"]) == {"prepare", "mask", "matcher"}
    assert record["cache"] in ("hit", "built", "waited")


def test_a_model_that_disobeys_is_held_to_the_schema(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("Here you are: ok", output_config=schema_format({"enum": ["yes", "no"]})))
    assert json.loads(text_of(message)) in ("yes", "no")


def test_a_cut_json_text_is_said_to_be_incomplete(echo: httpx.Client) -> None:
    body = messages_body('{"name": "looooooooooo"', output_config=schema_format(PERSON), max_tokens=6)
    message = ask(echo, body)
    assert message["stop_reason"] == "max_tokens"
    assert (message["constraint"]["complete"], message["constraint"]["terminated"]) == (False, False)


def test_property_order_and_numbers_are_those_of_the_request(echo: httpx.Client) -> None:
    schema = '{"properties": {"zz": {"const": 1.50}, "aa": {"const": 2}}, "required": ["aa", "zz"], "type": "object", '
    schema += '"additionalProperties": false}'
    response = ask_raw(echo, f'"output_config": {{"format": {{"type": "json_schema", "schema": {schema}}}}}')
    answer = json.loads(text_of(response.json()))
    assert list(answer) == ["zz", "aa"]
    assert answer == {"zz": 1.5, "aa": 2}


ROUNDED = "0.1000000000000000055511151231257827"


def test_a_schema_number_that_would_be_rounded_is_refused_by_its_place(echo: httpx.Client) -> None:
    schema = f'{{"properties": {{"a": {{"type": "number", "maximum": {ROUNDED}}}}}}}'
    response = ask_raw(echo, f'"output_config": {{"format": {{"type": "json_schema", "schema": {schema}}}}}')
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message.startswith("output_config.format.schema/properties/a/maximum: ")


def test_so_is_one_in_a_strict_tool_and_only_there(echo: httpx.Client) -> None:
    schema = f'{{"type": "object", "properties": {{"a": {{"type": "number", "maximum": {ROUNDED}}}}}, '
    schema += '"additionalProperties": false}'
    tools = (
        f'"tools": [{{"name": "f", "input_schema": {{}}}}, {{"name": "g", "input_schema": {schema}, "strict": STRICT}}]'
    )
    assert ask_raw(echo, tools.replace("STRICT", "false")).status_code == 200
    response = ask_raw(echo, tools.replace("STRICT", "true"))
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message.startswith("tools/1/input_schema/properties/a/maximum: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "lookup"}},
        {"tool_choice": {"type": "tool", "name": "lookup", "disable_parallel_tool_use": True}},
        {"tool_choice": {"type": "auto"}, "tool_constraints": "auto"},
        {"tool_constraints": "basic"},
        {},
    ],
)
def test_a_call(echo: httpx.Client, fields: dict[str, Any]) -> None:
    message = ask(echo, messages_body(LOOKUP_CALL, tools=[LOOKUP, NOTE], **fields))
    assert calls_of(message) == [("lookup", {"city": "Rome", "days": 3})]
    assert [block["type"] for block in message["content"]] == ["tool_use"]
    assert message["stop_reason"] == "tool_use"
    assert message["constraint"]["branch"] == "tools"


def test_text_before_a_call(echo: httpx.Client) -> None:
    message = ask(echo, messages_body(f"I look.\n{LOOKUP_CALL}", tools=[LOOKUP]))
    assert [block["type"] for block in message["content"]] == ["text", "tool_use"]
    assert message["content"][0]["text"] == "I look.\n"


@pytest.mark.parametrize("choice", ["auto", "any", "tool"])
def test_two_calls_unless_only_one_is_allowed(echo: httpx.Client, choice: str) -> None:
    """A named tool may be called twice, too."""
    fields: dict[str, Any] = {"type": choice, **({"name": "note"} if choice == "tool" else {})}
    body = messages_body(f"{NOTE_CALL}\n{NOTE_CALL}", tools=[LOOKUP, NOTE], tool_choice=fields)
    both = ask(echo, body)
    assert [name for name, _ in calls_of(both)] == ["note", "note"]
    one = ask(echo, {**body, "tool_choice": {**fields, "disable_parallel_tool_use": True}})
    assert [name for name, _ in calls_of(one)] == ["note"]
    assert one["usage"]["output_tokens"] < both["usage"]["output_tokens"]


def test_no_call_where_none_is_allowed(echo: httpx.Client) -> None:
    body = messages_body(f"ok {NOTE_CALL}", tools=[NOTE], tool_choice={"type": "none"}, max_tokens=60)
    message = ask(echo, body)
    assert calls_of(message) == []
    assert text_of(message).startswith("ok ")


def test_the_numbers_of_a_call_are_as_the_model_wrote_them(echo: httpx.Client) -> None:
    number = "1.250E+2"
    body = messages_body(xml_call("lookup", {"city": "Rome", "days": number}), tools=[LOOKUP])
    assert f'"days":{number}' in post(echo, body).text.replace(" ", "")
    ask(echo, body)


def test_a_number_beyond_all_floats_in_a_call(echo: httpx.Client) -> None:
    body = messages_body(xml_call("note", {"n": "1e999"}), tools=[NOTE])
    assert '"n":1e999' in post(echo, body).text
    ask(echo, body)


def test_json_or_calls(echo: httpx.Client) -> None:
    fields = {"tools": [LOOKUP], "output_config": schema_format(PERSON)}
    called = ask(echo, messages_body(LOOKUP_CALL, **fields))
    assert (called["stop_reason"], called["constraint"]["branch"]) == ("tool_use", "tools")
    told = ask(echo, messages_body('{"name": "lo", "age": 3}', **fields))
    assert (told["stop_reason"], told["constraint"]["branch"]) == ("end_turn", "content")
    assert json.loads(text_of(told)) == {"name": "lo", "age": 3}


def test_a_cut_call_is_no_call(echo: httpx.Client) -> None:
    message = ask(echo, messages_body(f"{NOTE_CALL}\n{LOOKUP_CALL}", tools=[LOOKUP, NOTE], max_tokens=60))
    assert message["stop_reason"] == "max_tokens"
    assert [name for name, _ in calls_of(message)] == ["note"]


def test_free_calls_keep_their_place_among_the_texts(echo: httpx.Client) -> None:
    said = f"First {NOTE_CALL} and then {NOTE_CALL}"
    message = ask(echo, messages_body(said, tools=[NOTE], tool_constraints="auto"))
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "text", "tool_use"]
    assert [block["text"] for block in message["content"][::2]] == ["First ", " and then "]


def test_a_tool_loop(echo: httpx.Client) -> None:
    body = messages_body(LOOKUP_CALL, tools=[LOOKUP])
    first = ask(echo, body)
    (call,) = first["content"]
    for content in ("sunny ok", [{"type": "text", "text": "sunny "}, {"type": "text", "text": "ok"}]):
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
        turns = [
            *body["messages"],
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        assert text_of(ask(echo, {**body, "messages": turns})) == "sunny ok"
        result["is_error"] = True
        assert text_of(ask(echo, {**body, "messages": turns})) == "Error: sunny ok"
        turns[-1]["content"].append({"type": "text", "text": "And now?"})
        assert text_of(ask(echo, {**body, "messages": turns})) == "And now?"


def test_a_result_without_content_is_empty(echo: httpx.Client) -> None:
    body = messages_body(NOTE_CALL, tools=[NOTE])
    call = {"type": "tool_use", "id": "x", "name": "note", "input": {"text": "a"}}
    body["messages"] += [
        {"role": "assistant", "content": [{"type": "text", "text": "I note."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]},
    ]
    message = ask(echo, body)
    assert message["content"] == [{"type": "text", "text": ""}]
    assert message["stop_reason"] == "end_turn"


def test_an_answer_that_was_begun_goes_on_under_its_constraint(echo: httpx.Client) -> None:
    body = messages_body('{"name": "lo", "age": 3}', output_config=schema_format(PERSON))
    begun = ['{"name"', ': "l']
    blocks = [{"type": "text", "text": text} for text in begun]
    for content in ("".join(begun), blocks):
        message = ask(echo, {**body, "messages": [*body["messages"], {"role": "assistant", "content": content}]})
        assert text_of(message) == 'o", "age": 3}'
        assert message["constraint"]["complete"]


def test_a_beginning_that_the_constraint_has_not_is_refused(echo: httpx.Client) -> None:
    body = messages_body("x", output_config=schema_format(PERSON))
    body["messages"].append({"role": "assistant", "content": "Sure: "})
    assert refusal(echo, body).startswith("output_config.format.schema: ")


def test_stop_sequences(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("one, two; three", stop_sequences=[";", ","]))
    assert text_of(message) == "one"
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", ",")


@pytest.mark.parametrize(
    "fields",
    [
        {"output_config": schema_format(PERSON)},
        {"structured_outputs": {"regex": "a"}},
        {"tools": [NOTE]},
    ],
)
def test_stop_sequences_beside_a_constraint_are_refused(echo: httpx.Client, fields: dict[str, Any]) -> None:
    assert refusal(echo, messages_body(stop_sequences=["x"], **fields)).startswith("stop_sequences: ")


def test_stop_sequences_beside_free_calls(echo: httpx.Client) -> None:
    message = ask(echo, messages_body("one, two", tools=[NOTE], tool_constraints="auto", stop_sequences=[","]))
    assert (text_of(message), message["stop_reason"]) == ("one", "stop_sequence")


@pytest.mark.parametrize(
    "system",
    [
        "Say ok.",
        [{"type": "text", "text": "Say "}, {"type": "text", "text": "ok.", "cache_control": {"type": "ephemeral"}}],
    ],
)
def test_a_system_text_is_part_of_the_prompt(echo: httpx.Client, system: Any) -> None:
    def num_tokens(**fields: Any) -> int:
        count = post(echo, {"model": "x", "messages": [{"role": "user", "content": "ok"}], **fields}, COUNT)
        number: int = count.json()["input_tokens"]
        return number

    assert num_tokens(system=system) == num_tokens(system="Say ok.") > num_tokens()
    among = [{"role": "system", "content": system}, {"role": "user", "content": "ok"}]
    assert num_tokens(messages=among) == num_tokens(system=system)


COUNT = "/v1/messages/count_tokens"


def test_counting_gives_what_an_answer_costs_and_compiles_nothing(echo: httpx.Client) -> None:
    body = messages_body("count me", tools=[LOOKUP], system="Be brief.")
    # A schema that cannot be used is none of a count's business.
    fields = {name: body[name] for name in ("model", "messages", "thinking", "tools", "system")}
    count = post(echo, {**fields, "output_config": schema_format({"type": "string", "format": "date"})}, COUNT)
    assert count.json() == {"input_tokens": count.json()["input_tokens"]}
    usage = ask(echo, body)["usage"]
    assert count.json()["input_tokens"] == usage["input_tokens"] + usage["cache_read_input_tokens"]


def test_one_seed_one_answer(echo: httpx.Client) -> None:
    body = messages_body("x", temperature=1.0, max_tokens=30, output_config=schema_format({"type": "string"}))
    assert post(echo, body).json()["content"] == post(echo, body).json()["content"]
    others = [post(echo, {**body, "seed": seed}).json()["content"] for seed in range(6)]
    assert len({str(content) for content in others}) > 1
