"""How often each token was generated, which is all that the penalties look at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class TokenCounts:
    """Counts of the committed generated tokens of one sequence; the prompt does not count."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._ids = np.zeros(64, dtype=np.intp)
        self._counts = np.zeros(64, dtype=np.float64)

    def add(self, token: int) -> None:
        """Counts one more `token`."""
        slot = self._slots.setdefault(token, len(self._slots))
        if slot == self._ids.size:
            self._ids = np.concatenate([self._ids, np.zeros_like(self._ids)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        self._ids[slot] = token
        self._counts[slot] += 1

    def copy(self) -> TokenCounts:
        """Counts that can go another way than these."""
        other = TokenCounts()
        other._slots = self._slots.copy()
        other._ids = self._ids.copy()
        other._counts = self._counts.copy()
        return other

    @property
    def ids(self) -> NDArray[np.intp]:
        """The distinct tokens, shape [n], in the order they first came."""
        return self._ids[: len(self._slots)]

    @property
    def counts(self) -> NDArray[np.float64]:
        """How often each of `ids` came, shape [n]."""
        return self._counts[: len(self._slots)]
