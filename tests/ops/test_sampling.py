"""The fast path against the definition."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.penalties import TokenCounts
from infernix.ops.random import Purpose, uniform
from infernix.ops.reference import target_distribution
from infernix.ops.sampling import TokenDomain, sample_token, weigh_tokens
from infernix.options import SamplingParameters
from support.mask_words import mask_words

EDGE_UNIFORMS = (0.0, 2**-53, 0.5, 1 - 2**-53)


def counted(counts: dict[int, int]) -> TokenCounts:
    token_counts = TokenCounts()
    for token, count in counts.items():
        for _ in range(count):
            token_counts.add(token)
    return token_counts


def all_of(num_tokens: int) -> TokenDomain:
    return TokenDomain.without(np.zeros(num_tokens, dtype=bool))


def packed(legal: NDArray[np.bool_]) -> NDArray[np.int32]:
    return mask_words(np.flatnonzero(legal).tolist(), legal.size)


def check_against_reference(
    logits: NDArray[np.float32],
    never: NDArray[np.bool_],
    legal: NDArray[np.bool_] | None,
    parameters: SamplingParameters,
    counts: dict[int, int],
    uniforms: tuple[float, ...] = EDGE_UNIFORMS,
) -> None:
    """Same support, same probabilities, and the same token for each uniform that is not at a rounding border."""
    untouched = logits.copy()
    expected = target_distribution(logits, ~never if legal is None else legal, parameters, counts)
    domain = TokenDomain.without(never)
    mask = None if legal is None else packed(legal)
    token_counts = counted(counts)
    if parameters.temperature > 0.0:
        weighted = weigh_tokens(logits, domain, mask, parameters, token_counts)
        ids, probabilities = weighted.support()
        assert np.array_equal(ids, expected.ids)
        assert np.abs(probabilities - expected.probabilities).max() < 1e-12
    borders = np.cumsum(expected.probabilities)
    for number in uniforms:
        token = sample_token(logits, domain, mask, parameters, token_counts, number)
        if np.abs(borders - number).min() > 1e-12:
            assert token == expected.draw(number)
        assert token in expected.ids
    assert np.array_equal(logits, untouched, equal_nan=True), "the model's logits were written to"


def random_parameters(rng: np.random.Generator, num_tokens: int) -> SamplingParameters:
    return SamplingParameters(
        temperature=float(rng.choice([0.0, 0.05, 0.7, 1.0, 2.0])),
        top_k=int(rng.choice([0, 1, 2, 5, 20, num_tokens, 10 * num_tokens])),
        top_p=float(rng.choice([0.0, 0.3, 0.9, 0.999, 1.0])),
        min_p=float(rng.choice([0.0, 0.0, 0.01, 0.5, 1.0])),
        presence_penalty=float(rng.choice([0.0, 0.0, 1.5, -0.7])),
        frequency_penalty=float(rng.choice([0.0, 0.0, 0.3, -2.0])),
    )


def random_logits(rng: np.random.Generator, num_tokens: int, num_padding: int) -> NDArray[np.float32]:
    """Logits with ties, some of -inf, and nonsense in the padding."""
    logits = (rng.standard_normal(num_tokens) * rng.choice([0.0, 0.5, 3.0, 30.0])).astype(np.float32)
    if rng.random() < 0.5:
        logits = np.round(logits)  # many ties
    if rng.random() < 0.3:
        logits[rng.random(num_tokens) < 0.3] = -np.inf
    logits[rng.integers(num_tokens)] = 1.0
    return np.concatenate([logits, np.full(num_padding, rng.choice([np.nan, np.inf, 99.0]), dtype=np.float32)])


def random_case(rng: np.random.Generator, num_tokens: int) -> None:
    logits = random_logits(rng, num_tokens, int(rng.integers(0, 40)))
    never = rng.random(num_tokens) < rng.choice([0.0, 0.1])
    legal = None
    if rng.random() < 0.7:
        legal = (rng.random(num_tokens) < rng.choice([0.002, 0.05, 0.5, 1.0])) & ~never
    candidates = ~never if legal is None else legal
    finite = np.flatnonzero(np.isfinite(logits[:num_tokens]))
    candidates[rng.choice(finite)] = True
    counts = {int(token): int(rng.integers(1, 5)) for token in rng.integers(0, num_tokens, size=rng.integers(0, 90))}
    numbers = (*EDGE_UNIFORMS, *rng.random(4).tolist())
    check_against_reference(logits, never, legal, random_parameters(rng, num_tokens), counts, numbers)


@pytest.mark.parametrize("seed", range(300))
def test_small_cases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    random_case(rng, int(rng.integers(1, 60)))


@pytest.mark.parametrize("seed", range(60))
def test_medium_cases(seed: int) -> None:
    """Sizes around the borders of blocks and of the first partial selection."""
    rng = np.random.default_rng(1000 + seed)
    random_case(rng, int(rng.choice([127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3000])))


@pytest.mark.parametrize("num_tokens", [49_152, 151_936, 248_077])
@pytest.mark.parametrize("seed", range(4))
def test_large_cases(seed: int, num_tokens: int) -> None:
    random_case(np.random.default_rng(2000 + seed), num_tokens)


@pytest.mark.parametrize(
    "parameters",
    [
        SamplingParameters(),
        SamplingParameters(top_p=0.9),
        SamplingParameters(top_p=0.99999),
        SamplingParameters(top_k=20, top_p=0.95),
        SamplingParameters(min_p=0.05),
    ],
    ids=str,
)
@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_flat_and_peaked_distributions_over_a_large_vocabulary(parameters: SamplingParameters, spread: float) -> None:
    rng = np.random.default_rng(5)
    logits = (rng.standard_normal(50_000) * spread).astype(np.float32)
    check_against_reference(logits, np.zeros(50_000, dtype=bool), None, parameters, {}, tuple(rng.random(50)))


def test_legal_tokens_beyond_the_twenty_best_are_reached() -> None:
    """Four legal letters at ranks 30 to 33: top-k counts legal tokens only, and the four have all the probability."""
    logits = np.linspace(10.0, 0.0, 100, dtype=np.float32)
    legal = np.zeros(100, dtype=bool)
    legal[30:34] = True
    parameters = SamplingParameters(top_k=20)
    ids, probabilities = weigh_tokens(logits, all_of(100), packed(legal), parameters, TokenCounts()).support()
    assert ids.tolist() == [30, 31, 32, 33]
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    greedy = replace(parameters, temperature=0.0)
    assert sample_token(logits, all_of(100), packed(legal), greedy, TokenCounts(), 0.0) == 30


def test_drawn_tokens_have_the_target_frequencies() -> None:
    logits = np.log(np.array([8.0, 4.0, 2.0, 1.0, 5.0], dtype=np.float32))
    legal = np.array([True, True, True, True, False])
    num_draws = 8_000
    drawn = Counter(
        sample_token(
            logits,
            all_of(5),
            packed(legal),
            SamplingParameters(),
            TokenCounts(),
            uniform(1, position, Purpose.DECODE),
        )
        for position in range(num_draws)
    )
    for token, weight in enumerate((8, 4, 2, 1)):
        assert drawn[token] / num_draws == pytest.approx(weight / 15, abs=0.025)
    assert drawn[4] == 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_legal_is_a_dead_end_even_if_the_logits_are_broken(temperature: float) -> None:
    empty = packed(np.zeros(40, dtype=bool))
    parameters = SamplingParameters(temperature=temperature)
    with pytest.raises(ConstraintDeadEnd):
        sample_token(np.full(40, np.nan, dtype=np.float32), all_of(40), empty, parameters, TokenCounts(), 0.0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_logits_never_become_a_token(temperature: float, constrained: bool, bad: float) -> None:
    parameters = SamplingParameters(temperature=temperature, top_k=3, top_p=0.5)
    legal = np.arange(40) % 2 == 0
    mask = packed(legal) if constrained else None
    logits = np.zeros(40, dtype=np.float32)
    logits[legal if constrained else slice(None)] = bad
    with pytest.raises(NonFiniteLogits):
        sample_token(logits, all_of(40), mask, parameters, TokenCounts(), 0.0)
    if bad != -np.inf:
        logits[:] = 0.0
        logits[4] = bad
        with pytest.raises(NonFiniteLogits):
            sample_token(logits, all_of(40), mask, parameters, TokenCounts(), 0.0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_broken_logits_of_illegal_tokens_do_not_matter(temperature: float) -> None:
    legal = np.arange(40) == 7
    logits = np.full(40, np.nan, dtype=np.float32)
    logits[7] = -3.0
    parameters = SamplingParameters(temperature=temperature)
    assert sample_token(logits, all_of(40), packed(legal), parameters, TokenCounts(), 0.9) == 7
    assert sample_token(logits, TokenDomain.without(~legal), None, parameters, TokenCounts(), 0.9) == 7


def test_counts_hold_more_tokens_than_the_first_allocation() -> None:
    token_counts = counted({token: token % 3 + 1 for token in range(200)})
    assert dict(zip(token_counts.ids.tolist(), token_counts.counts.tolist(), strict=True)) == {
        token: token % 3 + 1 for token in range(200)
    }


def test_a_copy_of_counts_goes_its_own_way() -> None:
    committed = counted(dict.fromkeys(range(70), 1))
    copy = committed.copy()
    for token in (3, 100, 101):
        copy.add(token)
    committed.add(5)
    assert copy.counts[[3, 5]].tolist() == [2, 1]
    assert copy.ids.tolist() == [*range(70), 100, 101]
    assert committed.ids.tolist() == [*range(70)]
    assert committed.counts[[3, 5]].tolist() == [1, 2]
