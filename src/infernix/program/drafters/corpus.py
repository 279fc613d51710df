"""A request's own text, and where the beginning of what comes next stood in it before.

Every window of 16, 8 and 4 tokens that a token follows is entered in a hash table under its content; a bucket keeps the
last four entries. Time and memory are bounded whatever the text: a lookup compares at most twelve places, and places
that share a bucket push each other out. A lost entry costs a match, a false one is found out by comparing tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOWS = (16, 8, 4)
MAX_MATCH_TOKENS = 64
MAX_CORPUS_TOKENS = 1 << 20
_MAX_BUCKETS = 1 << 19
_BUCKET_ENTRIES = 4
_TOKENS_A_STEP = 1 << 16
_FEW_TOKENS = 8
"""So many are entered one by one, which costs less than NumPy's calls for them; most rounds bring no more."""
_BOUNDARY = -1

# FNV-1a over whole tokens (G. Fowler, L. Noll, K.-P. Vo), and the finalizer of splitmix64 to spread what it leaves.
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_ALL_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Match:
    """How many tokens up to an earlier place are the same as the text's last ones, and the tokens that followed."""

    num_matched: int
    continuation: tuple[int, ...]


class Corpus:
    """The committed tokens of one request, the last `capacity` of them.

    is_boundary   bool [num_tokens]: tokens that neither a match nor a continuation contains, such as control tokens
    capacity      how many tokens to keep, at most MAX_CORPUS_TOKENS; more than the request will have helps nobody
    """

    def __init__(self, is_boundary: NDArray[np.bool_], capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a corpus keeps at least one token, not {capacity}")
        self._is_boundary = is_boundary
        self._capacity = min(capacity, MAX_CORPUS_TOKENS)
        self._tokens = np.full(self._capacity, _BOUNDARY, dtype=np.int32)
        self._num_tokens = 0
        self._bucket_bits = (min(2 * self._capacity, _MAX_BUCKETS) - 1).bit_length()
        self._buckets = np.full((1 << self._bucket_bits, _BUCKET_ENTRIES), -1, dtype=np.int64)
        self._next_slot = np.zeros(1 << self._bucket_bits, dtype=np.uint8)

    def append(self, tokens: Sequence[int] | NDArray[np.integer]) -> None:
        """Takes in the next tokens, ids below num_tokens. How they are cut into calls makes no difference."""
        new = np.array(tokens, dtype=np.int32)
        if not new.size:
            return
        new[self._is_boundary[new]] = _BOUNDARY
        # Tokens that would be pushed out again by the others of this call are only counted.
        self._num_tokens += max(0, new.size - self._capacity)
        new = new[-self._capacity :]
        if new.size <= _FEW_TOKENS:
            for token in new.tolist():
                self._append_one(token)
            return
        for start in range(0, new.size, _TOKENS_A_STEP):
            self._append_step(new[start : start + _TOKENS_A_STEP])

    def longest_match(self, num_wanted: int) -> Match | None:
        """The place with the longest match, of these the one that most of `num_wanted` tokens follow, then the last.

        Matches are compared up to MAX_MATCH_TOKENS. None: at no place that is still known as many tokens are the same
        as the smallest window has.
        """
        text = self._between(max(self._oldest, self._num_tokens - MAX_MATCH_TOKENS), self._num_tokens)
        boundaries = np.flatnonzero(text == _BOUNDARY)
        text = text[boundaries[-1] + 1 :] if boundaries.size else text
        last = text[-WINDOWS[0] :].tolist()
        found = [self._buckets[_bucket_of(last[-w:], self._bucket_bits)] for w in WINDOWS if w <= len(last)]
        if not found:
            return None
        ends = np.unique(np.concatenate(found))  # places of the windows' last tokens, ascending
        ends = ends[ends >= self._oldest]
        if not ends.size:
            return None
        places = ends[:, None] - np.arange(text.size)
        is_same = self._tokens[places % self._capacity] == text[::-1]
        is_same &= places >= self._oldest
        num_matched = np.where(is_same.all(axis=1), text.size, is_same.argmin(axis=1))
        places = ends[:, None] + np.arange(1, num_wanted + 1)
        following = np.where(places < self._num_tokens, self._tokens[places % self._capacity], _BOUNDARY)
        is_end = following == _BOUNDARY
        num_available = np.where(is_end.any(axis=1), is_end.argmax(axis=1), num_wanted)
        best = int(np.lexsort((ends, num_available, num_matched))[-1])
        if num_matched[best] < WINDOWS[-1]:
            return None
        return Match(int(num_matched[best]), tuple(following[best, : num_available[best]].tolist()))

    @property
    def _oldest(self) -> int:
        """The place of the oldest token that is kept; places count from the first token that ever came."""
        return max(0, self._num_tokens - self._capacity)

    def _between(self, start: int, stop: int) -> NDArray[np.int32]:
        return self._tokens[np.arange(start, stop) % self._capacity]

    def _append_one(self, token: int) -> None:
        """What `_append_step` does for a single token."""
        place = self._num_tokens
        self._num_tokens += 1
        self._tokens[place % self._capacity] = token
        if token == _BOUNDARY:
            return
        before = self._between(max(place - WINDOWS[0], self._oldest), place).tolist()
        for window in WINDOWS:
            last = before[-window:]
            if len(last) == window and _BOUNDARY not in last:
                bucket = _bucket_of(last, self._bucket_bits)
                slot = self._next_slot[bucket]
                self._buckets[bucket, slot] = place - 1
                self._next_slot[bucket] = (slot + 1) % _BUCKET_ENTRIES

    def _append_step(self, new: NDArray[np.int32]) -> None:
        first_new = self._num_tokens
        self._num_tokens += new.size
        self._tokens[np.arange(first_new, self._num_tokens) % self._capacity] = new
        # A window is entered when the token after it comes: the last one has none yet, so a lookup never finds itself.
        start = max(first_new - WINDOWS[0], self._oldest)
        text = self._between(start, self._num_tokens)
        num_boundaries = np.concatenate([[0], np.cumsum(text == _BOUNDARY)])
        ends, ranks, buckets = [], [], []
        for rank, window in enumerate(WINDOWS):
            if text.size <= window:
                continue
            last = np.arange(window - 1, text.size - 1)  # of each window but the text's last one
            is_entered = num_boundaries[last + 2] == num_boundaries[last + 1 - window]
            is_entered &= last + start >= first_new - 1
            ends.append(last[is_entered] + start)
            ranks.append(np.full(ends[-1].size, rank))
            buckets.append(_buckets_of(text[:-1], window, self._bucket_bits)[is_entered])
        if ends:
            self._enter(np.concatenate(ends), np.concatenate(ranks), np.concatenate(buckets))

    def _enter(self, ends: NDArray[np.intp], ranks: NDArray[np.intp], buckets: NDArray[np.intp]) -> None:
        """Puts places into their buckets in the order in which they would come one by one."""
        if not ends.size:
            return
        order = np.lexsort((ranks, ends, buckets))
        ends, buckets = ends[order], buckets[order]
        firsts = np.flatnonzero(np.concatenate([[True], buckets[1:] != buckets[:-1]]))
        sizes = np.diff(np.append(firsts, buckets.size))
        numbers = np.arange(buckets.size) - np.repeat(firsts, sizes)  # within the bucket
        slots = (self._next_slot[buckets] + numbers) % _BUCKET_ENTRIES
        is_kept = numbers >= np.repeat(sizes, sizes) - _BUCKET_ENTRIES
        self._buckets[buckets[is_kept], slots[is_kept]] = ends[is_kept]
        self._next_slot[buckets[firsts]] = (self._next_slot[buckets[firsts]] + sizes) % _BUCKET_ENTRIES


def _bucket_of(window: Sequence[int], num_bits: int) -> int:
    """The bucket of one window without boundaries: what `_buckets_of` says, in a few microseconds."""
    value = _FNV_OFFSET
    for token in window:
        value = ((value ^ token) * _FNV_PRIME) & _ALL_BITS
    value = ((value ^ (value >> 30)) * _MIX_1) & _ALL_BITS
    value = ((value ^ (value >> 27)) * _MIX_2) & _ALL_BITS
    return (value ^ (value >> 31)) >> (64 - num_bits)


def _buckets_of(text: NDArray[np.int32], window: int, num_bits: int) -> NDArray[np.intp]:
    """The buckets of all windows of a text, [n] -> [n - window + 1]."""
    num_windows = text.size - window + 1
    values = text.astype(np.uint64)
    hashes = np.full(num_windows, _FNV_OFFSET, dtype=np.uint64)
    for place in range(window):
        hashes = (hashes ^ values[place : place + num_windows]) * np.uint64(_FNV_PRIME)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(_MIX_1)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(_MIX_2)
    return ((hashes ^ (hashes >> np.uint64(31))) >> np.uint64(64 - num_bits)).astype(np.intp)
