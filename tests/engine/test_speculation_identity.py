"""Answers with drafts are those without: text, end, record and usage, for every kind of request.

Drawn ones too: no chance is involved in these drafts, so the text is the one of the same seed. `make conformance` runs
many more.
"""

from __future__ import annotations

import pytest

from tests.engine.simulation.identity import SAMPLINGS, check_identity
from tests.engine.simulation.scripted_drafts import Script

VARIANTS = {
    "host": {},
    "recurrent": {"is_recurrent": True},
    "device": {"on_device": True},
}
# Twelve times as many are 3,000.
_NUM_ROUNDS = 250


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_answers_are_those_without_drafts(sampling: str, variant: str) -> None:
    drafts = check_identity(sampling, seed=list(VARIANTS).index(variant), num_each=20, **VARIANTS[variant])
    assert drafts.num_rounds >= _NUM_ROUNDS
    assert drafts.num_mixed >= _NUM_ROUNDS / 2
    for script in Script:
        if script is not Script.NONE:
            assert drafts.happened[script] >= 20, script
            assert drafts.happened[f"{script}: drafts as in the answer"] >= 20, script
