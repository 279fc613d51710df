"""What the server asks of an engine: the engine itself is one, and a test may bring another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from infernix.engine.statistics import EngineStatistics
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions
from infernix.results import GenerationEvent, GenerationResult


class ServedHandle(Protocol):
    """A submitted request. Its methods neither block nor wait for the model; `close` cancels what is not done."""

    @property
    def is_done(self) -> bool: ...

    def subscribe(self, callback: Callable[[], None], /) -> None: ...

    def take(self) -> Sequence[GenerationEvent]: ...

    def result(self) -> GenerationResult: ...

    def close(self) -> None: ...


class ServedEngine(Protocol):
    """Preparing and submitting may take long: they tokenize and compile."""

    @property
    def max_context(self) -> int: ...

    @property
    def is_available(self) -> bool: ...

    def prepare(self, prompt: ChatPrompt, /) -> Any: ...

    def count_tokens(self, prompt: ChatPrompt, /) -> int: ...

    def submit(self, prepared: Any, options: RequestOptions, /) -> ServedHandle: ...

    def statistics(self) -> EngineStatistics: ...
