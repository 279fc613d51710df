"""One request to an ASGI application, with both ends of the connection in a test's hands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, MutableMapping
from typing import Any


class AsgiCall:
    """To be made in the event loop that runs the application."""

    def __init__(self, app: Any, path: str, body: Any = None, *, method: str = "POST", **headers: str) -> None:
        self._app = app
        given = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), text.encode()) for name, text in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": {},
        }
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self._is_waiting = asyncio.Event()
        self._is_taking = True
        self.sent: list[MutableMapping[str, Any]] = []
        if body is not None:
            self.feed(body if isinstance(body, bytes) else json.dumps(body).encode(), more=False)
        self.task = asyncio.ensure_future(app(self._scope, self._receive, self._send))

    def feed(self, data: bytes, *, more: bool) -> None:
        """The client sends a piece of the body."""
        self._is_waiting.clear()
        self._incoming.put_nowait({"type": "http.request", "body": data, "more_body": more})

    def hang_up(self) -> None:
        """The client goes away."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    def stall(self) -> None:
        """The client takes no more of what is sent."""
        self._is_taking = False

    async def until_taken(self) -> None:
        """Waits until the application has taken everything that the client sent, and asks for more."""
        await self._is_waiting.wait()

    async def _receive(self) -> dict[str, Any]:
        if self._incoming.empty():
            self._is_waiting.set()
        message = await self._incoming.get()
        if message["type"] == "http.disconnect":
            self.hang_up()  # servers say it as often as they are asked
        return message

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if not self._is_taking and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        async with self._changed:
            self.sent.append(message)
            self._changed.notify_all()

    async def until(self, condition: Callable[[AsgiCall], bool]) -> None:
        """Waits for what the application sends."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self))

    @property
    def status(self) -> int | None:
        """The status, once it was sent."""
        return self.sent[0]["status"] if self.sent else None

    @property
    def body(self) -> bytes:
        """What was sent of the body."""
        return b"".join(message.get("body", b"") for message in self.sent)

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)
