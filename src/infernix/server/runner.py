"""Running the application: one socket, one event loop, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI

from infernix.errors import InvalidOptions
from infernix.server.settings import ServerSettings

_BACKLOG = 512
# An idle connection is kept for longer than clients (5 seconds in httpx) and proxies (60 seconds in most) keep theirs.
# With equal times one of them now and then sends a request into a connection that is just being closed.
_IDLE_SECONDS = 75
# What answers get to say that they were cut off.
_FAREWELL_SECONDS = 2


class HttpServer:
    """Serves an application until it is told to stop, from whatever thread `run` is called on."""

    def __init__(self, app: FastAPI, settings: ServerSettings, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=math.ceil(settings.shutdown_seconds) + _FAREWELL_SECONDS,
        )
        self._server = _Server(config, settings.shutdown_seconds, app.state.service.cut_off.set)
        self._listener = listener

    def run(self) -> None:
        """Returns when everything is answered after `stop`, or SIGTERM or SIGINT on the main thread, or cut off where
        the settings' time for that was too short. A second signal cuts off at once.
        """
        asyncio.run(self._serve())

    def stop(self) -> None:
        """Takes no more connections, and ends when what is under way has ended; from any thread."""
        if self._server.should_exit:
            self._server.force_exit = True
        self._server.should_exit = True

    async def _serve(self) -> None:
        with self._signals():
            await self._server.serve(sockets=[self._listener])

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handled: list[signal.Signals] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(RuntimeError, ValueError):  # not the main thread: nobody signals it
                loop.add_signal_handler(number, self.stop)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """Without the signal handling of its own, which ends the process before the engine is closed; and with an end that
    answers are told of before their connections are closed.
    """

    def __init__(self, config: uvicorn.Config, shutdown_seconds: float, cut_off: Callable[[], None]) -> None:
        super().__init__(config)
        self._shutdown_seconds = shutdown_seconds
        self._cut_off = cut_off

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        timer = asyncio.get_running_loop().call_later(self._shutdown_seconds, self._cut_off)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises InvalidOptions for an address that cannot be had."""
    if not 0 <= port <= 65535:
        raise InvalidOptions(f"{port} is outside 0..65535", field="port")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidOptions(
            f"cannot listen at {host}, port {port}: {error.strerror or error}", field="host"
        ) from error
    # Connections inherit it. asyncio does not know this socket for TCP and leaves it out, and then the second of two
    # small writes waits for the client's delayed acknowledgement: 40 ms for most answers and many tokens of a stream.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
