from __future__ import annotations

import itertools

import numpy as np
import pytest

from infernix.ops.random import Purpose, splitmix64, uniform

GAMMA = 0x9E3779B97F4A7C15


def test_splitmix64_gives_the_published_sequence() -> None:
    """The first outputs for the seed 1234567, as the reference implementation in C prints them."""
    outputs = [splitmix64((1234567 + step * GAMMA) % 2**64) for step in range(5)]
    assert outputs == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1])
def test_numbers_are_uniform(seed: int) -> None:
    numbers = np.array([uniform(seed, position, Purpose.DECODE) for position in range(4096)])
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    buckets = np.histogram(numbers, bins=16, range=(0, 1))[0]
    # 256 expected in each: chi-square with 15 degrees of freedom stays below 44.3 in all but 1e-4 of the cases.
    assert ((buckets - 256) ** 2 / 256).sum() < 44.3


def test_every_part_of_the_key_matters() -> None:
    keys = itertools.product((0, 1, 7), (0, 1, 1000), Purpose, (0, 1))
    numbers = [uniform(*key) for key in keys]
    assert len(set(numbers)) == len(numbers)


def test_a_number_depends_on_nothing_but_its_key() -> None:
    first = uniform(3, 5, Purpose.DECODE)
    for position in range(100):
        uniform(3, position, Purpose.PREFILL)
    assert uniform(3, 5, Purpose.DECODE) == first


def test_neighbouring_positions_are_uncorrelated() -> None:
    numbers = np.array([uniform(9, position, Purpose.DECODE) for position in range(4096)])
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.07  # more than four standard deviations
