"""The states of a request, and which may follow which."""

from __future__ import annotations

from enum import StrEnum

from infernix.errors import InternalError


class RequestState(StrEnum):
    """Where a request is on its way.

    WAITING         for a place on the model
    PREFILL         has a place; tokens of its prompt are to be run, or its first token drawn
    DECODE_READY    the next round draws its next token
    CONTROL_READY   the end of its reasoning is put in next, without the model
    PAUSED          gave its place and its memory up for an older request
    REPLAY          is back from a pause; the tokens that it had are being run again
    FINISHED        has a result or an error
    """

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE_READY = "decode_ready"
    CONTROL_READY = "control_ready"
    PAUSED = "paused"
    REPLAY = "replay"
    FINISHED = "finished"


_RUNNING = frozenset({RequestState.PREFILL, RequestState.DECODE_READY, RequestState.CONTROL_READY})
_NEXT: dict[RequestState, frozenset[RequestState]] = {
    RequestState.WAITING: frozenset({*_RUNNING, RequestState.FINISHED}),
    RequestState.PREFILL: frozenset({*_RUNNING, RequestState.PAUSED, RequestState.FINISHED}),
    RequestState.DECODE_READY: frozenset(
        {RequestState.DECODE_READY, RequestState.CONTROL_READY, RequestState.PAUSED, RequestState.FINISHED}
    ),
    RequestState.CONTROL_READY: frozenset({RequestState.DECODE_READY, RequestState.PAUSED, RequestState.FINISHED}),
    RequestState.PAUSED: frozenset({*_RUNNING, RequestState.REPLAY, RequestState.FINISHED}),
    RequestState.REPLAY: frozenset({*_RUNNING, RequestState.REPLAY, RequestState.PAUSED, RequestState.FINISHED}),
    RequestState.FINISHED: frozenset(),
}


def checked_move(before: RequestState, after: RequestState) -> RequestState:
    """`after`. Raises InternalError where no request goes from `before` to it."""
    if after not in _NEXT[before]:
        raise InternalError(f"a request cannot go from {before.value} to {after.value}")
    return after
