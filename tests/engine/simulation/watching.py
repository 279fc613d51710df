"""A Program that tells of every call, before and after, and may be given drafts that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from infernix.program.masks import TokenMaskProvider
from infernix.program.pending import PendingBatch
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence

Hook = Callable[[str, bool], None]
"""Hears the name of a call, and whether it has been made or is about to be."""
Propose = Callable[[PhysicalSequence], Sequence[int]]


class WatchedProgram:
    """Everything is the Program's own. What `hook` raises comes out of the call that it was told of."""

    def __init__(self, program: Program, hook: Hook, propose: Propose | None = None) -> None:
        self._program = program
        self._hook = hook
        self._propose = propose

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._program, name)
        if not callable(value):
            return value

        def watched(*arguments: Any, **options: Any) -> Any:
            self._hook(name, False)
            result = value(*arguments, **options)
            self._hook(name, True)
            return result

        return watched

    @property
    def pool(self) -> Any:
        return self._program.pool

    def decode_batch(self, sequences: Sequence[PhysicalSequence], masks: TokenMaskProvider | None) -> PendingBatch:
        """A round, with what `propose` guesses for each row."""
        self._hook("decode_batch", False)
        drafts = None if self._propose is None else [self._drafts(sequence) for sequence in sequences]
        batch = self._program.decode_batch(sequences, masks, drafts)
        self._hook("decode_batch", True)
        return batch

    def _drafts(self, sequence: PhysicalSequence) -> Sequence[int]:
        """As many of the guesses as there is memory for."""
        assert self._propose is not None
        drafts = self._propose(sequence)
        num_to_run = len(sequence.ledger) - sequence.execution_frontier
        while drafts and not self._program.reserve(sequence, num_to_run + len(drafts)):
            drafts = drafts[:-1]
        return drafts
