"""Something breaks at one point of a unit: what is to blame fails, alone, and nothing is half done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest

from infernix.errors import ConstraintTooLarge, EngineClosed, InternalError, RequestError
from infernix.frontend.answer_reader import AnswerReader
from infernix.program.choice import TokenChooser
from infernix.program.sequence import PhysicalSequence
from infernix.results import GenerationResult
from tests.engine.simulation.faults import (
    MAX_STRIKES,
    Broken,
    Fault,
    answers,
    finish,
    in_method,
    in_program,
    nobody_fails,
    one_fails,
    sweep,
    unit_fails,
)
from tests.engine.simulation.memory_model import MemoryModel
from tests.engine.simulation.scenario import TIGHT_REPLAY, TIGHT_SNAPSHOT, WANTED, Memory, Scenario
from tests.engine.simulation.world import CountedMatcher


def test_the_scenario_runs_undisturbed() -> None:
    for memory in (None, TIGHT_SNAPSHOT, TIGHT_REPLAY):
        scenario = Scenario(memory)
        scenario.submit_all()
        scenario.run()
        assert nobody_fails(scenario, Fault(1)) is None
        changes = {record.get("change") for record in scenario.records}
        assert ("paused" in changes) == (memory is not None)
        finish(scenario, Fault(1))


@pytest.mark.parametrize("name", ["start", "reserve", "prefill_chunk", "append_forced_tokens"])
def test_a_request_that_cannot_begin_or_go_on_fails_alone(name: str) -> None:
    assert sweep(in_program(name), one_fails) >= 1


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("name", ["decode_batch", "commit"])
def test_a_round_that_fails_takes_its_own_requests_with_it(name: str, is_done: bool) -> None:
    assert sweep(in_program(name, is_done=is_done), unit_fails) == MAX_STRIKES


@pytest.mark.parametrize("is_done", [False, True])
def test_a_forward_pass_that_fails(is_done: bool) -> None:
    assert sweep(in_method(MemoryModel, "forward_rows", is_done=is_done), unit_fails) == MAX_STRIKES
    assert sweep(in_method(MemoryModel, "_append", is_done=is_done), unit_fails) == MAX_STRIKES


def test_sampling_that_fails() -> None:
    assert sweep(in_method(TokenChooser, "choose"), unit_fails) == MAX_STRIKES


@pytest.mark.parametrize("on_device", [False, True])
def test_a_mask_that_cannot_be_worked_out_is_one_request_s(on_device: bool) -> None:
    assert sweep(in_method(CountedMatcher, "look_ahead"), one_fails, on_device=on_device) == MAX_STRIKES


@pytest.mark.parametrize("owner", [CountedMatcher, AnswerReader], ids=["matcher", "reader"])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_preview_that_fails_in_any_row(owner: type, is_done: bool) -> None:
    name = "preview" if owner is CountedMatcher else "feed"
    assert sweep(in_method(owner, name, is_done=is_done), one_fails) == MAX_STRIKES


def test_a_confirmation_that_fails() -> None:
    assert sweep(in_method(CountedMatcher, "confirm"), one_fails) == MAX_STRIKES


@pytest.mark.parametrize("name", ["release", "take_back"])
def test_a_commit_that_breaks_off_in_its_middle(name: str) -> None:
    def install(scenario: Scenario, fault: Fault, stack: ExitStack) -> None:
        is_inside = False

        def hook(called: str, was_done: bool) -> None:
            nonlocal is_inside
            if called == "commit":
                is_inside = not was_done

        method = getattr(PhysicalSequence, name)

        def breaking(sequence: PhysicalSequence) -> None:
            nonlocal is_inside
            if is_inside:
                try:
                    fault.strike()
                except Broken:
                    is_inside = False
                    raise
            method(sequence)

        scenario.hook = hook
        stack.enter_context(patch.object(PhysicalSequence, name, breaking))

    assert sweep(install, unit_fails) >= 2


def test_what_cannot_be_remembered_is_nobody_s_failure() -> None:
    def verdict(scenario: Scenario, fault: Fault) -> None:
        nobody_fails(scenario, fault)
        assert scenario.core.statistics().counters.num_failed_prefixes == 1

    assert sweep(in_program("prefix"), verdict) >= 4


def test_a_log_that_fails_is_nobody_s_failure() -> None:
    def verdict(scenario: Scenario, fault: Fault) -> None:
        nobody_fails(scenario, fault)
        assert scenario.core.statistics().counters.num_failed_observations == 1

    assert sweep(in_method(Scenario, "write"), verdict) == MAX_STRIKES


def test_drafts_that_cannot_be_made_are_nobody_s_failure() -> None:
    class _Broken:
        def chains(self, requests: Any) -> None:
            raise Broken("no drafts")

    scenario = Scenario(drafting=_Broken())
    scenario.submit_all()
    scenario.run()
    nobody_fails(scenario, Fault(1))
    counters = scenario.core.statistics().counters
    assert counters.num_failed_drafts == counters.num_decode_rounds > 0
    finish(scenario, Fault(1))


def test_a_bound_of_the_matcher_is_no_failed_unit() -> None:
    def verdict(scenario: Scenario, fault: Fault) -> None:
        one_fails(scenario, fault)
        assert scenario.core.statistics().counters.num_failed_units == 0

    assert sweep(in_method(CountedMatcher, "look_ahead"), verdict, make_error=ConstraintTooLarge) == MAX_STRIKES


# Pauses


def test_a_copy_that_finds_no_memory_becomes_a_replay() -> None:
    def verdict(scenario: Scenario, fault: Fault) -> None:
        nobody_fails(scenario, fault)
        assert scenario.core.statistics().counters.num_replay_restores >= 1

    assert sweep(in_program("pause_snapshot"), verdict, TIGHT_SNAPSHOT, MemoryError) >= 1


@pytest.mark.parametrize("memory", [TIGHT_SNAPSHOT, TIGHT_REPLAY], ids=["snapshot", "replay"])
@pytest.mark.parametrize("name", ["reserve", "resume", "pause"])
def test_a_pause_or_a_return_that_fails_is_one_request_s(memory: Memory, name: str) -> None:
    if name == "pause":
        name = "pause_snapshot" if memory is TIGHT_SNAPSHOT else "pause_replay"
    assert sweep(in_program(name), one_fails, memory) >= 1


@pytest.mark.parametrize("is_done", [False, True])
def test_a_replay_that_fails_is_one_request_s(is_done: bool) -> None:
    assert sweep(in_program("replay_chunk", is_done=is_done), one_fails, TIGHT_REPLAY) >= 1


# What nothing can rely on any more


def broken_down(scenario: Scenario, fault: Fault) -> None:
    """Every request is answered, the engine is closed, and says why."""
    assert not scenario.core.intake.is_open
    for end in answers(scenario):
        if isinstance(end, EngineClosed):
            assert "Broken: at" in str(end)
        else:
            assert end is fault.error or isinstance(end, GenerationResult)
    with pytest.raises(EngineClosed, match="Broken: at"):
        scenario.submit(0)


@pytest.mark.parametrize("install", [in_program("release"), in_method(CountedMatcher, "discard")])
def test_memory_or_a_matcher_that_cannot_be_taken_back(install: Callable[[Scenario, Fault, ExitStack], None]) -> None:
    """Whatever happens then: every request is answered once, and either the engine goes on whole or it is closed."""
    for at in range(1, MAX_STRIKES + 1):
        scenario, fault = Scenario(), Fault(at)
        previews = Fault(3)
        with ExitStack() as stack:
            install(scenario, fault, stack)
            in_method(AnswerReader, "feed")(scenario, previews, stack)
            scenario.submit_all()
            scenario.run(checks=False)
        ends = answers(scenario)
        if scenario.core.intake.is_open:
            assert all(end in (fault.error, previews.error) or isinstance(end, GenerationResult) for end in ends)
        else:
            broken_down(scenario, fault)


@pytest.mark.parametrize("name", ["may_end", "is_terminated"])
def test_a_matcher_that_cannot_say_where_it_is(name: str) -> None:
    """The observation at the end is worked out before the answer: it must not cost anybody the answer."""
    for at in range(1, MAX_STRIKES + 1):
        scenario, fault = Scenario(), Fault(at)
        with ExitStack() as stack:

            def asked(matcher: CountedMatcher, fault: Fault = fault) -> bool:
                fault.strike()
                return bool(getattr(matcher.plain, name))

            stack.enter_context(patch.object(CountedMatcher, name, property(asked)))
            scenario.submit_all()
            scenario.run(checks=False)
        if not fault.has_struck:
            break
        assert len(answers(scenario)) == len(WANTED)


def test_eight_failed_units_in_a_row_stop_the_engine() -> None:
    scenario = Scenario()
    num_calls = 0

    def hook(name: str, is_done: bool) -> None:
        nonlocal num_calls
        if name == "prefill_chunk" and not is_done:
            num_calls += 1
            raise Broken(f"at {num_calls}")

    scenario.hook = hook
    scenario.submit_all()
    scenario.run()
    assert scenario.core.intake.is_open
    scenario.submit_all()
    scenario.run()
    assert num_calls == 8
    assert not scenario.core.intake.is_open
    assert scenario.core.statistics().counters.num_failed_units == 8
    ends = answers(scenario)
    assert [type(end) for end in ends] == [Broken] * 8
    with pytest.raises(EngineClosed, match="Broken: at 8"):
        scenario.submit(0)


def test_a_good_unit_between_them_keeps_it_up() -> None:
    scenario = Scenario()
    num_calls = 0

    def hook(name: str, is_done: bool) -> None:
        nonlocal num_calls
        if name == "prefill_chunk" and not is_done:
            num_calls += 1
            if num_calls % 8:
                raise Broken(f"at {num_calls}")

    scenario.hook = hook
    for _ in range(8):
        for index in range(4):
            client = scenario.submit(index)
            scenario.run()
            client.take()
            client.handle.close()
            client.is_released = client.is_closed = True
    assert scenario.core.intake.is_open


def test_an_interrupt_in_the_worker_answers_everybody_and_goes_on_up() -> None:
    scenario = Scenario()

    def hook(name: str, is_done: bool) -> None:
        if name == "decode_batch":
            raise KeyboardInterrupt

    scenario.hook = hook
    scenario.submit_all()
    with pytest.raises(KeyboardInterrupt):
        scenario.run(checks=False)
    assert {type(end) for end in answers(scenario)} == {EngineClosed}
    assert scenario.core.is_stopped


def test_a_provider_that_contradicts_itself_is_an_internal_error() -> None:
    def contradicts(matcher: CountedMatcher, drafts: Any, rows: Any) -> Any:
        found = matcher.plain.look_ahead(drafts, rows)
        return type(found)(0, 0)

    scenario = Scenario()
    with patch.object(CountedMatcher, "look_ahead", contradicts):
        scenario.submit_all()
        scenario.run()
    ends = answers(scenario)
    for client, end in zip(scenario.clients, ends, strict=True):
        if client.shadow is None:
            assert isinstance(end, GenerationResult)
            client.check_end()
        else:
            assert isinstance(end, InternalError)
            assert not isinstance(end, RequestError)
    assert scenario.core.intake.is_open
