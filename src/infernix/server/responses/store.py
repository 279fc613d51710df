"""Responses that can be asked for again and continued, kept in memory up to a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

_NUM_BYTES_AN_OBJECT = 100


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that came to its end.

    body     the response object, as it was sent
    inputs   the items that it was made from, those of earlier responses included, each as JSON
    context  what a response that continues from here is made from: the inputs and what was answered
    """

    body: bytes
    inputs: tuple[bytes, ...]
    context: tuple[bytes, ...]

    @property
    def num_bytes(self) -> int:
        """Its size, where nothing of it is shared with another."""
        parts = (self.body, *self.inputs, *self.context)
        return sum(map(len, parts)) + _NUM_BYTES_AN_OBJECT * len(parts)


class ResponseStore:
    """At most so many responses, of so many bytes together; the one that was used least lately makes room.

    May be used from any thread.
    """

    def __init__(self, max_responses: int, max_bytes: int) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._stored: OrderedDict[str, StoredResponse] = OrderedDict()
        self._num_bytes = 0

    @property
    def num_bytes(self) -> int:
        """Of all that is kept."""
        return self._num_bytes

    def put(self, response_id: str, response: StoredResponse) -> None:
        """Keeps a response. One that is larger than the whole store is not kept, and costs no other its place."""
        if response.num_bytes > self._max_bytes:
            return
        with self._lock:
            self._stored[response_id] = response
            self._num_bytes += response.num_bytes
            while len(self._stored) > self._max_responses or self._num_bytes > self._max_bytes:
                _, oldest = self._stored.popitem(last=False)
                self._num_bytes -= oldest.num_bytes

    def get(self, response_id: str) -> StoredResponse | None:
        """The response with this id, where it is kept."""
        with self._lock:
            found = self._stored.get(response_id)
            if found is not None:
                self._stored.move_to_end(response_id)
            return found

    def delete(self, response_id: str) -> bool:
        """Forgets a response; whether it was kept. Responses that continued from it keep what they were made from."""
        with self._lock:
            found = self._stored.pop(response_id, None)
            if found is None:
                return False
            self._num_bytes -= found.num_bytes
            return True
