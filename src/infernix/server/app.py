"""The web application: routes of all protocols, and what happens around every request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infernix.engine.request_log import RequestLog
from infernix.server import status_routes
from infernix.server.api_error import ApiError, ErrorKind, dialect_of
from infernix.server.chat import routes as chat_routes
from infernix.server.messages import routes as messages_routes
from infernix.server.responses import routes as responses_routes
from infernix.server.served_engine import ServedEngine
from infernix.server.service import Service
from infernix.server.settings import ServerSettings
from infernix.server.sse import JsonResponse

_logger = logging.getLogger("infernix.server")
_ROUTES = (status_routes, chat_routes, responses_routes, messages_routes)
PROTOCOLS = (
    chat_routes.FACTS,
    responses_routes.FACTS,
    messages_routes.FACTS,
)


def build_app(engine: ServedEngine, settings: ServerSettings, log: RequestLog | None = None) -> FastAPI:
    """The application around an engine, which stays the caller's to close."""
    service = Service.of(engine, settings, [facts.name for facts in PROTOCOLS], log)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="Infernix", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service = service
    for module in _ROUTES:
        app.include_router(module.router)
    app.add_exception_handler(ApiError, _answer_api_error)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_middleware(_Surroundings, service=service)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["x-request-id"],
        )
    return app


def error_response(error: ApiError, path: str, request_id: str) -> Response:
    """An error in the form that clients of the path understand."""
    dialect = dialect_of(path)
    response = JsonResponse(dialect.body(error, request_id), dialect.status(error))
    if error.kind is ErrorKind.OVERLOADED:
        response.headers["retry-after"] = "1"
    if error.kind is ErrorKind.UNAUTHENTICATED:
        response.headers["www-authenticate"] = "Bearer"
    return response


async def _answer_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_response(error, request.url.path, request.state.request_id)


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    """What the router finds: no such path, no such method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        found = ApiError(ErrorKind.METHOD, f"{request.method} is not allowed here", code="method_not_allowed")
    else:
        found = ApiError(ErrorKind.NOT_FOUND, f"there is nothing at {request.url.path[:200]}", code="not_found")
    response = error_response(found, request.url.path, request.state.request_id)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


class _Surroundings:
    """Gives each request an id, checks its key, and answers what nobody foresaw, with a line in the log for us."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        path: str = scope["path"]
        has_begun = False

        async def send_with_id(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = headers["request-id"] = request_id
            await send(message)

        try:
            if path not in status_routes.OPEN_PATHS:
                self._service.keys.check(Headers(scope=scope))
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            found = error if isinstance(error, ApiError) else None
            if found is None:
                _logger.exception("request %s failed", request_id)
                found = ApiError(ErrorKind.INTERNAL, "internal error", code="internal_error")
            if not has_begun:
                await error_response(found, path, request_id)(scope, receive, send_with_id)
