"""From what a reader says to what is published: whole characters, channel by channel, up to a stop string."""

from __future__ import annotations

from collections.abc import Iterable

from infernix.frontend.reading import ContentPiece, ReadingEvent, shallow_copy
from infernix.frontend.stops import StopFilter
from infernix.frontend.utf8 import decode_piece, decode_rest
from infernix.results import OutputChannel, OutputDelta, PublishedDelta
from infernix.tools import ToolCallDelta


class Publisher:
    """Turns events into deltas. One channel is open at a time; leaving it publishes what was held back in it.

    An unfinished character is held until it is whole; where it cannot become so any more it is one U+FFFD.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stop_strings = stops
        self._stops = tuple(stop.encode() for stop in stops)
        self._channel = OutputChannel.CONTENT
        self._filter = StopFilter(self._stops)
        self._character = b""
        self.matched_stop_string: str | None = None

    def copy(self) -> Publisher:
        """An equal publisher of its own."""
        twin = shallow_copy(self)
        twin._filter = self._filter.copy()
        return twin

    def publish(
        self, events: Iterable[ReadingEvent], deltas: list[PublishedDelta], *, is_searched: bool = True
    ) -> None:
        """Adds what the events publish; `is_searched`: up to a stop string, behind which nothing is."""
        for event in events:
            if self.matched_stop_string is not None:
                return
            if isinstance(event, ToolCallDelta):
                self._leave_channel(deltas)
                _add_call_piece(event, deltas)
                continue
            channel = OutputChannel.CONTENT if isinstance(event, ContentPiece) else OutputChannel.REASONING
            if channel is not self._channel:
                self._leave_channel(deltas)
                self._channel = channel
            self._publish_bytes(event.data, deltas, is_searched)

    def finish(self, deltas: list[PublishedDelta]) -> None:
        """Adds what is held back, when nothing follows."""
        self._leave_channel(deltas)

    def _publish_bytes(self, data: bytes, deltas: list[PublishedDelta], is_searched: bool) -> None:
        found: int | None = None
        if is_searched:
            data, found = self._filter.feed(data)
        else:
            data = self._filter.flush() + data
        text, self._character = decode_piece(self._character, data)
        _add_text(self._channel, text, deltas)
        if found is not None:
            self.matched_stop_string = self._stop_strings[found]
            self._leave_channel(deltas)

    def _leave_channel(self, deltas: list[PublishedDelta]) -> None:
        text, rest = decode_piece(self._character, self._filter.flush())
        self._character = b""
        _add_text(self._channel, text + decode_rest(rest), deltas)


def _add_text(channel: OutputChannel, text: str, deltas: list[PublishedDelta]) -> None:
    if not text:
        return
    last = deltas[-1] if deltas else None
    if isinstance(last, OutputDelta) and last.channel is channel:
        deltas[-1] = OutputDelta(channel, last.text + text)
    else:
        deltas.append(OutputDelta(channel, text))


def _add_call_piece(piece: ToolCallDelta, deltas: list[PublishedDelta]) -> None:
    last = deltas[-1] if deltas else None
    # The piece with the name stays apart, so that no argument text can be lost with it.
    if isinstance(last, ToolCallDelta) and last.name is None and piece.name is None and last.index == piece.index:
        deltas[-1] = ToolCallDelta(piece.index, None, last.arguments + piece.arguments)
    else:
        deltas.append(piece)
