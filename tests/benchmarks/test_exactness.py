"""The exactness command: its laws hold, it covers what can happen, and it notices rules that are almost right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import exactness
from benchmarks.exactness import LARGEST_DEVIATION, exact_deviation, random_cases
from benchmarks.laws import branches, largest_deviation, ordinary_law, speculative_law, total_variation
from benchmarks.toy_rounds import EOS, OneHotDrafter, SparseDrafter, Tokens, ToyModel
from infernix.ops import acceptance
from infernix.ops.acceptance import DraftTest, RowFailure, SeededChoices
from infernix.ops.proposals import SparseProposals
from infernix.ops.random import Purpose, uniform
from infernix.ops.sampling import WeightedTokens
from infernix.options import SamplingParameters

PUBLISHED = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "exactness" / "full.json"


def test_the_quick_command_prints_one_object_and_finds_no_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exactness, "QUICK", exactness.Effort(num_cases=100, num_draws=1_600))
    assert exactness.main(["--quick", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"cases", "largest_exact_deviation", "draws", "largest_total_variation"}
    assert result["cases"] == exactness.QUICK.num_cases
    assert result["draws"] == exactness.QUICK.num_draws
    assert 0.0 < result["largest_exact_deviation"] <= LARGEST_DEVIATION, "sums in two orders differ by rounding"
    assert 0.0 < result["largest_total_variation"] < 0.2


def test_the_published_result_is_one_of_the_full_command() -> None:
    result = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert (result["cases"], result["draws"]) == (exactness.FULL.num_cases, exactness.FULL.num_draws)
    assert result["largest_exact_deviation"] <= LARGEST_DEVIATION


def test_the_command_says_when_a_law_is_not_met(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(exactness, "QUICK", exactness.Effort(num_cases=8, num_draws=80))
    monkeypatch.setattr(exactness, "exact_deviation", lambda case: 1e-9)
    assert exactness.main(["--quick"]) == 1
    assert "largest_exact_deviation: 1e-09" in capsys.readouterr().out


def test_cases_cover_all_that_a_round_can_come_to() -> None:
    """Every number of accepted drafts in every kind of row, illegal drafts, ends, failures, top-k past legality."""
    seen: Counter[object] = Counter()
    for case in random_cases(300):
        drafter, model = case.drafter, case.drafter.model
        is_sparse = isinstance(drafter, SparseDrafter)
        parameters = model.parameters
        seen["greedy" if parameters.temperature == 0.0 else "sampled", is_sparse] += 1
        _, legal = model.at(())
        seen["fewer legal tokens than top-k"] += bool(legal.sum() < parameters.top_k)
        for name in ("top_p", "min_p", "presence_penalty", "frequency_penalty"):
            seen[name] += getattr(parameters, name) not in (0.0, 1.0)
        for chain in drafter.chains((), min(drafter.num_drafts, case.num_tokens - 1)):
            row = model.row((), chain.drafts, chain.proposals)
            for output, probability in branches(row, model.domain):
                assert probability > 0.0
                refused = len(output.tokens) > output.num_accepted
                is_bonus = output.num_accepted == len(chain.drafts) > 0
                kind = output.failure or (
                    "bonus" if refused and is_bonus else output.num_accepted if refused else "end"
                )
                seen[kind, is_sparse, model.is_constrained] += 1
                if refused and not is_bonus:
                    draft = chain.drafts[output.num_accepted]
                    legal = model.at(output.tokens[:-1])[1]
                    seen["illegal draft", is_sparse] += draft >= model.num_tokens or not legal[draft]
    for is_sparse in (False, True):
        assert min(seen["greedy", is_sparse], seen["sampled", is_sparse]) >= 10
        assert seen["illegal draft", is_sparse] >= 50
        assert seen[RowFailure.DEAD_END, is_sparse, True] >= 1
        for constrained in (False, True):
            for kind in (0, 1, 2, "bonus", "end", RowFailure.NON_FINITE_LOGITS):
                assert seen[kind, is_sparse, constrained] >= 1, (kind, is_sparse, constrained)
    for name in ("top_p", "min_p", "presence_penalty", "frequency_penalty", "fewer legal tokens than top-k"):
        assert seen[name] >= 50


def test_a_failed_request_is_as_probable_with_drafts_as_without() -> None:
    laws = [
        ordinary_law(case.drafter.model, (), case.num_tokens, {})
        for case in random_cases(200)
        if case.drafter.model.has_failures
    ]
    for failure in RowFailure:
        assert sum(0.0 < law.get(failure, 0.0) < 1.0 for law in laws) >= 3


def residual_without_draft(test: DraftTest) -> WeightedTokens:
    """Refused drafts leave, q does not matter: right for one-hot proposals only."""
    test._q = np.ones_like(test._q) * (test._q > 0)
    return REAL_RESIDUAL(test)


def target_itself(test: DraftTest) -> WeightedTokens:
    """The correction is drawn from p, as a bonus would be."""
    return test._target


def q_over_legal_candidates(test: DraftTest, *arguments: object) -> None:
    """q is cut to what the target can say, and normalized again."""
    REAL_INIT(test, *arguments)  # type: ignore[arg-type]
    share = float(test._q[test._target.weights[test._places] > 0].sum()) or 1.0
    test._q = test._q / share
    test.acceptance = min(1.0, test.acceptance * share)


def no_drafts_counted(counts: object) -> object:
    """Penalties see the committed tokens only."""
    return type("Deaf", (), {"ids": counts.ids, "counts": counts.counts, "add": lambda *_: None})()  # type: ignore[attr-defined]


REAL_RESIDUAL = DraftTest.residual
REAL_INIT = DraftTest.__init__


@pytest.mark.parametrize(
    ("place", "name", "mistake"),
    [
        (DraftTest, "residual", residual_without_draft),
        (DraftTest, "residual", target_itself),
        (DraftTest, "__init__", q_over_legal_candidates),
        (acceptance.TokenCounts, "copy", no_drafts_counted),
    ],
)
def test_a_rule_that_is_almost_right_is_noticed(
    monkeypatch: pytest.MonkeyPatch, place: type, name: str, mistake: Callable[..., object]
) -> None:
    monkeypatch.setattr(place, name, mistake)
    assert max(exact_deviation(case) for case in random_cases(60)) > 0.01


def test_a_toy_language_is_asked_for_nothing_past_its_end() -> None:
    model = ToyModel(3, 4, SamplingParameters(), is_constrained=True)
    with pytest.raises(AssertionError, match="after the end"):
        model.at((EOS,))


def test_laws_are_laws_and_rounds_may_follow_rounds() -> None:
    model = ToyModel(11, 5, SamplingParameters(frequency_penalty=0.5), is_constrained=True)
    for drafter in (OneHotDrafter(model, 3), SparseDrafter(model, 2, 3)):
        ordinary = ordinary_law(model, (), 4, {})
        assert len(ordinary) > 20
        assert sum(ordinary.values()) == pytest.approx(1.0, abs=1e-12)
        for num_rounds in (1, 2, 4):
            law = speculative_law(drafter, (), 4, num_rounds, {})
            assert largest_deviation(law, ordinary) <= LARGEST_DEVIATION


def test_distances_of_laws() -> None:
    one: dict[Tokens | RowFailure, float] = {(1,): 0.5, (2,): 0.5}
    other: dict[Tokens | RowFailure, float] = {(1,): 0.4, (3,): 0.3, RowFailure.DEAD_END: 0.3}
    assert largest_deviation(one, other) == 0.5
    assert total_variation(one, other) == pytest.approx(0.6)
    assert total_variation(one, one) == 0.0


def test_a_drawn_chain_comes_with_the_laws_it_was_drawn_from() -> None:
    model = ToyModel(5, 5, SamplingParameters(), is_constrained=True)
    drafter = SparseDrafter(model, 2, 3)
    chains = {chain.drafts: chain for chain in drafter.chains((), 2)}
    assert sum(chain.probability for chain in chains.values()) == pytest.approx(1.0)
    for position in range(50):
        drawn = drafter.drawn((), 2, seed=4, position=10 * position)
        of_law = chains[drawn.drafts].proposals
        assert isinstance(drawn.proposals, SparseProposals)
        assert of_law is not None
        assert np.array_equal(drawn.proposals.probabilities, of_law.probabilities)


def test_seeded_choices_follow_the_uniform_numbers() -> None:
    choices = SeededChoices(6)
    law = WeightedTokens(None, np.array([1.0, 1.0]))
    for position in range(40):
        number = uniform(6, position, Purpose.SPECULATIVE_ACCEPT)
        assert choices.accept(number, position) is False
        assert choices.accept(np.nextafter(number, 1.0), position)
        bonus = uniform(6, position, Purpose.SPECULATIVE_BONUS)
        assert choices.draw(law, position, Purpose.SPECULATIVE_BONUS) == int(bonus >= 0.5)
