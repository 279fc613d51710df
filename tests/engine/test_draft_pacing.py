"""Drafts get shorter where a request's own were refused, and longer again: what rounds are asked to verify."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import ArrayLike

from infernix.engine.core import EngineCore
from infernix.engine.drafting import Drafting, NgramOptions
from infernix.engine.limits import CoreLimits
from infernix.engine.request import Request
from infernix.program.drafters.chain import DraftChain, DraftSource
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence
from support.driven_core import VOCABULARY, prepared
from support.scripted_model import ScriptedModel

MOTIF = (10, 11, 12, 13)
NUM_DRAFTS = 6
NUM_NEURAL = 3
PROMPT = (40, 41, 42)
NUM_MOTIFS = 17
FIRST_COPY = 3
"""Tokens between the first motif and the second one's end, but for those that a copy leaves over."""


def misleading_text(num_motifs: int, num_copied: int = 0) -> list[int]:
    """The same four tokens again and again, each time followed by another one, and then a true copy of all that."""
    text = [*PROMPT]
    for number in range(num_motifs):
        text += [*MOTIF, 14 + number % NUM_MOTIFS]
    return [*text, *text[:num_copied]]


class Bench:
    """A core whose model says `text`; `found` is every round's chain, request by request."""

    def __init__(self, text: Sequence[int], *, num_copies: int = NUM_DRAFTS, num_neural: int = 0) -> None:
        def script(so_far: tuple[int, ...]) -> ArrayLike:
            logits = np.zeros(VOCABULARY.num_tokens, dtype=np.float32)
            logits[text[len(so_far) % len(text)]] = 9.0
            return logits

        self.text = text
        self.model = ScriptedModel(script, VOCABULARY.num_tokens, 1000)
        self.program = Program(
            self.model, VOCABULARY, max_rows=2, num_cache_positions=2000, num_draft_tokens=max(num_copies, num_neural)
        )
        self.drafting = Drafting(
            self.program, VOCABULARY, NgramOptions(num_copies, min_match=4), num_neural_drafts=num_neural
        )
        self.found: list[list[DraftChain]] = []
        self.core = EngineCore(
            self.program, CoreLimits(max_concurrency=2, max_cached_prefixes=0), drafting=self.drafting
        )

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fills `found` from now on."""
        chains = self.drafting.chains

        def watched(requests: Sequence[Request]) -> list[DraftChain] | None:
            found = chains(requests)
            self.found.append([DraftChain()] * len(requests) if found is None else found)
            return found

        monkeypatch.setattr(self.drafting, "chains", watched)

    def submit(self, num_tokens: int) -> Request:
        return self.core.submit(lambda: prepared(PROMPT, num_tokens, 1000))

    def run(self, *requests: Request, between: Callable[[], None] = lambda: None) -> None:
        for _ in range(2000):
            if all(request.delivery.is_done for request in requests):
                break
            self.core.cycle()
            between()
        for request in requests:
            output = request.delivery.result().token_ids
            assert list(output) == self.text[len(PROMPT) : len(PROMPT) + len(output)]

    def copies(self) -> list[int]:
        """The lengths of the copies of the first request, round after round, without rounds that have none."""
        chains = [chains[0] for chains in self.found]
        return [len(chain) for chain in chains if chain and chain.source is DraftSource.COPY]


def test_copies_that_are_wrong_get_shorter_and_then_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(misleading_text(NUM_MOTIFS + 1))
    bench.watch(monkeypatch)
    request = bench.submit(5 * NUM_MOTIFS + 3)
    bench.run(request)
    # Behind each motif but the first there is a wrong copy, if it is tried.
    # Of these sixteen, six are passed over before one is tried again.
    assert bench.copies() == [FIRST_COPY, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert request.counts.drafts.of(DraftSource.COPY).num_accepted == 0


def test_copies_that_are_right_again_get_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(misleading_text(7, num_copied=38))
    bench.watch(monkeypatch)
    request = bench.submit(5 * 7 + 37)
    bench.run(request)
    lengths = bench.copies()
    assert lengths[:6] == [FIRST_COPY, 2, 1, 1, 1, 1]
    assert max(lengths[6:]) > 2
    assert request.counts.drafts.of(DraftSource.COPY).num_accepted > 12


def scripted_network(bench: Bench, monkeypatch: pytest.MonkeyPatch, is_right: Callable[[int], bool]) -> list[int]:
    """Puts a drafter in place whose every draft is right or wrong by the place; the extents that it was asked for."""
    asked: list[int] = []

    def propose(sequences: Sequence[PhysicalSequence], extents: Sequence[int]) -> list[DraftChain]:
        asked.append(extents[0])
        return [
            DraftChain(
                tuple(
                    bench.text[place % len(bench.text)] if is_right(place) else 31
                    for place in range(len(sequence.ledger), len(sequence.ledger) + extent)
                )
            )
            for sequence, extent in zip(sequences, extents, strict=True)
        ]

    monkeypatch.setattr(bench.program, "propose", propose)
    return asked


def test_a_network_that_is_wrong_is_asked_for_less_and_then_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(misleading_text(30), num_copies=0, num_neural=NUM_NEURAL)
    asked = scripted_network(bench, monkeypatch, lambda place: False)
    bench.run(bench.submit(101))
    assert asked[:10] == [NUM_NEURAL, 2, 1, 1, 1, 1, 1, 1, 1, 0]
    assert 0 < sum(asked[10:]) < len(asked[10:]) / 4


def test_a_network_that_is_right_is_asked_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(misleading_text(30), num_copies=0, num_neural=NUM_NEURAL)
    asked = scripted_network(bench, monkeypatch, lambda place: place > 40)
    bench.run(bench.submit(141))
    assert 0 in asked
    last = max(number for number, extent in enumerate(asked) if extent < NUM_NEURAL)
    # It took some rounds to find out that the network is right by now; the tail is the output's budget.
    assert asked[last - 2 :].count(NUM_NEURAL) < 4
    assert asked.count(NUM_NEURAL) > 8


def test_a_short_copy_gives_way_to_a_network_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(misleading_text(NUM_MOTIFS), num_neural=NUM_NEURAL)
    bench.watch(monkeypatch)
    scripted_network(bench, monkeypatch, lambda place: True)
    request = bench.submit(5 * NUM_MOTIFS)
    bench.run(request)
    assert request.counts.drafts.of(DraftSource.NETWORK).num_accepted > 60
    assert request.counts.drafts.of(DraftSource.COPY).num_accepted == 0
    assert 0 < len(bench.copies()) < 4


@pytest.mark.parametrize("way", ["snapshot", "replay", "none"])
def test_a_pause_and_a_neighbour_change_nothing(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """The lengths are those of the request alone: they go with it, not with its lane."""
    alone = Bench(misleading_text(NUM_MOTIFS))
    alone.watch(monkeypatch)
    alone.run(alone.submit(80))

    bench = Bench(misleading_text(NUM_MOTIFS))
    bench.watch(monkeypatch)
    first, second = bench.submit(80), bench.submit(30)

    def pause() -> None:
        if way == "none" or first.sequence is None or not first.physical.num_generated_tokens:
            return
        (bench.program.pause_snapshot if way == "snapshot" else bench.program.pause_replay)(first.physical)
        assert bench.program.resume(first.physical, 1)
        while first.physical.num_tokens_to_replay:
            bench.program.replay_chunk(first.physical)

    bench.run(first, second, between=pause)
    assert bench.copies() == alone.copies()
    assert len(alone.copies()) > 5
