"""Reports about other servers, each through all protocols, whole and streamed; a test names the report."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from typing import Any

import httpx
import pytest

from support import chat_client
from support.chat_output import xml_call
from support.live_server import answering, live_server
from support.three_protocols import PATHS, PROTOCOLS, ask_all, bodies, refuse_all

SUB = {
    "name": "sub",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
SUB_CALL = xml_call("sub", {"a": "12", "b": "-3"})
SUBTRACTED = ("sub", '{"a": 12, "b": -3}')
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}


def strict(name: str, **properties: Any) -> dict[str, Any]:
    """A strict tool whose parameters are all required."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "strict": True, "parameters": parameters}


# A. Thinking


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("schema", [None, OK])
def test_thinking_and_format_are_independent(echo: httpx.Client, thinking: bool, schema: Any) -> None:
    """ollama#14645 lost the format without thinking; vllm#50948 put the JSON among the reasoning."""
    answer = ask_all(echo, 'so</think>\n\n{"ok": true}', thinking=thinking, schema=schema).one
    assert answer.text.lstrip("\n") == '{"ok": true}'
    assert answer.reasoning == ("so" if thinking else "")
    if schema is not None:
        disobeyed = ask_all(echo, "so</think>\n\nSure: yes", thinking=thinking, schema=schema, limit=200).one
        assert json.loads(disobeyed.text)["ok"] in (True, False)


# B and C. Drafts, batches, caches


def test_drafts_change_no_answer(echo: httpx.Client, warmed_kernels: None) -> None:
    """omlx#2399: on the way with drafts the request's options were ignored."""
    said = "ok ok ok ok yes yes ok ok ok ok yes yes ok"
    wishes: list[dict[str, Any]] = [
        {"schema": {"type": "string", "maxLength": 40}},
        {"outputs": {"regex": "(ok |yes )*ok"}},
        {"tools": [SUB], "choice": "required"},
        {"thinking": True},
    ]
    with (
        answering(lambda said: said, ngram_draft_tokens=6, ngram_min_match=4, max_context=2000) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as drafting,
    ):
        for wish in wishes:
            for more in ({}, {"temperature": 1.0, "seed": 5}):
                asked = {**wish, **more, "limit": 40}
                assert ask_all(drafting, said, **asked).one.text == ask_all(echo, said, **asked).one.text
        text = drafting.get("/metrics").text
    counted = [line for line in text.splitlines() if line.startswith("infernix_spec_decode_accepted_tokens_total")]
    assert sum(float(line.rpartition(" ")[2]) for line in counted) > 0


@pytest.mark.parametrize("num_drafts", [0, 6])
def test_every_request_among_many_has_its_own_answer(warmed_kernels: None, num_drafts: int) -> None:
    """vllm#52620: under load drafts went past the grammar, and one request's into another's."""

    def schema(number: int) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "status": {"enum": ["ok"]},
                "items": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
                "request_id": {"type": "integer", "minimum": number, "maximum": number},
            },
            "required": ["status", "items", "request_id"],
            "additionalProperties": False,
        }

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        wanted = {"status": "ok", "items": [1, 2, 3], "request_id": number}
        asked = bodies(json.dumps(wanted), schema=schema(number))
        name = PROTOCOLS[number % 3]
        body = (await client.post(PATHS[name], json=asked[name])).json()
        text = {
            "chat": lambda: body["choices"][0]["message"]["content"],
            "responses": lambda: body["output"][0]["content"][0]["text"],
            "messages": lambda: body["content"][0]["text"],
        }[name]()
        assert json.loads(text) == wanted

    async def run(url: str) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            await asyncio.gather(*(ask(client, number) for number in range(12)))

    with (
        answering(lambda said: said, ngram_draft_tokens=num_drafts, ngram_min_match=4) as engine,
        live_server(engine) as server,
    ):
        asyncio.run(run(server.url))


def test_one_cached_prompt_under_several_grammars(echo: httpx.Client) -> None:
    """TensorRT-LLM#2660: a known prompt with a schema crashed. The state is the prompt's, the mask the request's."""
    said = "one cached prompt, yes"
    first = ask_all(echo, said, outputs={"choice": ["one", "two"]}).one
    second = ask_all(echo, said, outputs={"choice": ["two", "three"]}).one
    free = ask_all(echo, said).one
    again = ask_all(echo, said, outputs={"choice": ["one", "two"]}).one
    assert (first.text, second.text in ("two", "three"), free.text) == ("one", True, said)
    assert again == first


def test_samples_do_not_share_a_matcher(echo: httpx.Client) -> None:
    """vllm#11312: three samples advanced one state. Only OpenAI's chat completions have samples."""
    schema = {"type": "array", "items": {"enum": [0, 1]}, "minItems": 4, "maxItems": 4}
    named = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = chat_client.chat_body("ok", n=3, temperature=1.5, response_format=named)
    texts = [choice["message"]["content"] for choice in chat_client.ask(echo, body)["choices"]]
    assert all(len(json.loads(text)) == 4 for text in texts)


# D. Tools


def test_streamed_arguments_are_counted_once(echo: httpx.Client) -> None:
    """vllm#24509 put every piece into a stream twice; vllm#34887 lost the first characters."""
    answer = ask_all(echo, SUB_CALL, tools=[SUB], choice="required").one
    assert answer.calls == (SUBTRACTED,)


def test_a_format_leaves_the_tools_callable(echo: httpx.Client) -> None:
    """vllm#39929: beside a format no tool could be called."""
    both: dict[str, Any] = {"tools": [SUB], "schema": OK, "limit": 120}
    content = '{"ok": true}'
    assert ask_all(echo, SUB_CALL, **both).one.calls == (SUBTRACTED,)
    assert ask_all(echo, content, **both).one.text == content
    for choice in ("required", ("sub",)):
        bent = ask_all(echo, content, **both, choice=choice).one
        assert (bent.text, dict(bent.record)["branch"]) == ("", "tools")
    refrained = ask_all(echo, SUB_CALL, **both, choice="none").one
    assert (refrained.calls, dict(refrained.record)["branch"]) == ((), "content")


@pytest.mark.parametrize("choice", [None, "required"])
def test_a_second_call_that_is_not_allowed_is_not_generated(echo: httpx.Client, choice: Any) -> None:
    """vllm#50502: it was generated and thrown away."""
    two = f"{SUB_CALL}\n{SUB_CALL}"
    alone = ask_all(echo, SUB_CALL, tools=[SUB], choice=choice).one
    limited = ask_all(echo, two, tools=[SUB], choice=choice, parallel=False).one
    assert (limited.calls, limited.end) == ((SUBTRACTED,), "stop")
    assert limited.num_tokens[1] == alone.num_tokens[1]
    assert len(ask_all(echo, two, tools=[SUB], choice=choice).one.calls) == 2


def test_a_call_that_the_limit_cuts_is_none(echo: httpx.Client) -> None:
    """vllm#58228: the client was told that the call is complete, and ran it."""
    tool = strict("write_file", path={"type": "string"}, content={"type": "string"})
    said = xml_call("write_file", {"path": "a", "content": "lololololo"})
    answer = ask_all(echo, said, tools=[tool], choice="required", limit=12).one
    assert (answer.calls, answer.end, dict(answer.record)["complete"]) == ((), "length", False)


def test_names_of_any_script_are_kept_apart(echo: httpx.Client) -> None:
    """llama.cpp#28429: two Chinese names became one."""
    tool = strict("weather", 城市={"type": "string"}, 日期={"type": "string"})
    said = xml_call("weather", {"城市": "在", "日期": "yes"})
    ((_, arguments),) = ask_all(echo, said, tools=[tool], choice="required").one.calls
    assert json.loads(arguments) == {"城市": "在", "日期": "yes"}


def test_a_tool_without_parameters_spoils_no_other(echo: httpx.Client) -> None:
    """llama.cpp#25923: such a tool made the request fail. One that cannot be enforced is named."""
    tools = [{"name": "now", "parameters": {"type": "object", "properties": {}}}, strict("stop"), SUB]
    assert ask_all(echo, xml_call("now", {}), tools=tools).one.calls == (("now", "{}"),)
    assert ask_all(echo, xml_call("stop", {"a": "1"}), tools=tools, choice=("stop",)).one.calls == (("stop", "{}"),)
    assert ask_all(echo, SUB_CALL, tools=tools).one.calls == (SUBTRACTED,)
    odd = strict("odd", a={"type": "array", "uniqueItems": True})
    for code, message in refuse_all(echo, "ok", tools=[*tools, odd]).values():
        assert code == "unsupported_json_schema"
        assert message.startswith("tools/3/")
        assert "/properties/a/uniqueItems" in message.partition(": ")[0]


@pytest.mark.parametrize("wish", ['{"name": "sub", "arguments": {"a": 1, "b": 2}}', "no call at all", SUB_CALL])
def test_required_gives_calls_whatever_the_model_wants(echo: httpx.Client, wish: str) -> None:
    """vllm#39056: the model's own form was read as no call."""
    answer = ask_all(echo, wish, tools=[SUB], choice="required", parallel=False, limit=200).one
    assert [name for name, _ in answer.calls] == (["sub"] if answer.end == "stop" else [])
    assert (answer.text, dict(answer.record)["branch"]) == ("", "tools")


def test_a_named_tool_is_the_one_that_is_called(echo: httpx.Client) -> None:
    """langchain-llama-cpp: the choice of a name was taken and treated as `auto`."""
    tools = [SUB, strict("stop")]
    assert ask_all(echo, SUB_CALL, tools=tools, choice=("stop",)).one.calls == (("stop", "{}"),)
    for code, _ in refuse_all(echo, SUB_CALL, tools=tools, choice=("gone",)).values():
        assert code == "invalid_tool_constraint"


# G. Errors, denial of service, caches


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"outputs": {"grammar": 'root ::= "a"\nroot ::= "b"'}}, "line 2, column 1"),
        ({"outputs": {"regex": "^(|.*"}}, "line 1, column 2"),
        ({"schema": {"properties": {"foo": "bar"}}}, "/properties/foo"),
    ],
)
def test_a_malformed_constraint_harms_nobody_else(warmed_kernels: None, request_: Any, place: str) -> None:
    """vllm#43920: it killed the engine. Here it comes in the middle of another's stream."""
    num_asked, are_refused = itertools.count(), threading.Event()

    def speak(said: str) -> str:
        assert next(num_asked) < 50 or are_refused.wait(60)
        return said

    with (
        answering(speak) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
        client.stream("POST", chat_client.PATH, json=chat_client.chat_body("a" * 200, stream=True)) as running,
    ):
        lines = running.iter_lines()
        assert next(lines).startswith("data: ")
        for code, message in refuse_all(client, "ok", **request_).values():
            assert code.startswith("invalid_")
            assert place in message
        assert client.get("/health").status_code == 200
        are_refused.set()
        assert [line for line in lines if line][-1] == "data: [DONE]"


def nested(depth: int) -> Any:
    """`oneOf` of two objects, nested."""
    inner = nested(depth - 1) if depth else {"type": "null"}
    members = [
        {"type": "object", "properties": {name: inner}, "required": [name], "additionalProperties": False}
        for name in ("a", "b")
    ]
    return {"oneOf": members}


HEAVY: dict[str, dict[str, Any]] = {
    "oneOf": {"schema": nested(11)},
    "64 KiB": {"schema": {"enum": [f"{number:08}" for number in range(6000)]}},
    "300 tools": {"tools": [strict(f"tool_{number}", x={"enum": ["ok", number]}) for number in range(300)]},
}


@pytest.mark.parametrize("name", HEAVY)
def test_compilation_is_bounded_and_beside_the_event_loop(echo: httpx.Client, name: str) -> None:
    """vllm#54003 compiled without bound, and nothing else was answered."""

    async def run() -> None:
        async with httpx.AsyncClient(base_url=str(echo.base_url), timeout=120) as client:
            body = chat_client.chat_body("ok", stream=True, max_tokens=1500)
            async with client.stream("POST", chat_client.PATH, json=body) as running:
                asked = bodies("ok", limit=3, **HEAVY[name])["chat"]
                heavy = asyncio.ensure_future(client.post(chat_client.PATH, json=asked))
                while not heavy.done():
                    assert (await client.get("/health")).status_code == 200
                assert [line async for line in running.aiter_lines() if line][-1] == "data: [DONE]"
            response = await heavy
            assert response.status_code in (200, 400)
            if response.status_code == 400:
                assert response.json()["error"]["code"] in ("constraint_too_large", "unsupported_json_schema")

    asyncio.run(run())


def test_the_key_of_a_grammar_is_all_that_it_depends_on(echo: httpx.Client) -> None:
    """LightLLM#933: all schemas shared an entry; lattice#1557: keys were sorted, and the order was lost."""
    members = {"b": {"const": "x "}, "a": {"const": 1}}
    for order in (("a", "b"), ("b", "a")):
        for space in ("x ", "x"):
            schema = {
                "type": "object",
                "properties": {name: {"const": space} if name == "b" else members[name] for name in order},
                "required": ["a", "b"],
                "additionalProperties": False,
            }
            said = json.dumps({name: {"a": 1, "b": "x "}[name] for name in order})
            answer = json.loads(ask_all(echo, said, schema=schema).one.text)
            assert list(answer) == list(order)
            assert answer == {"a": 1, "b": space}


@pytest.mark.parametrize("said", ["zzz", "", "<tool_call>", "<think>", "```json"])
@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        ({"outputs": {"grammar": 'root ::= "yes" | "no"'}}, {"yes", "no"}),
        ({"outputs": {"regex": "yes|no"}}, {"yes", "no"}),
        ({"outputs": {"choice": ["yes", "no"]}}, {"yes", "no"}),
        ({"schema": {"enum": ["yes", "no"]}}, {'"yes"', '"no"'}),
    ],
)
def test_what_is_accepted_is_enforced(echo: httpx.Client, said: str, request_: Any, allowed: set[str]) -> None:
    """ollama#17933 and lmstudio#2403: the format was accepted and dropped. Here the model wants anything else."""
    answer = ask_all(echo, f"{said} ", **request_, limit=60).one
    assert answer.text in allowed or answer.text.strip() in allowed
    assert dict(answer.record)["terminated"]


@pytest.mark.parametrize(
    "loose",
    [
        {"response_format": {"type": "regex"}},
        {"text": {"format": {"type": "yaml"}}},
        {"output_config": {"format": {"type": "json_object"}}},
        {"format": "json"},
        {"guided_decoding_backend": "x"},
        {"structured_outputs": {"json": {}}},
        {"structured_outputs": {"regex": "a", "whitespace_pattern": ""}},
        {"structured_outputs": {}},
    ],
)
def test_what_cannot_be_enforced_is_refused(echo: httpx.Client, loose: dict[str, Any]) -> None:
    """ninfer#33: such fields were ignored."""
    for message in (message for _, message in refuse_all(echo, "ok", **loose).values()):
        assert next(iter(loose)) in message.partition(": ")[0]


def test_a_control_token_is_no_content_and_its_spelling_is(echo: httpx.Client) -> None:
    """llama.cpp#24382 and sglang#3108. The model wants the marks themselves; the text has their letters."""
    wanted = "a</think>b<tool_call><think>"
    answer = ask_all(echo, f'"{wanted}"', schema={"const": wanted}).one
    assert json.loads(answer.text) == wanted
    loose = ask_all(echo, f"<think>{wanted}", outputs={"regex": ".{0,9}"}, limit=30).one
    assert len(loose.text) <= 9


@pytest.mark.parametrize("outputs", [{"regex": ""}, {"choice": ["", "yes"]}, {"grammar": 'root ::= ""'}])
def test_an_empty_text_may_be_all_that_there_is(echo: httpx.Client, outputs: dict[str, Any]) -> None:
    """sglang#276: an empty regex stopped the server."""
    answer = ask_all(echo, "</think>", outputs=outputs).one
    assert (answer.text, answer.end, dict(answer.record)["terminated"]) == ("", "stop", True)
