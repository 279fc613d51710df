from __future__ import annotations

from typing import Any

import pytest

from infernix.engine.request import Request, RequestTimes
from infernix.engine.states import RequestState, checked_move
from infernix.engine.waiting import WaitingLine
from infernix.errors import InternalError


def request(number: int, deadline: float = 100.0) -> Request:
    nothing: Any = None
    return Request(number, nothing, deadline, RequestTimes(0.0, 0.0))


class Places:
    """Gives a lane to the requests that fit."""

    def __init__(self, fits: set[int], num_lanes: int = 10) -> None:
        self.fits = fits
        self.num_lanes = num_lanes
        self.asked: list[int] = []

    def __call__(self, one: Request) -> bool:
        self.asked.append(one.number)
        if one.number not in self.fits or not self.num_lanes:
            return False
        self.num_lanes -= 1
        one.lane = 0
        return True


def test_first_come_first_served() -> None:
    line = WaitingLine(max_bypasses=3)
    for number in range(4):
        line.append(request(number))
    places = Places({0, 1, 2, 3}, num_lanes=2)
    line.scan(places)
    assert [one.number for one in line] == [2, 3]
    assert places.asked == [0, 1, 2, 3]


def test_a_blocked_request_is_bypassed_a_bounded_number_of_times() -> None:
    line = WaitingLine(max_bypasses=2)
    for number in range(6):
        line.append(request(number))
    places = Places({1, 2, 3, 4, 5})
    line.scan(places)
    assert places.asked == [0, 1, 2]  # the first and two followers
    assert [one.number for one in line] == [0, 3, 4, 5]
    places.asked.clear()
    line.scan(places)
    assert places.asked == [0]
    places.fits.add(0)
    line.scan(places)
    assert [one.number for one in line] == [5]


def test_bypasses_count_for_each_that_stands_before() -> None:
    line = WaitingLine(max_bypasses=3)
    blocked = [request(0), request(1)]
    for one in (*blocked, request(2)):
        line.append(one)
    elsewhere = request(9)
    line.scan(Places({2}), elsewhere)
    assert [one.counts.num_bypassed for one in (*blocked, elsewhere)] == [1, 1, 1]


def test_one_that_failed_bypasses_nobody() -> None:
    line = WaitingLine(max_bypasses=3)
    first = request(0)
    line.append(first)
    line.append(request(1))
    line.scan(lambda one: one.number == 1)  # out of the line, and without a lane
    assert (len(line), first.counts.num_bypassed) == (1, 0)


def test_deadlines() -> None:
    line = WaitingLine(max_bypasses=1)
    for number, deadline in enumerate((30.0, 10.0, 20.0, 10.0)):
        line.append(request(number, deadline))
    assert line.take_expired(9.9) == []
    assert [one.number for one in line.take_expired(10.0)] == [1, 3]
    assert line.take_expired(19.0) == []
    assert [one.number for one in line.take_expired(50.0)] == [0, 2]
    assert len(line) == 0
    line.append(request(5, 60.0))
    assert [one.number for one in line.take_expired(60.0)] == [5]


def test_a_request_takes_only_known_steps() -> None:
    assert checked_move(RequestState.WAITING, RequestState.PREFILL) is RequestState.PREFILL
    for before, after in (
        (RequestState.WAITING, RequestState.PAUSED),
        (RequestState.CONTROL_READY, RequestState.CONTROL_READY),
        (RequestState.DECODE_READY, RequestState.PREFILL),
        (RequestState.FINISHED, RequestState.FINISHED),
    ):
        with pytest.raises(InternalError, match=f"from {before} to {after}"):
            checked_move(before, after)
    assert all(checked_move(state, RequestState.FINISHED) for state in RequestState if state != "finished")
