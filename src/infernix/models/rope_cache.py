"""A table of rotary cosines and sines that grows with the longest sequence."""

from __future__ import annotations

import torch

from infernix.models.rope import RopeParameters, inverse_frequencies, rope_table


class RopeCache:
    """Rows of the table by position, in a number format on a device."""

    def __init__(
        self, parameters: RopeParameters, size: int, max_positions: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """`size` is the number of dimensions that are rotated, `max_positions` what the table grows to by itself."""
        self._frequencies = inverse_frequencies(parameters, size)
        self._max_positions = max_positions
        self._cosines = self._sines = torch.empty((0, 1, size), dtype=dtype, device=device)

    def __len__(self) -> int:
        """Positions that the table has now."""
        return len(self._cosines)

    def rows(self, positions: torch.Tensor, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [N, 1, size] at int64 [N], all below `end`; the table doubles when it is outgrown."""
        if end > len(self):
            cosines, sines = rope_table(self._frequencies, max(end, min(max(256, 2 * end), self._max_positions)))
            self._cosines, self._sines = cosines.to(self._cosines), sines.to(self._sines)
        return self._cosines[positions], self._sines[positions]
