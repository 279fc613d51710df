"""What drafts come to: single places and short rows, with outcomes worked out by hand."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from infernix.errors import InternalError
from infernix.ops.acceptance import ChainMasks, DraftedRow, DraftTest, RowFailure, RowOutput, verify, verify_row
from infernix.ops.penalties import TokenCounts
from infernix.ops.proposals import SparseProposals
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import TokenDomain, WeightedTokens, sample_token, weigh_tokens
from infernix.ops.speculative_reference import acceptance, residual
from infernix.options import SamplingParameters
from support.drafted_rows import all_of, counted, masks_of
from support.mask_words import mask_words

A, B, X = range(3)
END = 5


def one_hot(num_tokens: int, *best: int) -> NDArray[np.float32]:
    """Logits [len(best), num_tokens] whose best tokens are these."""
    return np.stack([np.where(np.arange(num_tokens) == token, 9.0, 0.0) for token in best]).astype(np.float32)


GREEDY = SamplingParameters(temperature=0.0)


def greedy_row(*best: int, drafts: tuple[int, ...], **others: Any) -> DraftedRow:
    others = {"parameters": GREEDY, "counts": TokenCounts(), "position": 10, **others}
    return DraftedRow(logits=one_hot(8, *best), drafts=drafts, **others)


class Recorded:
    """Fixed answers, and what was asked."""

    def __init__(self, *accepted: bool, token: int = 0) -> None:
        self.answers = list(accepted)
        self.token = token
        self.probabilities: list[float] = []
        self.positions: list[tuple[int, Purpose]] = []
        self.law: dict[int, float] = {}

    def accept(self, probability: float, position: int) -> bool:
        self.probabilities.append(probability)
        self.positions.append((position, Purpose.SPECULATIVE_ACCEPT))
        return self.answers.pop(0)

    def draw(self, law: WeightedTokens, position: int, purpose: Purpose) -> int:
        ids, probabilities = law.support()
        self.law = dict(zip(ids.tolist(), probabilities.tolist(), strict=True))
        self.positions.append((position, purpose))
        return self.token


# What drafts of a row come to


def test_an_illegal_proposal_is_refused_where_it_stands() -> None:
    """One half a and one half b are legal; q proposes a or the illegal x. The correction of x can only be b."""
    legal = np.array([[True, True, False], [True, True, True]])
    proposals = SparseProposals(np.array([[A, X]]), np.array([[0.5, 0.5]]))
    outputs: Counter[int] = Counter()
    for draft in (A, X):
        row = DraftedRow(
            np.zeros((2, 3), np.float32), [draft], SamplingParameters(), TokenCounts(), 0, masks_of(legal), proposals
        )
        choices = Recorded(draft == A)
        verify_row(row, all_of(3), choices)
        assert choices.probabilities == [1.0 if draft == A else 0.0]
        if draft == X:
            assert choices.law == {B: 1.0}
            outputs[B] += 1
        else:
            outputs[A] += 1
    assert outputs == {A: 1, B: 1}, "one half each, never three quarters and one"


@pytest.mark.parametrize("constrained", [False, True])
def test_greedy_keeps_the_drafts_that_are_best(constrained: bool) -> None:
    masks = masks_of(np.ones((3, 8), dtype=bool)) if constrained else None
    rows = [greedy_row(2, 3, 4, drafts=drafts, masks=masks) for drafts in [(2, 3), (2, 0), (0, 3), (7, 7)]]
    assert verify(rows, all_of(8)) == [
        RowOutput((2, 3, 4), 2),
        RowOutput((2, 3), 1),
        RowOutput((2,), 0),
        RowOutput((2,), 0),
    ]


def test_a_row_without_drafts_is_ordinary_decoding() -> None:
    assert verify([greedy_row(6, drafts=())], all_of(8)) == [RowOutput((6,), 0)]
    row = DraftedRow(np.zeros((1, 8), np.float32), (), SamplingParameters(seed=3), TokenCounts(), 40)
    expected = sample_token(row.logits[0], all_of(8), None, row.parameters, row.counts, uniform(3, 40, Purpose.DECODE))
    assert verify([row], all_of(8)) == [RowOutput((expected,), 0)]


def test_the_draft_past_an_accepted_end_is_no_output() -> None:
    """The target agrees with all four drafts; places after the end have neither logits nor masks."""
    legal = np.zeros((5, 8), dtype=bool)
    legal[0, 2] = legal[1, END] = legal[2:, 0] = True
    logits = one_hot(8, 2, END, 0, 0, 0)
    logits[2:] = np.nan
    for masks in (masks_of(legal, num_ready=2), None):
        row = DraftedRow(logits, (2, END, 3, 4), GREEDY, TokenCounts(), 0, masks, end_ids=frozenset([END]))
        warm = replace(row, parameters=SamplingParameters(temperature=0.01))
        assert verify([row, warm], all_of(8)) == [RowOutput((2, END), 2)] * 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("draft", [X, 7, 100])
def test_drafts_that_the_target_cannot_say_are_refused(draft: int, temperature: float) -> None:
    """An illegal one, a token that free text never has, and an id past the vocabulary."""
    never = np.zeros(8, dtype=bool)
    never[[X, 7]] = True
    logits = np.stack([np.where(never, 9.0, 0.0)] * 2).astype(np.float32)
    logits[1] = np.nan
    row = DraftedRow(logits, (draft,), SamplingParameters(temperature=temperature, seed=5), TokenCounts(), 0)
    constrained = replace(row, masks=masks_of(np.stack([~never, ~never]), num_ready=1))
    for output in verify([row, constrained], TokenDomain.without(never)):
        assert output.failure is None
        assert output.num_accepted == 0
        assert not never[list(output.tokens)].any()


def test_penalties_count_drafts_before_the_place_and_leave_the_committed_counts_alone() -> None:
    parameters = replace(GREEDY, presence_penalty=1.5, frequency_penalty=1.0)
    logits = np.tile(np.array([4.0, 3.0, 0.0], np.float32), (3, 1))
    counts = counted(2)
    row = DraftedRow(logits, (0, 1), parameters, counts, 1)
    assert verify([row], all_of(3)) == [RowOutput((0, 1, 0), 2)], "4 falls to 1.5 after one draft of 0, 3 to 0.5"
    assert verify([replace(row, parameters=GREEDY)], all_of(3)) == [RowOutput((0, 0), 1)]
    assert counts.ids.tolist() == [2]
    assert counts.counts.tolist() == [1]


@pytest.mark.parametrize("parameters", [GREEDY, SamplingParameters(temperature=0.01)])
def test_a_dead_place_fails_the_row_that_reaches_it_and_no_other(parameters: SamplingParameters) -> None:
    legal = np.ones((3, 8), dtype=bool)
    masks = masks_of(legal, num_ready=1, dead_positions=0b10)
    reaches = greedy_row(2, 3, 4, drafts=(2, 3), masks=masks, parameters=parameters)
    refuses = greedy_row(2, 3, 4, drafts=(6, 3), masks=masks, parameters=parameters)
    free = greedy_row(2, 3, 4, drafts=(2, 3), parameters=parameters)
    assert verify([reaches, refuses, free], all_of(8)) == [
        RowOutput((), 0, RowFailure.DEAD_END),
        RowOutput((2,), 0),
        RowOutput((2, 3, 4), 2),
    ]
    dead_at_once = replace(reaches, masks=masks_of(legal, num_ready=0, dead_positions=1))
    assert verify([dead_at_once], all_of(8)) == [RowOutput((), 0, RowFailure.DEAD_END)]


@pytest.mark.parametrize("parameters", [GREEDY, SamplingParameters(temperature=0.01)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_logits_fail_the_row_that_reaches_them_and_no_other(parameters: SamplingParameters, bad: float) -> None:
    rows = []
    for drafts in [(2, 3), (6, 3)]:
        logits = one_hot(8, 2, 3, 4)
        logits[1] = bad
        rows.append(DraftedRow(logits, drafts, parameters, TokenCounts(), 0))
    rows.append(greedy_row(2, 3, 4, drafts=(2, 3), parameters=parameters))
    assert verify(rows, all_of(8)) == [
        RowOutput((), 0, RowFailure.NON_FINITE_LOGITS),
        RowOutput((2,), 0),
        RowOutput((2, 3, 4), 2),
    ]


def test_a_dead_place_with_broken_logits_is_a_dead_end() -> None:
    row = greedy_row(2, drafts=(), masks=ChainMasks(np.ones((1, 1), np.int32), 0, dead_positions=1))
    row.logits[:] = np.nan
    assert verify([row], all_of(8))[0].failure is RowFailure.DEAD_END


def test_masks_that_do_not_belong_to_the_drafts_are_a_defect() -> None:
    masks = masks_of(np.ones((3, 8), dtype=bool), num_ready=2)
    with pytest.raises(InternalError, match="place 2 was reached, but only 2 masks are ready"):
        verify([greedy_row(2, 3, 4, drafts=(2, 3), masks=masks)], all_of(8))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"logits": np.zeros((2, 8), np.float32)}, "3 rows of logits, not 2"),
        ({"drafts": (2, -1)}, "-1 is no token id"),
        ({"masks": masks_of(np.ones((2, 8), dtype=bool))}, "3 masks, not 2"),
        ({"proposals": SparseProposals(np.array([[2]]), np.array([[1.0]]))}, "not drawn from 1 laws"),
        ({"proposals": SparseProposals(np.array([[2], [4]]), np.ones((2, 1)))}, r"draft 1 \(3\) was not drawn"),
    ],
)
def test_rows_whose_parts_do_not_fit_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(greedy_row(2, 3, 4, drafts=(2, 3)), **changed)


# One draft


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_acceptance_and_residual_are_those_of_the_definition(seed: int, constrained: bool) -> None:
    rng = np.random.default_rng(seed)
    num_tokens = int(rng.integers(2, 40))
    legal = rng.random(num_tokens) < 0.5
    legal[rng.integers(num_tokens)] = True
    logits = rng.normal(0, 2, num_tokens).astype(np.float32)
    mask = mask_words(np.flatnonzero(legal).tolist(), num_tokens) if constrained else None
    parameters = SamplingParameters(top_k=int(rng.choice([0, 3])), top_p=float(rng.choice([0.8, 1.0])))

    def target() -> WeightedTokens:
        return weigh_tokens(logits, all_of(num_tokens), mask, parameters, TokenCounts())

    ids, probabilities = target().support()
    p = dict(zip(ids.tolist(), probabilities.tolist(), strict=True))
    candidates = rng.permutation(num_tokens + 3)[: min(16, num_tokens)]
    q = rng.dirichlet(np.full(candidates.size, 0.3))
    sparse = SparseProposals(candidates[None], q[None].astype(rng.choice([np.float32, np.float64])))
    for draft in candidates[q > 1e-30].tolist():
        one_hot = SparseProposals(np.array([[draft]]), np.ones((1, 1)))
        for proposals in (one_hot, sparse):
            laws = proposals.candidate_ids[0].tolist(), proposals.probabilities[0].tolist()
            q_law = dict(zip(*laws, strict=True))
            test = DraftTest(target(), draft, proposals, 0)
            assert test.acceptance == pytest.approx(acceptance(p, q_law, draft), abs=1e-14)
            if test.acceptance < 1.0:
                ids, probabilities = test.residual().support()
                expected = residual(p, q_law)
                assert set(ids.tolist()) == set(expected)
                assert probabilities == pytest.approx([expected[token] for token in ids.tolist()], abs=1e-12)


def test_candidates_of_no_probability_only_fill_their_slots() -> None:
    logits = np.zeros((2, 20), np.float32)
    filled = SparseProposals(np.arange(16)[None], np.eye(16)[3:4])
    row = DraftedRow(logits, (3,), SamplingParameters(), TokenCounts(), 0)
    laws = []
    for proposals in (SparseProposals(np.array([[3]]), np.ones((1, 1))), filled):
        choices = Recorded(False)
        verify_row(replace(row, proposals=proposals), all_of(20), choices)
        laws.append((choices.probabilities, choices.law))
    assert laws[0] == laws[1]
    assert laws[0][0] == [pytest.approx(1 / 20, abs=1e-15)]


@pytest.mark.parametrize("seed", range(200))
def test_q_equal_to_p_leaves_something_to_draw_from(seed: int) -> None:
    """max(p - q, 0) is nothing or a rounding error then: a refusal is improbable beyond notice, but must not fail."""
    logits = np.random.default_rng(seed).normal(0, 1, 6).astype(np.float32)
    target = weigh_tokens(logits, all_of(6), None, SamplingParameters(), TokenCounts())
    ids, q = target.support()
    test = DraftTest(target, 2, SparseProposals(ids[None], q[None]), 0)
    assert test.acceptance == pytest.approx(1.0, abs=1e-14)
    assert test.residual().draw(1 - 2**-53) in range(6)


def test_an_illegal_draft_is_no_correction_even_if_rounding_leaves_no_residual() -> None:
    """q proposes the illegal x so rarely that the rest of q rounds to p."""
    target = WeightedTokens(np.array([A, B]), np.array([1.0, 1.0]))
    proposals = SparseProposals(np.array([[A, B, X]]), np.array([[0.5, 0.5, 1e-30]]))
    test = DraftTest(target, X, proposals, 0)
    assert test.acceptance == 0.0
    assert {test.residual().draw(number) for number in (0.0, 0.4, 0.6, 1 - 2**-53)} == {A, B}


def test_an_improbable_draft_of_a_tiny_q_stays() -> None:
    target = WeightedTokens(None, np.array([1.0, 1.0]))
    proposals = SparseProposals(np.array([[0, 1]]), np.array([[5e-324, 1.0]]))
    assert DraftTest(target, 0, proposals, 0).acceptance == 1.0


def test_rows_may_be_views_of_a_models_batch() -> None:
    """Logits of a tensor [rows, places, tokens] are read where they are."""
    batch = torch.randn(3, 4, 50, generator=torch.Generator().manual_seed(1))
    rows = [
        DraftedRow(batch[place, : extent + 1].numpy(), (1,) * extent, SamplingParameters(seed=9), TokenCounts(), 5)
        for place, extent in enumerate((3, 0, 2))
    ]
    assert all(np.shares_memory(row.logits, batch.numpy()) for row in rows)
    copies = [replace(row, logits=row.logits.copy()) for row in rows]
    assert verify(rows, all_of(50)) == verify(copies, all_of(50))


@pytest.mark.parametrize("parameters", [GREEDY, SamplingParameters(temperature=0.01)])
def test_no_copy_of_all_rows_is_made(parameters: SamplingParameters) -> None:
    """Weights of one place at a time, in float64, and one array more while they are made."""
    num_tokens, num_places, num_rows = 100_000, 8, 4
    logits = one_hot(num_tokens, *range(num_places))
    row = DraftedRow(logits, tuple(range(num_places - 1)), parameters, TokenCounts(), 0)
    tracemalloc.start()
    try:
        outputs = verify([row] * num_rows, all_of(num_tokens))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [output.num_accepted for output in outputs] == [num_places - 1] * num_rows
    assert peak < 3 * 8 * num_tokens
