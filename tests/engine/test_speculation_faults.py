"""Something breaks at a point that drafting adds to a round: what it is for goes on, and nothing is half done.

The drafts of these rounds are mostly right, so that the point that breaks lies before, between or behind accepted ones.
Between any two turns the drafter's memory of every request is that of its committed text (`check_contexts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from infernix.errors import ConstraintTooLarge
from infernix.frontend.answer_reader import AnswerReader
from infernix.models.model import ModelRow
from infernix.program.choice import TokenChooser
from infernix.program.drafters.context import DraftContext
from infernix.program.speculation import Speculation
from tests.engine.simulation.faults import (
    MAX_STRIKES,
    Broken,
    Fault,
    finish,
    in_method,
    in_program,
    nobody_fails,
    one_fails,
    sweep,
    unit_fails,
)
from tests.engine.simulation.features import FeatureMemoryModel
from tests.engine.simulation.scenario import TIGHT_REPLAY, TIGHT_SNAPSHOT, DraftSetup, Memory, Scenario
from tests.engine.simulation.toy_drafter import Kind
from tests.engine.simulation.world import CountedMatcher

Install = Callable[[Scenario, Fault, ExitStack], None]

PREDICTOR, BLOCK = DraftSetup(Kind.PREDICTOR), DraftSetup(Kind.BLOCK, copies=True)
MEMORIES = (None, TIGHT_SNAPSHOT, TIGHT_REPLAY)


@pytest.fixture(params=[PREDICTOR, BLOCK], ids=["predictor", "block"])
def drafts(request: pytest.FixtureRequest) -> DraftSetup:
    setup: DraftSetup = request.param
    return setup


def in_drafter(place: str) -> Install:
    """The drafter raises where it says that it is."""

    def install(scenario: Scenario, fault: Fault, stack: ExitStack) -> None:
        def strike(where: str) -> None:
            if where == place:
                fault.strike()

        scenario.strike = strike
        stack.callback(setattr, scenario, "strike", lambda where: None)

    return install


def undrafted(scenario: Scenario, fault: Fault) -> None:
    """A round went without drafts of the network, and that is all."""
    nobody_fails(scenario, fault)
    counters = scenario.core.statistics().counters
    assert (counters.num_failed_drafts, counters.num_failed_units) == (1, 0)


@pytest.mark.parametrize("memory", MEMORIES, ids=["wide", "snapshot", "replay"])
def test_the_scenario_is_drafted(drafts: DraftSetup, memory: Memory | None) -> None:
    scenario = Scenario(memory, drafts=drafts)
    scenario.submit_all()
    scenario.run()
    nobody_fails(scenario, Fault(1))
    results = [client.request.delivery._result for client in scenario.clients]
    drafted = [result.speculation for result in results if result is not None]
    assert all(counts is not None and counts.num_accepted > 0 for counts in drafted)
    finish(scenario, Fault(1))


@pytest.mark.parametrize(
    ("place", "memory"), [("propose", TIGHT_REPLAY), ("proposing", None), ("proposed", TIGHT_SNAPSHOT)]
)
def test_a_drafter_that_cannot_propose(drafts: DraftSetup, place: str, memory: Memory | None) -> None:
    """Before it has read anything, between two rows, and when it has all drafts."""
    assert sweep(in_drafter(place), undrafted, memory, drafts=drafts, max_strikes=7) >= 5


@pytest.mark.parametrize("memory", MEMORIES, ids=["wide", "snapshot", "replay"])
def test_a_drafter_that_cannot_read(drafts: DraftSetup, memory: Memory | None) -> None:
    """While a prompt is run, a history is run again, or a beginning is remembered."""

    def verdict(scenario: Scenario, fault: Fault) -> None:
        nobody_fails(scenario, fault)
        assert scenario.core.statistics().counters.num_failed_units == 0

    assert sweep(in_drafter("read"), verdict, memory, drafts=drafts, max_strikes=6) == 6


@pytest.mark.parametrize("num_positions", [1, 64])
@pytest.mark.parametrize("memory", MEMORIES, ids=["wide", "snapshot", "replay"])
@pytest.mark.parametrize("kind", [Kind.PREDICTOR, Kind.BLOCK])
def test_a_drafter_without_memory(kind: Kind, memory: Memory | None, num_positions: int) -> None:
    scenario = Scenario(memory, drafts=DraftSetup(kind, num_positions=num_positions))
    scenario.submit_all()
    have_lost = set()
    for _ in range(1000):
        has_run = scenario.core.cycle()
        scenario.check()
        sequences = [client.request.sequence for client in scenario.clients]
        have_lost |= {number for number, each in enumerate(sequences) if each is not None and each.drafting is None}
        if not has_run and scenario.core.is_idle:
            break
    assert have_lost
    nobody_fails(scenario, Fault(1))
    finish(scenario, Fault(1))


def is_drafted_pass(model: FeatureMemoryModel, rows: Sequence[ModelRow], taps: Sequence[int] = ()) -> bool:
    return any(row.num_logits_rows > 1 for row in rows)


def is_acceptance(context: DraftContext, num_columns: int) -> bool:
    return num_columns > 1


def is_chain(matcher: CountedMatcher, tokens: Sequence[int], *_: object) -> bool:
    return len(tokens) > 1


@pytest.mark.parametrize("is_done", [False, True])
def test_a_drafted_pass_that_fails(drafts: DraftSetup, is_done: bool) -> None:
    install = in_method(FeatureMemoryModel, "forward_features", is_done=is_done, where=is_drafted_pass)
    assert sweep(install, unit_fails, drafts=drafts, max_strikes=5) == 5


@pytest.mark.parametrize("is_done", [False, True])
def test_a_commit_that_breaks_off_where_drafts_are_taken_over(drafts: DraftSetup, is_done: bool) -> None:
    install = in_method(DraftContext, "accept", is_done=is_done, where=is_acceptance)
    assert sweep(install, unit_fails, drafts=drafts) == MAX_STRIKES


@pytest.mark.parametrize(("name", "is_done"), [("decode_batch", True), ("commit", False), ("commit", True)])
def test_a_drafted_round_that_fails(drafts: DraftSetup, name: str, is_done: bool) -> None:
    install = in_program(name, is_done=is_done)
    assert sweep(install, unit_fails, drafts=drafts, max_strikes=6) == 6


@pytest.mark.parametrize(("on_device", "make_error"), [(False, Broken), (True, ConstraintTooLarge)])
def test_the_masks_of_a_chain_that_cannot_be_worked_out(
    drafts: DraftSetup, on_device: bool, make_error: type[Exception]
) -> None:
    install = in_method(CountedMatcher, "look_ahead", where=is_chain)
    found = sweep(install, one_fails, drafts=drafts, on_device=on_device, make_error=make_error, max_strikes=6)
    assert found >= 4


def test_the_choice_of_tokens_that_fails(drafts: DraftSetup) -> None:
    install = in_method(TokenChooser, "choose", is_done=True)
    assert sweep(install, unit_fails, drafts=drafts, max_strikes=6) == 6


def test_a_drafted_row_that_cannot_be_previewed(drafts: DraftSetup) -> None:
    install = in_method(CountedMatcher, "preview", is_done=True, where=is_chain)
    assert sweep(install, one_fails, drafts=drafts, max_strikes=6) >= 4


def test_a_row_that_cannot_be_read_or_confirmed_in_the_middle_of_its_drafts(drafts: DraftSetup) -> None:
    """Reading goes token by token: every one of the first twelve of an output breaks off once."""
    assert sweep(in_method(AnswerReader, "feed"), one_fails, drafts=drafts) == MAX_STRIKES
    assert sweep(in_method(CountedMatcher, "confirm"), one_fails, drafts=drafts, max_strikes=4) == 4


# What a drafter has read goes where its sequence goes


def not_remembered(scenario: Scenario, fault: Fault) -> None:
    nobody_fails(scenario, fault)
    assert scenario.core.statistics().counters.num_failed_prefixes == 1


def test_a_beginning_whose_features_cannot_be_kept(drafts: DraftSetup) -> None:
    assert sweep(in_method(Speculation, "remember"), not_remembered, drafts=drafts) >= 4


def test_a_request_that_cannot_take_over_what_was_read_of_its_beginning(drafts: DraftSetup) -> None:
    """Two requests of each kind, so that some continue what others began."""

    def install(scenario: Scenario, fault: Fault, stack: ExitStack) -> None:
        in_method(Speculation, "begin")(scenario, fault, stack)
        scenario.submit_all()
        scenario.run()

    def verdict(scenario: Scenario, fault: Fault) -> None:
        one_fails(scenario, fault)
        assert any(client.request.counts.num_reused_prompt_tokens for client in scenario.clients)

    assert sweep(install, verdict, drafts=drafts) == 8


@pytest.mark.parametrize("is_done", [False, True])
def test_a_copy_of_what_was_read_that_finds_no_memory(drafts: DraftSetup, is_done: bool) -> None:
    install = in_method(DraftContext, "snapshot", is_done=is_done)
    assert sweep(install, nobody_fails, TIGHT_SNAPSHOT, MemoryError, drafts=drafts) >= 1


@pytest.mark.parametrize("is_done", [False, True])
def test_what_was_read_that_cannot_be_restored(drafts: DraftSetup, is_done: bool) -> None:
    install = in_method(DraftContext, "restore", is_done=is_done)
    assert sweep(install, one_fails, TIGHT_SNAPSHOT, drafts=drafts) >= 1


def test_what_finds_no_room_when_it_comes_back_is_gone(drafts: DraftSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def restore(context: DraftContext, snapshot: Any) -> bool:
        return False

    monkeypatch.setattr(DraftContext, "restore", restore)
    scenario = Scenario(TIGHT_SNAPSHOT, drafts=drafts)
    scenario.submit_all()
    scenario.run()
    nobody_fails(scenario, Fault(1))
    assert any(client.request.counts.num_snapshot_restores for client in scenario.clients)
    finish(scenario, Fault(1))
