"""Speculative sampling on the laws of `ops/sampling.py`, many rows a call; the rule is `ops/speculative_reference.py`.

Drafts that were not drawn change no token: each place draws what ordinary decoding draws there, with the same number,
and a draft stays if it is that token. Drafts that were drawn are accepted or replaced with numbers of their own.

The places of a row are gone through one by one, and no further than its output goes: a place that is not reached costs
nothing, and nothing that stands in its logits or its mask can matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, InternalError, NonFiniteLogits
from infernix.ops.penalties import TokenCounts
from infernix.ops.proposals import SparseProposals
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, WeightedTokens, sample_token, weigh_tokens
from infernix.options import SamplingParameters


class RowFailure(StrEnum):
    """Why a row has no output although it was verified."""

    DEAD_END = "dead_end"
    NON_FINITE_LOGITS = "non_finite_logits"


@dataclass(frozen=True, slots=True)
class ChainMasks:
    """The legal sets along a chain of n drafts, as looking ahead over it left them.

    words            packed rows, int32 [n + 1, words a row]; row i is for the token after drafts[:i]
    num_ready        how many rows from the first on are masks; those after them are never read
    dead_positions   bit i: place i can be reached, and no token is legal there
    """

    words: NDArray[np.int32]
    num_ready: int
    dead_positions: int = 0

    @property
    def is_dead(self) -> bool:
        """Whether nothing is legal at the very first place."""
        return bool(self.dead_positions & 1)


@dataclass(frozen=True, slots=True)
class DraftedRow:
    """One sequence's drafts and what the target says to them. n, the number of drafts, may be 0 and differs by row.

    logits      float32 [n + 1, at least num_tokens]; row i is what the model says after drafts[:i]
    position    the logical position of the first token that the row puts out: the number of committed tokens
    counts      the committed generated tokens; drafts are counted on top of them, here and nowhere else
    masks       None: no constraint
    proposals   what the drafts were drawn from; None: they were not drawn (q is one-hot)
    end_ids     tokens that end the output
    """

    logits: NDArray[np.float32]
    drafts: Sequence[int]
    parameters: SamplingParameters
    counts: TokenCounts
    position: int
    masks: ChainMasks | None = None
    proposals: SparseProposals | None = None
    end_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        num_places = len(self.drafts) + 1
        if len(self.logits) != num_places:
            raise ValueError(f"{len(self.drafts)} drafts have {num_places} rows of logits, not {len(self.logits)}")
        if any(draft < 0 for draft in self.drafts):
            raise ValueError(f"{min(self.drafts)} is no token id")
        if self.masks is not None and len(self.masks.words) != num_places:
            raise ValueError(f"{len(self.drafts)} drafts have {num_places} masks, not {len(self.masks.words)}")
        if self.proposals is not None:
            if len(self.proposals) != len(self.drafts):
                raise ValueError(f"{len(self.drafts)} drafts were not drawn from {len(self.proposals)} laws")
            for place, draft in enumerate(self.drafts):
                if self.proposals.probability(place, draft) == 0.0:
                    raise ValueError(f"draft {place} ({draft}) was not drawn from its law, where it has probability 0")


@dataclass(frozen=True, slots=True)
class RowOutput:
    """What a row puts out: at least one token, the first `num_accepted` of them drafts; or a failure and none."""

    tokens: tuple[int, ...]
    num_accepted: int
    failure: RowFailure | None = None


class Choices(Protocol):
    """Where chance comes in. `position` is the logical position of the token in question."""

    def accept(self, probability: float, position: int) -> bool:
        """Whether a draft that stays with this probability stays."""
        ...

    def draw(self, law: WeightedTokens, position: int, purpose: Purpose) -> int:
        """A token of the law: an ordinary one, a correction or a bonus."""
        ...


@dataclass(frozen=True, slots=True)
class SeededChoices:
    """Choices that are pure functions of the seed, the position and the purpose."""

    seed: int

    def accept(self, probability: float, position: int) -> bool:
        return uniform(self.seed, position, Purpose.SPECULATIVE_ACCEPT) < probability

    def draw(self, law: WeightedTokens, position: int, purpose: Purpose) -> int:
        return law.draw(uniform(self.seed, position, purpose))


class DraftTest:
    """A draft that was drawn against p, the target law of its place. It takes the weights of p over and may change
    them.
    """

    def __init__(self, target: WeightedTokens, draft: int, proposals: SparseProposals, place: int) -> None:
        self._target = target
        self._total = float(target.weights.sum())
        tokens, q = proposals.candidate_ids[place], proposals.probabilities[place].astype(np.float64)
        places, known = _places_of(target, tokens)
        self._places, self._q = places[known], q[known]
        is_draft = tokens[known] == draft
        p_draft = float(target.weights[self._places[is_draft]].sum()) / self._total
        self.acceptance = min(1.0, p_draft / float(q[tokens == draft].sum()))
        """How probably the draft stays, min(1, p / q): 0 for an illegal one."""

    def residual(self) -> WeightedTokens:
        """max(p - q, 0), what the correction of the refused draft is drawn from."""
        weights = self._target.weights
        before = weights[self._places]
        weights[self._places] = np.maximum(before - self._total * self._q, 0.0)
        if not weights.any():
            # p = q but for rounding: a refusal had no probability then, and p is a law to draw from all the same.
            weights[self._places] = before
        return self._target


def verify(rows: Sequence[DraftedRow], domain: TokenDomain) -> list[RowOutput]:
    """The outputs of the rows, each for itself: rows may differ in length, parameters, proposals and constraint.

    A row fails where its output reaches a dead place or one without a finite legal logit. Raises InternalError if an
    output reaches a place whose mask is neither ready nor dead: the masks do not belong to the drafts then.
    """
    return [verify_row(row, domain, SeededChoices(row.parameters.seed)) for row in rows]


def verify_row(row: DraftedRow, domain: TokenDomain, choices: Choices) -> RowOutput:
    """The output of one row; errors as in `verify`."""
    try:
        tokens, num_accepted = _verified(row, domain, choices)
    except ConstraintDeadEnd:
        return RowOutput((), 0, RowFailure.DEAD_END)
    except NonFiniteLogits:
        return RowOutput((), 0, RowFailure.NON_FINITE_LOGITS)
    return RowOutput(tokens, num_accepted)


def _verified(row: DraftedRow, domain: TokenDomain, choices: Choices) -> tuple[tuple[int, ...], int]:
    """The tokens of the output, and how many of them are drafts."""
    parameters, counts = row.parameters, row.counts
    are_counted = parameters.presence_penalty != 0.0 or parameters.frequency_penalty != 0.0
    if are_counted:
        counts = counts.copy()
    place = 0
    while True:
        kept, draft = tuple(row.drafts[:place]), row.drafts[place] if place < len(row.drafts) else None
        logits, mask = row.logits[place], _mask_of(row.masks, place)
        if parameters.temperature == 0.0:
            token = sample_token(logits, domain, mask, parameters, counts, uniform=0.0)
            if token != draft:
                return (*kept, token), place
        elif row.proposals is None:
            target, position = weigh_tokens(logits, domain, mask, parameters, counts), row.position + place
            token = choices.draw(target, position, Purpose.DECODE)
            if token != draft:
                return (*kept, token), place
        else:
            target, position = weigh_tokens(logits, domain, mask, parameters, counts), row.position + place
            if draft is None:
                return (*kept, choices.draw(target, position, Purpose.SPECULATIVE_BONUS)), place
            test = DraftTest(target, draft, row.proposals, place)
            if not choices.accept(test.acceptance, position):
                return (*kept, choices.draw(test.residual(), position, Purpose.SPECULATIVE_CORRECTION)), place
        if draft in row.end_ids:
            return (*kept, draft), place + 1
        if are_counted:
            counts.add(draft)
        place += 1


def _mask_of(masks: ChainMasks | None, place: int) -> NDArray[np.int32] | None:
    """The mask of a place that the output reaches; None: no constraint."""
    if masks is None:
        return None
    if masks.dead_positions >> place & 1:
        raise ConstraintDeadEnd("no token is legal")
    if place >= masks.num_ready:
        raise InternalError(f"place {place} was reached, but only {masks.num_ready} masks are ready")
    words: NDArray[np.int32] = masks.words[place]
    return words


def _places_of(law: WeightedTokens, tokens: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where the tokens stand in the law, and which of them do: the places of the others mean nothing."""
    if law.ids is None:
        return tokens.astype(np.intp), tokens < law.weights.size
    places = np.minimum(np.searchsorted(law.ids, tokens), law.ids.size - 1)
    return places, law.ids[places] == tokens
