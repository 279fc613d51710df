"""One store of mask rows for all grammars of a vocabulary.

Thousands of positions share a few dozen different rows, so rows are kept by content. Each kept row has a small number
that is its own as long as it is kept: a device can hold a mirror of the store and be sent numbers instead of rows.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

DEFAULT_ROW_BYTES = 64 << 20


class MaskRow:
    """A row and its number; `words` (read-only int32) is None once the store has dropped it."""

    __slots__ = ("is_empty", "last_used", "num_pins", "number", "words")

    def __init__(self, number: int, words: NDArray[np.int32], is_empty: bool) -> None:
        self.number = number
        self.words: NDArray[np.int32] | None = words
        self.is_empty = is_empty
        self.last_used = 0
        self.num_pins = 0


class RowStore:
    """Keeps up to `max_bytes` of rows, least recently used ones going first; pinned rows stay.

    `clock` counts the rows that came in; whoever uses a row writes it to `last_used`.
    """

    def __init__(self, num_mask_words: int, max_bytes: int = DEFAULT_ROW_BYTES) -> None:
        self._row_bytes = num_mask_words * 4
        self._max_rows = max(2, max_bytes // max(self._row_bytes, 1))
        self._rows: dict[bytes, MaskRow] = {}
        self._free_numbers: list[int] = []
        self._lock = threading.Lock()
        self.clock = 0

    @property
    def num_rows(self) -> int:
        """Rows kept at present."""
        return len(self._rows)

    @property
    def num_bytes(self) -> int:
        """Memory of the rows kept at present."""
        return len(self._rows) * self._row_bytes

    def intern(self, row: NDArray[np.uint32]) -> MaskRow:
        """The kept row with this content."""
        content = row.tobytes()
        with self._lock:
            self.clock += 1
            known = self._rows.get(content)
            if known is None:
                if len(self._rows) >= self._max_rows:
                    self._drop_oldest()
                number = self._free_numbers.pop() if self._free_numbers else len(self._rows)
                known = MaskRow(number, np.frombuffer(content, np.int32), not row.any())
                self._rows[content] = known
            known.last_used = self.clock
            return known

    def pin(self, row: MaskRow) -> None:
        """Keeps a row until `unpin`, as while a round works with its number."""
        with self._lock:
            row.num_pins += 1

    def unpin(self, row: MaskRow) -> None:
        """Takes one `pin` back."""
        with self._lock:
            row.num_pins -= 1

    def _drop_oldest(self) -> None:
        """Drops the older half of the rows that nobody has pinned; at once, so that the work is rare."""
        by_age = sorted(
            (content for content, row in self._rows.items() if row.num_pins == 0),
            key=lambda content: self._rows[content].last_used,
        )
        for content in by_age[: (len(by_age) + 1) // 2]:
            row = self._rows.pop(content)
            row.words = None
            self._free_numbers.append(row.number)
