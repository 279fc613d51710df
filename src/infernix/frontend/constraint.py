"""A request's matcher together with what is counted about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from infernix.matching.matcher import LookAhead
from infernix.results import CacheAccess, ConstraintObservation, OutputBranch

# A long prefix is confirmed part by part: until then the matcher keeps a position for each token.
_PREFIX_TOKENS = 1024


class TokenMatcher(Protocol):
    """Where a text stands in its grammar (the core's Matcher)."""

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        ...

    @property
    def is_terminated(self) -> bool:
        """Whether an end-of-sequence token was accepted."""
        ...

    def fill(self, row: NDArray[np.int32]) -> bool:
        """Writes the packed legal set; False: it is empty."""
        ...

    def look_ahead(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        """Writes the legal set at each position of a draft chain, int32 [len(drafts) + 1, num_mask_words]."""
        ...

    def accept_bytes(self, data: bytes) -> bool:
        """Moves on by the bytes of a given text; False, and nothing has changed, where it leaves the language."""
        ...

    def preview(self, tokens: Sequence[int]) -> int:
        """Accepts the longest legal beginning provisionally and returns its length."""
        ...

    def confirm(self) -> None:
        """Makes the previewed tokens count."""
        ...

    def discard(self) -> None:
        """Takes the previewed tokens back."""
        ...


class ConstraintState:
    """The mutable constraint of one request. CPU seconds are those of the calling thread."""

    def __init__(self, matcher: TokenMatcher, cache: CacheAccess, *, prepare_seconds: float) -> None:
        self._matcher = matcher
        self._cache = cache
        self._prepare_seconds = prepare_seconds
        self._mask_seconds = 0.0
        self._matcher_seconds = 0.0
        self._mask_positions = 0

    def fill_mask(self, words: NDArray[np.int32]) -> bool:
        """Writes the legal set of the committed text; False: it is empty."""
        start = time.thread_time()
        is_alive = self._matcher.fill(words)
        self._mask_seconds += time.thread_time() - start
        self._mask_positions += 1
        return is_alive

    def fill_masks(self, drafts: Sequence[int], rows: NDArray[np.int32]) -> LookAhead:
        """Writes the legal sets along a chain of drafts; only those computed count as mask positions."""
        start = time.thread_time()
        found = self._matcher.look_ahead(drafts, rows)
        self._mask_seconds += time.thread_time() - start
        self._mask_positions += found.num_ready + found.dead_positions.bit_count()
        return found

    def accept_prefix_bytes(self, data: bytes) -> bool:
        """Begins behind a given text; False where it begins no text of the language."""
        start = time.thread_time()
        is_accepted = self._matcher.accept_bytes(data)
        self._prepare_seconds += time.thread_time() - start
        return is_accepted

    def accept_prefix_tokens(self, tokens: Sequence[int]) -> bool:
        """Begins behind given tokens; False, and the state is of no more use, where they begin no text."""
        start = time.thread_time()
        is_accepted = True
        for begin in range(0, len(tokens), _PREFIX_TOKENS):
            part = tokens[begin : begin + _PREFIX_TOKENS]
            is_accepted = self._matcher.preview(part) == len(part)
            self._matcher.confirm()
            if not is_accepted:
                break
        self._prepare_seconds += time.thread_time() - start
        return is_accepted

    def preview(self, tokens: Sequence[int]) -> int:
        """How many of the tokens are legal, one after another; they are accepted provisionally."""
        start = time.thread_time()
        num_accepted = self._matcher.preview(tokens)
        self._matcher_seconds += time.thread_time() - start
        return num_accepted

    def confirm(self) -> None:
        """Makes the previewed tokens count."""
        start = time.thread_time()
        self._matcher.confirm()
        self._matcher_seconds += time.thread_time() - start

    def discard(self) -> None:
        """Takes the previewed tokens back."""
        start = time.thread_time()
        self._matcher.discard()
        self._matcher_seconds += time.thread_time() - start

    def observe(self, branch: OutputBranch = OutputBranch.UNDECIDED) -> ConstraintObservation:
        """The committed state; `branch` is what the output has turned out to be."""
        is_terminated = self._matcher.is_terminated
        return ConstraintObservation(
            complete=is_terminated or self._matcher.may_end,
            terminated=is_terminated,
            cache=self._cache,
            mask_positions=self._mask_positions,
            prepare_seconds=self._prepare_seconds,
            mask_seconds=self._mask_seconds,
            matcher_seconds=self._matcher_seconds,
            branch=branch,
        )
