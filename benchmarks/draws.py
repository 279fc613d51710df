"""Outputs drawn through the Program in rounds with drafts, and how far their frequencies are off their law."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.laws import Outcome, ordinary_law, total_variation
from benchmarks.toy_program import ToyMasks, toy_program
from benchmarks.toy_rounds import EOS, Drafter, OneHotDrafter, SparseDrafter, Tokens, ToyModel
from infernix.options import SamplingParameters
from infernix.program.drafters.chain import NO_DRAFTS, DraftChain
from infernix.program.pending import PendingBatch, RowDecision
from infernix.program.program import Program
from infernix.program.sequence import PhysicalSequence

NUM_TOKENS = 5
"""Of an output at most; the first is drawn without drafts, as after every prompt."""
NUM_DRAFTS = 3
_EXTENTS = (NUM_DRAFTS, NUM_DRAFTS, 1, NUM_DRAFTS, 2, 0)
_ROWS_A_DRAFTER = 8
_FALSE_ALARM_PROBABILITY = 1e-9


@dataclass
class DrawnOutput:
    """An output of a drafter with a number, on its way: what it has so far, and in the end its outcome."""

    drafter: Drafter
    number: int
    draw: int
    sequence: PhysicalSequence
    text: Tokens = ()
    outcome: Outcome | None = None

    def chain(self) -> DraftChain:
        """The drafts of its next round. How many is no matter of chance, and often as many as there can be."""
        room = NUM_TOKENS - len(self.text) - 1
        num_drafts = min(room, _EXTENTS[(self.draw + len(self.text)) % len(_EXTENTS)])
        if num_drafts < 1:
            return NO_DRAFTS
        sequence = self.sequence
        # Opinions change with every draw, and do not keep step with the extents.
        seed = sequence.sampling.seed if isinstance(self.drafter, SparseDrafter) else self.draw
        chain = self.drafter.drawn(self.text, num_drafts, seed, len(sequence.ledger))
        return DraftChain(chain.drafts, chain.proposals)


@dataclass(frozen=True)
class Frequencies:
    """How often each outcome of one drafter's outputs came, beside the law that it should have.

    `variation` is the total variation between the two, and `limit` the most that chance may make of it: an upper bound
    of the expectation, half the sum of the outcomes' standard deviations, and McDiarmid's inequality on top of it. An
    outcome without a probability must never come, however few draws there are.
    """

    counts: Counter[Outcome]
    law: dict[Outcome, float]

    @property
    def num_draws(self) -> int:
        return self.counts.total()

    @property
    def variation(self) -> float:
        return total_variation({outcome: count / self.num_draws for outcome, count in self.counts.items()}, self.law)

    @property
    def limit(self) -> float:
        expected = sum(math.sqrt(p * (1.0 - p) / self.num_draws) for p in self.law.values()) / 2
        return expected + math.sqrt(-math.log(_FALSE_ALARM_PROBABILITY) / (2 * self.num_draws))

    @property
    def is_within(self) -> bool:
        return self.variation <= self.limit and self.counts.keys() <= self.law.keys()


def drawn_drafters() -> list[Drafter]:
    """Both kinds of proposals, free and constrained, with cuts and penalties or none; one model has texts that fail.

    The models are such that rounds come to everything that they can come to, and no end of it is rare.
    """
    plain = SamplingParameters(temperature=0.7)
    cut = SamplingParameters(
        temperature=0.8, top_k=3, top_p=0.9, min_p=0.05, presence_penalty=0.5, frequency_penalty=0.3
    )

    def model(seed: int, parameters: SamplingParameters, *, is_constrained: bool, has_failures: bool) -> ToyModel:
        return ToyModel(seed, 5, parameters, is_constrained, has_failures)

    free, free_cut = (
        model(seed, parameters, is_constrained=False, has_failures=False)
        for seed, parameters in ((120, plain), (124, cut))
    )
    constrained = [model(seed, plain, is_constrained=True, has_failures=True) for seed in (252, 196)]
    constrained_cut = [model(seed, cut, is_constrained=True, has_failures=False) for seed in (238, 123)]
    pairs = [(free, free), constrained, (free_cut, free_cut), constrained_cut]
    return [
        drafter
        for one, other in pairs
        for drafter in (OneHotDrafter(one, NUM_DRAFTS, 0.6), SparseDrafter(other, NUM_DRAFTS, 5, 0.8))
    ]


def frequencies(drafters: Sequence[Drafter], num_draws: int) -> list[Frequencies]:
    """Of at least so many outputs of each drafter. Every batch has rows of all of them."""
    program = toy_program([drafter.model for drafter in drafters], _ROWS_A_DRAFTER * len(drafters), NUM_DRAFTS)
    counts: list[Counter[Outcome]] = [Counter() for _ in drafters]
    for first in range(0, num_draws, _ROWS_A_DRAFTER):
        for output in _drawn_together(program, drafters, range(first, first + _ROWS_A_DRAFTER)):
            assert output.outcome is not None, "all rows have come to their end"
            counts[output.number][output.outcome] += 1
    laws = [ordinary_law(drafter.model, (), NUM_TOKENS, {}) for drafter in drafters]
    return [Frequencies(counter, law) for counter, law in zip(counts, laws, strict=True)]


def _drawn_together(program: Program, drafters: Sequence[Drafter], draws: Sequence[int]) -> list[DrawnOutput]:
    """These draws of each drafter's outputs; no two have a seed in common."""
    outputs = []
    for draw in draws:
        for number, drafter in enumerate(drafters):
            seed = draw * len(drafters) + number
            sampling = replace(drafter.model.parameters, seed=seed)
            outputs.append(DrawnOutput(drafter, number, draw, program.start([number], NUM_TOKENS, sampling)))
    for output in outputs:
        batch = program.prefill_chunk(output.sequence, _masks([output]))
        assert batch is not None, "a prompt of one token is one chunk"
        _settle(program, [output], batch)
    while under_way := [output for output in outputs if output.outcome is None]:
        chains = [output.chain() for output in under_way]
        batch = program.decode_batch([output.sequence for output in under_way], _masks(under_way), chains)
        _settle(program, under_way, batch)
    return outputs


def _masks(outputs: Sequence[DrawnOutput]) -> ToyMasks | None:
    rows = [(output.drafter.model, output.text) for output in outputs]
    return ToyMasks(rows) if any(model.is_constrained for model, _ in rows) else None


def _settle(program: Program, outputs: Sequence[DrawnOutput], batch: PendingBatch) -> None:
    """Commits a unit and takes what it brought."""
    decisions = []
    for output, row in zip(outputs, batch.rows, strict=True):
        output.text += row.tokens
        if row.failure is not None:
            output.outcome = row.failure
        elif len(output.text) == NUM_TOKENS or EOS in output.text:
            output.outcome = output.text
        decisions.append(RowDecision(len(row.tokens), is_terminal=output.outcome is not None))
    program.commit(batch, decisions)
