"""Messages over HTTP, whole and as events, and the check that the two say the same."""

from __future__ import annotations

import json
from typing import Any

import httpx

PATH = "/v1/messages"
_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


def messages_body(question: str = "ok", **fields: Any) -> dict[str, Any]:
    """A request without thinking that draws the same tokens each time."""
    return {
        "model": "any-name",
        "max_tokens": 400,
        "messages": [{"role": "user", "content": question}],
        "thinking": {"type": "disabled"},
        "seed": 7,
        **fields,
    }


def post(client: httpx.Client, body: Any, path: str = PATH) -> httpx.Response:
    """Sends a body as JSON."""
    return client.post(path, json=body)


def refusal(client: httpx.Client, body: dict[str, Any], status: int = 400) -> str:
    """The message of the error that a body gets, the same for a stream."""
    messages = []
    for stream in (False, True):
        response = post(client, {**body, "stream": stream})
        assert response.status_code == status, response.text
        error = response.json()
        assert (error["type"], set(error)) == ("error", {"type", "error", "request_id"})
        assert error["request_id"] == response.headers["request-id"]
        if status == 400:
            assert error["error"]["type"] == "invalid_request_error"
        messages.append(error["error"]["message"])
    assert messages[0] == messages[1]
    message: str = messages[0]
    return message


def ask(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """The whole answer, after checking that the streamed answer joins to the same, byte for byte."""
    response = post(client, body)
    assert response.status_code == 200, response.text
    whole: dict[str, Any] = response.json()
    joined = joined_events(streamed(client, {**body, "stream": True}))
    is_cut = joined["stop_reason"] in ("max_tokens", "model_context_window_exceeded")
    if is_cut and len(joined["content"]) > len(whole["content"]):
        # A call that was cut off is seen in a stream only.
        assert joined["content"].pop()["type"] == "tool_use"
    for block in joined["content"]:
        if block["type"] == "tool_use":
            assert f'"input":{block["input"]}}}' in response.text
            block["input"] = json.loads(block["input"])
    assert comparable(joined) == comparable(whole)
    assert list(joined) == list(whole)
    return whole


def streamed(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream that comes to its end."""
    with client.stream("POST", PATH, json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return parsed_events(response.read().decode())


def parsed_events(text: str) -> list[dict[str, Any]]:
    """The events of a stream; each has its type for a name, too."""
    events = []
    for part in text.split("\n\n")[:-1]:
        if part.startswith(":"):
            continue
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def joined_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The events as one message, the input of calls as text; checks the order that clients rely on."""
    start, ping, *inner, delta, stop = events
    assert (start["type"], ping, stop) == ("message_start", {"type": "ping"}, {"type": "message_stop"})
    message: dict[str, Any] = start["message"]
    assert (message["content"], message["stop_reason"], message["stop_sequence"]) == ([], None, None)
    assert message["usage"]["output_tokens"] == 0
    blocks: list[dict[str, Any]] = message["content"]
    is_open = False
    for event in inner:
        kind, index = event.pop("type"), event.pop("index")
        if kind == "content_block_start":
            assert (is_open, index) == (False, len(blocks))
            blocks.append(_empty(event["content_block"]))
            is_open = True
            continue
        assert (is_open, index) == (True, len(blocks) - 1)
        if kind == "content_block_stop":
            assert event == {}
            is_open = False
            continue
        assert kind == "content_block_delta"
        piece = event["delta"]
        name = _FIELDS[piece["type"]]
        assert piece[name], "an empty piece"
        blocks[-1]["input" if name == "partial_json" else name] += piece[name]
    assert not is_open
    assert delta.pop("type") == "message_delta"
    message |= delta.pop("delta")
    for name in ("input_tokens", "cache_read_input_tokens"):
        assert delta["usage"][name] == message["usage"][name]
    return message | delta


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        assert block["input"] == {}
        return block | {"input": ""}
    texts = {name: text for name, text in block.items() if name != "type"}
    assert set(texts.values()) == {""}
    return block


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from request to request."""
    plain: dict[str, Any] = json.loads(json.dumps(message))
    own = plain.pop("id").removeprefix("msg_")
    usage = plain["usage"]
    usage["input_tokens"] += usage.pop("cache_read_input_tokens")
    if "constraint" in plain:
        del plain["constraint"]["timings_seconds"], plain["constraint"]["cache"]
    calls = [block for block in plain["content"] if block["type"] == "tool_use"]
    for place, call in enumerate(calls):
        assert call.pop("id") == f"toolu_{own}_{place}"
    return plain
