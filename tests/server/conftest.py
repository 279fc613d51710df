"""One live server for the tests of a package: its model wants to answer with the question itself."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.live_server import answering, live_server


@pytest.fixture(scope="session")
def echo(warmed_kernels: None) -> Iterator[httpx.Client]:
    """A client of a server whose model says what it was asked, marks of thinking and calls included."""
    with (
        answering(lambda said: said, max_context=2000) as engine,
        live_server(engine) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client
