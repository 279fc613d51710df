"""Responses over HTTP, whole and as events, and the check that the two say the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx

from support.live_server import MODEL

PATH = "/v1/responses"
# What differs between two answers to one question.
_VARYING = ("id", "created_at", "completed_at")
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")
_PARTS = {
    "message": ("output_text", {"type": "output_text", "text": "", "annotations": [], "logprobs": []}),
    "reasoning": ("reasoning_text", {"type": "reasoning_text", "text": ""}),
}


def body_of(given: Any = "ok", **fields: Any) -> dict[str, Any]:
    """A request without thinking that draws the same tokens each time and leaves nothing behind."""
    return {"model": MODEL, "input": given, "enable_thinking": False, "seed": 7, "store": False, **fields}


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
    """The whole response, after checking that the events join to the same."""
    response = post(client, body)
    assert response.status_code == 200, response.text
    whole: dict[str, Any] = response.json()
    events = streamed(client, {**body, "stream": True})
    assert comparable(checked(events)) == comparable(whole)
    return whole


def streamed(client: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream that comes to its end; each has its own name as its type."""
    with client.stream("POST", PATH, json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        text = "".join(response.iter_text())
    return events_in(text)


def events_in(text: str) -> list[dict[str, Any]]:
    """The events of a stream's text."""
    assert text.endswith("\n\n")
    events = []
    for block in text[:-2].split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert f"event: {event['type']}" == name
        events.append(event)
    return events


def checked(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The terminal response, after checking that the events come in their order and join to its output."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    created, in_progress, *between, terminal = events
    assert (created["type"], in_progress["type"]) == ("response.created", "response.in_progress")
    assert created["response"] == in_progress["response"]
    begun, whole = created["response"], terminal["response"]
    assert (begun["status"], begun["output"], begun["usage"]) == ("in_progress", [], None)
    assert terminal["type"] in _TERMINAL
    assert terminal["type"] == f"response.{whole['status']}"
    changed = {"status", "output", "usage", "completed_at", "incomplete_details", "error"}
    assert {name: begun[name] for name in begun.keys() - changed} == {
        name: whole[name] for name in begun.keys() - changed
    }
    items = _joined(between)
    assert [item for item in items if item["status"] != "in_progress"] == whole["output"]
    # Only a limit or an error leaves an item open, and it is the last one.
    is_open = [item["status"] == "in_progress" for item in items]
    assert not any(is_open[:-1])
    assert not is_open or not is_open[-1] or whole["status"] != "completed"
    return dict(whole)


def _joined(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that the events build, one after the other."""
    items: list[dict[str, Any]] = []
    for event in events:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert event["output_index"] == len(items)
            item = event["item"]
            assert item["status"] == "in_progress"
            assert item.get("content", []) == []
            assert item.get("arguments", "") == ""
            items.append(item)
            continue
        assert event["output_index"] == len(items) - 1, "an event of an item that is not open"
        item = items[-1]
        assert item["status"] == "in_progress"
        if kind == "output_item.done":
            joined = item | {"status": event["item"]["status"]}
            assert joined == event["item"]
            items[-1] = event["item"]
            continue
        assert event["item_id"] == item["id"]
        if item["type"] == "function_call":
            _add_arguments(item, kind, event)
        else:
            _add_text(item, kind, event)
    return items


def _add_arguments(item: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
    if kind == "function_call_arguments.delta":
        assert event["delta"], "an empty piece"
        item["arguments"] += event["delta"]
    else:
        assert kind == "function_call_arguments.done"
        assert event["arguments"] == item["arguments"]


def _add_text(item: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
    name, empty = _PARTS[item["type"]]
    assert event["content_index"] == 0
    if kind == "content_part.added":
        assert (event["part"], item["content"]) == (empty, [])
        item["content"] = [dict(empty)]
    elif kind == f"{name}.delta":
        assert event["delta"], "an empty piece"
        item["content"][0]["text"] += event["delta"]
    elif kind == f"{name}.done":
        assert event["text"] == item["content"][0]["text"]
    else:
        assert kind == "content_part.done"
        assert event["part"] == item["content"][0]


def comparable(body: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from request to request."""
    plain: dict[str, Any] = json.loads(json.dumps(body).replace(body["id"].removeprefix("resp_"), "KEY"))
    for name in _VARYING:
        del plain[name]
    if plain["usage"] is not None:
        del plain["usage"]["input_tokens_details"]
    if "constraint" in plain:
        del plain["constraint"]["timings_seconds"], plain["constraint"]["cache"]
    return plain


def text_of(body: dict[str, Any]) -> str:
    """All that the response says."""
    return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])


def calls_of(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """The calls, each with its arguments."""
    return [(item["name"], json.loads(item["arguments"])) for item in body["output"] if item["type"] == "function_call"]
