"""An answer on its way to the terminal: content on standard output, reasoning, if it is wanted, on standard error."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from infernix.results import GenerationResult, OutputChannel, OutputDelta
from infernix.tools import ToolCall

if TYPE_CHECKING:
    from infernix.engine.stream import GenerationStream


def publish_answer(
    stream: GenerationStream, *, ends_line: bool = False, show_reasoning: bool = False
) -> GenerationResult:
    """Writes the content as it is committed, and behind it the complete calls, each as one line of JSON.

    A line break follows a content that does not end in one where calls follow, and with `ends_line` always. The first
    Ctrl-C ends the generation between two tokens. Raises what ends the generation otherwise.
    """
    output = sys.stdout.buffer
    reasoning = _ReasoningPrinter(show_reasoning)
    last = ""
    with _cancelled_by_interrupt(stream):
        for delta in stream.deltas():
            if not isinstance(delta, OutputDelta):
                continue
            if delta.channel is OutputChannel.REASONING:
                reasoning.write(delta.text)
                continue
            reasoning.end()
            output.write(delta.text.encode())
            output.flush()
            last = delta.text
    reasoning.end()
    result = stream.result
    if not last.endswith("\n") and (last if result.tool_calls else ends_line):
        output.write(b"\n")
    output.write(call_lines(result.tool_calls).encode())
    output.flush()
    return result


def call_lines(calls: Sequence[ToolCall]) -> str:
    """Each call on a line of its own: `{"name": ..., "arguments": {...}}`, the arguments as they were written.

    In JSON, line breaks stand between tokens only, where a space says the same.
    """
    return "".join(
        f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {_on_one_line(call.arguments_json)}}}\n'
        for call in calls
    )


def _on_one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


class _ReasoningPrinter:
    """The reasoning on standard error, with a line break behind it."""

    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._is_open = False

    def write(self, text: str) -> None:
        if self._is_shown:
            print(text, end="", file=sys.stderr, flush=True)
            self._is_open = True

    def end(self) -> None:
        if self._is_open:
            print(file=sys.stderr, flush=True)
            self._is_open = False


@contextmanager
def _cancelled_by_interrupt(stream: GenerationStream) -> Iterator[None]:
    """The first Ctrl-C ends the generation between two tokens, so that a report can follow; the second ends all."""

    def cancel(signal_number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, previous)
        stream.cancel()

    previous = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
