from __future__ import annotations

import numpy as np
import pytest

from infernix.ops import masks

SIZES = [1, 31, 32, 33, 50, 64, 1000, 49_153]


def test_the_lowest_bit_is_the_smallest_id() -> None:
    legal = np.zeros(70, dtype=bool)
    legal[[0, 5, 31, 32, 69]] = True
    words = masks.pack(legal)
    assert words.dtype == np.int32
    assert words.view(np.uint32).tolist() == [1 | 1 << 5 | 1 << 31, 1, 1 << 5]


@pytest.mark.parametrize("num_tokens", SIZES)
@pytest.mark.parametrize("density", [0.0, 0.0005, 0.1, 0.9, 1.0])
def test_packing_and_unpacking_are_inverse(num_tokens: int, density: float) -> None:
    legal = np.random.default_rng(num_tokens).random(num_tokens) < density
    words = masks.pack(legal)
    assert words.size == masks.num_mask_words(num_tokens)
    assert np.array_equal(masks.unpack(words, num_tokens), legal)
    assert np.array_equal(masks.legal_ids(words, num_tokens), np.flatnonzero(legal))


@pytest.mark.parametrize("num_tokens", [1, 33, 50, 3001])
def test_bits_past_the_domain_are_no_ids(num_tokens: int) -> None:
    words = np.zeros(masks.num_mask_words(num_tokens), dtype=np.int32)
    words[-1] = -1
    expected = np.arange(num_tokens - 1 - (num_tokens - 1) % 32, num_tokens)
    assert np.array_equal(masks.legal_ids(words, num_tokens), expected)
    assert np.array_equal(np.flatnonzero(masks.unpack(words, num_tokens)), expected)
