from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from benchmarks.speculation import row_of
from infernix.results import (
    CacheAccess,
    ConstraintObservation,
    DraftCounts,
    FinishReason,
    GenerationResult,
    GenerationTimings,
    SchedulingStatistics,
    SpeculativeStatistics,
)

DRAFTS = SpeculativeStatistics(
    num_rounds=3,
    num_fallback_rounds=1,
    num_drafted=9,
    num_accepted=8,
    accepted_per_position=(3, 3, 2),
    copies=DraftCounts(9, 8),
    draft_wait_seconds=0.0008,
)
RESULT = GenerationResult(
    text="",
    token_ids=(7,) * 13,
    num_prompt_tokens=5,
    finish_reason=FinishReason.STOP_TOKEN,
    constraint=ConstraintObservation(True, True, CacheAccess.HIT, 14, 0.0, 0.0, 0.0),
    timings=GenerationTimings(0.0, 0.0, 0.5, 1.0),
    scheduling=SchedulingStatistics(num_decode_rounds=4),
    speculation=DRAFTS,
)


def test_a_row_has_medians_and_what_the_first_result_says() -> None:
    others = [
        replace(
            RESULT,
            timings=GenerationTimings(0.0, 0.0, seconds, 1.0),
            speculation=replace(DRAFTS, draft_wait_seconds=wait),
        )
        for seconds, wait in ((0.25, 0.0004), (2.0, 0.008))
    ]
    row = row_of("a task", "ngram", [RESULT, *others])
    assert (row.num_tokens, row.tokens_per_second, row.tokens_per_round) == (12, 24.0, 3.0)
    assert row.draft_wait_us == pytest.approx(200.0)
    printed = json.loads(json.dumps(asdict(row)))
    assert (printed["speculation"]["num_accepted"], printed["speculation"]["num_fallback_rounds"]) == (8, 1)
    assert printed["speculation"]["copies"] == {"num_drafted": 9, "num_accepted": 8}
    assert printed["constraint"]["mask_positions"] == 14


def test_without_drafts_there_is_nothing_to_wait_for() -> None:
    row = row_of("a task", "none", [replace(RESULT, speculation=None, constraint=None)])
    assert (row.draft_wait_us, row.speculation, row.constraint) == (0.0, None, None)
