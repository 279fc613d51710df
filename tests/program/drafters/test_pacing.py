"""How long chains become: by what came of the request's own drafts, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from infernix.program.drafters.chain import NO_DRAFTS, DraftChain, DraftSource
from infernix.program.drafters.pacing import DraftPace, DraftPacing

MANY = 63


def extent_after(outcomes: Sequence[bool]) -> int:
    """The longest chain after so many judged drafts, worked out in one sum."""
    num_judged = sum(0.95**age for age in range(len(outcomes)))
    num_right = sum(0.95**age for age, right in enumerate(reversed(outcomes)) if right)
    chance = (0.8 + num_right) / (1 + num_judged)
    return next(length for length in range(MANY + 1) if length == MANY or chance ** (length + 1) < 0.1)


def paced(outcomes: Sequence[bool]) -> DraftPace:
    """A pace that was told one draft after another."""
    pace = DraftPace()
    for right in outcomes:
        pace.judged(int(right), is_refused=not right)
    return pace


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [True],
        [False],
        [False] * 9,
        [True] * 40,
        [True] * 40 + [False] * 5,
        [False] * 8 + [True] * 4,
        [True, False] * 20,
        [True, True, False, True] * 9,
    ],
)
def test_the_extent_is_that_of_the_formula(outcomes: list[bool]) -> None:
    assert paced(outcomes).extent(MANY) == extent_after(outcomes)


def test_a_chain_is_judged_like_its_drafts_one_by_one() -> None:
    chains, drafts = DraftPace(), []
    for num_right, is_refused in [(3, True), (0, True), (5, False), (1, True)]:
        chains.judged(num_right, is_refused=is_refused)
        drafts += [True] * num_right + [False] * is_refused
        assert chains.extent(MANY) == paced(drafts).extent(MANY)


def test_refusals_shorten_to_nothing_and_right_drafts_lengthen() -> None:
    extents = [paced([False] * count).extent(MANY) for count in range(12)]
    assert extents == sorted(extents, reverse=True)
    assert (extents[0], extents[1], extents[8], extents[9]) == (10, 2, 1, 0)
    extents = [paced([False] * 9 + [True] * count).extent(MANY) for count in range(40)]
    assert extents == sorted(extents)
    assert extents[20] > 5
    assert paced([]).extent(3) == 3
    assert paced([]).extent(0) == 0


def test_what_is_not_tried_is_forgotten() -> None:
    pace = paced([False] * 30)
    waits = []
    for _ in range(6):
        waits.append(0)
        while not pace.extent(MANY):
            pace.passed()
            waits[-1] += 1
            assert waits[-1] < 200
        assert pace.extent(MANY) == 1
        pace.judged(0, is_refused=True)
    # The first wait is for thirty refusals; later ones are for one more each.
    assert waits[0] > waits[1] > 3
    for _ in range(1000):
        pace.passed()
    assert pace.extent(MANY) == DraftPace().extent(MANY)


def rounds(pacing: DraftPacing, ledger: list[int], *, chain: DraftChain, commits: Sequence[int]) -> None:
    """One round with a chain, and what was committed of it."""
    pacing.propose(chain, len(ledger))
    ledger += commits
    pacing.settle(ledger)


@pytest.mark.parametrize("source", list(DraftSource))
def test_a_chain_is_judged_by_the_ledger(source: DraftSource) -> None:
    chain = DraftChain((7, 8, 9), source=source)
    for commits, outcomes in [
        ([7, 8, 9, 1], [True, True, True]),
        ([7, 8, 1], [True, True, False]),
        ([1], [False]),
        ([7, 5, 9, 9, 9], [True, False]),  # forced tokens stand behind the round's own
        ([7, 8], [True, True]),  # the round was cut off before its drafts ended
        ([], []),  # it was taken back
    ]:
        pacing, ledger = DraftPacing(), [1, 2, 3]
        rounds(pacing, ledger, chain=chain, commits=commits)
        assert pacing.of(source).extent(MANY) == extent_after(outcomes)
        [other] = [other for other in DraftSource if other is not source]
        assert pacing.of(other).extent(MANY) == extent_after([])
        # Once is enough.
        pacing.settle([*ledger, 7, 8, 9])
        assert pacing.of(source).extent(MANY) == extent_after(outcomes)


def test_a_round_without_drafts_judges_nothing() -> None:
    pacing, ledger = DraftPacing(), [1]
    rounds(pacing, ledger, chain=DraftChain((7,)), commits=[4])
    rounds(pacing, ledger, chain=NO_DRAFTS, commits=[4])
    assert pacing.of(DraftSource.NETWORK).extent(MANY) == extent_after([False])
