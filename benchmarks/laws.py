"""The law of a whole output, counted out: ordinary decoding by the definitions, rounds by the code that samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.toy_rounds import EOS, Drafter, Tokens, ToyModel
from infernix.errors import ConstraintDeadEnd, NonFiniteLogits
from infernix.ops.acceptance import DraftedRow, RowFailure, RowOutput, verify_row
from infernix.ops.random import Purpose
from infernix.ops.sampling import TokenDomain, WeightedTokens

Outcome = Tokens | RowFailure
"""The tokens of an output, or why its request failed. What a request put out before it failed is not compared: a round
that fails keeps nothing of what it had verified."""
T = TypeVar("T", bool, int)
Law = dict[Outcome, float]


def ordinary_law(model: ToyModel, text: Tokens, num_tokens: int, known: dict[tuple[Tokens, int], Law]) -> Law:
    """What up to `num_tokens` tokens after a text are, drawn one by one; `known` keeps what was worked out before."""
    if num_tokens == 0 or EOS in text:
        return {(): 1.0}
    if (text, num_tokens) not in known:
        law: Law = defaultdict(float)
        try:
            target = model.target(text)
        except ConstraintDeadEnd:
            target = {}
            law[RowFailure.DEAD_END] = 1.0
        except NonFiniteLogits:
            target = {}
            law[RowFailure.NON_FINITE_LOGITS] = 1.0
        for token, probability in target.items():
            _add(law, (token,), probability, ordinary_law(model, (*text, token), num_tokens - 1, known))
        known[text, num_tokens] = dict(law)
    return known[text, num_tokens]


def speculative_law(
    drafter: Drafter, text: Tokens, num_tokens: int, num_rounds: int, known: dict[tuple[Tokens, int], Law]
) -> Law:
    """The same by rounds with drafts; after `num_rounds` of them it goes on by ordinary decoding.

    A round has no more drafts than the budget has room for beside the token that it always puts out.
    """
    if num_rounds == 0 or num_tokens == 0 or EOS in text:
        return ordinary_law(drafter.model, text, num_tokens, known)
    law: Law = defaultdict(float)
    for chain in drafter.chains(text, min(drafter.num_drafts, num_tokens - 1)):
        row = drafter.model.row(text, chain.drafts, chain.proposals)
        for output, probability in branches(row, drafter.model.domain):
            if output.failure is not None:
                law[output.failure] += chain.probability * probability
                continue
            longer = (*text, *output.tokens)
            rest = speculative_law(drafter, longer, num_tokens - len(output.tokens), num_rounds - 1, known)
            _add(law, output.tokens, chain.probability * probability, rest)
    return dict(law)


def _add(law: Law, beginning: Tokens, probability: float, rest: Law) -> None:
    for outcome, share in rest.items():
        law[outcome if isinstance(outcome, RowFailure) else (*beginning, *outcome)] += probability * share


def largest_deviation(one: Mapping[Outcome, float], other: Mapping[Outcome, float]) -> float:
    """The largest difference of two laws in the probability of an outcome."""
    return max(abs(one.get(outcome, 0.0) - other.get(outcome, 0.0)) for outcome in {*one, *other})


def total_variation(one: Mapping[Outcome, float], other: Mapping[Outcome, float]) -> float:
    """The largest difference of two laws in the probability of any set of outcomes."""
    return sum(abs(one.get(outcome, 0.0) - other.get(outcome, 0.0)) for outcome in {*one, *other}) / 2


def branches(row: DraftedRow, domain: TokenDomain) -> Iterator[tuple[RowOutput, float]]:
    """Every output that verifying a row can have, and its probability: the code that samples takes every turn once."""
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        choices = ScriptedChoices(scripts.pop())
        yield verify_row(row, domain, choices), choices.probability
        scripts += choices.other_turns


@dataclass
class ScriptedChoices:
    """Choices as a script tells them; after its end always the first one that has a probability."""

    script: tuple[int, ...]
    taken: tuple[int, ...] = ()
    probability: float = 1.0
    other_turns: list[tuple[int, ...]] = field(default_factory=list)
    """Scripts of the turns not taken where the script was silent."""

    def accept(self, probability: float, position: int) -> bool:
        options = [(stays, share) for stays, share in ((True, probability), (False, 1.0 - probability)) if share > 0.0]
        return self._choose(options)

    def draw(self, law: WeightedTokens, position: int, purpose: Purpose) -> int:
        ids, probabilities = law.support()
        return self._choose(list(zip(ids.tolist(), probabilities.tolist(), strict=True)))

    def _choose(self, options: list[tuple[T, float]]) -> T:
        place = len(self.taken)
        if place < len(self.script):
            chosen = self.script[place]
        else:
            chosen = 0
            self.other_turns += [(*self.taken, other) for other in range(1, len(options))]
        self.taken = (*self.taken, chosen)
        self.probability *= options[chosen][1]
        return options[chosen][0]
