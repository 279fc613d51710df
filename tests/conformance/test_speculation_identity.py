"""Answers with drafts and without, for long: `INFERNIX_CONFORMANCE_CASES=N` compares some N of each way of sampling."""

from __future__ import annotations

import os

import pytest

from tests.engine.simulation.identity import KINDS, SAMPLINGS, check_identity

NUM_CASES = int(os.environ.get("INFERNIX_CONFORMANCE_CASES", "0"))
_NUM_EACH = 8
_FIRST_SEED = 1000


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_answers_are_those_without_drafts(sampling: str) -> None:
    for number in range(NUM_CASES // (_NUM_EACH * len(KINDS)) + 1):
        seed = _FIRST_SEED + number
        try:
            check_identity(sampling, seed, _NUM_EACH, is_recurrent=number % 3 == 1, on_device=number % 3 == 2)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
