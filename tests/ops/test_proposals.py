from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from infernix.ops.proposals import SparseProposals, propose
from infernix.ops.random import Purpose, uniform

SCORES = np.log(np.array([1.0, 5.0, 2.0, 8.0], dtype=np.float32))


def test_proposals_are_drawn_from_the_law_they_come_with() -> None:
    num_draws = 8_000
    laws = [propose(SCORES, 1.0, seed=3, position=position) for position in range(num_draws)]
    drawn = Counter(place for place, _ in laws)
    for place, weight in enumerate((1, 5, 2, 8)):
        assert laws[0][1][place] == pytest.approx(weight / 16, abs=1e-7)
        assert drawn[place] / num_draws == pytest.approx(weight / 16, abs=0.02)


def test_temperature_sharpens_the_law() -> None:
    _, law = propose(SCORES, 0.5, seed=0, position=0)
    assert law == pytest.approx(np.array([1, 25, 4, 64]) / 94, abs=1e-6)
    assert law.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("temperature", [0.0, 1e-300])
def test_the_best_candidate_is_proposed_without_chance(temperature: float) -> None:
    tied = np.array([0.0, 3.0, 3.0, -np.inf])
    place, law = propose(tied, temperature, seed=1, position=2)
    if temperature:
        assert law.tolist() == [0.0, 0.5, 0.5, 0.0]
    else:
        assert place == 1
        assert law.tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("position", range(50))
def test_the_number_is_that_of_the_position(position: int) -> None:
    number = uniform(9, position, Purpose.PROPOSAL)
    place, law = propose(SCORES, 1.0, seed=9, position=position)
    assert law[:place].sum() <= number < law[: place + 1].sum()


def test_a_candidate_without_probability_is_never_proposed() -> None:
    scores = np.array([-np.inf, 0.0, -np.inf])
    assert {propose(scores, 1.0, seed=2, position=position)[0] for position in range(200)} == {1}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("scores", [[], [-np.inf, -np.inf], [0.0, np.nan], [np.inf, 0.0]])
def test_scores_that_make_no_law_are_refused(scores: list[float], temperature: float) -> None:
    with pytest.raises(ValueError, match="finite score"):
        propose(np.array(scores), temperature, seed=0, position=0)


def proposals(ids: Any, probabilities: Any) -> SparseProposals:
    return SparseProposals(np.array(ids), np.array(probabilities))


def test_tokens_outside_the_candidates_have_no_probability() -> None:
    laws = proposals([[4, 900, 7], [1, 2, 3]], [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    assert len(laws) == 2
    assert [laws.probability(0, token) for token in (4, 7, 900, 1)] == [0.5, 0.25, 0.25, 0.0]
    assert [laws.probability(1, token) for token in (1, 2, 4)] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("ids", "probabilities", "message"),
    [
        ([1, 2], [0.5, 0.5], "not both"),
        ([[1, 2]], [[0.5, 0.25, 0.25]], "not both"),
        ([[-1, 2]], [[0.5, 0.5]], "-1 is no token id"),
        ([[1, 2], [3, 3]], [[0.5, 0.5], [0.5, 0.5]], "twice"),
        ([[1, 2]], [[0.5, 0.4]], "law"),
        ([[1, 2]], [[1.5, -0.5]], "law"),
        ([[1, 2]], [[np.nan, 1.0]], "law"),
        ([[1, 2]], [[np.inf, 0.0]], "law"),
    ],
)
def test_what_is_no_law_is_refused(ids: Any, probabilities: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        proposals(ids, probabilities)


def test_a_law_rounded_to_float32_is_one() -> None:
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(16), size=200).astype(np.float32)
    ids = np.tile(np.arange(16), (200, 1))
    assert len(SparseProposals(ids, probabilities)) == 200
