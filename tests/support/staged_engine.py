"""An engine for tests of the server: a test says what is published, and when, and nothing else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from infernix.engine.statistics import Counters, EngineStatistics
from infernix.options import RequestOptions
from infernix.results import (
    FinishReason,
    GenerationEvent,
    GenerationResult,
    GenerationStarted,
    GenerationTimings,
    OutputChannel,
    OutputDelta,
    SpeculationBackend,
)
from infernix.tools import ToolCall, ToolCallDelta


def result_of(events: Sequence[GenerationEvent], **fields: Any) -> GenerationResult:
    """The result that belongs to these events; calls are complete."""
    channels = dict.fromkeys(OutputChannel, "")
    calls: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, OutputDelta):
            channels[event.channel] += event.text
        elif isinstance(event, ToolCallDelta):
            call = calls.setdefault(event.index, [event.name or "", ""])
            call[1] += event.arguments
    values: dict[str, Any] = {
        "text": channels[OutputChannel.CONTENT],
        "reasoning": channels[OutputChannel.REASONING],
        "tool_calls": tuple(ToolCall(*call) for call in calls.values()),
        "token_ids": (1, 2, 3),
        "num_prompt_tokens": 7,
        "finish_reason": FinishReason.STOP_TOKEN,
        "constraint": None,
        "timings": GenerationTimings(0.0, 0.25, 0.5, 0.75),
        **fields,
    }
    return GenerationResult(**values)


class StagedHandle:
    """Publishes what the test hands it, from whatever thread that is."""

    def __init__(self, options: RequestOptions) -> None:
        self.options = options
        self.is_cancelled = threading.Event()
        self.is_subscribed = threading.Event()
        self._lock = threading.Lock()
        self._events: list[GenerationEvent] = []
        self._published: list[GenerationEvent] = []
        self._end: GenerationResult | Exception | None = None
        self._callback: Callable[[], None] = lambda: None

    @property
    def is_done(self) -> bool:
        return self._end is not None

    def subscribe(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self.is_subscribed.set()
        callback()

    def take(self) -> Sequence[GenerationEvent]:
        with self._lock:
            events, self._events = self._events, []
            return events

    def result(self) -> GenerationResult:
        assert self._end is not None
        if isinstance(self._end, Exception):
            raise self._end
        return self._end

    def close(self) -> None:
        if self._end is None:
            self.is_cancelled.set()

    def publish(self, *events: GenerationEvent | str) -> None:
        """A text is a piece of content."""
        whole = [OutputDelta(OutputChannel.CONTENT, event) if isinstance(event, str) else event for event in events]
        with self._lock:
            self._events += whole
            self._published += whole
        self._callback()

    def finish(self, error: Exception | None = None, **fields: Any) -> None:
        """The end: an error, or the result of what was published, with these fields."""
        self._end = error or result_of(self._published, **fields)
        self._callback()


@dataclass
class StagedEngine:
    """Gives each submitted request to `play`, which by default leaves it to the test."""

    play: Callable[[StagedHandle], None] = lambda handle: None
    max_context: int = 4000
    is_available: bool = True
    prompts: list[Any] = field(default_factory=list)
    handles: list[StagedHandle] = field(default_factory=list)
    prepare_hook: Callable[[Any], None] = lambda prompt: None
    counters: Counters = field(default_factory=Counters)
    backend: SpeculationBackend = SpeculationBackend.NONE

    def prepare(self, prompt: Any) -> Any:
        self.prepare_hook(prompt)
        self.prompts.append(prompt)
        return prompt

    def count_tokens(self, prompt: Any) -> int:
        return sum(len(message.content) for message in prompt.messages)

    def submit(self, prepared: Any, options: RequestOptions) -> StagedHandle:
        handle = StagedHandle(options)
        self.handles.append(handle)
        self.play(handle)
        return handle

    def statistics(self) -> EngineStatistics:
        return EngineStatistics(0, 0, 0, len(self.handles), 0, 0, 100, 100, self.counters, self.backend)


def saying(*events: GenerationEvent | str, error: Exception | None = None, **fields: Any) -> Callable[[Any], None]:
    """Plays a whole answer at once."""

    def play(handle: StagedHandle) -> None:
        handle.publish(GenerationStarted(7, 2), *events)
        handle.finish(error, **fields)

    return play
