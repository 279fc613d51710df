from __future__ import annotations

from dataclasses import replace

from infernix.cli.report import report_lines
from infernix.results import DraftCounts, SpeculationBackend, SpeculativeStatistics
from support.played_engine import PlayedStream

PLAIN = PlayedStream(["ok"]).result


def draft_lines(drafts: SpeculativeStatistics) -> list[str]:
    lines = list(report_lines(replace(PLAIN, speculation=drafts)))
    return lines[len(list(report_lines(PLAIN))) :]


def test_without_drafts_there_is_nothing_about_them() -> None:
    assert not any("draft" in line for line in report_lines(PLAIN))


def test_drafts_are_told_by_what_they_come_from() -> None:
    drafts = SpeculativeStatistics(
        num_rounds=4,
        num_fallback_rounds=2,
        num_drafted=8,
        num_accepted=5,
        accepted_per_position=(3, 2),
        backend=SpeculationBackend.MTP,
        copies=DraftCounts(5, 4),
        network=DraftCounts(3, 1),
        draft_wait_seconds=0.0123,
    )
    assert draft_lines(drafts) == [
        "drafts:     4 of 5 copied, 1 of 3 from mtp were right",
        "            4 rounds with drafts, 2 without; 12.3 ms to make them",
    ]
    only_copies = replace(drafts, backend=SpeculationBackend.NONE, network=DraftCounts())
    assert draft_lines(only_copies)[0] == "drafts:     4 of 5 copied were right"


def test_rounds_that_had_none_are_told_too() -> None:
    assert draft_lines(SpeculativeStatistics(num_fallback_rounds=7)) == [
        "drafts:     none",
        "            0 rounds with drafts, 7 without; 0.0 ms to make them",
    ]
