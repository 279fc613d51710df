"""What is around the protocols: keys, paths, status, the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from infernix.server.app import build_app
from infernix.server.settings import ServerSettings
from support.chat_client import PATH, chat_body
from support.live_server import MODEL
from support.staged_engine import StagedEngine, saying


@contextmanager
def client(engine: Any = None, **settings: Any) -> Iterator[TestClient]:
    app = build_app(engine or StagedEngine(saying("ok")), ServerSettings(MODEL, **settings))
    with TestClient(app) as found:
        yield found


def test_health_follows_the_engine() -> None:
    engine = StagedEngine()
    with client(engine, api_key="secret") as http:
        assert http.get("/health").json() == {"status": "ok"}
        engine.is_available = False
        assert http.get("/health").status_code == 503


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer secret"}, 200),
        ({"authorization": "bearer  secret"}, 200),
        ({"x-api-key": "secret"}, 200),
        ({"authorization": "Bearer secret2"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Basic secret"}, 401),
        ({"x-api-key": "s"}, 401),
        ({"x-api-key": b"\xff\xfe"}, 401),
    ],
)
def test_keys(headers: Any, status: int) -> None:
    with client(api_key="secret") as http:
        for path in ("/metrics", "/v1/models", f"/v1/models/{MODEL}", "/openapi.json"):
            assert http.get(path, headers=headers).status_code == status
        response = http.post(PATH, json=chat_body(), headers=headers)
        assert response.status_code == status
        if status == 401:
            assert response.json()["error"]["code"] == "invalid_api_key"
            assert response.headers["www-authenticate"] == "Bearer"


def test_without_a_key_everybody_is_let_in() -> None:
    with client() as http:
        assert http.post(PATH, json=chat_body(), headers={"authorization": "Bearer any"}).status_code == 200


def test_models() -> None:
    with client() as http:
        (model,) = http.get("/v1/models").json()["data"]
        assert (model["id"], model["object"], model["max_context"]) == (MODEL, "model", 4000)
        assert http.get(f"/v1/models/{MODEL}").json() == model
        missing = http.get("/v1/models/a/b")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("GET", PATH, 405), ("DELETE", "/health", 405)]
)
def test_what_is_not_there(method: str, path: str, status: int) -> None:
    with client() as http:
        response = http.request(method, path)
        assert response.status_code == status
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert response.headers["x-request-id"].startswith("req_")


def test_a_path_of_anthropics_has_their_envelope() -> None:
    with client(api_key="secret") as http:
        response = http.get("/v1/messages/nothing")
        body = response.json()
        assert (body["type"], body["error"]["type"]) == ("error", "authentication_error")
        assert body["request_id"] == response.headers["request-id"]


def test_what_nobody_foresaw_is_an_internal_error_without_detail() -> None:
    class Broken(StagedEngine):
        @property
        def is_available(self) -> bool:  # type: ignore[override]
            raise ValueError("a secret")

        @is_available.setter
        def is_available(self, value: bool) -> None:
            pass

    with client(Broken()) as http:
        response = http.get("/health")
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal_error")
        assert "secret" not in response.text


def test_pages_of_other_origins_may_call_only_where_that_is_set() -> None:
    asked = {"origin": "https://example.org", "access-control-request-method": "POST"}
    with client() as http:
        assert "access-control-allow-origin" not in http.options(PATH, headers=asked).headers
    with client(cors_origins=("https://example.org",), api_key="secret") as http:
        response = http.options(PATH, headers=asked)
        assert response.headers["access-control-allow-origin"] == "https://example.org"
        other = http.options(PATH, headers={**asked, "origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_the_openapi_document_describes_the_bodies() -> None:
    with client() as http:
        document = http.get("/openapi.json").json()
        schema = document["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["required"] == ["model", "messages"]
        assert schema["additionalProperties"] is False
        assert {"response_format", "structured_outputs", "user", "logprobs"} <= set(schema["properties"])
