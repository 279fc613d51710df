"""The growing table gives the rows of the whole one, and does not grow beyond what is asked or allowed."""

from __future__ import annotations

import torch

from infernix.models.rope import RopeParameters, inverse_frequencies, rope_table
from infernix.models.rope_cache import RopeCache

PARAMETERS = RopeParameters(1e4)


def test_rows_of_any_position_in_any_order() -> None:
    cosines, sines = rope_table(inverse_frequencies(PARAMETERS, 8), 1000)
    cache = RopeCache(PARAMETERS, 8, 700, torch.float32, torch.device("cpu"))
    for positions in ([0, 3, 1], [299], [10, 650], [5], [900, 2]):
        index = torch.tensor(positions)
        rows = cache.rows(index, max(positions) + 1)
        assert torch.equal(rows[0], cosines[index])
        assert torch.equal(rows[1], sines[index])


def test_growth_is_bounded() -> None:
    cache = RopeCache(PARAMETERS, 8, 700, torch.bfloat16, torch.device("cpu"))
    sizes = []
    for end in (1, 257, 500, 900, 20):
        rows = cache.rows(torch.tensor([end - 1]), end)
        assert rows[0].dtype == rows[1].dtype == torch.bfloat16
        sizes.append(len(cache))
    assert sizes == [256, 514, 514, 900, 900]
