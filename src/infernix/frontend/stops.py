"""Stop strings: texts that end the output where they first come."""

from __future__ import annotations

from infernix.frontend.pieces import num_held


class StopFilter:
    """Looks for stop strings in one channel's bytes and holds back what may begin one.

    Which string is found does not depend on how the text is cut into pieces: it is the one that is complete first, and
    of several that end at the same byte the one that was declared first.
    """

    __slots__ = ("_held", "_stops")

    def __init__(self, stops: tuple[bytes, ...], held: bytes = b"") -> None:
        self._stops = stops
        self._held = held

    def copy(self) -> StopFilter:
        """An equal filter of its own."""
        return StopFilter(self._stops, self._held)

    def feed(self, data: bytes) -> tuple[bytes, int | None]:
        """The bytes that can be published, and the index of the string that was found behind them."""
        if not self._stops:
            return data, None
        data = self._held + data
        found = min(
            ((start + len(stop), index) for index, stop in enumerate(self._stops) if (start := data.find(stop)) >= 0),
            default=None,
        )
        if found is not None:
            end, index = found
            self._held = b""
            return data[: end - len(self._stops[index])], index
        split = len(data) - max(num_held(data, stop) for stop in self._stops)
        self._held = data[split:]
        return data[:split], None

    def flush(self) -> bytes:
        """What was held back, when nothing follows it in this channel."""
        held, self._held = self._held, b""
        return held
