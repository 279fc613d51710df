"""Keys and values: a pool of blocks that is allocated once, and the sequences that fill them.

A block is `BLOCK_TOKENS` positions of the pool, in all layers. Sequences that begin alike may share blocks; who writes
into a block that others hold takes a copy first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

BLOCK_TOKENS = 32


@dataclass(frozen=True, slots=True)
class KVSnapshot:
    """The keys and values of a sequence in the host's memory, each [num_layers, num_kv_heads, num_tokens, head_dim]."""

    keys: torch.Tensor
    values: torch.Tensor

    @property
    def num_tokens(self) -> int:
        """Tokens that it has."""
        return self.keys.shape[2]

    @property
    def num_bytes(self) -> int:
        """Host memory that it takes."""
        return self.keys.nbytes + self.values.nbytes


class KVPool:
    """Memory for the keys and values of `num_positions` tokens, rounded up to whole blocks, of all sequences together.

    keys, values   [num_layers, num_kv_heads, num_positions, head_dim]; block b is positions b * BLOCK_TOKENS and on

    The memory is reserved at once; an operating system hands it out as it is first written. Blocks are given out so
    that a sequence's lie behind each other as long as the neighbours are free: attention then needs no copy of them.
    """

    def __init__(
        self,
        num_layers: int,
        num_kv_heads: int,
        num_positions: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        if num_positions < 1:
            raise ValueError(f"a pool has at least one position, not {num_positions}")
        num_blocks = num_blocks_of(num_positions)
        shape = (num_layers, num_kv_heads, num_blocks * BLOCK_TOKENS, head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty(shape, dtype=dtype, device=device)
        # One view a layer, [num_kv_heads, num_positions, head_dim] each.
        self.layers: tuple[tuple[torch.Tensor, torch.Tensor], ...] = tuple(zip(self.keys, self.values, strict=True))
        self._num_holders = [0] * num_blocks
        self._num_free = num_blocks

    @property
    def num_positions(self) -> int:
        """Tokens that there is memory for."""
        return len(self._num_holders) * BLOCK_TOKENS

    @property
    def num_free_positions(self) -> int:
        """Tokens of the blocks that nobody holds."""
        return self._num_free * BLOCK_TOKENS

    def new_cache(self, max_tokens: int) -> KVCache:
        """An empty cache that holds no block yet and will never hold more than `max_tokens` tokens."""
        return KVCache(self, max_tokens)

    def is_shared(self, block: int) -> bool:
        """Whether more than one sequence holds the block."""
        return self._num_holders[block] > 1

    def can_take(self, num_blocks: int) -> bool:
        """Whether so many blocks are free."""
        return num_blocks <= self._num_free

    def take(self, num_blocks: int, after: int | None = None) -> list[int]:
        """Free blocks, now held once each; those behind the block `after` if they are free.

        ValueError where there are not so many.
        """
        if not self.can_take(num_blocks):
            raise ValueError(f"{num_blocks} blocks wanted, {self._num_free} free")
        blocks: list[int] = []
        block = None if after is None else after + 1
        while len(blocks) < num_blocks:
            if block is None or block == len(self._num_holders) or self._num_holders[block]:
                block = self._start_of_widest_gap()
            self._num_holders[block] = 1
            self._num_free -= 1
            blocks.append(block)
            block += 1
        return blocks

    def share(self, blocks: Sequence[int]) -> None:
        """Holds every one of the blocks once more."""
        for block in blocks:
            self._num_holders[block] += 1

    def give_back(self, blocks: Sequence[int]) -> None:
        """Holds every one of the blocks once less; what nobody holds is free."""
        for block in blocks:
            self._num_holders[block] -= 1
            self._num_free += not self._num_holders[block]

    def copy_block(self, source: int, target: int) -> None:
        """Overwrites the block `target` with the content of `source`."""
        begins = source * BLOCK_TOKENS, target * BLOCK_TOKENS
        for tensor in (self.keys, self.values):
            copied, overwritten = (tensor[:, :, begin : begin + BLOCK_TOKENS] for begin in begins)
            overwritten.copy_(copied)

    def _start_of_widest_gap(self) -> int:
        """Where somebody who grows is disturbed last: the middle of the widest gap, or its start at the very first.

        A gap is a run of free blocks; what is in front of it may be a sequence that is still growing into it.
        """
        widest, start, begin = 0, 0, 0
        for block, holders in enumerate([*self._num_holders, 1]):
            if holders:
                if block - begin > widest:
                    widest, start = block - begin, begin
                begin = block + 1
        return start if start == 0 else start + widest // 2


class KVCache:
    """The keys and values of one sequence, in blocks of a pool.

    `blocks` are those that it holds, in the order of its tokens; the last ones may be reserved and empty.
    """

    def __init__(self, pool: KVPool, max_tokens: int) -> None:
        self.pool = pool
        self.max_tokens = max_tokens
        self.blocks: list[int] = []
        self._num_tokens = 0

    @property
    def num_tokens(self) -> int:
        """Tokens that the cache holds."""
        return self._num_tokens

    def reserve(self, num_tokens: int) -> bool:
        """Make sure of room for `num_tokens` tokens in all, present ones included; False, and nothing changes, where
        the pool has no room or the cache would grow past `max_tokens`.
        """
        if num_tokens > self.max_tokens:
            return False
        num_new = max(0, num_blocks_of(num_tokens) - len(self.blocks))
        to_own = self._shared_blocks_to_write() if num_tokens > self._num_tokens else []
        if not self.pool.can_take(num_new + len(to_own)):
            return False
        for place in to_own:
            (own,) = self.pool.take(1, after=self.blocks[place - 1] if place else None)
            if place * BLOCK_TOKENS < self._num_tokens:
                self.pool.copy_block(self.blocks[place], own)
            self.pool.give_back([self.blocks[place]])
            self.blocks[place] = own
        if num_new:
            self.blocks += self.pool.take(num_new, after=self.blocks[-1] if self.blocks else None)
        return True

    def advance(self, num_tokens: int) -> None:
        """Take over `num_tokens` tokens whose keys and values every layer has written behind the present ones."""
        if not 0 <= num_tokens <= min(self.max_tokens, len(self.blocks) * BLOCK_TOKENS) - self._num_tokens:
            raise ValueError(f"no room for {num_tokens} tokens after {self._num_tokens} of {self.max_tokens}")
        self._num_tokens += num_tokens

    def truncate(self, num_tokens: int) -> None:
        """Forget every token after the first `num_tokens`, and keep their room; ValueError where it holds fewer."""
        if not 0 <= num_tokens <= self._num_tokens:
            raise ValueError(f"cannot keep {num_tokens} of {self._num_tokens} tokens")
        self._num_tokens = num_tokens

    def num_forkable(self, num_tokens: int) -> int:
        """The greatest count up to `num_tokens` at which the cache can be forked: any that it holds."""
        return min(num_tokens, self._num_tokens)

    def fork(self, num_tokens: int, max_tokens: int) -> KVCache:
        """Another cache with the first `num_tokens` tokens, for at most `max_tokens`; it takes memory when it grows."""
        if not 0 <= num_tokens <= self._num_tokens:
            raise ValueError(f"cannot share {num_tokens} of {self._num_tokens} tokens")
        other = KVCache(self.pool, max_tokens)
        other.blocks = self.blocks[: num_blocks_of(num_tokens)]
        other._num_tokens = num_tokens
        self.pool.share(other.blocks)
        return other

    def positions(self, begin: int, end: int) -> slice | torch.Tensor:
        """Where tokens begin..end - 1 lie in the pool: a slice if they lie behind each other, else int64 [end - begin].

        begin < end, and there is room for all of them.
        """
        first, last = begin // BLOCK_TOKENS, (end - 1) // BLOCK_TOKENS
        blocks = self.blocks[first : last + 1]
        if blocks == list(range(blocks[0], blocks[0] + len(blocks))):
            start = blocks[0] * BLOCK_TOKENS + begin % BLOCK_TOKENS
            return slice(start, start + end - begin)
        places = torch.tensor(blocks).unsqueeze(1) * BLOCK_TOKENS + torch.arange(BLOCK_TOKENS)
        begin_in_first = begin % BLOCK_TOKENS
        return places.view(-1)[begin_in_first : begin_in_first + end - begin].to(self.pool.keys.device)

    def snapshot(self) -> KVSnapshot:
        """A copy in the host's memory, which outlives the cache."""
        if not self._num_tokens:
            return KVSnapshot(*(tensor[:, :, :0].cpu() for tensor in (self.pool.keys, self.pool.values)))
        where = self.positions(0, self._num_tokens)
        keys, values = self.pool.keys[:, :, where], self.pool.values[:, :, where]
        return KVSnapshot(keys.to("cpu", copy=True), values.to("cpu", copy=True))

    def restore(self, snapshot: KVSnapshot) -> bool:
        """Fill an empty cache with a snapshot's tokens; False, and nothing changes, where there is no room."""
        if self._num_tokens:
            raise ValueError(f"the cache holds {self._num_tokens} tokens")
        if not self.reserve(snapshot.num_tokens):
            return False
        if snapshot.num_tokens:
            where = self.positions(0, snapshot.num_tokens)
            self.pool.keys[:, :, where] = snapshot.keys.to(self.pool.keys.device)
            self.pool.values[:, :, where] = snapshot.values.to(self.pool.keys.device)
        self._num_tokens = snapshot.num_tokens
        return True

    def release(self) -> None:
        """Forget all and give every block back; the cache may be filled anew."""
        self.pool.give_back(self.blocks)
        self.blocks = []
        self._num_tokens = 0

    def _shared_blocks_to_write(self) -> list[int]:
        """Places in `blocks` from the next token on that other sequences hold too."""
        first = self._num_tokens // BLOCK_TOKENS
        return [place for place in range(first, len(self.blocks)) if self.pool.is_shared(self.blocks[place])]


def num_blocks_of(num_tokens: int) -> int:
    """Blocks that so many tokens fill, the last perhaps in part."""
    return -(-num_tokens // BLOCK_TOKENS)
