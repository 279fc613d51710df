"""The items of a response's output, put together from what was published, and the events that tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from infernix.results import FinishReason, GenerationEvent, GenerationResult, OutputChannel, OutputDelta
from infernix.server.responses.items import output_text, reasoning_text
from infernix.server.responses.tools import CallName
from infernix.tools import ToolCallDelta

IN_PROGRESS = "in_progress"
COMPLETED = "completed"
INCOMPLETE = "incomplete"

NamedEvent: TypeAlias = tuple[str, dict[str, Any]]
"""The name of an event and its members."""


def is_cut(result: GenerationResult) -> bool:
    """Whether a limit ended the answer."""
    return result.finish_reason in (FinishReason.OUTPUT_LIMIT, FinishReason.CONTEXT_CAPACITY)


@dataclass(slots=True)
class _OpenText:
    """A message or a reasoning item whose text is still coming; `place` is its index in the output."""

    channel: OutputChannel
    place: int
    pieces: list[str] = field(default_factory=list)

    @property
    def id_prefix(self) -> str:
        return "msg" if self.channel is OutputChannel.CONTENT else "rs"


@dataclass(slots=True)
class _OpenCall:
    """A call whose arguments are still coming; `index` is its number among the calls."""

    index: int
    name: str
    place: int
    pieces: list[str] = field(default_factory=list)
    id_prefix: str = "fc"


class Output:
    """Gives the events of each piece. `items` are the items that are whole, in their order.

    An item ends where another begins. A call that a limit cut has no events that say it were done, and is not among
    the items.
    """

    def __init__(self, key: str, names: Mapping[str, CallName]) -> None:
        """Ids are made of `key`; `names` says whom each of the engine's function names stands for."""
        self.items: list[dict[str, Any]] = []
        self._key = key
        self._names = names
        self._num_begun = 0
        self._open: _OpenText | _OpenCall | None = None

    def published(self, events: Iterable[GenerationEvent]) -> Iterator[NamedEvent]:
        """An event for each piece, and those around items."""
        for event in events:
            if isinstance(event, OutputDelta):
                yield from self._add_text(event)
            elif isinstance(event, ToolCallDelta):
                yield from self._add_call(event)

    def finished(self, result: GenerationResult) -> Iterator[NamedEvent]:
        """The end of the item that is open. An answer that ended by itself and says nothing has an empty message."""
        if isinstance(self._open, _OpenCall) and self._open.index >= len(result.tool_calls):
            self._open = None
        if not (is_cut(result) or result.text or result.tool_calls):
            yield from self._begin_text(OutputChannel.CONTENT)
        yield from self._end(INCOMPLETE if is_cut(result) else COMPLETED)

    def _add_text(self, event: OutputDelta) -> Iterator[NamedEvent]:
        if not isinstance(self._open, _OpenText) or self._open.channel is not event.channel:
            yield from self._begin_text(event.channel)
        assert isinstance(self._open, _OpenText)
        self._open.pieces.append(event.text)
        if event.channel is OutputChannel.CONTENT:
            yield self._text_event("response.output_text.delta", delta=event.text, logprobs=[])
        else:
            yield self._text_event("response.reasoning_text.delta", delta=event.text)

    def _add_call(self, event: ToolCallDelta) -> Iterator[NamedEvent]:
        if event.name is not None:
            yield from self._end(COMPLETED)
            self._open = _OpenCall(event.index, event.name, self._num_begun)
            yield self._added(self._call_item(self._open, "", IN_PROGRESS))
        assert isinstance(self._open, _OpenCall)
        if event.arguments:
            self._open.pieces.append(event.arguments)
            yield self._item_event("response.function_call_arguments.delta", delta=event.arguments)

    def _begin_text(self, channel: OutputChannel) -> Iterator[NamedEvent]:
        yield from self._end(COMPLETED)
        self._open = _OpenText(channel, self._num_begun)
        yield self._added(self._text_item(self._open, [], IN_PROGRESS))
        yield self._text_event("response.content_part.added", part=_part(channel, ""))

    def _end(self, text_status: str) -> Iterator[NamedEvent]:
        """Ends the item that is open, if any."""
        opened = self._open
        if isinstance(opened, _OpenText):
            text = "".join(opened.pieces)
            part = _part(opened.channel, text)
            if opened.channel is OutputChannel.CONTENT:
                yield self._text_event("response.output_text.done", text=text, logprobs=[])
            else:
                yield self._text_event("response.reasoning_text.done", text=text)
            yield self._text_event("response.content_part.done", part=part)
            yield self._done(opened.place, self._text_item(opened, [part], text_status))
        elif isinstance(opened, _OpenCall):
            arguments = "".join(opened.pieces)
            yield self._item_event("response.function_call_arguments.done", arguments=arguments)
            yield self._done(opened.place, self._call_item(opened, arguments, COMPLETED))
        self._open = None

    def _text_item(self, opened: _OpenText, content: list[dict[str, Any]], status: str) -> dict[str, Any]:
        if opened.channel is OutputChannel.CONTENT:
            own: dict[str, Any] = {"type": "message", "role": "assistant", "content": content}
        else:
            own = {"type": "reasoning", "summary": [], "content": content, "encrypted_content": None}
        return {"id": self._item_id(opened), **own, "status": status}

    def _call_item(self, opened: _OpenCall, arguments: str, status: str) -> dict[str, Any]:
        return {
            "id": self._item_id(opened),
            "type": "function_call",
            "call_id": f"call_{self._key}_{opened.index}",
            **self._names.get(opened.name, CallName(opened.name)).members(),
            "arguments": arguments,
            "status": status,
        }

    def _item_id(self, opened: _OpenText | _OpenCall) -> str:
        return f"{opened.id_prefix}_{self._key}_{opened.place}"

    def _added(self, item: dict[str, Any]) -> NamedEvent:
        place = self._num_begun
        self._num_begun += 1
        return "response.output_item.added", {"output_index": place, "item": item}

    def _done(self, place: int, item: dict[str, Any]) -> NamedEvent:
        self.items.append(item)
        return "response.output_item.done", {"output_index": place, "item": item}

    def _text_event(self, name: str, **members: Any) -> NamedEvent:
        return self._item_event(name, content_index=0, **members)

    def _item_event(self, name: str, **members: Any) -> NamedEvent:
        assert self._open is not None
        return name, {"item_id": self._item_id(self._open), "output_index": self._open.place, **members}


def _part(channel: OutputChannel, text: str) -> dict[str, Any]:
    return output_text(text) if channel is OutputChannel.CONTENT else reasoning_text(text)
