"""A response as named events: items as they come, and one terminal event with the whole response."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from infernix.results import GenerationEvent, GenerationResult, GenerationStarted
from infernix.server.api_error import ApiError
from infernix.server.responses.answer import ResponseHead
from infernix.server.sse import named_event


class ResponseStream:
    """Writes the events of one response. `keep` is given the finished response before its last event is written."""

    def __init__(self, head: ResponseHead, keep: Callable[[dict[str, Any]], None]) -> None:
        self._head = head
        self._keep = keep
        self._output = head.output()
        self._num_events = 0

    def started(self, index: int, started: GenerationStarted) -> Iterator[bytes]:
        """The response without output."""
        yield self._event("response.created", response=self._head.begun())
        yield self._event("response.in_progress", response=self._head.begun())

    def published(self, index: int, events: Sequence[GenerationEvent]) -> Iterator[bytes]:
        """An event for each piece, and those around items."""
        for name, members in self._output.published(events):
            yield self._event(name, **members)

    def finished(self, index: int, result: GenerationResult) -> Iterator[bytes]:
        """The end of the last item."""
        for name, members in self._output.finished(result):
            yield self._event(name, **members)

    def ended(self, results: Sequence[GenerationResult]) -> Iterator[bytes]:
        """The whole response."""
        response = self._head.finished(self._output.items, results[0])
        self._keep(response)
        yield self._event(f"response.{response['status']}", response=response)

    def failed(self, error: ApiError) -> Iterator[bytes]:
        """The error, with the items that were whole before it."""
        yield self._event("response.failed", response=self._head.failed(self._output.items, error))

    def _event(self, name: str, **members: Any) -> bytes:
        number = self._num_events
        self._num_events += 1
        return named_event(name, {"type": name, "sequence_number": number, **members})
