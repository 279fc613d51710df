from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

from infernix.engine.delivery import Delivery
from infernix.results import GenerationStarted, OutputChannel, OutputDelta

RESULT: Any = object()
STARTED = GenerationStarted(3, 0)


def said(text: str) -> OutputDelta:
    return OutputDelta(OutputChannel.CONTENT, text)


def test_events_come_once_and_in_order_and_the_end_after_them() -> None:
    delivery = Delivery()
    delivery.publish([STARTED])
    delivery.publish([said("a"), said("b")])
    assert delivery.next_event() == STARTED
    assert delivery.take() == [said("a"), said("b")]
    assert (delivery.take(), delivery.is_done) == ([], False)
    with pytest.raises(RuntimeError, match="has not finished"):
        delivery.result()
    assert not delivery.wait(0)
    delivery.publish([said("c")], result=RESULT)
    assert (delivery.is_done, delivery.is_used_up) == (True, False)
    assert delivery.wait()
    assert (delivery.next_event(), delivery.next_event()) == (said("c"), None)
    assert delivery.is_used_up
    assert delivery.result() is RESULT


def test_an_error_is_raised_as_often_as_it_is_asked_for() -> None:
    delivery = Delivery()
    delivery.publish([], error=MemoryError("none"))
    for _ in range(2):
        with pytest.raises(MemoryError, match="none"):
            delivery.result()


def test_who_waits_is_woken() -> None:
    delivery = Delivery()
    seen: list[object] = []

    def consume() -> None:
        while (event := delivery.next_event()) is not None:
            seen.append(event)
        seen.append(delivery.result())

    thread = threading.Thread(target=consume)
    thread.start()
    delivery.publish([said("a")])
    delivery.publish([said("b")], result=RESULT)
    thread.join(60)
    assert seen == [said("a"), said("b"), RESULT]


def test_a_subscriber_hears_of_everything_new_and_of_the_end() -> None:
    delivery = Delivery()
    delivery.publish([STARTED])
    heard: list[int] = []
    delivery.subscribe(lambda: heard.append(len(delivery.take())))
    assert heard == [1]
    delivery.publish([])
    delivery.publish([said("a"), said("b")])
    delivery.publish([], result=RESULT)
    assert heard == [1, 2, 0]
    with pytest.raises(RuntimeError, match="has a subscriber"):
        delivery.subscribe(lambda: None)


def test_a_subscriber_that_comes_late_hears_of_the_end() -> None:
    delivery = Delivery()
    delivery.publish([], result=RESULT)
    heard: list[bool] = []
    delivery.subscribe(lambda: heard.append(delivery.is_done))
    assert heard == [True]


def test_what_the_consumer_raised_takes_the_place_of_the_result() -> None:
    delivery = Delivery()

    def refuse() -> None:
        raise ValueError("no")

    delivery.subscribe(refuse)
    with pytest.raises(ValueError, match="no"):
        delivery.publish([said("a")])
    delivery.fail_consumer(ValueError("no"))
    assert not delivery.is_done
    delivery.publish([said("b")], error=ValueError("no"))  # without another call
    assert delivery.take() == [said("a"), said("b")]


def test_nothing_is_kept_for_who_has_left() -> None:
    delivery = Delivery()
    heard: list[int] = []
    delivery.publish([said("a")])
    delivery.subscribe(lambda: heard.append(1))
    delivery.abandon()
    delivery.publish([said("b")], result=RESULT)
    assert (delivery.take(), heard, delivery.is_used_up) == ([], [1], True)


def test_a_traceback_does_not_grow_with_each_time_it_is_raised() -> None:
    delivery = Delivery()
    delivery.publish([], error=MemoryError("none"))
    lengths = set()
    for _ in range(5):
        with pytest.raises(MemoryError) as raised:
            delivery.result()
        lengths.add(len(raised.traceback))
    assert len(lengths) == 1


def test_a_subscriber_is_let_go_of_with_the_end() -> None:
    delivery = Delivery()

    class Consumer:
        def __call__(self) -> None:
            delivery.take()

    consumer = Consumer()
    is_alive = weakref.ref(consumer)
    delivery.subscribe(consumer)
    del consumer
    delivery.publish([STARTED])
    assert is_alive() is not None
    delivery.publish([], result=RESULT)
    assert is_alive() is None
    with pytest.raises(RuntimeError, match="has a subscriber"):
        delivery.subscribe(lambda: None)


def test_a_subscriber_is_something_to_call() -> None:
    delivery = Delivery()
    wrong: Any = 5
    with pytest.raises(TypeError, match="something to call, not int"):
        delivery.subscribe(wrong)
    delivery.subscribe(lambda: None)
