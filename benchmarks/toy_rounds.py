"""A model, a language and drafters so small that everything they can do can be counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.acceptance import ChainMasks, DraftedRow
from infernix.ops.penalties import TokenCounts
from infernix.ops.proposals import SparseProposals, propose
from infernix.ops.reference import target_distribution
from infernix.ops.sampling import TokenDomain
from infernix.options import SamplingParameters

Tokens = tuple[int, ...]

EOS = 1
NUM_PADDING = 2
"""Logits past the vocabulary, as padded models have them: drafters may propose such ids."""
_NUM_OPINIONS = 5


@dataclass(frozen=True)
class ToyModel:
    """Logits and legal sets that are pure functions of the tokens so far, drawn from `seed`.

    The last id is one that free text never has. Where `has_failures`, some texts have a NaN among their legal logits,
    and some constrained ones are dead ends.
    """

    seed: int
    num_tokens: int
    parameters: SamplingParameters
    is_constrained: bool = False
    has_failures: bool = False
    _known: dict[Tokens, tuple[NDArray[np.float32], NDArray[np.bool_]]] = field(default_factory=dict, repr=False)
    _known_chains: dict[tuple[Tokens, Tokens], tuple[NDArray[np.float32], ChainMasks | None]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def domain(self) -> TokenDomain:
        return TokenDomain(self.num_tokens, np.array([self.num_tokens - 1]))

    def at(self, text: Tokens) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Logits [num_tokens + NUM_PADDING] and legal set [num_tokens] after a text that has not ended."""
        if EOS in text:
            raise AssertionError("nothing comes after the end")
        if text not in self._known:
            self._known[text] = self._made(text)
        return self._known[text]

    def _made(self, text: Tokens) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        rng = np.random.default_rng([self.seed, len(text), *text])
        logits = rng.normal(0.0, 1.5, self.num_tokens + NUM_PADDING).astype(np.float32)
        logits[self.num_tokens :] = 9.0
        logits[EOS] -= 1.0
        legal = np.arange(self.num_tokens) < self.num_tokens - 1
        if self.is_constrained:
            legal &= rng.random(self.num_tokens) < 0.6
            legal[rng.integers(self.num_tokens - 1)] = True
            if self.has_failures and text and rng.random() < 0.15:
                legal[:] = False
        if self.has_failures and text and rng.random() < 0.15:
            logits[np.flatnonzero(legal)[:1]] = np.nan
        return logits, legal

    def target(self, text: Tokens) -> dict[int, float]:
        """What ordinary decoding draws from after a text. Raises what `target_distribution` raises."""
        logits, legal = self.at(text)
        target = target_distribution(logits, legal, self.parameters, Counter(text))
        return dict(zip(target.ids.tolist(), target.probabilities.tolist(), strict=True))

    def row(
        self, text: Tokens, drafts: Tokens, proposals: SparseProposals | None = None, *, position: int = 0
    ) -> DraftedRow:
        """What a round over these drafts is verified with, where the text begins at `position`."""
        if (text, drafts) not in self._known_chains:
            self._known_chains[text, drafts] = self._chain(text, drafts)
        logits, masks = self._known_chains[text, drafts]
        return DraftedRow(
            logits=logits,
            drafts=drafts,
            parameters=self.parameters,
            counts=counted(text),
            position=position + len(text),
            masks=masks,
            proposals=proposals,
            end_ids=frozenset([EOS]),
        )

    def _chain(self, text: Tokens, drafts: Tokens) -> tuple[NDArray[np.float32], ChainMasks | None]:
        """Logits and masks along the drafts. Places that a round cannot reach hold NaN and a filler."""
        logits = np.full((len(drafts) + 1, self.num_tokens + NUM_PADDING), np.nan, dtype=np.float32)
        words = np.ones((len(drafts) + 1, 1), dtype=np.int32)  # toy vocabularies fit into one word
        num_ready, dead_positions = 0, 0
        for place in range(len(drafts) + 1):
            logits[place], legal = self.at((*text, *drafts[:place]))
            legal_ids = np.flatnonzero(legal).tolist()
            if not legal_ids:
                dead_positions = 1 << place
                break
            words[place, 0] = sum(1 << token for token in legal_ids)
            num_ready += 1
            if place < len(drafts) and (drafts[place] == EOS or drafts[place] not in legal_ids):
                break
        return logits, ChainMasks(words, num_ready, dead_positions) if self.is_constrained else None


def counted(tokens: Sequence[int]) -> TokenCounts:
    """The counts of these tokens."""
    counts = TokenCounts()
    for token in tokens:
        counts.add(token)
    return counts


@dataclass(frozen=True)
class Chain:
    """Drafts, what they were drawn from (None: q is one-hot), and how probably the drafter proposes them."""

    drafts: Tokens
    proposals: SparseProposals | None = None
    probability: float = 1.0


@dataclass(frozen=True)
class OneHotDrafter:
    """Proposes without chance, as MTP, DFlash and n-gram copies do: right, wrong, illegal and past the end.

    `skill` is the share of places where it knows the likeliest token.
    """

    model: ToyModel
    num_drafts: int
    skill: float = 0.5
    _known: dict[tuple[int, Tokens, int], Chain] = field(default_factory=dict, repr=False)

    def chains(self, text: Tokens, num_drafts: int) -> Iterator[Chain]:
        """All chains it may propose after a text: the one it does propose."""
        yield self.drawn(text, num_drafts, seed=0, position=0)

    def drawn(self, text: Tokens, num_drafts: int, seed: int, position: int) -> Chain:
        """The chain it proposes. The seed says which of a few opinions it has; none knows the numbers of that seed."""
        opinion = seed % _NUM_OPINIONS
        if (opinion, text, num_drafts) not in self._known:
            drafts: Tokens = ()
            while len(drafts) < num_drafts:
                drafts += (self._next(opinion, (*text, *drafts)),)
            self._known[opinion, text, num_drafts] = Chain(drafts)
        return self._known[opinion, text, num_drafts]

    def _next(self, opinion: int, text: Tokens) -> int:
        rng = np.random.default_rng([self.model.seed, 1, opinion, len(text), *text])
        kind = rng.random()
        best = _best(self.model, text)
        if kind < self.skill and best is not None:
            return best
        return EOS if kind < self.skill + 0.1 else int(rng.integers(self.model.num_tokens + NUM_PADDING))


@dataclass(frozen=True)
class SparseDrafter:
    """Draws each draft from a few candidates by scores of its own, as DFlash2 does.

    The scores look at the token before. Some laws are close to the target's (a share of `skill`), some have candidates
    that are never drawn, and candidates may be illegal, past the end, or ids that the target does not have.
    """

    model: ToyModel
    num_drafts: int
    num_candidates: int
    skill: float = 0.4
    _known: dict[Tokens, tuple[NDArray[np.intp], NDArray[np.floating]]] = field(default_factory=dict, repr=False)

    def chains(self, text: Tokens, num_drafts: int) -> Iterator[Chain]:
        """All chains it may propose after a text."""
        stack = [((), (), 1.0)] if num_drafts else []
        if not stack:
            yield Chain(())
        while stack:
            drafts, laws, probability = stack.pop()
            ids, scores = self._candidates((*text, *drafts))
            _, q = propose(scores, self.model.parameters.temperature, seed=0, position=0)
            for token, q_token in zip(ids.tolist(), q.tolist(), strict=True):
                longer = ((*drafts, token), (*laws, (ids, q)), probability * q_token)
                if q_token > 0.0 and len(longer[0]) < num_drafts:
                    stack.append(longer)
                elif q_token > 0.0:
                    yield Chain(longer[0], _proposals(longer[1]), longer[2])

    def drawn(self, text: Tokens, num_drafts: int, seed: int, position: int) -> Chain:
        """A chain as it is drawn with these numbers; the first draft is for the token at `position`."""
        drafts: Tokens = ()
        laws: tuple[tuple[NDArray[np.intp], NDArray[np.float64]], ...] = ()
        while len(drafts) < num_drafts:
            ids, scores = self._candidates((*text, *drafts))
            chosen, q = propose(scores, self.model.parameters.temperature, seed, position + len(drafts))
            drafts, laws = (*drafts, int(ids[chosen])), (*laws, (ids, q))
        return Chain(drafts, _proposals(laws) if drafts else None)

    def _candidates(self, text: Tokens) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        if text not in self._known:
            self._known[text] = self._made(text)
        return self._known[text]

    def _made(self, text: Tokens) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
        rng = np.random.default_rng([self.model.seed, 2, len(text), *text])
        ids = rng.permutation(self.model.num_tokens + NUM_PADDING)[: self.num_candidates]
        scores = rng.normal(0.0, 1.5, ids.size)
        if EOS not in text and rng.random() < self.skill:
            logits = self.model.at(text)[0][ids] + rng.choice([0.0, 0.3]) * scores
            # What the model says of padding would drown everything else.
            scores = np.where((ids < self.model.num_tokens) & np.isfinite(logits), logits, scores)
        if rng.random() < 0.3:
            scores[1:] = -np.inf if rng.random() < 0.5 else scores[1:] - 3.0
        return ids, scores


Drafter = OneHotDrafter | SparseDrafter


def _proposals(laws: Sequence[tuple[NDArray[np.intp], NDArray[np.float64]]]) -> SparseProposals:
    return SparseProposals(np.stack([ids for ids, _ in laws]), np.stack([q for _, q in laws]))


def _best(model: ToyModel, text: Tokens) -> int | None:
    """The target's likeliest token, if there is one."""
    if EOS in text or not all(token < model.num_tokens for token in text):
        return None
    try:
        target = model.target(text)
    except (ConstraintDeadEnd, NonFiniteLogits):
        return None
    return max(target, key=lambda token: target[token])
