from __future__ import annotations

from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from infernix.engine.statistics import Counters
from infernix.server.metrics import Metrics
from support.chat_client import chat_body, post, refusal
from support.staged_engine import StagedEngine


def test_drafts_are_counted() -> None:
    engine = StagedEngine(counters=Counters(num_drafted_rounds=3, num_drafted=11, num_accepted_drafts=7))
    text = Metrics(engine, ()).text().decode()
    found = {line.partition(" ")[0]: line.partition(" ")[2] for line in text.splitlines() if "spec_decode" in line}
    names = ("rounds", "draft_tokens", "accepted_tokens")
    assert [found[f"infernix_spec_decode_{name}_total"] for name in names] == ["3.0", "11.0", "7.0"]


def samples(echo: httpx.Client) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, in the order of their names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(echo.get("/metrics").text)
        for sample in family.samples
    }


def test_a_constrained_answer_is_counted(echo: httpx.Client) -> None:
    before = samples(echo)
    body: dict[str, Any] = post(echo, chat_body("ok", structured_outputs={"choice": ["ok"]})).json()
    refusal(echo, chat_body(what=1))
    after = samples(echo)

    def risen(*key: str) -> float:
        return after[key] - before[key]

    assert risen("infernix_requests_total", "completed", "chat") == 1
    assert risen("infernix_requests_total", "rejected", "chat") == 2
    assert risen("infernix_constraint_requests_total", "terminated") == 1
    assert risen("infernix_constraint_cache_total", body["constraint"]["cache"]) == 1
    assert risen("infernix_constraint_mask_positions_total") == body["constraint"]["mask_positions"]
    assert risen("infernix_constraint_mask_seconds_total") > 0
    assert risen("infernix_prompt_tokens_total") == body["usage"]["prompt_tokens"]
    assert risen("infernix_generated_tokens_total") == body["usage"]["completion_tokens"]
    assert risen("infernix_time_to_first_token_seconds_count") == 1
    assert risen("infernix_request_duration_seconds_count") == 1
    assert after["infernix_requests_running",] == 0
    assert after["infernix_spec_decode_draft_tokens_total",] == 0, "this engine does not draft"
    assert after["infernix_requests_outstanding",] == 0
