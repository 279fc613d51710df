"""Drafts from DFlash and DFlash2: a block of them in one pass over the features of all accepted tokens.

DFlash takes the likeliest token at every position (q is one-hot). DFlash2 draws along the block at a temperature above
0, and the laws that it drew from stay with the drafts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from infernix.models.cache import KVPool
from infernix.models.dflash import ContextRow as FeatureRow
from infernix.models.dflash import DFlashDrafter
from infernix.models.dflash2 import Candidates, DFlash2Drafter
from infernix.models.features import FeatureModel, ForwardOutput
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.drafters.context import ContextRow
from infernix.program.drafters.neural import DraftRow

MAX_BLOCK_DRAFTS = 15


class BlockDrafter:
    """A NeuralDrafter around a DFlash or DFlash2 network; `num_tokens` ids are candidates."""

    lag = 0

    def __init__(self, network: DFlashDrafter, model: FeatureModel, *, num_tokens: int, num_drafts: int) -> None:
        """Raises ValueError unless `num_drafts` is at least 1, and at most MAX_BLOCK_DRAFTS and what the network's
        block has.
        """
        largest = min(MAX_BLOCK_DRAFTS, network.max_drafts)
        if not 1 <= num_drafts <= largest:
            raise ValueError(f"1 to {largest} tokens can be drafted, not {num_drafts}")
        self.model = model
        self.num_drafts = num_drafts
        self.taps: Sequence[int] = network.config.taps
        self.width = len(self.taps) * model.hidden_size
        self._network = network
        self._num_tokens = num_tokens

    def features(self, output: ForwardOutput) -> torch.Tensor:
        """The residual streams after the tapped layers, side by side."""
        if output.taps is None:
            raise ValueError("the pass was not asked for the residual streams that the drafter reads")
        return output.taps

    def new_pool(self, num_positions: int) -> KVPool:
        """Memory for the contexts of `num_positions` tokens of all sequences together."""
        return self._network.new_pool(num_positions)

    def read(self, row: ContextRow, end: int) -> None:
        """Adds the features before the position `end` to the context."""
        self._read([row], [end])

    def propose(self, rows: Sequence[DraftRow]) -> list[DraftChain]:
        """Drafts for the rows. A block always has its full width, except at the end of what the model can hold: what it
        gives at a position depends on the width, and a row's drafts must not depend on the rows beside it.
        """
        unread = [row for row in rows if row.context.num_unread]
        if unread:
            self._read(unread, [row.context.num_known for row in unread])
        widths = [min(self.num_drafts, self.model.max_context - len(row.ledger)) for row in rows]
        chains = [NO_DRAFTS] * len(rows)
        for width in sorted({width for width in widths if width > 0}):
            group = [number for number, other in enumerate(widths) if other == width]
            for number, chain in zip(group, self._blocks([rows[number] for number in group], width), strict=True):
                chains[number] = chain
        return chains

    def _read(self, rows: Sequence[ContextRow], ends: Sequence[int]) -> None:
        self._network.append_context(
            [
                FeatureRow(row.context.part(row.context.cache.num_tokens, end), row.context.cache)
                for row, end in zip(rows, ends, strict=True)
            ]
        )
        for row, end in zip(rows, ends, strict=True):
            row.context.keep_from(end)

    def _blocks(self, rows: Sequence[DraftRow], width: int) -> list[DraftChain]:
        """The drafts out of blocks of `width` of them."""
        anchors, caches = [row.ledger[-1] for row in rows], [row.context.cache for row in rows]
        if isinstance(self._network, DFlash2Drafter):
            found = self._network.candidates(anchors, caches, width, self._num_tokens)
            return [_walk(row, candidates) for row, candidates in zip(rows, found, strict=True)]
        drafts = self._network.draft(anchors, caches, width, self._num_tokens).tolist()
        return [DraftChain(tuple(chain[: row.num_drafts])) for row, chain in zip(rows, drafts, strict=True)]


def _walk(row: DraftRow, candidates: Candidates) -> DraftChain:
    """The first drafts along the candidates, the law of each beside it where it was drawn."""
    wanted = Candidates(candidates.ids[: row.num_drafts], candidates.scores[: row.num_drafts])
    if not np.isfinite(wanted.scores.max(axis=2)).all():
        # A drafter that overflows costs speed, not the request. All ways are looked at, not only the one that would be
        # drawn: whether there are drafts must not depend on them.
        return NO_DRAFTS
    sampling = row.sampling
    drafts, proposals = wanted.walk(sampling.temperature, sampling.seed, len(row.ledger))
    return DraftChain(tuple(drafts), None if sampling.temperature == 0.0 else proposals)
