"""The recurrence of a batch of sequences: convolution, gated delta rule, and where the states go.

Letters in shapes: N new tokens of all rows together, R rows, T new tokens of the longest of them, C channels, H value
heads, K and V sizes of a key and of a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from infernix.models.gated_delta import DeltaInputs, causal_convolution, delta_chunks, delta_steps
from infernix.models.qwen3_5_config import DeltaConfig
from infernix.models.recurrent_state import MAX_STEP_TOKENS, LayerRecord, RecurrentCache, RecurrentPool


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One sequence of a batch: its new tokens are columns begin..begin + num_new - 1, and logits are wanted after the
    last `num_logits_rows` of them.
    """

    cache: RecurrentCache
    begin: int
    num_new: int
    num_logits_rows: int

    @property
    def is_recorded(self) -> bool:
        """Whether the cache can go back into the middle of the new tokens."""
        return self.num_new > 1 and (self.num_new <= MAX_STEP_TOKENS or self.num_logits_rows > 1)


class BatchDelta:
    """What does not change from layer to layer. Every row's cache has room for its columns.

    Rows of at most MAX_STEP_TOKENS tokens go together, token by token; longer ones alone, in chunks. After all
    layers `finish` makes the states count; `abandon` leaves every cache with the tokens that it had.
    """

    def __init__(self, rows: Sequence[DeltaRow], config: DeltaConfig) -> None:
        short = [row for row in rows if row.num_new <= MAX_STEP_TOKENS]
        long = [row for row in rows if row.num_new > MAX_STEP_TOKENS]
        self._groups = [_Group(group, config) for group in (short, *([row] for row in long)) if group]
        self._is_one = len(self._groups) == 1
        self._output_shape = (config.num_value_heads, config.value_dim)

    def run(
        self, layer: int, columns: torch.Tensor, fades: torch.Tensor, strengths: torch.Tensor, kernel: torch.Tensor
    ) -> torch.Tensor:
        """The `layer`-th recurrent layer: columns [N, C] before the convolution, fades and strengths float32 [N, H],
        kernel float32 [taps, C] -> float32 [N, H, V].
        """
        outputs = torch.empty((len(columns), *self._output_shape), dtype=torch.float32, device=columns.device)
        for group in self._groups:
            group.run(layer, columns, fades, strengths, kernel, outputs)
        return outputs

    def finish(self) -> None:
        """Takes the new tokens over into every cache."""
        for group in self._groups:
            group.finish()

    def abandon(self) -> None:
        """Takes the pass back."""
        for group in self._groups:
            group.abandon()


class _Group:
    """Rows that are run together; shorter ones are filled up with tokens that change nothing."""

    def __init__(self, rows: Sequence[DeltaRow], config: DeltaConfig) -> None:
        self._rows = rows
        self._config = config
        self._pool: RecurrentPool = rows[0].cache.pool
        device = self._pool.states.device
        lengths = torch.tensor([row.num_new for row in rows])
        places = torch.arange(int(lengths.max()))
        begins = torch.tensor([row.begin for row in rows]).unsqueeze(1)
        # A row that is filled up repeats its last token, so that it stays with its own numbers.
        self._index = (begins + torch.minimum(places, lengths.unsqueeze(1) - 1)).to(device)  # [R, T]
        self._is_filling = (places >= lengths.unsqueeze(1)).to(device)  # [R, T]
        self._has_filling = bool((lengths < len(places)).any())
        newest = torch.arange(config.num_taps - 1)
        self._newest = (lengths.unsqueeze(1) + newest).to(device)  # [R, taps - 1]
        self._row_index = torch.arange(len(rows), device=device).unsqueeze(1)
        self._run = delta_steps if len(places) <= MAX_STEP_TOKENS else delta_chunks
        self._records: list[list[LayerRecord]] = [[] for _ in rows]
        self._sources = torch.tensor([row.cache.slot for row in rows], device=device)
        self._slots: list[int] = []
        for row in rows:
            self._slots.append(row.cache.begin_pass())
        self._targets = torch.tensor(self._slots, device=device)

    def run(
        self,
        layer: int,
        columns: torch.Tensor,
        fades: torch.Tensor,
        strengths: torch.Tensor,
        kernel: torch.Tensor,
        outputs: torch.Tensor,
    ) -> None:
        states, newest = self._pool.states[layer], self._pool.columns[layer]
        padded = torch.cat((newest[self._sources], columns[self._index]), dim=1)  # [R, taps - 1 + T, C]
        inputs = self._inputs(causal_convolution(padded, kernel), fades[self._index], strengths[self._index])
        group_outputs, after = self._run(inputs, states[self._sources])
        states.index_copy_(0, self._targets, after)
        newest.index_copy_(0, self._targets, padded[self._row_index, self._newest])
        if self._has_filling:
            is_token = ~self._is_filling
            outputs[self._index[is_token]] = group_outputs[is_token]
        else:
            outputs[self._index] = group_outputs
        self._record(padded[:, self._config.num_taps - 1 :], inputs)

    def finish(self) -> None:
        for row, slot, records in zip(self._rows, self._slots, self._records, strict=True):
            row.cache.finish_pass(slot, row.num_new, records if row.is_recorded else None)

    def abandon(self) -> None:
        for row, slot in zip(self._rows, self._slots, strict=True):
            row.cache.abandon_pass(slot)

    def _inputs(self, mixed: torch.Tensor, fades: torch.Tensor, strengths: torch.Tensor) -> DeltaInputs:
        config = self._config
        shape, key_size = mixed.shape[:2], config.num_key_heads * config.key_dim
        q, k, v = torch.split(mixed, [key_size, key_size, config.output_size], dim=-1)
        if self._has_filling:
            fades = fades.masked_fill(self._is_filling.unsqueeze(-1), 0.0)
            strengths = strengths.masked_fill(self._is_filling.unsqueeze(-1), 0.0)
        return DeltaInputs(
            q.reshape(*shape, config.num_key_heads, config.key_dim),
            k.reshape(*shape, config.num_key_heads, config.key_dim),
            v.reshape(*shape, config.num_value_heads, config.value_dim),
            fades,
            strengths,
        )

    def _record(self, columns: torch.Tensor, inputs: DeltaInputs) -> None:
        for index, (row, records) in enumerate(zip(self._rows, self._records, strict=True)):
            if not row.is_recorded:
                continue
            where = slice(index, index + 1), slice(0, row.num_new)
            records.append(
                LayerRecord(
                    columns[index, : row.num_new],
                    DeltaInputs(
                        inputs.queries[where],
                        inputs.keys[where],
                        inputs.values[where],
                        inputs.fades[where],
                        inputs.strengths[where],
                    ),
                )
            )
