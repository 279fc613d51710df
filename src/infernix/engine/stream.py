"""The output of one request, piece by piece as it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from infernix.engine.handle import GenerationHandle
from infernix.results import GenerationResult, GenerationStarted, OutputChannel, OutputDelta, PublishedDelta


class GenerationStream:
    """An iterator over pieces of the content's text; joined they are `result.text`.

    `deltas` gives everything instead: reasoning, content and pieces of tool calls. Each piece comes once, by one of the
    two ways.

    The request runs by itself and pieces wait here, so a consumer that is slow holds up nobody. Leaving the `with`
    block, calling `close` or dropping the stream ends the request early; `result` then says CANCELLED and holds what
    was committed.

    An error during generation is raised by `next` after all pieces that were committed before it, and by `result`.
    """

    def __init__(self, handle: GenerationHandle) -> None:
        self._handle = handle
        self._has_raised = False

    def __iter__(self) -> GenerationStream:
        return self

    def __next__(self) -> str:
        for delta in self.deltas():
            if isinstance(delta, OutputDelta) and delta.channel is OutputChannel.CONTENT:
                return delta.text
        raise StopIteration

    def deltas(self) -> Iterator[PublishedDelta]:
        """All that is published, in its order: OutputDelta for text, ToolCallDelta for a piece of a call."""
        if self._has_raised:
            return
        try:
            for event in self._handle.stream():
                if not isinstance(event, GenerationStarted):
                    yield event
        except GeneratorExit:
            raise
        except BaseException:
            self._has_raised = True
            raise

    def cancel(self) -> None:
        """Asks for an end before the next unit of work. May be called from any thread, and after the end."""
        self._handle.cancel()

    @property
    def result(self) -> GenerationResult:
        """The result, once the pieces are used up or the stream is cancelled.

        Raises the error that ended the generation, and RuntimeError while it goes on.
        """
        if self._handle.is_cancelled:
            return self._handle.wait()
        if not self._handle.is_used_up:
            raise RuntimeError("the generation has not finished")
        return self._handle.result()

    def close(self) -> None:
        """Cancels what is left, and waits for the end. Raises nothing: an error stays with `result`."""
        if not self._handle.is_done:
            self._handle.cancel()
            self._handle.wait_for_end()
        self._handle.close()

    def __enter__(self) -> GenerationStream:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
