"""Whatever clients send, and however many they are: no error of the server's own, and it goes on answering."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infernix.server.app import build_app
from infernix.server.settings import ServerSettings
from support.chat_client import PATH, chat_body
from support.live_server import MODEL, answering, live_server
from support.staged_engine import StagedEngine, saying

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "ok", "user", "auto", "function", "text", "json_schema", "\u0000", "\U0001f600"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "content", "role", "function", "schema", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def operations() -> list[tuple[str, dict[str, Any]]]:
    """Every path of the server's own OpenAPI document that takes a body, with the schema of it."""
    document = build_app(StagedEngine(), ServerSettings(MODEL)).openapi()
    return [
        (path, methods["post"]["requestBody"]["content"]["application/json"]["schema"])
        for path, methods in document["paths"].items()
        if "requestBody" in methods.get("post", {})
    ]


def of_schema(schema: dict[str, Any], definitions: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the schema may accept, and now and then something else."""
    if "$ref" in schema:
        return of_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return st.one_of([of_schema(branch, definitions, depth) for branch in schema[word]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if depth < 6:
            required = set(schema.get("required", ()))
            members = {
                name: of_schema(member, definitions, depth + 1) for name, member in schema.get("properties", {}).items()
            }
            return st.fixed_dictionaries(
                {name: members[name] for name in required if name in members},
                optional={name: member for name, member in members.items() if name not in required} | {"odd": JSON},
            )
        case "array":
            return st.lists(of_schema(schema.get("items", {}), definitions, depth + 1), max_size=3)
        case "string":
            return st.sampled_from([MODEL, "ok", "", "call_1", "\u0000在"])
        case "integer":
            return st.integers(-1, 5) | st.just(2**70)
        case "number":
            return st.floats(-3, 3)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return JSON


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_bodies_after_the_servers_own_description(
    operations: list[tuple[str, dict[str, Any]]], echo: httpx.Client, data: st.DataObject
) -> None:
    path, schema = data.draw(st.sampled_from(operations))
    body = data.draw(of_schema(schema, schema.get("$defs", {})))
    if isinstance(body, dict) and data.draw(st.booleans()):
        body = {name: value for name, value in body.items() if name not in ("odd", "guided_json", "guided_regex")}
        body |= {"model": MODEL, "max_tokens": 3}
    response = echo.post(path, json=body)
    assert response.status_code < 500, (body, response.text)
    assert "Traceback" not in response.text
    if response.status_code == 400:
        assert response.json()["error"]["message"]


@settings(max_examples=100)
@given(data=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_bodies_that_are_anything(echo: httpx.Client, data: bytes) -> None:
    response = echo.post(PATH, content=data, headers={"content-type": "application/json"})
    assert 400 <= response.status_code < 500


def test_two_hundred_clients_at_once(warmed_kernels: None) -> None:
    """Four have a place and eight wait. Each gets its own whole answer, or is told that there is no room; afterwards
    everything is free.
    """
    is_full = threading.Event()

    def speak(said: str) -> str:
        assert is_full.wait(60)
        return said

    async def ask(client: httpx.AsyncClient, number: int) -> int:
        schema = {"const": f"number {number}"}
        body = chat_body(
            f'"number {number}"',
            stream=number % 2 == 0,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        )
        response = await client.post(PATH, json=body)
        if response.status_code == 200 and number % 2:
            assert json.loads(response.json()["choices"][0]["message"]["content"]) == f"number {number}"
        elif response.status_code == 200:
            assert response.text.endswith("data: [DONE]\n\n")
        else:
            assert response.json()["error"]["code"] == "server_overloaded"
            is_full.set()
        return response.status_code

    async def run(url: str) -> Counter[int]:
        limits = httpx.Limits(max_connections=250)
        async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
            statuses = asyncio.gather(*(ask(client, number) for number in range(200)))
            while not statuses.done():
                assert (await client.get("/health")).status_code == 200
            return Counter(await statuses)

    with (
        answering(speak, max_concurrency=4, max_pending_requests=8, max_cached_prefixes=0) as engine,
        live_server(engine, max_outstanding=12) as server,
    ):
        found = asyncio.run(run(server.url))
        assert set(found) == {200, 429}
        assert found[200] >= 12
        assert server.app.state.service.gate.num_inside == 0
        assert engine.statistics().num_outstanding == 0


def test_health_is_answered_while_every_thread_compiles() -> None:
    """Preparing blocks here as long as it likes; the event loop goes on."""
    go_on = threading.Event()
    engine = StagedEngine(saying("ok"), prepare_hook=lambda _: go_on.wait())
    with live_server(engine, max_outstanding=3) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        results: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: results.append(httpx.post(server.url + PATH, json=chat_body(), timeout=60).status_code)
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        while server.app.state.service.gate.num_inside < 3:
            assert client.get("/health").status_code == 200
        assert client.get("/health").status_code == 200
        assert client.post(PATH, json=chat_body()).status_code == 429
        go_on.set()
        for thread in threads:
            thread.join()
    assert results == [200] * 3


def test_sixty_four_mebibytes_are_refused_while_they_arrive(echo: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * (1 << 20)

    headers = {"content-type": "application/json"}
    try:
        response = echo.post(PATH, content=pieces(), headers=headers)
        assert response.status_code == 413
    except (httpx.WriteError, httpx.ReadError):
        pass  # the server closed the connection on a client that went on sending
    assert echo.post(PATH, json=chat_body()).status_code == 200


@pytest.mark.parametrize("sent", ["", "POST", "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n", "head", "half"])
def test_connections_that_are_dropped_anywhere(echo: httpx.Client, sent: str) -> None:
    body = json.dumps(chat_body("a" * 200, stream=True))
    head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    text = {"head": head, "half": head + body[: len(body) // 2]}.get(sent, sent)
    url = echo.base_url
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(text.encode())
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall((head + body).encode())
        assert connection.recv(20).startswith(b"HTTP/1.1 200")
    assert echo.post(PATH, json=chat_body()).status_code == 200
    while "infernix_requests_outstanding 0.0" not in echo.get("/metrics").text:
        pass
