"""What a model with recurrent layers keeps of a sequence: keys and values in blocks, and the state of the recurrence.

A forward pass never changes a state in place: it reads one slot of the pool and writes another. So the state before the
last pass stays at hand, and sequences that begin alike may share a slot.

Letters in shapes: L recurrent layers, H value heads, K and V sizes of a key and of a value, C channels of the
convolution, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch

from infernix.models.cache import KVCache, KVPool, KVSnapshot
from infernix.models.gated_delta import DeltaInputs, delta_chunks, delta_steps
from infernix.models.qwen3_5_config import DeltaConfig

MAX_STEP_TOKENS = 32
"""A pass over at most so many tokens of a sequence works the rule out token by token, a longer one in chunks.

A short one can always be taken back to any length. For a long one, such as a chunk of a prompt, that takes much memory,
so it is recorded only where the logits after several tokens were asked for, as for drafts.
"""

EMPTY_SLOT = 0
"""The state of a sequence without tokens: zeros, never written."""

SLOTS_PER_SEQUENCE = 2


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """What a recurrent layer read at the tokens of a pass: columns [T, C] before the convolution, inputs of one row."""

    columns: torch.Tensor
    inputs: DeltaInputs


@dataclass(frozen=True, slots=True)
class RecurrentSnapshot:
    """A sequence in the host's memory: keys and values, states float32 [L, H, K, V] and columns [L, taps - 1, C]."""

    kv: KVSnapshot
    states: torch.Tensor
    columns: torch.Tensor

    @property
    def num_tokens(self) -> int:
        """Tokens that it has."""
        return self.kv.num_tokens

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        return self.kv.num_bytes + self.states.nbytes + self.columns.nbytes


class RecurrentPool:
    """A CachePool: blocks for keys and values, and two slots of state for each of `num_sequences` caches.

    states    float32 [L, slots, H, K, V]
    columns   [L, slots, taps - 1, C]: the newest inputs of the convolution, before it, oldest first

    A cache that is to grow claims two slots, one that only keeps what it has claims one. Claims never exceed the slots,
    and a cache holds at most as many as it claimed; so a pass never lacks one.
    """

    def __init__(self, kv: KVPool, num_layers: int, num_sequences: int, config: DeltaConfig) -> None:
        if num_sequences < 1:
            raise ValueError(f"a pool is for at least one sequence, not {num_sequences}")
        self.kv = kv
        self.num_slots = SLOTS_PER_SEQUENCE * num_sequences
        shape = (num_layers, 1 + self.num_slots)
        state, device = (config.num_value_heads, config.key_dim, config.value_dim), kv.keys.device
        self.states = torch.empty((*shape, *state), dtype=torch.float32, device=device)
        self.columns = torch.empty(
            (*shape, config.num_taps - 1, config.num_channels), dtype=kv.keys.dtype, device=device
        )
        self.states[:, EMPTY_SLOT] = 0
        self.columns[:, EMPTY_SLOT] = 0
        self._num_holders = [0] * (1 + self.num_slots)
        self._free = list(range(self.num_slots, 0, -1))
        self._num_claimed = 0

    @property
    def num_positions(self) -> int:
        """Tokens that there is memory for."""
        return self.kv.num_positions

    @property
    def num_free_positions(self) -> int:
        """Tokens of the blocks that nobody holds."""
        return self.kv.num_free_positions

    @property
    def num_free_slots(self) -> int:
        """States that no cache has claimed."""
        return self.num_slots - self._num_claimed

    def new_cache(self, max_tokens: int) -> RecurrentCache:
        """An empty cache that holds nothing yet and will never hold more than `max_tokens` tokens."""
        return RecurrentCache(self, self.kv.new_cache(max_tokens))

    def claim(self, num_slots: int) -> bool:
        """Promises so many slots; False, and nothing changes, where there are not so many."""
        if num_slots > self.num_free_slots:
            return False
        self._num_claimed += num_slots
        return True

    def unclaim(self, num_slots: int) -> None:
        """Gives promises back."""
        self._num_claimed -= num_slots

    def is_shared(self, slot: int) -> bool:
        """Whether more than one cache holds the slot."""
        return self._num_holders[slot] > 1

    def take(self) -> int:
        """A free slot, now held once."""
        slot = self._free.pop()
        self._num_holders[slot] = 1
        return slot

    def share(self, slot: int) -> None:
        """Holds the slot once more."""
        self._num_holders[slot] += 1

    def give_back(self, slot: int) -> None:
        """Holds the slot once less."""
        if slot != EMPTY_SLOT:
            self._num_holders[slot] -= 1
            if self._num_holders[slot] == 0:
                self._free.append(slot)


class RecurrentCache:
    """A SequenceCache of keys, values and recurrent state.

    It goes back to any length that the last pass found or made if that pass was recorded (see MAX_STEP_TOKENS), and
    otherwise to the pass's beginning. It forks with all its tokens, with those before the last pass, and with none.
    """

    def __init__(self, pool: RecurrentPool, kv: KVCache) -> None:
        self.pool = pool
        self.kv = kv
        self.slot = EMPTY_SLOT
        self._num_claimed = 0
        # The state before the last pass, the tokens that it stands for, and what the pass did to it.
        self._previous: int | None = None
        self._start = 0
        self._records: Sequence[LayerRecord] | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens that the cache holds."""
        return self.kv.num_tokens

    @property
    def max_tokens(self) -> int:
        """Tokens that it will never exceed."""
        return self.kv.max_tokens

    def reserve(self, num_tokens: int) -> bool:
        """Make sure of room for `num_tokens` tokens in all; False, and nothing changes, where there is none."""
        missing = SLOTS_PER_SEQUENCE - self._num_claimed if num_tokens > self.num_tokens else 0
        if not self.pool.claim(missing):
            return False
        if not self.kv.reserve(num_tokens):
            self.pool.unclaim(missing)
            return False
        self._num_claimed += missing
        return True

    def begin_pass(self) -> int:
        """A slot for the state after a pass; there is room for its tokens. `finish_pass` or `abandon_pass` follows."""
        if self._num_claimed < SLOTS_PER_SEQUENCE:
            raise ValueError("room for a pass is reserved before it")
        self._forget_previous()
        return self.pool.take()

    def finish_pass(self, slot: int, num_tokens: int, records: Sequence[LayerRecord] | None) -> None:
        """Takes over a pass of `num_tokens` tokens that left its state in `slot`."""
        self._previous, self._start, self._records = self.slot, self.num_tokens, records
        self.slot = slot
        self.kv.advance(num_tokens)

    def abandon_pass(self, slot: int) -> None:
        """Gives the slot of a pass back that did not come to its end."""
        self.pool.give_back(slot)

    def truncate(self, num_tokens: int) -> None:
        """Forget every token after the first `num_tokens`, as if only those had been run.

        The state is computed again from what the pass recorded, so it is the one that the pass went through: bit for
        bit after a pass of at most MAX_STEP_TOKENS tokens, up to rounding after a longer one. ValueError where the
        cache holds fewer tokens or cannot go back there.
        """
        if num_tokens == self.num_tokens:
            return
        if not 0 <= num_tokens < self.num_tokens:
            raise ValueError(f"cannot keep {num_tokens} of {self.num_tokens} tokens")
        num_kept = num_tokens - self._start
        if self._previous is None or num_kept < 0 or (num_kept and self._records is None):
            raise ValueError(f"no state is kept for {num_tokens} of {self.num_tokens} tokens")
        if num_kept == 0:
            self.pool.give_back(self.slot)
            self.slot, self._previous, self._records = self._previous, None, None
        else:
            self._replay(self._previous, num_kept)
        self.kv.truncate(num_tokens)

    def num_forkable(self, num_tokens: int) -> int:
        """The greatest count up to `num_tokens` whose state is kept; 0 where no slot is left for another cache."""
        if not self.pool.num_free_slots:
            return 0
        if num_tokens >= self.num_tokens:
            return self.num_tokens
        return self._start if self._previous is not None and num_tokens >= self._start else 0

    def fork(self, num_tokens: int, max_tokens: int) -> Self:
        """Another cache with the first `num_tokens` tokens, for at most `max_tokens`; it takes memory when it grows.

        ValueError where `num_forkable` does not give this count.
        """
        if num_tokens and self.num_forkable(num_tokens) != num_tokens:
            raise ValueError(f"no state is kept for {num_tokens} of {self.num_tokens} tokens, or no slot is free")
        other = type(self)(self.pool, self.kv.fork(num_tokens, max_tokens))
        if num_tokens:
            slot = self.slot if num_tokens == self.num_tokens else self._previous
            assert slot is not None
            self.pool.claim(1)
            self.pool.share(slot)
            other.slot, other._num_claimed = slot, 1
        return other

    def snapshot(self) -> RecurrentSnapshot:
        """A copy in the host's memory, which outlives the cache. It does not know what was before the last pass."""
        pool = self.pool
        states, columns = pool.states[:, self.slot], pool.columns[:, self.slot]
        return RecurrentSnapshot(self.kv.snapshot(), states.to("cpu", copy=True), columns.to("cpu", copy=True))

    def restore(self, snapshot: RecurrentSnapshot) -> bool:
        """Fill an empty cache with what a snapshot has; False, and nothing changes, where there is no room."""
        if self.num_tokens:
            raise ValueError(f"the cache holds {self.num_tokens} tokens")
        missing = max(0, 1 - self._num_claimed)
        if not self.pool.claim(missing):
            return False
        if not self.kv.restore(snapshot.kv):
            self.pool.unclaim(missing)
            return False
        self._num_claimed += missing
        self._forget_previous()
        self.pool.give_back(self.slot)
        self.slot = self.pool.take()
        self.pool.states[:, self.slot] = snapshot.states.to(self.pool.states.device)
        self.pool.columns[:, self.slot] = snapshot.columns.to(self.pool.columns.device)
        return True

    def release(self) -> None:
        """Forget all and give the memory back; the cache may be filled anew."""
        self.kv.release()
        self._forget_previous()
        self.pool.give_back(self.slot)
        self.pool.unclaim(self._num_claimed)
        self.slot, self._num_claimed = EMPTY_SLOT, 0

    def _forget_previous(self) -> None:
        if self._previous is not None:
            self.pool.give_back(self._previous)
        self._previous, self._records = None, None

    def _replay(self, previous: int, num_tokens: int) -> None:
        """Puts the state after the first tokens of the last pass in place of the one after all of them."""
        records = self._records
        assert records is not None
        if self.pool.is_shared(self.slot):
            self.pool.give_back(self.slot)
            self.slot = self.pool.take()
        if not records:
            return
        # The layers do not need one another any more, so all of them are one batch.
        inputs = DeltaInputs(
            *(
                torch.cat([getattr(record.inputs, field.name)[:, :num_tokens] for record in records])
                for field in fields(DeltaInputs)
            )
        )
        run = delta_steps if num_tokens <= MAX_STEP_TOKENS else delta_chunks
        _, self.pool.states[:, self.slot] = run(inputs, self.pool.states[:, previous])
        ran = torch.stack([record.columns[:num_tokens] for record in records])
        columns = torch.cat((self.pool.columns[:, previous], ran), dim=1)
        self.pool.columns[:, self.slot] = columns[:, num_tokens:]
