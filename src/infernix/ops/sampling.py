"""The target distribution of `ops/reference.py` and a draw from it, without sorting the vocabulary.

Candidates stay in the order of their ids all the way. Top-k and top-p find their border with partial selection
(numpy's introselect), and the draw adds up blocks before it looks into one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops import masks
from infernix.ops.penalties import TokenCounts
from infernix.options import SamplingParameters

_BLOCK = 1024
_FIRST_NUCLEUS = 128
_NUCLEUS_GROWTH = 16


@dataclass(frozen=True, slots=True)
class TokenDomain:
    """The ids below `num_tokens`, of which `never_ids` are no candidates even where no constraint says so."""

    num_tokens: int
    never_ids: NDArray[np.intp]

    @classmethod
    def without(cls, never: NDArray[np.bool_]) -> TokenDomain:
        """The domain of all ids that are not marked in `never`, a boolean array of shape [num_tokens]."""
        return cls(never.size, np.flatnonzero(never))


@dataclass(frozen=True, slots=True)
class WeightedTokens:
    """A distribution that is not normalized: `weights[i]` belongs to `ids[i]`, or to id i where `ids` is None.

    Ids ascend; a token of weight 0 is never drawn. At least one weight is above 0. The highest of a target distribution
    is 1.
    """

    ids: NDArray[np.intp] | None
    weights: NDArray[np.float64]

    def draw(self, uniform: float) -> int:
        """The token in whose interval `uniform` (in [0, 1)) lies; intervals follow each other in the order of ids."""
        place = _inverse_transform(self.weights, uniform)
        return place if self.ids is None else int(self.ids[place])

    def support(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The ids that can be drawn, ascending, and their probabilities."""
        places = np.flatnonzero(self.weights)
        weights = self.weights[places]
        return places if self.ids is None else self.ids[places], weights / weights.sum()


def sample_token(
    logits: NDArray[np.float32],
    domain: TokenDomain,
    mask: NDArray[np.int32] | None,
    parameters: SamplingParameters,
    counts: TokenCounts,
    uniform: float,
) -> int:
    """The next token. At temperature 0 it is the best candidate, ties to the lowest id, and `uniform` is not used.

    logits   float32 [at least num_tokens]; what lies past num_tokens is never a candidate
    mask     a packed row of the legal tokens, or None: all of the domain

    A legal token with a logit of -inf cannot be chosen. Raises ConstraintDeadEnd if nothing is legal, and
    NonFiniteLogits if a legal logit is NaN or +inf, or if none is finite.
    """
    if parameters.temperature == 0.0:
        ids, z = _candidates(logits, domain, mask, parameters, counts)
        place = int(z.argmax())
        return place if ids is None else int(ids[place])
    return weigh_tokens(logits, domain, mask, parameters, counts).draw(uniform)


def weigh_tokens(
    logits: NDArray[np.float32],
    domain: TokenDomain,
    mask: NDArray[np.int32] | None,
    parameters: SamplingParameters,
    counts: TokenCounts,
) -> WeightedTokens:
    """The target distribution for a temperature above 0; arguments and errors as in `sample_token`."""
    ids, z = _candidates(logits, domain, mask, parameters, counts)
    if 0 < parameters.top_k < z.size:
        kept = _highest(z, parameters.top_k)
        ids, z = (kept if ids is None else ids[kept]), z[kept]
    weights = z - np.float64(z.max())
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to exp(-inf) = 0
        weights /= parameters.temperature
    np.exp(weights, out=weights)
    if parameters.top_p < 1.0:
        size = _nucleus_size(z, weights, parameters.top_p * float(weights.sum()))
        if size < z.size:
            kept = _highest(z, size)
            ids, weights = (kept if ids is None else ids[kept]), weights[kept]
    if parameters.min_p > 0.0:
        # Both cuts keep a beginning of the same order, so either may be made first.
        weights[weights < parameters.min_p] = 0.0
    return WeightedTokens(ids, weights)


def _candidates(
    logits: NDArray[np.float32],
    domain: TokenDomain,
    mask: NDArray[np.int32] | None,
    parameters: SamplingParameters,
    counts: TokenCounts,
) -> tuple[NDArray[np.intp] | None, NDArray[np.floating]]:
    """Ids (None: all of the domain) and penalized logits of the candidates, at least one of them finite."""
    z: NDArray[np.floating] = logits[
        : domain.num_tokens
    ]  # a view of the model's own array, which is not ours to change
    if (parameters.presence_penalty != 0.0 or parameters.frequency_penalty != 0.0) and counts.ids.size:
        z = z.astype(np.float64)
        z[counts.ids] -= parameters.presence_penalty + parameters.frequency_penalty * counts.counts
    ids: NDArray[np.intp] | None = None
    if mask is not None:
        ids = masks.legal_ids(mask, domain.num_tokens)
        if ids.size == 0:
            raise ConstraintDeadEnd("no token is legal")
        z = z[ids]
    if mask is None and domain.never_ids.size:
        z = z.copy() if np.shares_memory(z, logits) else z
        z[domain.never_ids] = -np.inf
    # One reduction sees it all: NaN and +inf win over every number, and -inf is left only where nothing is finite.
    if not np.isfinite(z.max()):
        raise NonFiniteLogits("no legal token has a finite logit, or one is not a number")
    return ids, z


def _highest(z: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Places of the `count` highest finite values, ascending; of equal values the first. 0 < count < z.size."""
    border = np.partition(z, z.size - count)[z.size - count]
    above = np.flatnonzero(z > border)
    if border == -np.inf:
        return above
    at_border = np.flatnonzero(z == border)[: count - above.size]
    return np.sort(np.concatenate([above, at_border]))


def _nucleus_size(z: NDArray[np.floating], weights: NDArray[np.float64], least_weight: float) -> int:
    """How many of the highest values it takes for their weights to reach `least_weight`; at least 1.

    Weights must not fall where z rises, so that sorting them alone gives the order of z.
    """
    size = _FIRST_NUCLEUS
    while size < z.size:
        # Values at the border may be cut by it, all above it are a beginning of the order.
        highest = weights[z > np.partition(z, z.size - size)[z.size - size]]
        if highest.sum() >= least_weight:
            break
        size *= _NUCLEUS_GROWTH
    else:
        highest = weights
    reached = np.cumsum(np.sort(highest)[::-1]) >= least_weight
    # The sums are rounded in different orders, so at a border none may seem to reach it: then all of them are meant.
    return int(reached.argmax()) + 1 if reached.any() else highest.size


def _inverse_transform(weights: NDArray[np.float64], uniform: float) -> int:
    """The first place whose cumulative weight exceeds `uniform` times the whole."""
    block_starts = np.arange(0, weights.size, _BLOCK)
    block_ends = np.cumsum(np.add.reduceat(weights, block_starts))
    target = uniform * block_ends[-1]
    block = min(int(np.searchsorted(block_ends, target, side="right")), block_starts.size - 1)
    start = int(block_starts[block])
    cumulative = np.cumsum(weights[start : start + _BLOCK])
    before = block_ends[block - 1] if block else 0.0
    place = int(np.searchsorted(cumulative, target - before, side="right"))
    if place < cumulative.size:
        return start + place
    # Sums rounded in another order left the target past the end of its block: the last place with a weight is meant.
    return int(np.flatnonzero(weights[: start + cumulative.size])[-1])
