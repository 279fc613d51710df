"""Receiving a body: bounded in length, in time, and together with all other bodies that are on their way."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from infernix.server.api_error import ApiError, ErrorKind
from infernix.server.settings import ServerSettings


class BodyReceiver:
    """Receives bodies; lives in one event loop."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._num_pending_bytes = 0

    async def receive(self, request: Request) -> bytes:
        """The whole body. Raises ApiError for one that is too long, too slow, or not announced as JSON."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(
                ErrorKind.MEDIA_TYPE, "expected content-type: application/json", code="unsupported_media_type"
            )
        limit = self._settings.max_body_bytes
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(self._settings.body_timeout_seconds):
                return await self._collect(request, limit)
        except TimeoutError as error:
            raise ApiError(ErrorKind.BODY_TIMEOUT, "the body took too long to arrive", code="body_timeout") from error
        except ClientDisconnect as error:
            raise ApiError(ErrorKind.CLIENT_GONE, "the client is gone", code="client_disconnected") from error

    async def _collect(self, request: Request, limit: int) -> bytes:
        chunks: list[bytes] = []
        num_bytes = 0
        try:
            async for chunk in request.stream():
                num_bytes += len(chunk)
                self._num_pending_bytes += len(chunk)
                if num_bytes > limit:
                    raise _too_large(limit)
                if self._num_pending_bytes > self._settings.max_pending_body_bytes:
                    raise ApiError(
                        ErrorKind.OVERLOADED, "too many bytes of requests are on their way", code="server_overloaded"
                    )
                chunks.append(chunk)
            return b"".join(chunks)
        finally:
            self._num_pending_bytes -= num_bytes


def _too_large(limit: int) -> ApiError:
    return ApiError(ErrorKind.TOO_LARGE, f"the body is longer than {limit} bytes", code="request_too_large")
