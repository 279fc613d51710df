"""The legal next tokens of a batch, borrowed by the Program for one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from infernix.engine.request import Request
from infernix.matching.matcher import LookAhead


class SessionMasks:
    """The masks of a batch's requests, row by row. `culprit` is the request whose mask is being worked out."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests
        self.culprit: Request | None = None

    def constrained(self, row: int) -> bool:
        """Whether a grammar decides about the row's next tokens."""
        return self._requests[row].session.is_constrained

    def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
        """Writes the legal sets along a chain of drafts, int32 [len(drafts) + 1, num_mask_words]."""
        self.culprit = request = self._requests[row]
        found = request.session.fill_masks(drafts, words)
        self.culprit = None
        return found

    def uploaded(self, row: int, num_bytes: int) -> None:
        """So many bytes of the row's masks went to the device."""
        self._requests[row].pending_upload_bytes += num_bytes


def masks_of(requests: Sequence[Request]) -> SessionMasks | None:
    """The masks of a batch; None where no request is constrained, so that no mask code runs at all."""
    for request in requests:
        if request.session.is_constrained:
            return SessionMasks(requests)
    return None
