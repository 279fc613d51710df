"""What drafts were drawn from, where a drafter draws them: sparse laws over a few candidates a place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.ops.random import Purpose, uniform

# A law that comes as float32, rounded term by term, is still one.
_MAX_SUM_ERROR = 1e-5


@dataclass(frozen=True, slots=True)
class SparseProposals:
    """The laws q that a chain of n drafts was drawn from, c candidates each.

    candidate_ids   [n, c], distinct within a place; ids that the target does not know are allowed
    probabilities   [n, c], as they were when the draft was drawn: never cut to a mask and normalized again

    Raises ValueError where that is not so. A candidate of probability 0 only fills its slot.
    """

    candidate_ids: NDArray[np.integer]
    probabilities: NDArray[np.floating]

    def __post_init__(self) -> None:
        ids, probabilities = self.candidate_ids, self.probabilities
        if ids.ndim != 2 or ids.shape != probabilities.shape:
            raise ValueError(f"candidates {ids.shape} and probabilities {probabilities.shape} are not both [n, c]")
        if ids.size and ids.min() < 0:
            raise ValueError(f"{ids.min()} is no token id")
        in_order = np.sort(ids, axis=1)
        if (in_order[:, 1:] == in_order[:, :-1]).any():
            raise ValueError("a candidate comes twice at one place")
        sums = probabilities.sum(axis=1, dtype=np.float64)
        # Comparisons with NaN are false, so these are stated as what must hold.
        if not ((probabilities >= 0.0).all() and (np.abs(sums - 1.0) <= _MAX_SUM_ERROR).all()):
            raise ValueError("the probabilities of a place are not those of a law")

    def __len__(self) -> int:
        return len(self.candidate_ids)

    def probability(self, place: int, token: int) -> float:
        """q of a token at a place; 0 if it is no candidate there."""
        return float(self.probabilities[place][self.candidate_ids[place] == token].sum(dtype=np.float64))


def propose(
    scores: NDArray[np.floating], temperature: float, seed: int, position: int
) -> tuple[int, NDArray[np.float64]]:
    """Draws one of the candidates by their scores [c] for the token at the logical `position` of a sequence.

    Returns its place in `scores` and the law it was drawn from, float64 [c]: softmax(scores / temperature). At
    temperature 0 it is the best candidate, ties to the first place, and the law is one-hot. Only temperature and seed
    shape a proposal: penalties, masks and cuts are the target's. Raises ValueError if no score is finite or one is NaN
    or +inf.
    """
    best = int(scores.argmax()) if scores.size else 0
    if not scores.size or not np.isfinite(scores[best]):
        raise ValueError("no candidate has a finite score, or one is not a number")
    if temperature == 0.0:
        one_hot = np.zeros(scores.size)
        one_hot[best] = 1.0
        return best, one_hot
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to exp(-inf) = 0
        weights = np.exp((scores.astype(np.float64) - np.float64(scores[best])) / temperature)
    probabilities = weights / weights.sum()
    borders = np.cumsum(probabilities)
    number = uniform(seed, position, Purpose.PROPOSAL) * borders[-1]
    return int(np.searchsorted(borders, number, side="right")), probabilities
