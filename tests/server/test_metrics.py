from __future__ import annotations

from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from infernix.engine.draft_counters import DraftCounters
from infernix.engine.statistics import Counters
from infernix.program.drafters.chain import DraftChain, DraftSource
from infernix.results import SpeculationBackend
from infernix.server.metrics import Metrics
from support.chat_client import chat_body, post, refusal
from support.staged_engine import StagedEngine


def test_drafts_are_counted() -> None:
    drafts = DraftCounters(num_fallback_rounds=2, wait_seconds=0.5)
    drafts.add(DraftChain((5, 6, 7), source=DraftSource.COPY), 2)
    drafts.add(DraftChain((5, 6), source=DraftSource.NETWORK), 1)
    engine = StagedEngine(
        counters=Counters(drafts=drafts, constraint_draft_wait_seconds=0.25), backend=SpeculationBackend.DFLASH2
    )
    text = Metrics(engine, ()).text().decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = dict(line.split(" ") for line in lines if "spec_decode" in line or "draft_wait" in line)
    assert found == {
        'infernix_spec_decode_info{backend="dflash2"}': "1.0",
        "infernix_spec_decode_rounds_total": "2.0",
        "infernix_spec_decode_fallback_steps_total": "2.0",
        'infernix_spec_decode_draft_tokens_total{source="copy"}': "3.0",
        'infernix_spec_decode_draft_tokens_total{source="network"}': "2.0",
        'infernix_spec_decode_accepted_tokens_total{source="copy"}': "2.0",
        'infernix_spec_decode_accepted_tokens_total{source="network"}': "1.0",
        'infernix_spec_decode_accepted_tokens_per_position_total{position="1"}': "2.0",
        'infernix_spec_decode_accepted_tokens_per_position_total{position="2"}': "1.0",
        "infernix_spec_decode_draft_wait_seconds_total": "0.5",
        "infernix_constraint_draft_wait_seconds_total": "0.25",
    }


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
    for source in ("copy", "network"):
        assert after["infernix_spec_decode_draft_tokens_total", source] == 0, "this engine does not draft"
    assert after["infernix_spec_decode_info", "none"] == 1
    assert after["infernix_requests_outstanding",] == 0
