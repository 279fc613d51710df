"""Requests that wait for a place: first come, first served, but for a bounded number of bypasses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from infernix.engine.request import Request


class WaitingLine:
    """Requests in the order in which they were ready. Used by the worker alone."""

    def __init__(self, max_bypasses: int) -> None:
        """A request that finds no room is bypassed at most `max_bypasses` times."""
        self._max_bypasses = max_bypasses
        self._requests: list[Request] = []
        self._next_deadline = float("inf")

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return iter(list(self._requests))

    def append(self, request: Request) -> None:
        """Puts a request at the end."""
        self._requests.append(request)
        self._next_deadline = min(self._next_deadline, request.deadline)

    def remove(self, request: Request) -> None:
        """Takes a request out, wherever it stands."""
        self._requests.remove(request)

    def clear(self) -> None:
        """Takes all requests out."""
        self._requests.clear()

    def take_expired(self, now: float) -> list[Request]:
        """Takes out the requests whose deadline has come."""
        if now < self._next_deadline:
            return []
        expired = [request for request in self._requests if request.deadline <= now]
        self._requests = [request for request in self._requests if request.deadline > now]
        self._next_deadline = min((request.deadline for request in self._requests), default=float("inf"))
        return expired

    def scan(self, place: Callable[[Request], bool], blocked: Request | None = None) -> None:
        """Offers a place to the first request and to at most `max_bypasses` behind it.

        `place` says whether the request is out of the line: placed, or failed. Each that is placed bypasses those that
        were not before it, and `blocked`, a request that waits elsewhere; one that was bypassed often enough ends the
        scan.
        """
        before = [] if blocked is None else [blocked]
        for request in self._requests[: self._max_bypasses + 1]:
            if any(other.counts.num_bypassed >= self._max_bypasses for other in before):
                return
            if place(request):
                self._requests.remove(request)
                if request.lane is not None:
                    for other in before:
                        other.counts.num_bypassed += 1
            else:
                before.append(request)
