"""Outputs drawn through the Program: what their rounds come to, and mistakes that are noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchmarks.draws import Frequencies, drawn_drafters, frequencies
from benchmarks.toy_program import ToyCache, ToyLanguageModel
from benchmarks.toy_rounds import EOS, ToyModel
from infernix.errors import InternalError
from infernix.models.model import ModelRow
from infernix.ops import acceptance
from infernix.ops.acceptance import ChainMasks, DraftTest, RowFailure, SeededChoices
from infernix.ops.penalties import TokenCounts
from infernix.ops.random import Purpose
from infernix.ops.sampling import WeightedTokens
from infernix.options import SamplingParameters
from infernix.program.choice import BatchRow, TokenChooser
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.masks import MaskBuffers
from infernix.program.pending import PendingBatch
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence

DRAFTERS = drawn_drafters()


@pytest.fixture(scope="module")
def rounds() -> tuple[list[Counter[object]], list[Frequencies]]:
    """What the rounds of 400 outputs of each drafter came to."""
    seen: list[Counter[object]] = [Counter() for _ in DRAFTERS]
    decode = Program.decode_batch

    def watched(program: Program, sequences: Sequence[PhysicalSequence], given: Any, chains: Any) -> PendingBatch:
        batch = decode(program, sequences, given, chains)
        seen[0]["rows are mixed"] += len({DRAFTERS[each.ledger[0]].model.is_constrained for each in sequences}) == 2
        seen[0]["extents are mixed"] += len(set(map(len, chains))) > 2
        for row, chain in zip(batch.rows, chains, strict=True):
            count_round(seen[row.sequence.ledger[0]], row, chain)
        return batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "decode_batch", watched)
        found = frequencies(DRAFTERS, 400)
    return seen, found


def count_round(seen: Counter[object], row: Any, chain: DraftChain) -> None:
    """Adds what one row's round came to."""
    if not chain:
        seen["no drafts"] += 1
        return
    seen["drafts"] += 1
    if row.failure is not None:
        seen[row.failure] += 1
        return
    seen["accepted", row.num_accepted] += 1
    number, *text = row.sequence.ledger
    model = DRAFTERS[number].model
    if row.num_accepted == len(row.tokens):
        seen["end"] += 1
    elif row.num_accepted == len(chain):
        seen["bonus"] += 1
    else:
        draft = chain.tokens[row.num_accepted]
        _, legal = model.at((*text, *row.tokens[:-1]))
        seen["illegal", row.num_accepted] += draft >= model.num_tokens or not legal[draft]
        seen["fewer than top-k"] += bool(legal.sum() < model.parameters.top_k)


def test_frequencies_are_those_of_the_laws(rounds: tuple[list[Counter[object]], list[Frequencies]]) -> None:
    for found in rounds[1]:
        assert found.num_draws == 400
        assert found.is_within, (found.variation, found.limit)
        assert sum(found.law.values()) == pytest.approx(1.0)


def test_drawn_rounds_come_to_all_that_a_round_can_come_to(
    rounds: tuple[list[Counter[object]], list[Frequencies]],
) -> None:
    seen = rounds[0]
    assert min(seen[0]["rows are mixed"], seen[0]["extents are mixed"]) > 50
    for number, (counts, drafter) in enumerate(zip(seen, DRAFTERS, strict=True)):
        for what in ("no drafts", "bonus", "end", *(("accepted", place) for place in range(4))):
            assert counts[what] >= 2, (number, what)
        assert all(counts["illegal", place] >= 1 for place in range(3)), (number, counts)
        # Refusing what is illegal is the easy part, and must not be most of it.
        assert counts["illegal", 0] < 0.5 * counts["drafts"], number
        if drafter.model.is_constrained and drafter.model.parameters.top_k:
            assert counts["fewer than top-k"] >= 50
    for failure in RowFailure:
        assert sum(counts[failure] for counts in seen) >= 3


def accepted_if_legal(test: DraftTest, *arguments: Any) -> None:
    """Every draft that the target could have put out stays."""
    REAL_TEST(test, *arguments)
    test.acceptance = float(test.acceptance > 0.0)


def without_illegal_drafts(chooser: TokenChooser, row: BatchRow, logits: Any, chain_masks: Any, purpose: Any) -> Any:
    """A draft that is not legal is cut off before the round is judged, so a bonus comes in its place."""
    if chain_masks is not None and 0 < chain_masks.num_ready <= len(row.drafts):
        num_left = chain_masks.num_ready - 1
        laws = row.chain.proposals
        if laws is not None:
            laws = replace(
                laws, candidate_ids=laws.candidate_ids[:num_left], probabilities=laws.probabilities[:num_left]
            )
        row = replace(row, chain=DraftChain(row.drafts[:num_left], laws) if num_left else NO_DRAFTS)
        logits, chain_masks = logits[: num_left + 1], replace(chain_masks, words=chain_masks.words[: num_left + 1])
    return REAL_CHOICE(chooser, row, logits, chain_masks, purpose)


def best_bonus(choices: SeededChoices, law: WeightedTokens, position: int, purpose: Purpose) -> int:
    """What comes behind the last draft is the likeliest token and not a drawn one."""
    if purpose is Purpose.SPECULATIVE_BONUS:
        ids, probabilities = law.support()
        return int(ids[probabilities.argmax()])
    return REAL_DRAW(choices, law, position, purpose)


def mask_of_the_place_before(chain: ChainMasks | None, place: int) -> Any:
    """The legal set of a place is that of the place before it."""
    return REAL_MASK(chain, max(0, place - 1))


def masks_of_another_row(buffers: MaskBuffers, given: Any, drafts: Any) -> Any:
    """Constrained rows of equal extent have each other's masks."""
    found = REAL_COLLECT(buffers, given, drafts)
    places = [place for place, row in enumerate(found) if row is not None]
    for place, other in pairwise(places):
        mine, others = found[place], found[other]
        if mine is not None and others is not None and len(mine.words) == len(others.words):
            found[place], found[other] = others, mine
    return found


def uncounted(counts: TokenCounts, token: int) -> None:
    """Penalties never see what was put out."""


REAL_TEST = DraftTest.__init__
REAL_CHOICE = TokenChooser._choose_on_host
REAL_DRAW = SeededChoices.draw
REAL_MASK = acceptance._mask_of
REAL_COLLECT = MaskBuffers.collect


@pytest.mark.parametrize(
    ("place", "name", "mistake", "number", "num_draws"),
    [
        (DraftTest, "__init__", accepted_if_legal, 1, 1_200),
        (TokenChooser, "_choose_on_host", without_illegal_drafts, 7, 1_600),
        (SeededChoices, "draw", best_bonus, 5, 1_200),
        (acceptance, "_mask_of", mask_of_the_place_before, 2, 400),
        (TokenCounts, "add", uncounted, 4, 800),
    ],
)
def test_mistakes_of_rounds_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    mistake: Callable[..., Any],
    number: int,
    num_draws: int,
) -> None:
    """Each by the drafter with this number alone."""
    monkeypatch.setattr(place, name, mistake)
    [found] = frequencies([DRAFTERS[number]], num_draws)
    assert not found.is_within, (found.variation, found.limit)


def test_masks_of_other_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same batch; a round of which no other row knows the legal tokens contradicts itself."""
    monkeypatch.setattr(MaskBuffers, "collect", masks_of_another_row)
    with pytest.raises(InternalError, match="was reached"):
        frequencies(DRAFTERS, 80)


def test_refused_drafts_must_leave_the_memory_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PhysicalSequence, "take_back", lambda self: None)
    [found] = frequencies([DRAFTERS[1]], 80)
    assert not found.is_within


def test_an_outcome_without_a_probability_must_never_come() -> None:
    found = Frequencies(Counter({(0,): 5, (2,): 4}), {(0,): 0.5, (2,): 0.5})
    assert found.is_within
    assert not replace(found, counts=Counter({(0,): 500, (2,): 499, (3,): 1})).is_within


def test_the_limit_is_that_of_chance() -> None:
    rng = np.random.default_rng(5)
    law = dict(zip([(token,) for token in range(40)], rng.dirichlet(np.ones(40)).tolist(), strict=True))
    for num_draws in (100, 10_000):
        drawn = rng.choice(40, num_draws, p=list(law.values()))
        found = Frequencies(Counter((token,) for token in drawn.tolist()), law)
        assert 0.2 * found.limit < found.variation <= found.limit


def test_a_toy_model_says_nothing_after_a_text_that_cannot_come_about() -> None:
    model = ToyModel(3, 5, SamplingParameters(), is_constrained=True)
    _, legal = model.at(())
    legal_ids, illegal_ids = np.flatnonzero(legal).tolist(), np.flatnonzero(~legal).tolist()
    language_model = ToyLanguageModel([model])
    for text in ((), *((token,) for token in legal_ids if token != EOS)):
        [logits] = language_model.forward_rows([ModelRow([0, *text], ToyCache())])
        assert np.array_equal(logits.numpy(), model.at(text)[0])
    for text in ((EOS,), (EOS, 0), *((token,) for token in illegal_ids), (model.num_tokens,)):
        [logits] = language_model.forward_rows([ModelRow([0, *text], ToyCache())])
        assert bool(logits.isnan().all())
