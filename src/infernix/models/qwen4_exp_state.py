"""What a Qwen3.8-Flash-Next model keeps of a sequence.

Keys, values and index keys lie in blocks of a pool. What a recurrence needs lies in slots, as in `recurrent_state`: the
matrices, the newest columns before each convolution, those of the n-gram layers among them, and the newest token ids.

Letters in shapes: P layers with n-grams, S residual streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from infernix.models.indexed_cache import IndexedKVCache, IndexedKVPool
from infernix.models.qwen4_exp_config import Qwen4ExpConfig
from infernix.models.qwen4_exp_pass import CONTEXT, NGRAM_COLUMNS, PassRecord, PassState
from infernix.models.recurrent_state import EMPTY_SLOT, RecurrentCache, RecurrentPool, RecurrentSnapshot


@dataclass(frozen=True, slots=True)
class Qwen4ExpSnapshot(RecurrentSnapshot):
    """A sequence in the host's memory.

    ngram_columns  [P, num_columns, S * hidden]
    context        int64 [P, num_context]
    """

    ngram_columns: torch.Tensor
    context: torch.Tensor

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        slots = (self.states, self.columns, self.ngram_columns, self.context)
        return self.kv.num_bytes + sum(tensor.nbytes for tensor in slots)


class Qwen4ExpPool(RecurrentPool):
    """A RecurrentPool with the state of the n-gram layers beside that of the recurrent ones.

    ngram_columns  [P, slots, num_columns, S * hidden]: the newest inputs of the convolution, oldest first
    context        int64 [P, slots, num_context]: the newest token ids, oldest first
    """

    kv: IndexedKVPool

    def __init__(self, kv: IndexedKVPool, num_sequences: int, config: Qwen4ExpConfig, layers: Sequence[Any]) -> None:
        """`layers` are those of the network: its recurrent modules make the states of a pass anew."""
        super().__init__(kv, sum(config.is_recurrent), num_sequences, config.delta)
        self.layers = layers
        self.recurrent_places = places_of(config.is_recurrent, True)
        self.attention_places = places_of(config.is_recurrent, False)
        ngrams, device = config.ngrams, kv.keys.device
        self.ngram_places = {layer: place for place, layer in enumerate(ngrams.layers)} if ngrams else {}
        num_columns, num_context = (ngrams.num_columns, ngrams.num_context) if ngrams else (0, 0)
        shape = len(self.ngram_places), 1 + self.num_slots
        self.ngram_columns = torch.empty((*shape, num_columns, config.width), dtype=kv.keys.dtype, device=device)
        self.ngram_columns[:, EMPTY_SLOT] = 0
        self.context = torch.zeros((*shape, num_context), dtype=torch.int64, device=device)
        # Tokens that are not there count as ends of a text.
        self.context[:, EMPTY_SLOT] = ngrams.end_token if ngrams else 0

    def new_cache(self, max_tokens: int) -> Qwen4ExpCache:
        """An empty cache that holds nothing yet and will never hold more than `max_tokens` tokens."""
        return Qwen4ExpCache(self, self.kv.new_cache(max_tokens))


class Qwen4ExpCache(RecurrentCache):
    """A SequenceCache that goes back and forks where a RecurrentCache does.

    The states on the way through the last pass are made anew by the recurrent modules themselves, from the inputs that
    they had, as if the pass had had only those tokens; columns and ids are looked up.
    """

    pool: Qwen4ExpPool
    kv: IndexedKVCache

    def __init__(self, pool: Qwen4ExpPool, kv: IndexedKVCache) -> None:
        super().__init__(pool, kv)
        self._record = PassRecord()

    def take_over(self, slot: int, num_tokens: int, record: PassRecord | None) -> None:
        """`finish_pass` with what the pass recorded; None where it did not."""
        self._record = record or PassRecord()
        self.finish_pass(slot, num_tokens, None if record is None else ())

    def snapshot(self) -> Qwen4ExpSnapshot:
        """A copy in the host's memory, which outlives the cache. It does not know what was before the last pass."""
        plain = super().snapshot()
        slots = (tensor[:, self.slot].to("cpu", copy=True) for tensor in (self.pool.ngram_columns, self.pool.context))
        return Qwen4ExpSnapshot(plain.kv, plain.states, plain.columns, *slots)

    def restore(self, snapshot: RecurrentSnapshot) -> bool:
        """Fill an empty cache with what a snapshot has; False, and nothing changes, where there is no room."""
        if not isinstance(snapshot, Qwen4ExpSnapshot):
            raise TypeError(f"expected a Qwen4ExpSnapshot, got {type(snapshot).__name__}")
        if not super().restore(snapshot):
            return False
        self.pool.ngram_columns[:, self.slot] = snapshot.ngram_columns.to(self.pool.ngram_columns.device)
        self.pool.context[:, self.slot] = snapshot.context.to(self.pool.context.device)
        return True

    def _forget_previous(self) -> None:
        super()._forget_previous()
        self._record = PassRecord()

    @torch.inference_mode()
    def _replay(self, previous: int, num_tokens: int) -> None:
        pool, record = self.pool, self._record
        if pool.is_shared(self.slot):
            pool.give_back(self.slot)
            self.slot = pool.take()
        state = PassState(pool, self.kv, (self._start, self._start + num_tokens), (previous, self.slot))
        for layer in pool.recurrent_places:
            inputs = torch.cat(record.inputs[layer])[:num_tokens]
            pool.layers[layer].linear_attn(inputs.unsqueeze(0), cache=state)
        for layer in pool.ngram_places:
            columns, ids = torch.cat(record.columns[layer])[:num_tokens], torch.cat(record.token_ids)[:num_tokens]
            state.update_conv_state(columns.T.unsqueeze(0), layer, NGRAM_COLUMNS)
            state.update_conv_state(ids.unsqueeze(0), layer, CONTEXT)


def places_of(kinds: Sequence[bool], kind: bool) -> dict[int, int]:
    """For every layer of this kind, how many of them stand before it."""
    layers = [layer for layer, own in enumerate(kinds) if own == kind]
    return {layer: place for place, layer in enumerate(layers)}
