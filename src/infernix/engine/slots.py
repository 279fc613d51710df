"""How many requests may be under way, and whether the engine still takes any."""

from __future__ import annotations

import threading
from collections.abc import Callable

from infernix.errors import EngineClosed, Overloaded


class Slots:
    """Numbers of requests that are under way: prepared, waiting, running, or done and not yet collected.

    A slot is taken by `submit` and given back once, when the request is done and its consumer has let go of it.
    """

    def __init__(self, max_outstanding: int) -> None:
        self.max_outstanding = max_outstanding
        self._lock = threading.RLock()
        # A set's own operations are atomic and giving back twice changes nothing, so that dropping a handle, which can
        # happen in the middle of anything, needs no lock.
        self._outstanding: set[int] = set()
        self._num_taken = 0
        self._closed_by: EngineClosed | None = None

    @property
    def num_outstanding(self) -> int:
        """Slots that are taken."""
        return len(self._outstanding)

    @property
    def is_open(self) -> bool:
        """Whether requests are taken."""
        return self._closed_by is None

    def take(self) -> int:
        """A slot's number, greater than all before. Raises EngineClosed and Overloaded."""
        with self._lock:
            self.check_open()
            if len(self._outstanding) >= self.max_outstanding:
                raise Overloaded(f"{self.max_outstanding} requests are under way, as many as the engine takes")
            self._num_taken += 1
            self._outstanding.add(self._num_taken)
            return self._num_taken

    def give_back(self, number: int) -> None:
        """Frees a slot; again, and nothing happens."""
        self._outstanding.discard(number)

    def check_open(self) -> None:
        """Raises EngineClosed where no request is taken any more."""
        if self._closed_by is not None:
            raise EngineClosed(self._closed_by.message)

    def when_open(self, action: Callable[[], None]) -> None:
        """Does something that must come before the close. Raises EngineClosed where that has come."""
        with self._lock:
            self.check_open()
            action()

    def close(self, error: EngineClosed) -> bool:
        """No request is taken from now on; False where that was so before."""
        with self._lock:
            if self._closed_by is not None:
                return False
            self._closed_by = error
            return True
