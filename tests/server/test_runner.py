from __future__ import annotations

import socket

import pytest

from infernix.errors import InvalidOptions
from infernix.server.runner import address_of, listen


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://")])
def test_connections_send_small_pieces_at_once(host: str, shown: str) -> None:
    with listen(host, 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        assert address_of(listener).startswith(shown)
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(("host", "port", "field"), [("127.0.0.1", -1, "port"), ("no.such.host.invalid", 0, "host")])
def test_addresses_that_cannot_be_had(host: str, port: int, field: str) -> None:
    with pytest.raises(InvalidOptions) as caught:
        listen(host, port)
    assert caught.value.field == field
