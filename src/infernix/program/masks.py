"""The legal next tokens of a batch's rows: who provides them, and the buffers that they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from infernix.errors import InternalError
from infernix.matching.matcher import LookAhead
from infernix.ops.acceptance import ChainMasks

_FILLER = 1
"""The first word of a position that no outcome depends on: token 0 alone, so that no kernel meets an empty row."""


class TokenMaskProvider(Protocol):
    """The legal next tokens of a batch, borrowed for one call of the Program; `row` counts the batch's sequences."""

    def constrained(self, row: int) -> bool:
        """Whether a grammar decides about the row's next tokens."""
        ...

    def fill(self, row: int, drafts: Sequence[int], words: NDArray[np.int32]) -> LookAhead:
        """Writes the legal sets along a chain of drafts, int32 [len(drafts) + 1, num_mask_words].

        Position i is for the token after drafts[:i] behind the committed tokens. Positions that are dead or cannot be
        reached need not be written.
        """
        ...

    def uploaded(self, row: int, num_bytes: int) -> None:
        """Hears how many bytes of the row's masks went to the device; never called where there is none."""
        ...


class MaskBuffers:
    """Memory for the masks of `num_rows` rows of `num_positions` positions each, allocated once.

    Position p of row r begins at word (r * num_positions + p) * num_mask_words. A row without a constraint has no
    descriptor, and its part of the buffer is neither written nor read. With a `device` there is a mirror of the buffer
    there, and the host's is pinned where that is a GPU.
    """

    def __init__(
        self, num_rows: int, num_positions: int, num_mask_words: int, *, device: torch.device | None = None
    ) -> None:
        shape = (num_rows, num_positions, num_mask_words)
        is_pinned = device is not None and device.type == "cuda"
        self._memory = torch.zeros(shape, dtype=torch.int32, pin_memory=is_pinned)
        self._words: NDArray[np.int32] = self._memory.numpy()
        self._mirror = None if device is None else torch.zeros(shape, dtype=torch.int32, device=device)

    def collect(self, masks: TokenMaskProvider | None, drafts: Sequence[Sequence[int]]) -> list[ChainMasks | None]:
        """One descriptor a row, None for a row without a constraint; `drafts` are the rows' chains.

        Raises InternalError where the provider contradicts itself.
        """
        if masks is None:
            return [None] * len(drafts)
        return [self._fill(masks, row, chain) if masks.constrained(row) else None for row, chain in enumerate(drafts)]

    def upload(self, masks: TokenMaskProvider, row: int, num_positions: int) -> torch.Tensor:
        """The first positions of a row in the mirror, int32 [num_positions, num_mask_words].

        They are sent there in the device's order of work, and not waited for: the host's must not change until then.
        """
        if self._mirror is None:
            raise ValueError("these buffers have no mirror")
        source, mirrored = self._memory[row, :num_positions], self._mirror[row, :num_positions]
        mirrored.copy_(source, non_blocking=True)
        masks.uploaded(row, source.nbytes)
        return mirrored

    def _fill(self, masks: TokenMaskProvider, row: int, drafts: Sequence[int]) -> ChainMasks:
        words = self._words[row, : len(drafts) + 1]
        found = masks.fill(row, drafts, words)
        is_dead = found.dead_positions == 1 << found.num_ready
        if not 0 <= found.num_ready <= len(words) or (found.dead_positions and not is_dead):
            raise InternalError(f"{found} is no outcome for {len(words)} positions")
        if found.num_ready == 0 and not is_dead:
            raise InternalError("the first position is neither ready nor dead")
        words[found.num_ready :] = 0
        words[found.num_ready :, :1] = _FILLER
        return ChainMasks(words, found.num_ready, found.dead_positions)
