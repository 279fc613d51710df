"""Greedy choices where the logits are: masks are applied there, and one number a place comes back.

It is what `ops/sampling.py` and `ops/acceptance.py` do at temperature 0 without penalties, in PyTorch's operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from infernix.errors import InternalError
from infernix.ops.acceptance import ChainMasks, RowFailure, RowOutput

NOT_FINITE = -1
"""In place of a token where no legal logit is finite, or one is NaN or +inf."""


def best_tokens(logits: torch.Tensor, num_tokens: int, words: torch.Tensor | None, never: torch.Tensor) -> torch.Tensor:
    """The best legal token of each of P places, ties to the lowest id, or NOT_FINITE; int64 [P], nothing awaited.

    logits  float32 [P, at least num_tokens]
    words   packed rows of the legal tokens, int32 [P, words a row], none of them empty; None: all but `never`
    never   bool [num_tokens]: no candidates even where no constraint says so
    """
    z = logits[:, :num_tokens]
    if words is None:
        z = z.masked_fill(never, -torch.inf)
    else:
        bits = torch.arange(32, dtype=torch.int32, device=words.device)
        legal = (words.unsqueeze(-1) >> bits & 1).view(len(words), -1)[:, :num_tokens].bool()
        z = z.masked_fill(~legal, -torch.inf)
    best = z.argmax(dim=-1)  # the first of equal ones; NaN is above all
    return torch.where(z.gather(1, best.unsqueeze(1)).squeeze(1).isfinite(), best, NOT_FINITE)


def greedy_output(
    best: Sequence[int], drafts: Sequence[int], masks: ChainMasks | None, end_ids: frozenset[int]
) -> RowOutput:
    """The output of a row over n drafts, given the best token of each of its n + 1 places.

    What stands past the end of the output does not matter. Failures and InternalError as `acceptance.verify` has them.
    """
    for place, token in enumerate(best):
        if masks is not None and masks.dead_positions >> place & 1:
            return RowOutput((), 0, RowFailure.DEAD_END)
        if masks is not None and place >= masks.num_ready:
            raise InternalError(f"place {place} was reached, but only {masks.num_ready} masks are ready")
        if token == NOT_FINITE:
            return RowOutput((), 0, RowFailure.NON_FINITE_LOGITS)
        if place == len(drafts) or token != drafts[place]:
            return RowOutput((*drafts[:place], token), place)
        if token in end_ids:
            return RowOutput(tuple(drafts[: place + 1]), place + 1)
    raise ValueError(f"{len(drafts)} drafts have a place more than {len(best)}")
