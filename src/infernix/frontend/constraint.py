"""A request's matcher together with what is counted about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from infernix.results import CacheAccess, ConstraintObservation


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

    def observe(self) -> ConstraintObservation:
        """The committed state."""
        is_terminated = self._matcher.is_terminated
        return ConstraintObservation(
            complete=is_terminated or self._matcher.may_end,
            terminated=is_terminated,
            cache=self._cache,
            mask_positions=self._mask_positions,
            prepare_seconds=self._prepare_seconds,
            mask_seconds=self._mask_seconds,
            matcher_seconds=self._matcher_seconds,
        )
