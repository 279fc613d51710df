"""What transformers' modules take for a cache: one sequence of ours while one piece of a pass runs through them.

The methods are those of `transformers.Cache` that the layers of `qwen4_exp` call, with a batch of one. Nothing is
changed in place but the slot that the pass writes and the positions behind the tokens that the sequence has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from infernix.models.indexed_cache import IndexedKVCache

if TYPE_CHECKING:
    from infernix.models.qwen4_exp_state import Qwen4ExpPool

DELTA_COLUMNS, NGRAM_COLUMNS, CONTEXT = 0, 1, 2
"""transformers' numbers for the states of a layer that are kept by convolutions, or as if by one."""

MAX_MASK_ELEMENTS = 1 << 22
"""Tokens of a piece times what each of them may attend to: it bounds the memory of masks and attention weights."""


def pieces(begin: int, end: int, index_budget: int) -> Iterator[tuple[int, int]]:
    """Cuts a pass over the tokens begin..end - 1 of a sequence into pieces, each from its first token to its end."""
    size = max(1, MAX_MASK_ELEMENTS // max(end, index_budget))
    for first in range(begin, end, size):
        yield first, min(first + size, end)


def causal_mask(begin: int, end: int, device: torch.device) -> torch.Tensor:
    """bool [1, 1, end - begin, end]: which keys the tokens begin..end - 1 may attend to."""
    places = torch.arange(end, device=device)
    return (places <= places[begin:].unsqueeze(-1)).view(1, 1, end - begin, end)


@dataclass(slots=True)
class PassRecord:
    """What the tokens of a pass were to the recurrences, by layer, piece after piece.

    inputs       [T, hidden], what a recurrent layer read
    columns      [T, streams * hidden], inputs of the convolution in a layer with n-grams
    token_ids    int64 [T]
    """

    inputs: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    columns: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    token_ids: list[torch.Tensor] = field(default_factory=list)


class AttentionState:
    """Keys and values of the tokens up to `end`, of which those from `begin` on are new.

    `places` maps the number of an attending layer to its place in the pool.
    """

    def __init__(self, kv: IndexedKVCache, places: Mapping[int, int], begin: int, end: int) -> None:
        self._kv, self._places = kv.pool, places
        self._new, self._all = kv.positions(begin, end), kv.positions(0, end)

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keeps new keys and values [1, heads, T, head_dim]; those of all tokens."""
        kept_keys, kept_values = self._kv.layers[self._places[layer_idx]]
        kept_keys[:, self._new], kept_values[:, self._new] = keys[0], values[0]
        return kept_keys[:, self._all].unsqueeze(0), kept_values[:, self._all].unsqueeze(0)

    def update_indexer(self, keys: torch.Tensor, layer_idx: int) -> torch.Tensor:
        """Keeps new index keys [1, T, index_dim]; those of all tokens."""
        kept = self._kv.index_keys[self._places[layer_idx]]
        kept[self._new] = keys[0]
        return kept[self._all].unsqueeze(0)


class PassState(AttentionState):
    """The same with recurrent state: reads the slot `source` and writes the slot `target`, which may be the same."""

    def __init__(
        self,
        pool: Qwen4ExpPool,
        kv: IndexedKVCache,
        tokens: tuple[int, int],
        slots: tuple[int, int],
        record: PassRecord | None = None,
    ) -> None:
        """`tokens` are begin and end, `slots` source and target; `record` takes what the tokens are to recurrences."""
        super().__init__(kv, pool.attention_places, *tokens)
        self._pool = pool
        self._source, self._target = slots
        self._record = record

    def is_recording_past(self, layer_idx: int) -> bool:
        """True: no module may change a state in place."""
        return True

    def record_input(self, layer_idx: int, hidden: torch.Tensor) -> None:
        """Keeps what a recurrent layer reads, [1, T, hidden], if the pass is recorded."""
        if self._record is not None:
            self._record.inputs.setdefault(layer_idx, []).append(hidden[0])

    def get_conv_state(self, layer_idx: int, state_idx: int = DELTA_COLUMNS) -> torch.Tensor:
        """The newest columns [1, channels, columns], or ids [1, ids]."""
        return self._kept(layer_idx, state_idx)[self._source].movedim(0, -1).unsqueeze(0)

    def update_conv_state(
        self, states: torch.Tensor, layer_idx: int, state_idx: int = DELTA_COLUMNS, **_: Any
    ) -> torch.Tensor:
        """The kept columns and the new ones, [1, channels, kept + new]; the newest are kept."""
        kept = self._kept(layer_idx, state_idx)
        every = torch.cat((self.get_conv_state(layer_idx, state_idx), states), dim=-1)
        kept[self._target] = every[0, ..., every.shape[-1] - kept.shape[1] :].movedim(-1, 0)
        if self._record is not None and state_idx == NGRAM_COLUMNS:
            self._record.columns.setdefault(layer_idx, []).append(states[0].T)
        return every

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor:
        """float32 [1, heads, key dim, value dim]."""
        return self._pool.states[self._pool.recurrent_places[layer_idx], self._source].unsqueeze(0)

    def update_recurrent_state(self, states: torch.Tensor, layer_idx: int) -> None:
        """Takes over the state [1, heads, key dim, value dim] after the piece."""
        self._pool.states[self._pool.recurrent_places[layer_idx], self._target] = states[0]

    def _kept(self, layer_idx: int, state_idx: int) -> torch.Tensor:
        """One row a slot, its newest entries last: [slots, columns, channels] or [slots, ids]."""
        pool = self._pool
        if state_idx == DELTA_COLUMNS:
            return pool.columns[pool.recurrent_places[layer_idx]]
        kept = pool.ngram_columns if state_idx == NGRAM_COLUMNS else pool.context
        return kept[pool.ngram_places[layer_idx]]
