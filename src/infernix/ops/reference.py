"""The definition of the target distribution, in float64. Every faster path is tested against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.options import SamplingParameters


@dataclass(frozen=True, slots=True)
class TokenDistribution:
    """Tokens with a probability above zero, ids ascending."""

    ids: NDArray[np.intp]
    probabilities: NDArray[np.float64]

    def draw(self, uniform: float) -> int:
        """The token in whose interval `uniform` (in [0, 1)) lies; intervals follow each other in the order of ids."""
        place = int(np.searchsorted(np.cumsum(self.probabilities), uniform, side="right"))
        return int(self.ids[min(place, self.ids.size - 1)])


def target_distribution(
    logits: NDArray[np.floating],
    legal: NDArray[np.bool_],
    parameters: SamplingParameters,
    counts: Mapping[int, int],
) -> TokenDistribution:
    """What the next token is drawn from: penalties, mask, top-k, temperature, min-p, top-p, normalization.

    logits   [at least num_tokens]; what lies past num_tokens is padding and never a candidate
    legal    [num_tokens], the tokens that may come next
    counts   how often each token was generated before

    A legal token with a logit of -inf cannot be chosen. Raises ConstraintDeadEnd if nothing is legal, and
    NonFiniteLogits if a legal logit is NaN or +inf, or if none is finite.
    """
    z = logits[: legal.size].astype(np.float64)
    for token, count in counts.items():
        z[token] -= parameters.presence_penalty + parameters.frequency_penalty * count
    ids = np.flatnonzero(legal)
    if ids.size == 0:
        raise ConstraintDeadEnd("no token is legal")
    if np.isnan(z[ids]).any() or not np.isfinite(z[ids].max()):
        raise NonFiniteLogits("no legal token has a finite logit, or one is not a number")
    ids = ids[np.isfinite(z[ids])]
    order = ids[np.argsort(-z[ids], kind="stable")]  # by z descending, then by id ascending
    if parameters.temperature == 0.0:
        return TokenDistribution(order[:1], np.ones(1))
    candidates = order[: parameters.top_k] if parameters.top_k else order
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to exp(-inf) = 0
        weights = np.exp((z[candidates] - z[candidates[0]]) / parameters.temperature)
    total = weights.sum()  # top-p is a share of all candidates, those that min-p drops included
    num_kept = int(np.count_nonzero(weights >= parameters.min_p * weights[0]))
    if parameters.top_p < 1.0:
        reached = np.cumsum(weights) >= parameters.top_p * total
        if reached.any():
            num_kept = min(num_kept, int(reached.argmax()) + 1)
    num_kept = min(num_kept, int(np.count_nonzero(weights)))
    by_id = np.argsort(candidates[:num_kept])
    kept = weights[:num_kept][by_id]
    return TokenDistribution(candidates[:num_kept][by_id], kept / kept.sum())
