"""One request through all protocols: how each of them spells it, and what their answers have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from support import chat_client, messages_client, responses_client

PROTOCOLS = ("chat", "responses", "messages")
PATHS = {"chat": chat_client.PATH, "responses": responses_client.PATH, "messages": messages_client.PATH}
_ENDS = {
    **{"stop": "stop", "tool_calls": "stop", "length": "length"},
    **{"completed": "stop", "incomplete": "length"},
    **{"end_turn": "stop", "tool_use": "stop", "max_tokens": "length"},
}


@dataclass(frozen=True)
class Answer:
    """What every protocol says in its own words.

    `calls` are names with the text of the arguments, `record` is the constraint's without what differs each time, and
    `cache` how its grammar was found. `num_tokens` are those of prompt and output.
    """

    text: str
    reasoning: str
    calls: tuple[tuple[str, Any], ...]
    end: str
    record: tuple[tuple[str, Any], ...]
    num_tokens: tuple[int, int]


@dataclass(frozen=True)
class Answers:
    """The one answer that all protocols gave, and how each found its grammar."""

    one: Answer
    caches: tuple[str | None, ...]


def bodies(
    question: str,
    *,
    schema: Any = None,
    outputs: dict[str, Any] | None = None,
    tools: Sequence[dict[str, Any]] = (),
    choice: str | tuple[str] | None = None,
    parallel: bool = True,
    thinking: bool = False,
    limit: int | None = None,
    continued: str | None = None,
    **fields: Any,
) -> dict[str, dict[str, Any]]:
    """The body in each protocol. `tools` have name, parameters and what else a function has; `choice` is a word of
    OpenAI's, or a tuple of one tool's name. `fields` are the same everywhere.
    """
    chat = chat_client.chat_body(question, **fields)
    responses = responses_client.body_of(question, **fields)
    messages = messages_client.messages_body(question, **fields)
    if thinking:
        chat["enable_thinking"] = responses["enable_thinking"] = True
        messages["thinking"] = {"type": "adaptive"}
    if continued is not None:
        turn = {"role": "assistant", "content": continued}
        chat["messages"].append(turn)
        messages["messages"].append(turn)
        responses["input"] = [{"role": "user", "content": question}, turn]
    if schema is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        responses["text"] = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
        messages["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    for body in (chat, responses, messages):
        if outputs is not None:
            body["structured_outputs"] = outputs
    if limit is not None:
        chat["max_tokens"] = responses["max_output_tokens"] = messages["max_tokens"] = limit
    if tools:
        chat["tools"] = [{"type": "function", "function": tool} for tool in tools]
        responses["tools"] = [{"type": "function", **tool} for tool in tools]
        messages["tools"] = [_renamed(tool) for tool in tools]
    _choose(chat, responses, messages, choice, parallel)
    return {"chat": chat, "responses": responses, "messages": messages}


def _renamed(tool: dict[str, Any]) -> dict[str, Any]:
    return {"input_schema" if name == "parameters" else name: value for name, value in tool.items()}


def _choose(
    chat: dict[str, Any], responses: dict[str, Any], messages: dict[str, Any], choice: Any, parallel: bool
) -> None:
    if not parallel:
        chat["parallel_tool_calls"] = responses["parallel_tool_calls"] = False
    if isinstance(choice, tuple):
        (name,) = choice
        chat["tool_choice"] = {"type": "function", "function": {"name": name}}
        responses["tool_choice"] = {"type": "function", "name": name}
        messages["tool_choice"] = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
        return
    if choice is not None:
        chat["tool_choice"] = responses["tool_choice"] = choice
    if choice == "none":
        messages["tool_choice"] = {"type": "none"}
    elif choice is not None or not parallel:
        kind = {"required": "any"}.get(choice or "auto", "auto")
        messages["tool_choice"] = {"type": kind, "disable_parallel_tool_use": not parallel}


def ask_all(client: httpx.Client, question: str, **request: Any) -> Answers:
    """The answer of all protocols, after checking that it is one, and each of them streamed the same."""
    asked = bodies(question, **request)
    whole = {
        "chat": chat_client.ask(client, asked["chat"]),
        "responses": responses_client.ask(client, asked["responses"]),
        "messages": messages_client.ask(client, asked["messages"]),
    }
    found = {
        "chat": _of_chat(whole["chat"]),
        "responses": _of_response(whole["responses"]),
        "messages": _of_message(whole["messages"]),
    }
    assert found["chat"] == found["responses"] == found["messages"]
    return Answers(found["chat"], tuple(whole[name].get("constraint", {}).get("cache") for name in PROTOCOLS))


def refuse_all(client: httpx.Client, question: str, **request: Any) -> dict[str, tuple[str, str]]:
    """The code and the message that each protocol refuses the request with, status 400."""
    asked = bodies(question, **request)
    found = {}
    for name in ("chat", "responses"):
        ask = chat_client if name == "chat" else responses_client
        error = ask.refusal(client, asked[name])
        found[name] = (error["code"], error["message"])
    message = messages_client.refusal(client, asked["messages"])
    code = messages_client.post(client, asked["messages"]).json()["error"]["details"]["error_code"]
    return {**found, "messages": (code, message)}


def _record(body: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    record = body.get("constraint", {})
    return tuple((name, value) for name, value in record.items() if name not in ("cache", "timings_seconds"))


def _of_chat(body: dict[str, Any]) -> Answer:
    (choice,) = body["choices"]
    message, usage = choice["message"], body["usage"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    return Answer(
        message["content"] or "",
        message.get("reasoning_content", ""),
        _parsed(calls),
        _ENDS[choice["finish_reason"]],
        _record(body),
        (usage["prompt_tokens"], usage["completion_tokens"]),
    )


def _of_response(body: dict[str, Any]) -> Answer:
    items, usage = body["output"], body["usage"]
    calls = [(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]
    reasoning = [item["content"][0]["text"] for item in items if item["type"] == "reasoning"]
    return Answer(
        responses_client.text_of(body),
        "".join(reasoning),
        _parsed(calls),
        _ENDS[body["status"]],
        _record(body),
        (usage["input_tokens"], usage["output_tokens"]),
    )


def _of_message(body: dict[str, Any]) -> Answer:
    blocks, usage = body["content"], body["usage"]
    return Answer(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        tuple((block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"),
        _ENDS[body["stop_reason"]],
        _record(body),
        (usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]),
    )


def _parsed(calls: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """In one spelling: Anthropic's protocol gives arguments as JSON, not as a text."""
    return tuple((name, json.dumps(json.loads(arguments))) for name, arguments in calls)
