"""The definition of speculative sampling: what a round over a chain of drafts puts out, and how probably.

Draft i was drawn from the law q_i; p_i is the law that ordinary decoding would draw from in its place, given the drafts
before it. The rule is algorithm 1 of Y. Leviathan, M. Kalman, Y. Matias, Fast inference from transformers via
speculative decoding, ICML 2023: the token of each place has the law p_i, whatever q_i is. Every faster path is tested
against this page. A law maps tokens to probabilities (fractions do as well as floats); what is not in it has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from infernix.ops.random import Purpose
from infernix.ops.reference import target_distribution
from infernix.options import SamplingParameters

Law = Mapping[int, float]


def target_laws(
    logits: Sequence[NDArray[np.floating]],
    legal: Sequence[NDArray[np.bool_]],
    drafts: Sequence[int],
    parameters: SamplingParameters,
    counts: Mapping[int, int],
) -> Iterator[dict[int, float]]:
    """p_0 .. p_n for n drafts; place i sees the logits and the legal set after drafts[:i], and counts those drafts too.

    A place is looked at when its law is asked for and no sooner: only a round that gets there may fail there. Arguments
    and errors of each place as in `target_distribution`.
    """
    for place in range(len(drafts) + 1):
        seen = Counter(counts) + Counter(drafts[:place])
        target = target_distribution(logits[place], legal[place], parameters, seen)
        yield dict(zip(target.ids.tolist(), target.probabilities.tolist(), strict=True))


def acceptance(p: Law, q: Law, draft: int) -> float:
    """How probably a draft stays: min(1, p(draft) / q(draft)). An illegal one has p = 0."""
    return min(1, p.get(draft, 0) / q[draft])


def residual(p: Law, q: Law) -> dict[int, float]:
    """What the token in place of a refused draft is drawn from: max(p - q, 0), normalized."""
    excess = {token: probability - q.get(token, 0) for token, probability in p.items()}
    total = sum(value for value in excess.values() if value > 0)
    return {token: value / total for token, value in excess.items() if value > 0}


def round_law(
    targets: Iterable[Law], proposals: Sequence[Law], drafts: Sequence[int], end_ids: Collection[int]
) -> dict[tuple[int, ...], float]:
    """The probability of every output of a round with these drafts: a beginning of them, and one token more.

    That token is the correction of the draft that was refused, or the bonus if none was. An accepted draft that is one
    of `end_ids` is the last token of the output.
    """
    outputs: dict[tuple[int, ...], float] = {}
    reached: float = 1
    for place, p in enumerate(targets):
        kept = tuple(drafts[:place])
        if place == len(drafts):
            return outputs | {(*kept, token): reached * probability for token, probability in p.items()}
        q, draft = proposals[place], drafts[place]
        accepted = acceptance(p, q, draft)
        if accepted < 1:
            correction = residual(p, q).items()
            outputs |= {(*kept, token): reached * (1 - accepted) * probability for token, probability in correction}
        reached *= accepted
        if reached and draft in end_ids:
            outputs[*kept, draft] = reached
        if not reached or draft in end_ids:
            break
    return outputs


def verify(
    targets: Iterable[Law],
    proposals: Sequence[Law] | None,
    drafts: Sequence[int],
    end_ids: Collection[int],
    number: Callable[[int, Purpose], float],
) -> tuple[int, ...]:
    """One output, drawn from the law above. `number(i, purpose)` in [0, 1) is the uniform number of place i.

    Without `proposals` drafts were not drawn, each q_i is one-hot: a draft then stays if it is what ordinary decoding
    draws in its place. That has probability p_i(draft), and what comes in its place otherwise is p_i without it, so it
    is the same law; and the output is the text of ordinary decoding, number for number.
    """
    for place, p in enumerate(targets):
        kept = tuple(drafts[:place])
        if proposals is None:
            token = draw(p, number(place, Purpose.DECODE))
            if place == len(drafts) or token != drafts[place] or token in end_ids:
                return (*kept, token)
            continue
        if place == len(drafts):
            return (*kept, draw(p, number(place, Purpose.SPECULATIVE_BONUS)))
        q, draft = proposals[place], drafts[place]
        if number(place, Purpose.SPECULATIVE_ACCEPT) >= acceptance(p, q, draft):
            return (*kept, draw(residual(p, q), number(place, Purpose.SPECULATIVE_CORRECTION)))
        if draft in end_ids:
            return (*kept, draft)
    raise ValueError(f"{len(drafts)} drafts have a law fewer than {len(drafts) + 1}")


def draw(law: Law, number: float) -> int:
    """The token in whose interval `number` lies; intervals follow each other in the order of ids."""
    ids = sorted(law)
    borders = accumulate(law[token] for token in ids)
    return next((token for token, border in zip(ids, borders, strict=True) if number < border), ids[-1])
