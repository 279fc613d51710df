"""A chat completion in chunks: the role, reasoning, content and calls as they come, the end, and the usage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from infernix.results import GenerationEvent, GenerationResult, GenerationStarted, OutputChannel, OutputDelta
from infernix.server.accounts import Usage, constraint_record
from infernix.server.api_error import ApiError, Dialect
from infernix.server.chat.answer import AnswerHead, finish_reason, usage
from infernix.server.chat.custom_input import CustomInput
from infernix.server.sse import data_event
from infernix.tools import ToolCallDelta


class ChatStream:
    """Writes the chunks of one request, whose samples may come mixed."""

    def __init__(self, head: AnswerHead, num_samples: int, *, includes_usage: bool) -> None:
        self._head = head
        self._num_samples = num_samples
        self._includes_usage = includes_usage
        self._custom: dict[tuple[int, int], CustomInput] = {}

    def started(self, index: int, started: GenerationStarted) -> Iterator[bytes]:
        """The role."""
        yield self._chunk(index, {"role": "assistant", "content": ""})

    def published(self, index: int, events: Sequence[GenerationEvent]) -> Iterator[bytes]:
        """A chunk for each piece."""
        for event in events:
            if isinstance(event, OutputDelta):
                is_content = event.channel is OutputChannel.CONTENT
                yield self._chunk(index, {"content" if is_content else "reasoning_content": event.text})
            elif isinstance(event, ToolCallDelta):
                delta = self._call_delta(index, event)
                if delta is not None:
                    yield self._chunk(index, {"tool_calls": [delta]})

    def finished(self, index: int, result: GenerationResult) -> Iterator[bytes]:
        """The end of a sample. Where no chunk with the usage follows, the record of its constraint goes with it."""
        record = constraint_record(result.constraint)
        choice = _choice(index, {}, finish_reason(result))
        if record is None or (self._num_samples == 1 and self._includes_usage):
            yield self._event([choice])
        elif self._num_samples == 1:
            yield self._event([choice], constraint=record)
        else:
            yield self._event([choice | {"constraint": record}])

    def ended(self, results: Sequence[GenerationResult]) -> Iterator[bytes]:
        """The usage, where it was asked for, and the mark of the end."""
        if self._includes_usage:
            record = constraint_record(results[0].constraint) if self._num_samples == 1 else None
            more = {} if record is None else {"constraint": record}
            yield self._event([], **{"usage": usage(Usage.of(results)), **more})
        yield b"data: [DONE]\n\n"

    def failed(self, error: ApiError) -> Iterator[bytes]:
        """The error's body; no end is marked."""
        yield data_event(Dialect.OPENAI.body(error, self._head.id))

    def _call_delta(self, sample: int, event: ToolCallDelta) -> dict[str, Any] | None:
        """What a piece of a call looks like; None where it says nothing."""
        if event.name is not None and event.name in self._head.custom_names:
            self._custom[sample, event.index] = CustomInput()
        custom = self._custom.get((sample, event.index))
        form, argument = ("function", "arguments") if custom is None else ("custom", "input")
        text = event.arguments if custom is None else custom.feed(event.arguments)
        if event.name is not None:
            call_id = self._head.call_id(sample, event.index)
            return {"index": event.index, "id": call_id, "type": form, form: {"name": event.name, argument: text}}
        return {"index": event.index, form: {argument: text}} if text else None

    def _chunk(self, index: int, delta: dict[str, Any]) -> bytes:
        return self._event([_choice(index, delta, None)])

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        # Clients that ask for the usage expect the field in every chunk.
        expected = {"usage": None} if self._includes_usage else {}
        return data_event(
            {
                "id": self._head.id,
                "object": "chat.completion.chunk",
                "created": self._head.created,
                "model": self._head.model,
                "choices": choices,
                **expected,
                **more,
            }
        )


def _choice(index: int, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
