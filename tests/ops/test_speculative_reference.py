"""The definition itself: in fractions, and against values worked out by hand."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.random import Purpose
from infernix.ops.speculative_reference import acceptance, draw, residual, round_law, target_laws, verify
from infernix.options import SamplingParameters

A, B, X = range(3)
HALF = Fraction(1, 2)
Law = dict[int, Fraction]
Tokens = tuple[int, ...]


def test_the_residual_gives_a_and_b_their_halves() -> None:
    """p is one half a, one half b; q proposes a or the illegal x. Dropping x for a draw from p would give 3/4, 1/4."""
    p, q = {A: HALF, B: HALF}, {A: HALF, X: HALF}
    assert acceptance(p, q, A) == 1
    assert acceptance(p, q, X) == 0
    assert residual(p, q) == {B: 1}
    bonus = {B: Fraction(1)}
    firsts: dict[int, Fraction] = defaultdict(Fraction)
    for draft, chance in q.items():
        for output, probability in round_law([p, bonus], [q], [draft], ()).items():
            firsts[output[0]] += chance * probability
    assert firsts == {A: HALF, B: HALF}


def test_a_one_hot_proposal_stays_with_its_own_probability() -> None:
    p = {A: Fraction(1, 6), B: Fraction(2, 6), X: Fraction(3, 6)}
    assert acceptance(p, {B: Fraction(1)}, B) == Fraction(1, 3)
    assert residual(p, {B: Fraction(1)}) == {A: Fraction(1, 4), X: Fraction(3, 4)}


def random_law(rng: random.Random, num_tokens: int) -> Law:
    """A law over some of the tokens."""
    weights = {token: rng.randint(0, 4) for token in range(num_tokens)}
    weights[rng.randrange(num_tokens)] += 1
    total = sum(weights.values())
    return {token: Fraction(weight, total) for token, weight in weights.items() if weight}


def chains(q: dict[Tokens, Law], length: int) -> Iterator[tuple[Tokens, Fraction]]:
    """All chains of drafts, each drawn from the law after those before it, and their probabilities."""
    found = [((), Fraction(1))]
    for _ in range(length):
        found = [((*text, token), chance * share) for text, chance in found for token, share in q[text].items()]
    yield from found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("is_one_hot", [False, True])
def test_whole_outputs_have_the_law_of_ordinary_decoding(seed: int, is_one_hot: bool) -> None:
    """In fractions: all chains of drafts, all outputs of their rounds, and ordinary decoding to a length after them."""
    rng = random.Random(seed)
    num_tokens, length = 3, rng.randint(1, 3)
    end_ids = {0} if rng.random() < 0.5 else set()
    texts = [text for size in range(length + 1) for text in itertools.product(range(num_tokens), repeat=size)]
    p = {text: random_law(rng, num_tokens) for text in texts}
    q = {
        text: {rng.randrange(num_tokens): Fraction(1)} if is_one_hot else random_law(rng, num_tokens) for text in texts
    }

    def ordinary(text: Tokens) -> dict[Tokens, Fraction]:
        if len(text) == length + 1 or end_ids & set(text):
            return {text: Fraction(1)}
        return {
            longer: share * probability
            for token, share in p[text].items()
            for longer, probability in ordinary((*text, token)).items()
        }

    found: dict[Tokens, Fraction] = defaultdict(Fraction)
    for drafts, chance in chains(q, length):
        places = [drafts[:place] for place in range(length + 1)]
        outputs = round_law([p[text] for text in places], [q[text] for text in places[:-1]], drafts, end_ids)
        assert sum(outputs.values()) == 1
        for output, probability in outputs.items():
            for text, share in ordinary(output).items():
                found[text] += chance * probability * share
    assert found == ordinary(())


def test_drafts_count_for_the_penalties_of_later_places() -> None:
    parameters = SamplingParameters(presence_penalty=np.log(2.0), frequency_penalty=np.log(4.0))
    legal = np.ones(2, dtype=bool)
    laws = list(target_laws(np.zeros((3, 2)), [legal] * 3, [0, 0], parameters, {1: 1}))
    expected = [(1, 1 / 8), (1 / 8, 1 / 8), (1 / 32, 1 / 8)]
    for law, (first, second) in zip(laws, expected, strict=True):
        assert law[0] == pytest.approx(first / (first + second), abs=1e-15)


def test_each_place_has_its_own_mask() -> None:
    legal = [np.array([True, False, True]), np.array([False, True, False])]
    laws = list(target_laws(np.zeros((2, 3)), legal, [2], SamplingParameters(), {}))
    assert laws == [{0: 0.5, 2: 0.5}, {1: 1.0}]


def test_a_place_fails_only_when_it_is_reached() -> None:
    legal = [np.array([True, True]), np.array([False, False]), np.array([True, True])]
    logits = [np.zeros(2), np.zeros(2), np.array([np.nan, 0.0])]
    greedy = SamplingParameters(temperature=0.0)
    proposals = [{1: 1.0}, {0: 1.0}]
    refused = verify(target_laws(logits, legal, [1, 0], greedy, {}), proposals, [1, 0], (), lambda *_: 0.5)
    assert refused == (0,)
    proposals[0] = {0: 1.0}
    with pytest.raises(ConstraintDeadEnd):
        verify(target_laws(logits, legal, [0, 0], greedy, {}), proposals, [0, 0], (), lambda *_: 0.5)
    legal[1] = legal[0]
    with pytest.raises(NonFiniteLogits):
        verify(target_laws(logits, legal, [0, 0], greedy, {}), proposals, [0, 0], (), lambda *_: 0.5)


def test_outputs_are_drawn_by_their_law() -> None:
    targets = [{0: 0.5, 1: 0.3, 2: 0.2}, {0: 0.1, 1: 0.9}]
    proposals, drafts = [{0: 0.2, 1: 0.8}], (1,)
    law = round_law(targets, proposals, drafts, ())
    rng = random.Random(4)
    num_draws = 20_000
    drawn = Counter(verify(targets, proposals, drafts, (), lambda *_: rng.random()) for _ in range(num_draws))
    assert set(drawn) == set(law)
    for output, probability in law.items():
        assert drawn[output] / num_draws == pytest.approx(probability, abs=0.015)


def test_numbers_are_asked_for_by_place_and_purpose() -> None:
    asked: list[tuple[int, Purpose]] = []

    def number(place: int, purpose: Purpose) -> float:
        asked.append((place, purpose))
        return 0.5

    half = {0: 0.5, 1: 0.5}
    verify([half, {1: 1.0}, half], [{0: 0.5, 1: 0.5}, {1: 1.0}], [0, 1], (), number)
    assert asked == [(0, Purpose.SPECULATIVE_ACCEPT), (1, Purpose.SPECULATIVE_ACCEPT), (2, Purpose.SPECULATIVE_BONUS)]
    asked.clear()
    verify([half, {1: 1.0}, half], [half, {0: 1.0}], [0, 0], (), number)
    assert asked[1:] == [(1, Purpose.SPECULATIVE_ACCEPT), (1, Purpose.SPECULATIVE_CORRECTION)]


def test_drafts_that_were_not_drawn_are_compared_with_what_is_drawn_anyway() -> None:
    asked: list[tuple[int, Purpose]] = []

    def number(place: int, purpose: Purpose) -> float:
        asked.append((place, purpose))
        return 0.6

    half = {0: 0.5, 1: 0.5}
    assert verify([half, half, half], None, [1, 1], (), number) == (1, 1, 1)
    assert asked == [(0, Purpose.DECODE), (1, Purpose.DECODE), (2, Purpose.DECODE)]
    assert verify([half, half, half], None, [0, 1], (), number) == (1,)
    assert verify([half, half, half], None, [1, 1], {1}, number) == (1,)


def test_outputs_over_drafts_that_were_not_drawn_have_the_law_of_one_hot_proposals() -> None:
    targets, drafts = [{0: 0.5, 1: 0.3, 2: 0.2}, {0: 0.1, 1: 0.9}, {2: 1.0}], (0, 1)
    law = round_law(targets, [{0: 1.0}, {1: 1.0}], drafts, ())
    rng = random.Random(4)
    drawn = Counter(verify(targets, None, drafts, (), lambda *_: rng.random()) for _ in range(20_000))
    assert set(drawn) == set(law)
    for output, probability in law.items():
        assert drawn[output] / 20_000 == pytest.approx(probability, abs=0.015)


def test_an_accepted_end_is_the_last_token() -> None:
    sure = [{7: 1.0}, {1: 1.0}, {7: 1.0}, {7: 1.0}]
    proposals = [{7: 1.0}, {1: 1.0}, {7: 1.0}]
    assert round_law(sure, proposals, [7, 1, 7], {1}) == {(7, 1): 1.0}
    assert verify(sure, proposals, [7, 1, 7], {1}, lambda *_: 0.5) == (7, 1)


def test_too_few_laws_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 drafts"):
        verify([{0: 1.0}], [{0: 1.0}, {0: 1.0}], [0, 0], (), lambda *_: 0.5)


def test_draws_follow_the_order_of_ids() -> None:
    law = {5: 0.25, 2: 0.5, 9: 0.25}
    assert [draw(law, number) for number in (0.0, 0.49, 0.5, 0.74, 0.75, 1 - 2**-53)] == [2, 2, 5, 5, 9, 9]
    assert draw({3: 1 - 2**-50}, 1 - 2**-53) == 3, "a sum below 1 by rounding"
