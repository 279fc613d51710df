"""The definition itself, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.reference import TokenDistribution, target_distribution
from infernix.options import SamplingParameters

PLAIN = SamplingParameters()
ALL_4 = np.ones(4, dtype=bool)
HALVES = np.log([8.0, 4.0, 2.0, 1.0])  # weights 8 : 4 : 2 : 1


def probabilities(distribution: TokenDistribution, size: int = 4) -> list[float]:
    dense = np.zeros(size)
    dense[distribution.ids] = distribution.probabilities
    return [round(float(value), 12) for value in dense]


def fifteenths(*weights: int) -> list[float]:
    return [round(weight / sum(weights), 12) for weight in weights]


def test_plain_softmax() -> None:
    assert probabilities(target_distribution(HALVES, ALL_4, PLAIN, {})) == fifteenths(8, 4, 2, 1)


def test_temperature_divides() -> None:
    warm = SamplingParameters(temperature=0.5)
    assert probabilities(target_distribution(HALVES, ALL_4, warm, {})) == fifteenths(64, 16, 4, 1)


def test_the_mask_comes_before_top_k() -> None:
    legal = np.array([False, False, True, True])
    kept = target_distribution(HALVES, legal, SamplingParameters(top_k=2), {})
    assert probabilities(kept) == fifteenths(0, 0, 2, 1)


def test_top_k_keeps_the_lower_id_of_a_tie() -> None:
    kept = target_distribution(np.array([0.0, 1.0, 0.0, 0.0]), ALL_4, SamplingParameters(top_k=2), {})
    assert kept.ids.tolist() == [0, 1]


def test_fewer_legal_tokens_than_top_k_are_all_kept() -> None:
    legal = np.array([True, False, False, True])
    kept = target_distribution(HALVES, legal, SamplingParameters(top_k=20), {})
    assert probabilities(kept) == fifteenths(8, 0, 0, 1)


def test_min_p_is_relative_to_the_best() -> None:
    kept = target_distribution(HALVES, ALL_4, SamplingParameters(min_p=0.25), {})
    assert probabilities(kept) == fifteenths(8, 4, 2, 0)


def test_top_p_keeps_the_token_that_reaches_it() -> None:
    kept = target_distribution(HALVES, ALL_4, SamplingParameters(top_p=0.6), {})
    assert probabilities(kept) == fifteenths(8, 4, 0, 0)
    exactly = target_distribution(np.zeros(4), ALL_4, SamplingParameters(top_p=0.5), {})
    assert exactly.ids.tolist() == [0, 1]


def test_top_p_is_a_share_of_what_min_p_drops_too() -> None:
    """8 is 0.53 of all four but 0.67 of the two that min-p leaves; the former counts, so top-p 0.6 keeps both."""
    both = SamplingParameters(min_p=0.3, top_p=0.6)
    assert probabilities(target_distribution(HALVES, ALL_4, both, {})) == fifteenths(8, 4, 0, 0)


def test_top_p_of_nothing_keeps_the_best() -> None:
    assert target_distribution(HALVES, ALL_4, SamplingParameters(top_p=0.0), {}).ids.tolist() == [0]


def test_top_p_is_a_share_of_what_top_k_kept() -> None:
    kept = target_distribution(HALVES, ALL_4, SamplingParameters(top_k=2, top_p=0.66), {})
    assert kept.ids.tolist() == [0]  # 8 of 12; it would be 8 of 15 without top-k


def test_penalties_count_generated_tokens() -> None:
    penalized = SamplingParameters(presence_penalty=np.log(2.0), frequency_penalty=np.log(4.0))
    # Two of token 0: once log 2 and twice log 4, so 8 / 32; one of token 3: 1 / 8.
    weights = probabilities(target_distribution(HALVES, ALL_4, penalized, {0: 2, 3: 1}))
    assert weights == [round(value / 6.375, 12) for value in (0.25, 4.0, 2.0, 0.125)]


def test_penalties_come_before_top_k() -> None:
    penalized = SamplingParameters(presence_penalty=2.0, top_k=1)
    assert target_distribution(HALVES, ALL_4, penalized, {0: 1}).ids.tolist() == [1]


def test_a_negative_penalty_favours_repetition() -> None:
    favoured = SamplingParameters(temperature=0.0, frequency_penalty=-2.0)
    assert target_distribution(HALVES, ALL_4, favoured, {3: 2}).ids.tolist() == [3]


def test_greedy_takes_the_lowest_id_of_a_tie() -> None:
    greedy = SamplingParameters(temperature=0.0)
    legal = np.array([False, True, True, True])
    assert target_distribution(np.array([5.0, 1.0, 2.0, 2.0]), legal, greedy, {}).ids.tolist() == [2]


@pytest.mark.parametrize("temperature", [1e-4, 1e-300, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    kept = target_distribution(HALVES, ALL_4, SamplingParameters(temperature=temperature), {})
    assert kept.ids.tolist() == [0]
    assert kept.probabilities.tolist() == [1.0]


def test_padding_is_no_candidate() -> None:
    padded = np.append(HALVES, [100.0, np.nan])
    assert probabilities(target_distribution(padded, ALL_4, PLAIN, {})) == fifteenths(8, 4, 2, 1)


def test_nothing_legal_is_a_dead_end() -> None:
    with pytest.raises(ConstraintDeadEnd):
        target_distribution(np.full(4, np.nan), np.zeros(4, dtype=bool), PLAIN, {})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_legal_nan_or_infinity_is_a_numerical_error(bad: float) -> None:
    logits = HALVES.copy()
    logits[1] = bad
    with pytest.raises(NonFiniteLogits):
        target_distribution(logits, ALL_4, PLAIN, {})
    illegal = np.array([True, False, True, True])
    assert probabilities(target_distribution(logits, illegal, PLAIN, {})) == fifteenths(8, 0, 2, 1)


def test_negative_infinity_cannot_be_chosen() -> None:
    logits = HALVES.copy()
    logits[0] = -np.inf
    assert probabilities(target_distribution(logits, ALL_4, PLAIN, {})) == fifteenths(0, 4, 2, 1)
    with pytest.raises(NonFiniteLogits):
        target_distribution(np.full(4, -np.inf), ALL_4, PLAIN, {})


def test_draws_follow_the_order_of_ids() -> None:
    distribution = target_distribution(np.log([1.0, 2.0, 4.0, 1.0]), ALL_4, PLAIN, {})
    drawn = [distribution.draw(uniform) for uniform in (0.0, 0.12, 0.13, 0.37, 0.38, 0.87, 0.88, 1 - 2**-53)]
    assert drawn == [0, 0, 1, 1, 2, 2, 3, 3]
