"""Something that breaks at one point of an engine's work, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from infernix.results import GenerationResult
from tests.engine.simulation.clients import Client
from tests.engine.simulation.scenario import Memory, Scenario

MAX_STRIKES = 12


class Broken(Exception):
    """What is raised where nothing should be."""


class Fault:
    """Raises at the `at`-th call of `strike`; `has_struck` says whether it came to that, `unit` whose unit that was."""

    def __init__(self, at: int, make_error: Callable[[str], BaseException] = Broken) -> None:
        self._num_left = at
        self.scenario: Scenario | None = None
        self.unit: set[int] = set()
        self.error = make_error(f"at {at}")
        self.has_struck = False

    def strike(self) -> None:
        self._num_left -= 1
        if self._num_left == 0:
            self.has_struck = True
            if self.scenario is not None:
                self.unit = set(self.scenario.unit)
            raise self.error


def answers(scenario: Scenario) -> list[object]:
    """What each request ended with; there is an end for each."""
    ends: list[object] = []
    for client in scenario.clients:
        delivery = client.request.delivery
        assert delivery.is_done, "a request was never answered"
        ends.append(delivery._error if delivery._error is not None else delivery._result)
    return ends


def failed(scenario: Scenario, fault: Fault) -> list[Client]:
    """Those whom the fault took with it. All the others are as if nothing had been."""
    victims = []
    for client, end in zip(scenario.clients, answers(scenario), strict=True):
        if end is fault.error:
            victims.append(client)
        else:
            assert isinstance(end, GenerationResult), f"{end!r}"
            client.check_end()
    return victims


def finish(scenario: Scenario, fault: Fault) -> None:
    """The engine goes on: one more request of each kind gets its answer, and nothing has leaked."""
    victims = {client.request for client in failed(scenario, fault)}
    for client in scenario.clients:
        client.handle.close()
        client.is_released = client.is_closed = True
    num_before = len(scenario.clients)
    scenario.submit_all()
    scenario.run()
    for client in scenario.clients[num_before:]:
        assert client.request not in victims
        client.check_end()
        client.collect()
    assert scenario.core.intake.is_open
    assert scenario.core.statistics().num_outstanding == 0
    assert scenario.core.statistics().num_running == 0
    scenario.core.stop()
    scenario.core.cycle()
    scenario.pool.check_held_by([])


def sweep(
    install: Callable[[Scenario, Fault, ExitStack], None],
    verdict: Callable[[Scenario, Fault], None],
    memory: Memory | None = None,
    make_error: Callable[[str], BaseException] = Broken,
    max_strikes: int = MAX_STRIKES,
    **options: Any,
) -> int:
    """Lets the fault strike at the first time, the second, and so on, up to `max_strikes`; how often it did."""
    for at in range(1, max_strikes + 1):
        scenario, fault = Scenario(memory, **options), Fault(at, make_error)
        fault.scenario = scenario
        with ExitStack() as stack:
            install(scenario, fault, stack)
            scenario.submit_all()
            scenario.run()
        if not fault.has_struck:
            return at - 1
        verdict(scenario, fault)
        finish(scenario, fault)
    return max_strikes


def in_program(name: str, *, is_done: bool = False) -> Callable[[Scenario, Fault, ExitStack], None]:
    """A call of the Program raises, before it does anything or when it has done all."""

    def install(scenario: Scenario, fault: Fault, stack: ExitStack) -> None:
        def hook(called: str, was_done: bool) -> None:
            if (called, was_done) == (name, is_done):
                fault.strike()

        scenario.hook = hook
        stack.callback(setattr, scenario, "hook", lambda *_: None)

    return install


def in_method(
    owner: type, name: str, *, is_done: bool = False, where: Callable[..., bool] = lambda *arguments, **options: True
) -> Callable[[Scenario, Fault, ExitStack], None]:
    """A method raises, before it does anything or when it has done all; calls count whose arguments are such that
    `where` is true of them.
    """

    def install(scenario: Scenario, fault: Fault, stack: ExitStack) -> None:
        method = getattr(owner, name)

        def breaking(*arguments: Any, **options: Any) -> Any:
            if not where(*arguments, **options):
                return method(*arguments, **options)
            if is_done:
                result = method(*arguments, **options)
                fault.strike()
                return result
            fault.strike()
            return method(*arguments, **options)

        stack.enter_context(patch.object(owner, name, breaking))

    return install


def one_fails(scenario: Scenario, fault: Fault) -> None:
    assert len(failed(scenario, fault)) == 1


def unit_fails(scenario: Scenario, fault: Fault) -> None:
    assert {client.request.number for client in failed(scenario, fault)} == fault.unit


def nobody_fails(scenario: Scenario, fault: Fault) -> None:
    assert not failed(scenario, fault)
