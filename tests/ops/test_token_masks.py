from __future__ import annotations

import numpy as np
import pytest

from infernix.ops import masks
from support.mask_words import mask_words

SIZES = [1, 31, 32, 33, 50, 64, 1000, 49_153]


def test_the_lowest_bit_is_the_smallest_id() -> None:
    words = np.array([1 | 1 << 5 | 1 << 31, 1, 1 << 5], dtype=np.uint32).view(np.int32)
    assert masks.legal_ids(words, 70).tolist() == [0, 5, 31, 32, 69]
    assert np.flatnonzero(masks.unpack(words, 70)).tolist() == [0, 5, 31, 32, 69]


@pytest.mark.parametrize("num_tokens", SIZES)
@pytest.mark.parametrize("density", [0.0, 0.0005, 0.1, 0.9, 1.0])
def test_exactly_the_ids_of_a_row_come_out(num_tokens: int, density: float) -> None:
    ids = np.flatnonzero(np.random.default_rng(num_tokens).random(num_tokens) < density)
    words = mask_words(ids.tolist(), num_tokens)
    assert np.array_equal(np.flatnonzero(masks.unpack(words, num_tokens)), ids)
    assert np.array_equal(masks.legal_ids(words, num_tokens), ids)


@pytest.mark.parametrize("num_tokens", [1, 33, 50, 3001])
def test_bits_past_the_domain_are_no_ids(num_tokens: int) -> None:
    words = mask_words([], num_tokens)
    words[-1] = -1
    expected = np.arange(num_tokens - 1 - (num_tokens - 1) % 32, num_tokens)
    assert np.array_equal(masks.legal_ids(words, num_tokens), expected)
    assert np.array_equal(np.flatnonzero(masks.unpack(words, num_tokens)), expected)
