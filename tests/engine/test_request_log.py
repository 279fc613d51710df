from __future__ import annotations

import io
import json
from typing import Any

import pytest
from numpy.typing import ArrayLike

from infernix.engine import JsonLinesLog
from infernix.engine.recorder import THROUGHPUT_SECONDS
from infernix.errors import InvalidOptions, NonFiniteLogits
from support.driven_core import VOCABULARY, DrivenCore
from support.scripted_model import preferring
from support.vocabularies import nasty_token

A = nasty_token("a")


def always_a(_: tuple[int, ...]) -> ArrayLike:
    return preferring(VOCABULARY.num_tokens, {A: 5.0})


def logged(script: Any = always_a, **options: Any) -> tuple[DrivenCore, io.StringIO]:
    stream = io.StringIO()
    return DrivenCore(script, log=JsonLinesLog(stream), **options), stream


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_one_request_from_start_to_end() -> None:
    driven, stream = logged()
    result = driven.finish(driven.submit([A, A], 3, language=[b"aa", b"aaa"]))
    start, admitted, done = records(stream)
    assert {**start, "time": 0} == {
        "event": "request_start",
        "time": 0,
        "request": 1,
        "prompt_tokens": 2,
        "max_new_tokens": 3,
        "constrained": True,
    }
    assert (admitted["event"], admitted["change"], admitted["reused_prompt_tokens"]) == (
        "request_scheduling",
        "admitted",
        0,
    )
    assert (done["event"], done["finish_reason"], done["generated_tokens"]) == ("request_done", "output_limit", 3)
    assert result.constraint is not None
    assert done["constraint"] == result.constraint.record()
    assert (done["constraint"]["complete"], done["constraint"]["mask_positions"]) == (True, 3)
    assert done["speculation"] is None
    assert done["timings"]["total_seconds"] == result.timings.total_seconds
    assert done["scheduling"]["num_decode_rounds"] == 2


def test_a_refusal_and_a_failure_name_their_kind_and_nothing_of_the_content() -> None:
    def script(so_far: tuple[int, ...]) -> ArrayLike:
        return [float("nan")] * VOCABULARY.num_tokens if len(so_far) == 3 else always_a(so_far)

    driven, stream = logged(script)

    def refuse() -> None:
        raise InvalidOptions("secret", field="x")

    with pytest.raises(InvalidOptions):
        driven.submit([A], during=refuse)
    with pytest.raises(NonFiniteLogits):
        driven.finish(driven.submit([A], 9))
    rejected, _, _, failed = records(stream)
    assert (rejected["event"], rejected["error"], rejected["code"]) == (
        "request_rejected",
        "InvalidOptions",
        "invalid_options",
    )
    assert (failed["event"], failed["request"], failed["code"]) == ("request_error", 2, "non_finite_logits")
    assert "secret" not in stream.getvalue()


@pytest.mark.parametrize(("snapshot_bytes", "route"), [(0, "replay"), (1000, "snapshot")])
def test_pauses_are_told(snapshot_bytes: int, route: str) -> None:
    driven, stream = logged(cache_tokens=16, max_cached_prefixes=0, snapshot_bytes=snapshot_bytes)
    requests = [driven.submit([A] * 3, 12) for _ in range(2)]
    driven.run(*requests)
    changes = [
        (record["change"], record.get("route"))
        for record in records(stream)
        if record["event"] == "request_scheduling" and record["request"] == 2
    ]
    assert changes[:4] == [("admitted", None), ("paused", route), ("resumed", None), ("restored", route)]


def test_throughput_is_told_now_and_then() -> None:
    driven, stream = logged()
    request = driven.submit([A], 6)
    driven.turn(3)
    driven.now += THROUGHPUT_SECONDS
    driven.run(request)
    (told,) = [record for record in records(stream) if record["event"] == "throughput"]
    assert (told["seconds"], told["decoded_tokens"]) == (THROUGHPUT_SECONDS, 3)
    assert told["tokens_per_second"] == 3 / THROUGHPUT_SECONDS


def test_a_log_that_fails_holds_up_nobody() -> None:
    class Full:
        def write(self, record: object) -> None:
            raise OSError("the disk is full")

    driven = DrivenCore(always_a, log=Full())
    assert driven.finish(driven.submit([A], 3)).text == "aaa"
    assert driven.core.statistics().counters.num_failed_observations == 3
