"""The text of one request, piece by piece as it is committed."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from infernix.engine.run import GenerationRun
from infernix.results import GenerationResult


class GenerationStream:
    """An iterator over pieces of text; joined they are `result.text`.

    The work is done in `next`, so a consumer that is slow, or that stops asking, holds up nobody. Leaving the `with`
    block or calling `close` ends the request early; `result` then says CANCELLED and holds what was committed.

    An error during generation is raised by `next` after all pieces that were committed before it, and by `result`.
    """

    def __init__(self, run: GenerationRun, advance: Callable[[GenerationRun], str]) -> None:
        self._run = run
        self._advance = advance

    def __iter__(self) -> GenerationStream:
        return self

    def __next__(self) -> str:
        while not self._run.is_finished:
            piece = self._advance(self._run)
            if piece:
                return piece
        raise StopIteration

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
