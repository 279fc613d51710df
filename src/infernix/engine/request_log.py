"""The request log: one JSON object a line about what becomes of each request."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

Record = Mapping[str, Any]
"""What a line says: `event`, `time` (seconds since 1970), and what belongs to the event; only what JSON can write."""


class RequestLog(Protocol):
    """Takes records from several threads. It must not block for long: the worker waits for it."""

    def write(self, record: Record) -> None:
        """Takes one record. What it raises is counted, and holds up nobody."""
        ...


class JsonLinesLog:
    """Writes each record as one line to a text stream, which stays the caller's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, record: Record) -> None:
        """Writes the line and flushes the stream."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()
