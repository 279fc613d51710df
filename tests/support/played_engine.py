"""An engine for tests of the command line: its answers are written down beforehand."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import infernix.engine
from infernix.errors import InfernixError, ModelLoadError
from infernix.options import RequestOptions
from infernix.results import (
    CacheAccess,
    ConstraintObservation,
    FinishReason,
    GenerationResult,
    GenerationTimings,
    OutputChannel,
    OutputDelta,
    PublishedDelta,
    ThinkingStatistics,
    ToolDiagnostics,
)
from infernix.tools import ToolCall, ToolCallDelta


def observation(*, complete: bool = True, terminated: bool = True) -> ConstraintObservation:
    """Of an answer that is finished, or of one that is not."""
    return ConstraintObservation(
        complete=complete,
        terminated=terminated,
        cache=CacheAccess.BUILT,
        mask_positions=4,
        prepare_seconds=0.0105,
        mask_seconds=0.002,
        matcher_seconds=0.0001,
    )


def thought(text: str) -> OutputDelta:
    """A piece of reasoning."""
    return OutputDelta(OutputChannel.REASONING, text)


@dataclass
class PlayedStream:
    """Publishes `pieces` and then `calls`; an exception among the pieces is raised, an integer is a signal that the
    process sends itself."""

    pieces: list[str | OutputDelta | Exception | int]
    finish_reason: FinishReason = FinishReason.STOP_TOKEN
    constraint: ConstraintObservation | None = None
    calls: tuple[ToolCall, ...] = ()
    thinking: ThinkingStatistics | None = None
    diagnostics: ToolDiagnostics | None = None
    cancelled: bool = False

    def deltas(self) -> Iterator[PublishedDelta]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if self.cancelled:
                return
            if isinstance(piece, int):
                signal.raise_signal(piece)
            else:
                yield OutputDelta(OutputChannel.CONTENT, piece) if isinstance(piece, str) else piece
        for index, call in enumerate(self.calls):
            yield ToolCallDelta(index, call.name, "")
            yield ToolCallDelta(index, None, call.arguments_json)

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def result(self) -> GenerationResult:
        pieces = self.pieces[: next((i for i, piece in enumerate(self.pieces) if isinstance(piece, int)), None)]
        return GenerationResult(
            text="".join(piece for piece in pieces if isinstance(piece, str)),
            token_ids=(5, 6, 2),
            num_prompt_tokens=7,
            finish_reason=FinishReason.CANCELLED if self.cancelled else self.finish_reason,
            constraint=self.constraint,
            timings=GenerationTimings(0.0, 0.25, 0.5, 0.75),
            reasoning="".join(piece.text for piece in pieces if isinstance(piece, OutputDelta)),
            tool_calls=self.calls,
            thinking=self.thinking,
            tool_diagnostics=self.diagnostics,
        )


@dataclass
class Stage:
    """An engine that gives `answers` in their order, the last one for ever; it remembers what it was asked."""

    answers: list[PlayedStream | InfernixError] = field(default_factory=lambda: [PlayedStream(["ok"])])
    loaded_with: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[Any, RequestOptions]] = field(default_factory=list)

    def load(self, model: str | None, **options: Any) -> Stage:
        self.loaded_with = {"model": model, **options}
        if model == "missing":
            raise ModelLoadError("there is no model at missing")
        options["progress"]("opening the model")
        return self

    def stream(self, prompt: Any, options: RequestOptions) -> PlayedStream:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append((prompt, options))
        if isinstance(answer, InfernixError):
            raise answer
        return answer


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """In place of the engine that the command line loads."""
    stage = Stage()
    monkeypatch.setattr(infernix.engine, "Engine", stage)
    return stage
