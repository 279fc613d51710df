"""Which beginnings the engine remembers, and which of them a new prompt continues.

A beginning is found by its tokens and by nothing else: neither constraint nor sampling is part of it. Its tokens are
cut into chunks, and a chunk is entered under a hash of itself and of all before it, so that a lookup reads the prompt
once and compares it in full only with beginnings that share its last known chunk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from infernix.program.prefix import CachedPrefix

DEFAULT_CHUNK_TOKENS = 16


@dataclass(frozen=True, eq=False, slots=True)
class _Entry:
    """A beginning, and the hashes under which it is entered."""

    prefix: CachedPrefix
    keys: list[int]


class PrefixCache:
    """At most `max_entries` beginnings, the least recently used of them given up first. They hold memory of the
    Program's pool, which `evict` gives back piece by piece where a request needs it.
    """

    def __init__(self, max_entries: int, chunk_tokens: int = DEFAULT_CHUNK_TOKENS) -> None:
        self._max_entries = max_entries
        self._chunk_tokens = chunk_tokens
        self._entries: OrderedDict[tuple[int, ...], _Entry] = OrderedDict()
        # For each chunk's hash the entries that have it, as keys: in an order, so that equal runs take equal entries.
        self._holders: dict[int, dict[_Entry, None]] = {}
        self.num_positions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def would_keep(self, num_tokens: int) -> bool:
        """Whether a beginning of so many tokens is remembered at all: one shorter than a chunk could not be found."""
        return self._max_entries > 0 and num_tokens >= self._chunk_tokens

    def find(self, prompt: Sequence[int]) -> CachedPrefix | None:
        """The entry with the most tokens of the prompt that need not be run; it counts as used."""
        prompt = tuple(prompt)
        levels: list[dict[_Entry, None]] = []
        for key in self._keys(prompt):
            holders = self._holders.get(key)
            if holders is None:
                break
            levels.append(holders)
        best: _Entry | None = None
        num_best = 0
        seen: set[_Entry] = set()
        for depth in range(len(levels), 0, -1):
            # What is met here for the first time differs from the prompt within the chunk behind.
            if num_best >= (depth + 1) * self._chunk_tokens - 1:
                break
            for entry in levels[depth - 1]:
                if entry in seen:
                    continue
                seen.add(entry)
                num_reusable = entry.prefix.num_reusable(prompt)
                if num_reusable > num_best:
                    best, num_best = entry, num_reusable
        if best is None:
            return None
        self._entries.move_to_end(best.prefix.tokens)
        return best.prefix

    def add(self, prefix: CachedPrefix) -> None:
        """Takes over a beginning and its memory; one that is not to be kept is given back at once."""
        tokens = prefix.tokens
        if not self.would_keep(len(tokens)):
            prefix.release()
            return
        known = self._entries.get(tokens)
        if known is not None:
            if known.prefix.logits is not None or prefix.logits is None:
                self._entries.move_to_end(tokens)
                prefix.release()
                return
            self._remove(tokens)
        while len(self._entries) >= self._max_entries:
            self.evict()
        entry = self._entries[tokens] = _Entry(prefix, self._keys(tokens))
        self.num_positions += len(tokens)
        for key in entry.keys:
            self._holders.setdefault(key, {})[entry] = None

    def evict(self) -> bool:
        """Gives up the least recently used beginning; False where there is none."""
        if not self._entries:
            return False
        self._remove(next(iter(self._entries)))
        return True

    def clear(self) -> None:
        """Gives up everything."""
        while self.evict():
            pass

    def _remove(self, tokens: tuple[int, ...]) -> None:
        entry = self._entries.pop(tokens)
        self.num_positions -= len(tokens)
        for key in set(entry.keys):
            del self._holders[key][entry]
            if not self._holders[key]:
                del self._holders[key]
        entry.prefix.release()

    def _keys(self, tokens: tuple[int, ...]) -> list[int]:
        keys: list[int] = []
        key = 0
        for start in range(0, len(tokens) - self._chunk_tokens + 1, self._chunk_tokens):
            key = hash((key, tokens[start : start + self._chunk_tokens]))
            keys.append(key)
        return keys
