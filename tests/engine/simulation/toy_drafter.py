"""A network that drafts and is none: what it proposes is a function of everything that stands in its memory.

So a feature of a refused draft, a position that is missing or one that is read with a wrong token changes its drafts.
They are mostly right all the same: the features tell it the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random
from typing import Any

import numpy as np
import torch

from infernix.models.cache import KVPool
from infernix.models.features import FeatureModel, ForwardOutput
from infernix.ops.proposals import SparseProposals, propose
from infernix.options import SamplingParameters
from infernix.program.drafters.chain import DraftChain
from infernix.program.drafters.context import ContextRow, DraftContext
from infernix.program.drafters.neural import DraftRow
from tests.engine.simulation.features import FeatureMemoryModel, marks, tapped
from tests.engine.simulation.world import NUM_TOKENS, script

_TAPS = (1, 3)
_NUM_CANDIDATES = 4
_SCORES = np.linspace(3.0, 0.0, _NUM_CANDIDATES)


class Kind(Enum):
    """What the drafter is like: how many of the last positions it cannot read yet, and whether its drafts are drawn."""

    PREDICTOR = (1, False)
    BLOCK = (0, False)
    DRAWN_BLOCK = (0, True)

    @property
    def lag(self) -> int:
        return self.value[0]

    @property
    def is_drawn(self) -> bool:
        return self.value[1]


class ToyDrafter:
    """A NeuralDrafter. It keeps features where others keep keys, and the tokens after them where others keep values.

    num_positions   of its pool, whatever it is asked for; None: as many as it is asked for
    is_roomy        whether its pool is as large as it is asked for
    known           the next token of known texts, by the text's mark and the seed
    strike          hears where the drafter is, and may raise: "propose" and "read" before anything is done, "proposing"
                    when the first row has read, "proposed" at the end
    """

    def __init__(
        self,
        model: FeatureMemoryModel,
        kind: Kind,
        num_drafts: int,
        *,
        num_positions: int | None = None,
        strike: Callable[[str], None] = lambda place: None,
    ) -> None:
        self._model = model
        self.kind = kind
        self.num_drafts = num_drafts
        self.lag = kind.lag
        self.taps: Sequence[int] = () if kind.lag else _TAPS
        self.width = 1 if kind.lag else len(_TAPS)
        self.known: dict[tuple[int, int], int] = {}
        self._num_positions = num_positions
        self.is_roomy = num_positions is None
        self._strike = strike
        self.pools: list[KVPool] = []

    @property
    def model(self) -> FeatureModel:
        """The model that it drafts for."""
        model: Any = self._model
        return model

    def learn(self, text: Sequence[int], num_prompt_tokens: int, seed: int) -> None:
        """A prompt with an answer that it may get."""
        for mark, token in list(zip(marks(text), text[1:], strict=False))[num_prompt_tokens - 1 :]:
            self.known[mark, seed] = token

    def features(self, output: ForwardOutput) -> torch.Tensor:
        """Hidden states, or what was tapped."""
        if self.kind.lag:
            return output.hidden
        assert output.taps is not None
        return output.taps

    def new_pool(self, num_positions: int) -> KVPool:
        """Features of so many tokens."""
        self.pools.append(KVPool(1, 1, self._num_positions or num_positions, self.width, dtype=torch.int64))
        return self.pools[-1]

    def read(self, row: ContextRow, end: int) -> None:
        """Reads the positions before `end`."""
        self._strike("read")
        self._read(row, end)

    def propose(self, rows: Sequence[DraftRow]) -> list[DraftChain]:
        """Drafts from what stands in each row's memory."""
        self._strike("propose")
        chains = []
        for row in rows:
            context, known = row.context, len(row.ledger) - 1
            context.cache.truncate(min(context.cache.num_tokens, known - self.lag))
            self._read(row, known)
            self._strike("proposing")
            features, following = self.memory(context)
            text = self._model.text_of[features[-1][0]]
            digest = hash((*map(tuple, features), *following, row.ledger[-1]))
            chains.append(self._chain((*text, row.ledger[-1]), digest, row.num_drafts, row.sampling))
            # A predictor's own guesses stand behind the anchor for as long as it makes them.
            context.cache.advance(row.num_drafts)
            context.cache.truncate(known)
        self._strike("proposed")
        return chains

    def expected(self, ledger: Sequence[int], num_drafts: int, sampling: SamplingParameters) -> DraftChain:
        """What it proposes behind a text, the last token of which is the anchor."""
        features, following = self.wanted_memory(ledger, len(ledger) - 1)
        digest = hash((*map(tuple, features), *following, ledger[-1]))
        return self._chain(tuple(ledger), digest, num_drafts, sampling)

    def memory(self, context: DraftContext) -> tuple[list[list[int]], list[int]]:
        """The features that a context has read, and the token that each was read with."""
        cache = context.cache
        if not cache.num_tokens:
            return [], []
        where = cache.positions(0, cache.num_tokens)
        return cache.pool.keys[0, 0, where].tolist(), cache.pool.values[0, 0, where, 0].tolist()

    def wanted_memory(self, ledger: Sequence[int], num_read: int) -> tuple[list[list[int]], list[int]]:
        """What a context of this text must have read."""
        features = self.wanted_features(ledger, num_read)
        return features, list(ledger[1 : num_read + 1]) if self.lag else [0] * num_read

    def wanted_features(self, ledger: Sequence[int], num_known: int) -> list[list[int]]:
        """The features of the first positions of a text."""
        found = marks(ledger[:num_known])
        return [[mark] if self.lag else [tapped(mark, layer) for layer in self.taps] for mark in found]

    def _read(self, row: ContextRow, end: int) -> None:
        cache, begin = row.context.cache, row.context.cache.num_tokens
        if end > begin:
            where = cache.positions(begin, end)
            assert not cache._shared_blocks_to_write(), "there is no room of its own to write to"
            cache.pool.keys[0, 0, where] = row.context.part(begin, end)
            following = torch.tensor(row.ledger[begin + 1 : end + 1]) if self.lag else torch.zeros(end - begin)
            cache.pool.values[0, 0, where, 0] = following.to(torch.int64)
            cache.advance(end - begin)
        row.context.keep_from(end - self.lag)

    def _chain(self, text: tuple[int, ...], digest: int, num_drafts: int, sampling: SamplingParameters) -> DraftChain:
        """The first drafts do not depend on how many there are."""
        rng = Random(digest)
        tokens: list[int] = []
        ids: list[list[int]] = []
        laws: list[Any] = []
        for _ in range(num_drafts):
            so_far = (*text, *tokens)
            best = self.known.get((marks(so_far)[-1], sampling.seed))
            if best is None:
                best = int(np.nan_to_num(np.asarray(script(so_far))).argmax())
            if rng.random() < 0.15:
                best = rng.randrange(NUM_TOKENS)
            if not self.kind.is_drawn or sampling.temperature == 0.0:
                tokens.append(best)
                continue
            start = rng.randrange(1, 40)
            ids.append([best, *((best + step * start) % NUM_TOKENS for step in range(1, _NUM_CANDIDATES))])
            place, law = propose(_SCORES, sampling.temperature, sampling.seed, len(so_far))
            tokens.append(ids[-1][place])
            laws.append(law)
        return DraftChain(tuple(tokens), SparseProposals(np.array(ids), np.stack(laws)) if laws else None)
