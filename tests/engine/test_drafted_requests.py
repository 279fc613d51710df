"""A predictor's drafts through all that may happen to requests: thinking that ends, pauses, prefixes, mixed batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from infernix.engine import Engine
from infernix.messages import ChatPrompt, Message
from infernix.models import LoadedModel, open_model
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationResult

from .drafted_models import asked_for, model_of, write_models

GREEDY = SamplingOptions(temperature=0.0)
THINKING_END = "Enough."


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models of `drafted_models` are."""
    path = tmp_path_factory.mktemp("opened")
    write_models(path)
    return path


@pytest.fixture(scope="module", params=["mtp", "mtp of streams"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def loaded(directory: Path, backend: str) -> LoadedModel:
    return open_model(model_of(directory, backend))


def asked(text: str, *, thinking: bool = False) -> ChatPrompt:
    return ChatPrompt((Message("user", text),), thinking=thinking)


def mixed_requests(budgets: Sequence[int | None]) -> list[tuple[ChatPrompt, RequestOptions]]:
    """Free and constrained, with and without thinking, which now ends by itself and now is ended."""
    constraints = [
        None,
        OutputConstraint.regex("[a-f]{3}( [0-9]{2,5}){4,8}"),
        OutputConstraint.choice(["one", "other"]),
    ]
    return [
        (
            asked("abc " * (3 + number), thinking=budget is not None),
            RequestOptions(
                max_new_tokens=40 + 9 * number, constraint=constraint, sampling=GREEDY, thinking_budget=budget
            ),
        )
        for number, constraint in enumerate(constraints)
        for budget in budgets
    ]


def answers(
    loaded: LoadedModel, wanted: Sequence[tuple[ChatPrompt, RequestOptions]], **options: Any
) -> list[GenerationResult]:
    """All at once, three at a time, in memory that is not enough for three."""
    with Engine(
        loaded,
        max_concurrency=3,
        cache_tokens=128,
        max_cached_prefixes=0,
        max_pending_requests=64,
        thinking_end=THINKING_END,
        **options,
    ) as engine:
        handles = [engine.submit(engine.prepare(prompt), chosen) for prompt, chosen in wanted]
        results = [handle.wait() for handle in handles]
        assert engine.statistics().counters.num_failed_drafts == 0
    return results


@pytest.mark.parametrize("snapshot_bytes", [1 << 24, 0], ids=["snapshots", "replays"])
def test_thinking_forced_ends_and_pauses(
    loaded: LoadedModel, directory: Path, backend: str, snapshot_bytes: int
) -> None:
    # Rows with several streams run one after another.
    wanted = mixed_requests([None, 0, 7, 20] if backend == "mtp" else [None, 7])
    plain = answers(loaded, wanted, snapshot_bytes=snapshot_bytes)
    drafted = answers(loaded, wanted, snapshot_bytes=snapshot_bytes, **asked_for(directory, backend))
    for without, with_drafts in zip(plain, drafted, strict=True):
        assert with_drafts.token_ids == without.token_ids
        assert (with_drafts.reasoning, with_drafts.text) == (without.reasoning, without.text)
        assert with_drafts.thinking == without.thinking
        assert with_drafts.finish_reason is without.finish_reason
    assert any(result.thinking is not None and result.thinking.num_injected_tokens for result in drafted)
    assert any(result.finish_reason is FinishReason.STOP_TOKEN for result in drafted)
    paused = [result for result in drafted if result.scheduling.num_pauses]
    restores = [(result.scheduling.num_snapshot_restores, result.scheduling.num_replay_restores) for result in paused]
    assert sum(each[0 if snapshot_bytes else 1] for each in restores) > 0
    accepted = [result.speculation.num_accepted for result in paused if result.speculation is not None]
    assert max(accepted) > 0


def test_a_prefix_brings_the_predictors_memory_along(loaded: LoadedModel, directory: Path, backend: str) -> None:
    """The same prompt again, and one that goes on behind the answer."""
    options = RequestOptions(max_new_tokens=40, sampling=GREEDY)
    prompt = [5 + place % 90 for place in range(70)]
    with Engine(loaded, max_cached_prefixes=0) as engine:
        first = engine.generate(prompt, options)
        prompts = [prompt, prompt, [*prompt, *first.token_ids, 20, 21, 22]]
        plain = [engine.generate(prompt, options) for prompt in prompts]
    with Engine(loaded, max_cached_prefixes=4, **asked_for(directory, backend)) as engine:
        drafted = [engine.generate(prompt, options) for prompt in prompts]
    with Engine(loaded, max_cached_prefixes=0, **asked_for(directory, backend)) as engine:
        alone = [engine.generate(prompt, options) for prompt in prompts]
    assert [result.num_reused_prompt_tokens for result in alone] == [0, 0, 0]
    assert drafted[1].num_reused_prompt_tokens == len(prompt) < drafted[2].num_reused_prompt_tokens
    for without, with_drafts, unshared in zip(plain, drafted, alone, strict=True):
        assert with_drafts.token_ids == unshared.token_ids == without.token_ids
        # It proposes what it does where it reads the prompt itself.
        counts, expected = with_drafts.speculation, unshared.speculation
        assert counts is not None
        assert expected is not None
        assert counts.accepted_per_position == expected.accepted_per_position
        assert counts.num_drafted == expected.num_drafted > 0
