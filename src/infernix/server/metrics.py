"""Prometheus metrics. Labels are fixed words: nothing that a client sends becomes one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from infernix.engine.statistics import Counters
from infernix.results import GenerationResult
from infernix.server.served_engine import ServedEngine

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Outcome(StrEnum):
    """How a request over HTTP ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"  # an error of the request's own, or no room
    FAILED = "failed"  # an error of the server's


class Metrics:
    """What the server counts itself, and at each scrape what the engine has counted."""

    def __init__(self, engine: ServedEngine, protocols: Iterable[str]) -> None:
        """`protocols` are the labels of the routes."""
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "infernix_requests", "Requests by how they ended", ("protocol", "outcome"), registry=self._registry
        )
        self._failures = Counter(
            "infernix_response_failures", "Answers that failed after they had begun", registry=self._registry
        )
        self._first_token = self._histogram("time_to_first_token", "From a request to the first token of its answer")
        self._duration = self._histogram("request_duration", "From a request to the last byte of its answer")
        self._queue = self._histogram("request_queue", "Waiting for a place on the model")
        for protocol in protocols:  # so that a rate is there before the first request
            for outcome in Outcome:
                self._requests.labels(protocol, outcome.value)
        self._registry.register(_EngineCollector(engine))

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self._registry)

    def count_request(self, protocol: str, outcome: Outcome, seconds: float) -> None:
        """Once for each request."""
        self._requests.labels(protocol, outcome.value).inc()
        if outcome is Outcome.COMPLETED:
            self._duration.observe(seconds)

    def count_stream_failure(self) -> None:
        """An error that came when the answer's status had been sent."""
        self._failures.inc()

    def count_result(self, result: GenerationResult) -> None:
        """Once for each sample of a completed answer."""
        self._queue.observe(result.timings.queue_seconds)
        if result.timings.first_token_seconds is not None:
            self._first_token.observe(result.timings.first_token_seconds)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"infernix_{name}_seconds", text, buckets=_SECONDS, registry=self._registry)


_GAUGES = {
    "requests_running": "num_running",
    "requests_waiting": "num_waiting",
    "requests_paused": "num_paused",
    "requests_outstanding": "num_outstanding",
    "cached_prefixes": "num_cached_prefixes",
    "cached_positions": "num_cached_positions",
    "free_positions": "num_free_positions",
    "positions": "num_positions",
}
_COUNTERS = {
    "prompt_tokens": "num_prompt_tokens",
    "reused_prompt_tokens": "num_reused_prompt_tokens",
    "generated_tokens": "num_generated_tokens",
    "preemptions": "num_pauses",
    "snapshot_restores": "num_snapshot_restores",
    "replay_restores": "num_replay_restores",
    "decode_rounds": "num_decode_rounds",
    "spec_decode_rounds": "drafts.num_rounds",
    "spec_decode_fallback_steps": "drafts.num_fallback_rounds",
    "spec_decode_draft_wait_seconds": "drafts.wait_seconds",
    "units": "num_units",
    "failed_units": "num_failed_units",
    "forward_seconds": "forward_seconds",
    "mask_wall_seconds": "mask_wall_seconds",
    "sampling_seconds": "sampling_seconds",
    "round_seconds": "round_seconds",
    "constraint_prepare_seconds": "constraint_prepare_seconds",
    "constraint_mask_seconds": "constraint_mask_seconds",
    "constraint_matcher_seconds": "constraint_matcher_seconds",
    "constraint_mask_positions": "mask_positions",
    "constraint_mask_upload_bytes": "mask_upload_bytes",
    "constraint_draft_wait_seconds": "constraint_draft_wait_seconds",
}
_LABELLED = {
    "engine_requests": ("requests", "outcome"),
    "engine_rejections": ("rejections", "reason"),
    "constraint_requests": ("constraint_requests", "outcome"),
    "constraint_cache": ("constraint_cache", "result"),
    "spec_decode_draft_tokens": ("drafts.num_drafted", "source"),
    "spec_decode_accepted_tokens": ("drafts.num_accepted", "source"),
}


class _EngineCollector(Collector):
    def __init__(self, engine: ServedEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        statistics = self._engine.statistics()
        for name, field in _GAUGES.items():
            yield GaugeMetricFamily(f"infernix_{name}", _help(name), getattr(statistics, field))
        yield InfoMetricFamily("infernix_spec_decode", "the network that drafts", {"backend": statistics.backend.value})
        yield from _counted(statistics.counters)


def _counted(counters: Counters) -> Iterator[Metric]:
    for name, field in _COUNTERS.items():
        yield CounterMetricFamily(f"infernix_{name}", _help(name), attrgetter(field)(counters))
    for name, (field, label) in _LABELLED.items():
        family = CounterMetricFamily(f"infernix_{name}", _help(name), labels=[label])
        values: Mapping[StrEnum, int] = attrgetter(field)(counters)
        for key, count in values.items():
            family.add_metric([key.value], count)
        yield family
    name = "spec_decode_accepted_tokens_per_position"
    family = CounterMetricFamily(f"infernix_{name}", _help(name), labels=["position"])
    for position, count in enumerate(counters.drafts.accepted_per_position, 1):
        family.add_metric([str(position)], count)
    yield family


def _help(name: str) -> str:
    return name.replace("_", " ")
