from __future__ import annotations

import pytest

from infernix.engine.slots import Slots
from infernix.errors import EngineClosed, Overloaded


def test_slots_have_growing_numbers_and_an_end() -> None:
    slots = Slots(2)
    first, second = slots.take(), slots.take()
    assert first < second
    with pytest.raises(Overloaded, match="2 requests"):
        slots.take()
    slots.give_back(first)
    assert slots.num_outstanding == 1
    assert slots.take() > second


def test_a_slot_given_back_twice_is_one_slot() -> None:
    slots = Slots(2)
    first = slots.take()
    slots.take()
    slots.give_back(first)
    slots.give_back(first)
    slots.take()
    with pytest.raises(Overloaded):
        slots.take()


def test_nothing_is_taken_after_the_close_and_the_first_reason_stays() -> None:
    slots = Slots(2)
    slots.take()
    done: list[int] = []
    slots.when_open(lambda: done.append(1))
    assert slots.is_open
    assert slots.close(EngineClosed("first"))
    assert not slots.close(EngineClosed("second"))
    for action in (slots.take, slots.check_open, lambda: slots.when_open(lambda: done.append(2))):
        with pytest.raises(EngineClosed, match="first"):
            action()
    assert (slots.is_open, done, slots.num_outstanding) == (False, [1], 1)
