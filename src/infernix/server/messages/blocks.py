"""The content blocks of an answer: what is published, cut where one kind of output ends and another begins.

The stream and the whole answer are both made of these events, so that they cannot differ.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from infernix.results import FinishReason, GenerationEvent, GenerationResult, OutputChannel, OutputDelta
from infernix.server.json_body import RawJson
from infernix.tools import ToolCallDelta


@dataclass(frozen=True, slots=True)
class BlockBegun:
    """A block, without its contents."""

    block: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BlockPiece:
    """A piece of the open block: `field` is what it adds to."""

    field: str
    text: str


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """The open block is whole."""


BlockEvent: TypeAlias = BlockBegun | BlockPiece | BlockEnded

_FIELDS = {OutputChannel.CONTENT: "text", OutputChannel.REASONING: "thinking"}
_COMPLETED = (FinishReason.STOP_TOKEN, FinishReason.STOP_STRING)


class BlockSequence:
    """Cuts one answer into blocks."""

    def __init__(self, call_ids: str) -> None:
        """`call_ids` is what the ids of the calls begin with."""
        self._call_ids = call_ids
        self._open: str | None = None
        self._thinking = hashlib.sha256()

    def feed(self, events: Iterable[GenerationEvent]) -> Iterator[BlockEvent]:
        """What has been published."""
        for event in events:
            if isinstance(event, OutputDelta):
                field = _FIELDS[event.channel]
                if self._open != field:
                    yield from self._close()
                    yield self._begin(field)
                if field == "thinking":
                    self._thinking.update(event.text.encode())
                yield BlockPiece(field, event.text)
            elif isinstance(event, ToolCallDelta):
                if event.name is not None:
                    yield from self._close()
                    yield self._begin_call(event.index, event.name)
                if event.arguments:
                    yield BlockPiece("input", event.arguments)

    def end(self, result: GenerationResult) -> Iterator[BlockEvent]:
        """The end. An answer that came to its own end with nothing to say is an empty text."""
        yield from self._close()
        if not result.text and not result.tool_calls and result.finish_reason in _COMPLETED:
            yield self._begin("text")
            yield from self._close()

    def _begin(self, field: str) -> BlockBegun:
        self._open = field
        if field == "thinking":
            self._thinking = hashlib.sha256()
            return BlockBegun({"type": "thinking", "thinking": "", "signature": ""})
        return BlockBegun({"type": "text", "text": ""})

    def _begin_call(self, index: int, name: str) -> BlockBegun:
        self._open = "input"
        return BlockBegun({"type": "tool_use", "id": f"{self._call_ids}_{index}", "name": name, "input": {}})

    def _close(self) -> Iterator[BlockEvent]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield BlockPiece("signature", base64.b64encode(self._thinking.digest()).decode())
        self._open = None
        yield BlockEnded()


def whole_blocks(events: Iterable[GenerationEvent], result: GenerationResult, call_ids: str) -> list[dict[str, Any]]:
    """All blocks of a whole answer. A call that was cut off is not among them.

    The input of a call is the text of its arguments, with numbers and white space as they were generated.
    """
    sequence = BlockSequence(call_ids)
    blocks: list[dict[str, Any]] = []
    pieces: dict[str, list[str]] = {}
    num_calls = 0
    for event in (*sequence.feed(events), *sequence.end(result)):
        if isinstance(event, BlockBegun):
            blocks.append(event.block)
            pieces = {}
            num_calls += event.block["type"] == "tool_use"
        elif isinstance(event, BlockPiece):
            pieces.setdefault(event.field, []).append(event.text)
        else:
            for field, texts in pieces.items():
                text = "".join(texts)
                blocks[-1][field] = RawJson(text) if field == "input" else text
    if num_calls > len(result.tool_calls):
        blocks.pop()  # it is the last: nothing follows a call that was cut off
    return blocks
