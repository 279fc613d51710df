"""Chat completions over HTTP, whole and in chunks, and the check that the two say the same."""

from __future__ import annotations

import json
from typing import Any

import httpx

from support.live_server import MODEL

PATH = "/v1/chat/completions"
# What differs between two answers to one question.
_VARYING = ("id", "created")


def chat_body(question: str = "ok", **fields: Any) -> dict[str, Any]:
    """A request without thinking that draws the same tokens each time."""
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": question}],
        "enable_thinking": False,
        "seed": 7,
        **fields,
    }


def post(client: httpx.Client, body: Any) -> httpx.Response:
    """Sends a body as JSON."""
    return client.post(PATH, json=body)


def refusal(client: httpx.Client, body: Any, status: int = 400) -> dict[str, Any]:
    """The error that a body gets, the same for a stream."""
    errors = []
    for stream in (False, True):
        response = post(client, {**body, "stream": stream})
        assert response.status_code == status, response.text
        errors.append(response.json()["error"])
    assert errors[0] == errors[1]
    error: dict[str, Any] = errors[0]
    return error


def ask(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """The whole answer, after checking that the answer in chunks joins to the same."""
    response = post(client, body)
    assert response.status_code == 200, response.text
    whole: dict[str, Any] = response.json()
    for usage in (True, False):
        chunks = streamed(client, {**body, "stream": True, "stream_options": {"include_usage": usage}})
        assert comparable(joined(chunks, has_usage=usage)) == comparable(whole, has_usage=usage)
    return whole


def streamed(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of a stream that comes to its end."""
    with client.stream("POST", PATH, json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line for line in response.iter_lines() if line and not line.startswith(":")]
    assert events[-1] == "data: [DONE]"
    assert all(event.startswith("data: ") for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


def joined(chunks: list[dict[str, Any]], *, has_usage: bool) -> dict[str, Any]:
    """The chunks as one answer; checks the order that clients rely on."""
    first = chunks[0]
    body: dict[str, Any] = {name: first[name] for name in ("id", "created", "model")} | {"object": "chat.completion"}
    if has_usage:
        *chunks, last = chunks
        assert last["choices"] == []
        assert all(chunk["usage"] is None for chunk in chunks)
        body["usage"] = last["usage"]
        if "constraint" in last:
            body["constraint"] = last["constraint"]
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        assert (chunk["id"], chunk["object"]) == (first["id"], "chat.completion.chunk")
        (choice,) = chunk["choices"]
        if choice["index"] not in choices:
            assert choice["delta"] == {"role": "assistant", "content": ""}
            choices[choice["index"]] = {
                "index": choice["index"],
                "message": {"role": "assistant", "content": "", "refusal": None},
                "logprobs": None,
                "finish_reason": None,
            }
            continue
        whole = choices[choice["index"]]
        assert whole["finish_reason"] is None, "a chunk after the last"
        if choice["finish_reason"] is None:
            _add(whole["message"], choice["delta"])
        else:
            assert choice["delta"] == {}
            whole["finish_reason"] = choice["finish_reason"]
            if "constraint" in choice:
                whole["constraint"] = choice["constraint"]
            if "constraint" in chunk:
                body["constraint"] = chunk["constraint"]
    body["choices"] = [choices[index] for index in range(len(choices))]
    assert all(choice["finish_reason"] is not None for choice in body["choices"])
    return body


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    ((name, value),) = delta.items()
    if name != "tool_calls":
        assert value, "an empty piece"
        message[name] = message.get(name, "") + value
        return
    (piece,) = value
    calls = message.setdefault("tool_calls", [])
    index = piece.pop("index")
    if index == len(calls):
        assert set(piece) == {"id", "type", piece["type"]}
        calls.append(piece)
        return
    assert index == len(calls) - 1
    form = calls[index]["type"]
    argument = "arguments" if form == "function" else "input"
    assert piece[form].keys() == {argument}
    calls[index][form][argument] += piece[form][argument]


def comparable(body: dict[str, Any], *, has_usage: bool = True) -> dict[str, Any]:
    """Without what differs from request to request; an unfinished call, which only a stream shows, is left out."""
    plain: dict[str, Any] = json.loads(json.dumps(body))
    for name in _VARYING:
        del plain[name]
    if not has_usage:
        plain.pop("usage", None)
    elif "usage" in plain:
        del plain["usage"]["prompt_tokens_details"]
    for record in [plain, *plain["choices"]]:
        if "constraint" in record:
            del record["constraint"]["timings_seconds"], record["constraint"]["cache"]
    for choice in plain["choices"]:
        message = choice["message"]
        message["content"] = message["content"] or ""
        if choice["finish_reason"] == "length":
            message.pop("tool_calls", None)
        for place, call in enumerate(message.get("tool_calls", ())):
            assert call.pop("id").endswith(f"_{choice['index']}_{place}")
    return plain
