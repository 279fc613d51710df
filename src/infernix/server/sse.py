"""Server-sent events: writing them, keeping a silent stream alive, and noticing that nobody listens any more."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from infernix.frontend.template_json import SpelledNumber
from infernix.server.json_body import RawJson

_KEEP_ALIVE = b": keep-alive\n\n"


def json_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8; a RawJson stands in it as its text, and numbers that were parsed with their spelling keep
    it.
    """
    try:
        return _json_text(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair, as an error message may quote it
        return _json_text(value, ensure_ascii=True).encode()


def _json_text(value: object, *, ensure_ascii: bool) -> str:
    secret = secrets.token_hex(16)  # nobody can have written it elsewhere
    texts: list[str] = []

    def mark(part: object) -> str:
        if not isinstance(part, RawJson | SpelledNumber):
            raise TypeError(f"{type(part).__name__} cannot be written as JSON")
        texts.append(part.text)
        return f"{secret}{len(texts) - 1}"

    text = json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"), default=mark)
    return re.sub(f'"{secret}([0-9]+)"', lambda found: texts[int(found[1])], text) if texts else text


def data_event(value: object) -> bytes:
    """An event without a name."""
    return b"data: %b\n\n" % json_bytes(value)


def named_event(name: str, value: object) -> bytes:
    """An event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_bytes(value))


class JsonResponse(Response):
    """A JSON body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body's bytes."""
        return json_bytes(content)


class EventStream(Response):
    """A response whose events come one by one: `first`, and then all of `events`.

    `events`, which has given its first, is closed at the end and when the client is gone, even while it waits. A client
    that takes nothing for `send_seconds` is gone too.
    """

    media_type = "text/event-stream"

    def __init__(
        self, first: bytes, events: AsyncGenerator[bytes, None], *, keep_alive_seconds: float, send_seconds: float
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._first = first
        self._events = events
        self._keep_alive_seconds = keep_alive_seconds
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until the events end or the client is gone."""
        sending = asyncio.ensure_future(self._send_all(send))
        listening = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((sending, listening), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except OSError:  # the client went away in the middle of an event, or takes none: TimeoutError is an OSError
            pass
        finally:
            for task in (sending, listening):
                task.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)
            await self._events.aclose()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        chunk: bytes | None = self._first
        waiting: asyncio.Future[bytes | None] | None = None
        try:
            while chunk is not None:
                async with asyncio.timeout(self._send_seconds):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if waiting is None:
                    waiting = asyncio.ensure_future(anext(self._events, None))
                await asyncio.wait((waiting,), timeout=self._keep_alive_seconds)
                chunk = _KEEP_ALIVE
                if waiting.done():
                    chunk, waiting = waiting.result(), None
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
