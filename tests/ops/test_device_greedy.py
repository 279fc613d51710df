"""Greedy choices in PyTorch's operations against those of the host."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from infernix.errors import InternalError
from infernix.ops.acceptance import DraftedRow, RowFailure, RowOutput, verify
from infernix.ops.device_greedy import NOT_FINITE, best_tokens, greedy_output
from infernix.ops.penalties import TokenCounts
from infernix.ops.sampling import TokenDomain
from infernix.options import SamplingParameters
from support.drafted_rows import masks_of

GREEDY = SamplingParameters(temperature=0.0)


@pytest.mark.parametrize("seed", range(150))
def test_rows_come_to_what_the_host_chooses(seed: int) -> None:
    """Ties, numbers that are none, illegal and never-ids, dead places, ends, and logits wider than the vocabulary."""
    rng = np.random.default_rng(seed)
    num_tokens, num_drafts = int(rng.integers(2, 100)), int(rng.integers(0, 5))
    logits = rng.integers(-3, 4, (num_drafts + 1, num_tokens + 5)).astype(np.float32)
    logits[:, num_tokens:] = 99.0
    broken = rng.random(num_drafts + 1) < 0.15
    logits[broken, rng.integers(num_tokens)] = rng.choice([np.nan, np.inf])
    logits[rng.random(num_drafts + 1) < 0.05] = -np.inf
    never = rng.random(num_tokens) < 0.1
    never[0] = False
    legal = np.tile(~never, (num_drafts + 1, 1))
    is_constrained = rng.random() < 0.6
    if is_constrained:
        legal &= rng.random(legal.shape) < 0.5
        legal[rng.random(num_drafts + 1) < 0.1] = False
    scores = np.where(legal, np.nan_to_num(logits[:, :num_tokens], nan=0.0), -np.inf)
    drafts = tuple(int(row.argmax()) if rng.random() < 0.8 else int(rng.integers(num_tokens)) for row in scores[:-1])
    end_ids = frozenset(drafts[-1:] if rng.random() < 0.3 else ())
    num_ready, dead_positions = num_drafts + 1, 0
    for place, row in enumerate(legal):
        if not row.any():
            num_ready, dead_positions = place, 1 << place
            break
        if place < num_drafts and (not row[drafts[place]] or drafts[place] in end_ids):
            num_ready = place + 1
            break
    masks = masks_of(legal, num_ready, dead_positions) if is_constrained else None
    if masks is not None:
        masks.words[num_ready:] = 0
        masks.words[num_ready:, 0] = 1
    row = DraftedRow(logits, drafts, GREEDY, TokenCounts(), 0, masks, end_ids=end_ids)
    [expected] = verify([row], TokenDomain.without(never))
    words = None if masks is None else torch.from_numpy(masks.words)
    best = best_tokens(torch.from_numpy(logits), num_tokens, words, torch.from_numpy(never))
    assert greedy_output(best.tolist(), drafts, masks, end_ids) == expected


def test_of_equal_logits_the_first_legal_one_is_best() -> None:
    words = torch.tensor([[0b1010_0000, 0b1], [-(2**31), 0b11]], dtype=torch.int32)
    best = best_tokens(torch.zeros(2, 40), 40, words, torch.zeros(40, dtype=torch.bool))
    assert best.tolist() == [5, 31]


def test_illegal_logits_that_are_no_numbers_do_not_matter() -> None:
    logits = torch.full((2, 40), torch.nan)
    logits[:, 33] = 1.0
    words = torch.tensor([[0, 0b10], [0, 0b100]], dtype=torch.int32)
    best = best_tokens(logits, 40, words, torch.zeros(40, dtype=torch.bool))
    assert best.tolist() == [33, NOT_FINITE]


def test_masks_that_do_not_belong_to_the_drafts_are_a_defect() -> None:
    masks = masks_of(np.ones((3, 8), dtype=bool), num_ready=2)
    with pytest.raises(InternalError, match="place 2 was reached, but only 2 masks are ready"):
        greedy_output([2, 3, 4], (2, 3), masks, frozenset())
    assert greedy_output([2, 4, 4], (2, 3), masks, frozenset()) == RowOutput((2, 4), 1)
    assert greedy_output([NOT_FINITE], (), None, frozenset()).failure is RowFailure.NON_FINITE_LOGITS
    with pytest.raises(ValueError, match="2 drafts have a place more than 2"):
        greedy_output([2, 3], (2, 3), None, frozenset())
