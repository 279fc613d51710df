from __future__ import annotations

import socket

import pytest

from infernix.errors import InvalidOptions
from infernix.server.app import build_app
from infernix.server.runner import HttpServer, address_of, listen
from infernix.server.settings import ServerSettings
from support.staged_engine import StagedEngine


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://")])
def test_connections_send_small_pieces_at_once(host: str, shown: str) -> None:
    with listen(host, 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        assert address_of(listener).startswith(shown)
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_idle_connection_is_kept_for_longer_than_clients_and_proxies_keep_it() -> None:
    settings = ServerSettings("m")
    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(build_app(StagedEngine(), settings), settings, listener)
        assert server._server.config.timeout_keep_alive > 60


@pytest.mark.parametrize(("host", "port", "field"), [("127.0.0.1", -1, "port"), ("no.such.host.invalid", 0, "host")])
def test_addresses_that_cannot_be_had(host: str, port: int, field: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        listen(host, port)
    assert caught.value.field == field
