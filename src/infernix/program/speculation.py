"""Keeping a drafter's memory of every sequence right, through all that may happen to a sequence.

What a drafter has read is always a beginning of the accepted tokens. Where its memory cannot be kept (no room, a prefix
whose features are gone, a failure while it reads), the sequence goes on without drafts until all of it is run again:
they never decide about anything but speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from infernix.models.cache import BLOCK_TOKENS
from infernix.models.model import ModelRow
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.drafters.context import ContextRow, DraftContext
from infernix.program.drafters.neural import DraftRow, NeuralDrafter
from infernix.program.prefix import CachedPrefix
from infernix.program.sequence import PhysicalSequence

_MAX_UNREAD_POSITIONS = 64
"""So many features wait at most from round to round, for a sequence that nothing is proposed for."""


class Speculation:
    """The drafter's side of the Program: a pool of its own, and a context for each sequence."""

    def __init__(self, drafter: NeuralDrafter, *, num_positions: int, num_sequences: int) -> None:
        """There is room for what the model has room for, and for what `num_sequences` need beyond it: drafts, and a
        block of a shared prefix that is written anew.
        """
        self._drafter = drafter
        self._pool = drafter.new_pool(num_positions + num_sequences * 2 * BLOCK_TOKENS)
        model = drafter.model
        self._no_features = torch.empty((0, drafter.width), dtype=model.dtype, device=model.device)
        self._max_tokens = model.max_context + drafter.num_drafts
        self._failure: Exception | None = None

    def begin(self, sequence: PhysicalSequence, prefix: CachedPrefix | None) -> None:
        """Gives a new sequence its context: an empty one, or what is known of the prefix that it continues."""
        num_reused = sequence.execution_frontier
        if not num_reused:
            sequence.drafting = self._new_context()
        elif prefix is not None and prefix.drafting is not None:
            sequence.drafting = prefix.drafting.fork(num_reused, self._drafter.lag, self._max_tokens)

    def begin_again(self, sequence: PhysicalSequence) -> None:
        """Gives a sequence that is about to be run again from its first token a context, if it has lost its own."""
        if sequence.drafting is None:
            sequence.drafting = self._new_context()

    def remember(self, sequence: PhysicalSequence, num_tokens: int) -> DraftContext | None:
        """A context of the first `num_tokens` tokens of the ledger, for a prefix; None where that cannot be had."""
        if sequence.drafting is None:
            return None
        kept = sequence.drafting.fork(num_tokens, self._drafter.lag, num_tokens)
        if kept is None:
            return None
        has_read = False
        try:
            has_read = self._read(ContextRow(kept, sequence.ledger[:num_tokens]))
        finally:
            if not has_read:
                kept.clear()
        return kept if has_read else None

    def forward(self, sequences: Sequence[PhysicalSequence], rows: Sequence[ModelRow]) -> torch.Tensor:
        """A pass of the model, as `forward_rows`; what the drafter reads of it is put beside the contexts."""
        output = self._drafter.model.forward_features(rows, self._drafter.taps)
        parts = torch.split(self._drafter.features(output), [len(row.token_ids) for row in rows])
        for sequence, part in zip(sequences, parts, strict=True):
            if sequence.drafting is not None:
                sequence.drafting.unit = part
        return output.logits

    def catch_up(self, sequences: Sequence[PhysicalSequence], num_allowed: int | None = None) -> None:
        """Reads what waits, where it is more than `num_allowed` positions; None: than may wait from round to round.

        Nobody fails where it cannot be read: the next `propose` raises what happened.
        """
        num_allowed = _MAX_UNREAD_POSITIONS if num_allowed is None else num_allowed
        for sequence in sequences:
            context = sequence.drafting
            if context is None or context.num_unread <= num_allowed:
                continue
            try:
                has_read = self._read(ContextRow(context, sequence.ledger))
            except Exception as error:
                # Its frames hold this object and the sequences, and nobody may ask for drafts again.
                self._failure, has_read = error.with_traceback(None), False
            if not has_read:
                self._give_up(sequence)

    def propose(self, sequences: Sequence[PhysicalSequence], extents: Sequence[int]) -> list[DraftChain]:
        """At most so many drafts for each of the sequences, which are between units.

        None for a sequence with more than the anchor to run (forced tokens), and for one without a context. Raises what
        a drafter raises, also the last time that it read.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        rows: dict[int, DraftRow] = {}
        for number, (sequence, extent) in enumerate(zip(sequences, extents, strict=True)):
            context, num_drafts = sequence.drafting, min(extent, self._drafter.num_drafts)
            if context is None or num_drafts < 1 or not context.num_known == len(sequence.ledger) - 1 > 0:
                continue
            if not context.cache.reserve(context.num_known):
                self._give_up(sequence)
            elif context.cache.reserve(context.num_known + num_drafts):
                rows[number] = DraftRow(context, sequence.ledger, num_drafts, sequence.sampling)
        chains = [NO_DRAFTS] * len(sequences)
        if rows:
            for number, chain in zip(rows, self._drafter.propose(list(rows.values())), strict=True):
                chains[number] = chain
        return chains

    def _read(self, row: ContextRow) -> bool:
        """Reads all that is known and can be read; False where there is no room for it."""
        end = min(row.context.num_known, len(row.ledger) - self._drafter.lag)
        if end <= row.context.cache.num_tokens:
            return True
        if not row.context.cache.reserve(end):
            return False
        self._drafter.read(row, end)
        return True

    def _new_context(self) -> DraftContext:
        return DraftContext(self._pool.new_cache(self._max_tokens), self._no_features)

    @staticmethod
    def _give_up(sequence: PhysicalSequence) -> None:
        if sequence.drafting is not None:
            sequence.drafting.clear()
        sequence.drafting = None
