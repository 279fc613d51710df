"""The output of one request, piece by piece as it is committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType

from infernix.engine.run import GenerationRun
from infernix.results import GenerationResult, OutputChannel, OutputDelta, PublishedDelta


class GenerationStream:
    """An iterator over pieces of the content's text; joined they are `result.text`.

    `deltas` gives everything instead: reasoning, content and pieces of tool calls. Each piece comes once, by one of the
    two ways.

    The work is done in `next`, so a consumer that is slow, or that stops asking, holds up nobody. Leaving the `with`
    block or calling `close` ends the request early; `result` then says CANCELLED and holds what was committed.

    An error during generation is raised by `next` after all pieces that were committed before it, and by `result`.
    """

    def __init__(self, run: GenerationRun, advance: Callable[[GenerationRun], tuple[PublishedDelta, ...]]) -> None:
        self._run = run
        self._advance = advance
        # Committed, and not yet taken by the consumer.
        self._published: deque[PublishedDelta] = deque()

    def __iter__(self) -> GenerationStream:
        return self

    def __next__(self) -> str:
        for delta in self.deltas():
            if isinstance(delta, OutputDelta) and delta.channel is OutputChannel.CONTENT:
                return delta.text
        raise StopIteration

    def deltas(self) -> Iterator[PublishedDelta]:
        """All that is published, in its order: OutputDelta for text, ToolCallDelta for a piece of a call."""
        while self._published or not self._run.is_finished:
            if not self._published:
                self._published += self._advance(self._run)
            while self._published:
                yield self._published.popleft()

    def cancel(self) -> None:
        """Asks for an end before the next unit of work. May be called from any thread, and after the end."""
        self._run.cancel()

    @property
    def result(self) -> GenerationResult:
        """The result, once the pieces are used up or the stream is cancelled.

        Raises the error that ended the generation, and RuntimeError while it goes on.
        """
        if self._run.is_cancelled:
            self._drain()
        return self._run.result()

    def close(self) -> None:
        """Cancels what is left. Raises nothing: an error of the generation stays with `result`."""
        self.cancel()
        self._drain()

    def __enter__(self) -> GenerationStream:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _drain(self) -> None:
        while not self._run.is_finished:
            self._advance(self._run)
