"""Attention of a batch whose sequences lie in one pool: new keys and values are written, then every token looks back.

Letters in shapes: N new tokens of all rows together, T new tokens and S tokens in all of one row, R rows, Hq and Hk
query and key/value heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from infernix.models.cache import KVCache


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """One sequence of a batch: its new tokens are columns begin..begin + num_new - 1, behind the cache's tokens."""

    cache: KVCache
    begin: int
    num_new: int

    @property
    def num_keys(self) -> int:
        """Tokens of the sequence, new ones included."""
        return self.cache.num_tokens + self.num_new

    @property
    def columns(self) -> slice:
        """The row's columns among those of the batch."""
        return slice(self.begin, self.begin + self.num_new)


class BatchAttention:
    """What does not change from layer to layer. Every row's cache has room for its columns."""

    def __init__(self, rows: Sequence[AttentionRow], *, padded: bool | None = None) -> None:
        """With `padded`, rows of one new token are one call: shorter ones are filled up and the filling is masked.
        That is for devices where calls are dear and copies cheap; None: everywhere but on a CPU.
        """
        self._pool = rows[0].cache.pool
        if any(row.cache.pool is not self._pool for row in rows):
            raise ValueError("the caches of a batch lie in one pool")
        device = self._pool.keys.device
        places = [row.cache.positions(row.cache.num_tokens, row.num_keys) for row in rows]
        self._new_places = places[0] if len(rows) == 1 else torch.cat([_as_index(place, device) for place in places])
        are_padded = device.type != "cpu" if padded is None else padded
        together = [row for row in rows if row.num_new == 1] if are_padded else []
        self._together = _SingleTokens(together, device) if len(together) > 1 else None
        alone = [row for row in rows if self._together is None or row.num_new > 1]
        self._alone = [(row.columns, row.cache.positions(0, row.num_keys), _mask(row, device)) for row in alone]
        self._num_rows = len(rows)

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Rotated queries [N, Hq, D] and keys and values [N, Hk, D] of the new tokens -> [N, Hq D]."""
        keys, values = self._pool.layers[layer]
        if isinstance(self._new_places, slice):
            keys[:, self._new_places] = k.transpose(0, 1)
            values[:, self._new_places] = v.transpose(0, 1)
        else:
            keys.index_copy_(1, self._new_places, k.transpose(0, 1))
            values.index_copy_(1, self._new_places, v.transpose(0, 1))
        if self._num_rows == 1:
            [(_, places, mask)] = self._alone
            return _attend(q, keys[:, places], values[:, places], mask)
        attended = torch.empty((q.shape[0], q.shape[1] * q.shape[2]), dtype=q.dtype, device=q.device)
        if self._together is not None:
            self._together.run(q, keys, values, attended)
        for columns, places, mask in self._alone:
            attended[columns] = _attend(q[columns], keys[:, places], values[:, places], mask)
        return attended


class _SingleTokens:
    """Rows of one new token each, in one call."""

    def __init__(self, rows: Sequence[AttentionRow], device: torch.device) -> None:
        self._columns = torch.tensor([row.begin for row in rows], device=device)
        lengths = torch.tensor([row.num_keys for row in rows])
        self._places = torch.zeros((len(rows), int(lengths.max())), dtype=torch.int64, device=device)
        for filled, row in zip(self._places, rows, strict=True):
            filled[: row.num_keys] = _as_index(row.cache.positions(0, row.num_keys), device)
        # [R, 1, 1, S]
        self._is_key = (torch.arange(self._places.shape[1]) < lengths.unsqueeze(1)).to(device)[:, None, None]

    def run(self, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, attended: torch.Tensor) -> None:
        num_kv, _, head_dim = keys.shape
        is_filling = ~self._is_key.transpose(2, 3)
        # What another sequence left at a place may be no number, and a weight of zero would not silence it.
        k = keys[:, self._places].transpose(0, 1).masked_fill(is_filling, 0.0)
        v = values[:, self._places].transpose(0, 1).masked_fill(is_filling, 0.0)
        # The query heads of a group stand where several tokens would, so keys are not repeated.
        grouped = q[self._columns].view(len(self._columns), num_kv, -1, head_dim)
        mask = self._is_key.expand(-1, num_kv, grouped.shape[2], -1)
        together = F.scaled_dot_product_attention(grouped, k, v, attn_mask=mask)
        attended[self._columns] = together.reshape(len(self._columns), -1)


def _as_index(places: slice | torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.arange(places.start, places.stop, device=device) if isinstance(places, slice) else places


def _mask(row: AttentionRow, device: torch.device) -> torch.Tensor | None:
    """bool [T, S], True where a new token may look; None where none is needed: at the start and for a single token."""
    if row.num_new in (1, row.num_keys):
        return None
    places = torch.arange(row.num_keys, device=device)
    return places <= places[row.cache.num_tokens :].unsqueeze(1)


def _attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """q [T, Hq, D], the last T of S tokens, over keys and values [Hk, S, D] -> [T, Hq D]."""
    num_new, num_q, head_dim = q.shape
    if num_new == 1:
        # One token: the query heads of a group stand where several tokens would, so keys are not repeated.
        grouped = q.view(1, keys.shape[0], num_q // keys.shape[0], head_dim)
        return F.scaled_dot_product_attention(grouped, keys.unsqueeze(0), values.unsqueeze(0)).reshape(1, -1)
    attended = F.scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        keys.unsqueeze(0),
        values.unsqueeze(0),
        attn_mask=mask,
        is_causal=mask is None,
        enable_gqa=True,
    )
    return attended[0].transpose(0, 1).reshape(num_new, num_q * head_dim)
