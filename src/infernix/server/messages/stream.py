"""A message as a stream of events: its start, each block from start to stop, its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from infernix.results import GenerationEvent, GenerationResult, GenerationStarted
from infernix.server.accounts import Usage
from infernix.server.api_error import ApiError, Dialect
from infernix.server.messages.answer import AnswerHead, constraint_fields, stop_fields, usage_fields
from infernix.server.messages.blocks import BlockBegun, BlockEvent, BlockPiece, BlockSequence
from infernix.server.sse import named_event

# What adds to which field of a block, and the name that the text has in it.
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "signature": ("signature_delta", "signature"),
    "input": ("input_json_delta", "partial_json"),
}
_NOT_ENDED = {"stop_reason": None, "stop_sequence": None}


class MessageStream:
    """Writes the events of one answer."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._blocks = BlockSequence(head.call_ids)
        self._index = -1

    def started(self, index: int, started: GenerationStarted) -> Iterator[bytes]:
        """The message without content. What of the prompt was known already is certain by now."""
        usage = Usage(started.num_prompt_tokens, started.num_reused_prompt_tokens, 0, 0)
        yield _event("message_start", message=self._head.message([], _NOT_ENDED, usage_fields(usage)))
        yield _event("ping")

    def published(self, index: int, events: Sequence[GenerationEvent]) -> Iterator[bytes]:
        """An event for each piece, and for the start and the stop of each block."""
        return self._written(self._blocks.feed(events))

    def finished(self, index: int, result: GenerationResult) -> Iterator[bytes]:
        """The stop of the last block, and why the message ended."""
        yield from self._written(self._blocks.end(result))
        yield _event(
            "message_delta",
            delta=stop_fields(result),
            usage=usage_fields(Usage.of([result])),
            **constraint_fields(result),
        )

    def ended(self, results: Sequence[GenerationResult]) -> Iterator[bytes]:
        """The mark of the end."""
        yield _event("message_stop")

    def failed(self, error: ApiError) -> Iterator[bytes]:
        """The error's body; no end is marked."""
        yield named_event("error", Dialect.ANTHROPIC.body(error, self._head.request_id))

    def _written(self, events: Iterable[BlockEvent]) -> Iterator[bytes]:
        for event in events:
            if isinstance(event, BlockBegun):
                self._index += 1
                yield _event("content_block_start", index=self._index, content_block=event.block)
            elif isinstance(event, BlockPiece):
                kind, name = _DELTAS[event.field]
                yield _event("content_block_delta", index=self._index, delta={"type": kind, name: event.text})
            else:
                yield _event("content_block_stop", index=self._index)


def _event(name: str, **fields: Any) -> bytes:
    return named_event(name, {"type": name, **fields})
