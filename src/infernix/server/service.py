"""What a running server holds."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from infernix.engine.request_log import RequestLog
from infernix.server.auth import KeyCheck
from infernix.server.metrics import Metrics
from infernix.server.request_body import BodyReceiver
from infernix.server.responses.store import ResponseStore
from infernix.server.served_engine import ServedEngine
from infernix.server.settings import ServerSettings
from infernix.server.workers import Gate, Workers

_COUNTING_THREADS = 2
_MAX_WAITING_COUNTS = 16


@dataclass(frozen=True, slots=True)
class Service:
    """One engine with all that the routes share.

    `gate` and `workers` are for generation, `count_gate` and `count_workers` for counting tokens, which must not wait
    for compilations. `responses` are kept for `GET /v1/responses/{id}` and for the requests that follow them.
    `cut_off` is set when a stopping server waits for answers no longer.
    """

    engine: ServedEngine
    settings: ServerSettings
    log: RequestLog | None
    metrics: Metrics
    keys: KeyCheck
    bodies: BodyReceiver
    gate: Gate
    workers: Workers
    count_gate: Gate
    count_workers: Workers
    responses: ResponseStore
    cut_off: asyncio.Event

    @classmethod
    def of(
        cls, engine: ServedEngine, settings: ServerSettings, protocols: Iterable[str], log: RequestLog | None = None
    ) -> Service:
        """A service; `protocols` are the labels of its metrics."""
        return cls(
            engine=engine,
            settings=settings,
            log=log,
            metrics=Metrics(engine, protocols),
            keys=KeyCheck(settings.api_key),
            bodies=BodyReceiver(settings),
            gate=Gate(settings.max_outstanding),
            workers=Workers(settings.max_outstanding, "infernix-request"),
            count_gate=Gate(_MAX_WAITING_COUNTS),
            count_workers=Workers(_COUNTING_THREADS, "infernix-count"),
            responses=ResponseStore(settings.max_stored_responses, settings.max_stored_bytes),
            cut_off=asyncio.Event(),
        )

    def new_seed(self) -> int:
        """The seed of a request that names none."""
        return secrets.randbits(64) if self.settings.seed is None else self.settings.seed

    def write_log(self, event: str, **details: Any) -> None:
        """One record of the request log; a log that cannot be written to holds up nobody."""
        if self.log is not None:
            with contextlib.suppress(Exception):
                self.log.write({"event": event, "time": time.time(), **details})

    def close(self) -> None:
        """Takes no more work."""
        self.workers.close()
        self.count_workers.close()
