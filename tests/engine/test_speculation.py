"""Networks that draft, through the engine: the answers are those without, in fewer rounds where the drafts are good."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from frontend.tokenizer_files import byte_level
from models.tiny_qwen3_5 import rewrite_tensors, tiny_qwen3_5

from infernix.engine import Engine
from infernix.engine.speculation import checked_speculation, open_drafter
from infernix.errors import InvalidOptions, ModelLoadError
from infernix.models import LoadedModel, open_model
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationResult

from .drafted_models import BACKENDS, NUM_LOGITS, asked_for, model_of, write_models

PROMPTS = ["one two three", "abcabcabcabcabc", "x", "The quick brown fox jumps over the lazy dog. " * 3]
PREDICTORS = ("mtp", "mtp of streams")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models of `drafted_models` are."""
    path = tmp_path_factory.mktemp("opened")
    write_models(path)
    return path


@pytest.fixture(scope="module")
def loaded_for(directory: Path) -> Callable[[str], LoadedModel]:
    """The model of each backend, opened once."""
    opened = {path: open_model(path) for path in {model_of(directory, backend) for backend in BACKENDS}}
    return lambda backend: opened[model_of(directory, backend)]


def prompts_for(backend: str) -> list[str]:
    """Half as many where rows run one after another."""
    return PROMPTS[1::2] if backend == "mtp of streams" else PROMPTS


def requests(prompts: list[str], sampling: SamplingOptions, **options: Any) -> list[tuple[str, RequestOptions]]:
    """Free and constrained requests of several lengths."""
    constraints = [
        None,
        OutputConstraint.regex("[a-f]{3}( [0-9]{2,5}){4,8}"),
        OutputConstraint.json_schema(
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"enum": ["yes", "no"]}},
                "required": ["b"],
            }
        ),
        OutputConstraint.choice(["the first of them", "the first one", "another"]),
    ]
    return [
        (
            prompt,
            RequestOptions(max_new_tokens=9 + 14 * number, constraint=constraint, sampling=sampling, **options),
        )
        for number, prompt in enumerate(prompts)
        for constraint in constraints
    ]


def answers(loaded: LoadedModel, wanted: list[tuple[str, RequestOptions]], **options: Any) -> list[GenerationResult]:
    """All at once, some of them waiting for memory."""
    with Engine(loaded, max_concurrency=3, cache_tokens=320, max_pending_requests=64, **options) as engine:
        handles = [engine.submit(engine.prepare(prompt), chosen) for prompt, chosen in wanted]
        results = [handle.wait() for handle in handles]
        assert engine.statistics().counters.num_failed_drafts == 0
    return results


@pytest.mark.parametrize("backend", BACKENDS)
def test_greedy_answers_are_the_same(loaded_for: Callable[[str], LoadedModel], directory: Path, backend: str) -> None:
    loaded = loaded_for(backend)
    wanted = requests(prompts_for(backend), SamplingOptions(temperature=0.0))
    plain = answers(loaded, wanted)
    drafted = answers(loaded, wanted, **asked_for(directory, backend))
    for without, with_drafts in zip(plain, drafted, strict=True):
        assert (with_drafts.token_ids, with_drafts.text) == (without.token_ids, without.text)
        assert with_drafts.finish_reason is without.finish_reason
        assert with_drafts.constraint is None or without.constraint is not None
        counts = with_drafts.speculation
        assert counts is not None
        assert counts.backend == asked_for(directory, backend)["speculation"]
        assert counts.network.num_drafted == counts.num_drafted
        if len(without.token_ids) > 12:
            assert counts.num_drafted > 0
    assert any(result.finish_reason is FinishReason.STOP_TOKEN for result in drafted)


@pytest.mark.parametrize("backend", PREDICTORS)
def test_a_good_predictor_spares_rounds(
    loaded_for: Callable[[str], LoadedModel], directory: Path, backend: str
) -> None:
    """Also where copies take its place now and then; the seed's text stays, because its drafts are never drawn."""
    loaded = loaded_for(backend)
    for sampling in (SamplingOptions(temperature=0.0), SamplingOptions(temperature=0.3, seed=5)):
        wanted = [(prompt, RequestOptions(max_new_tokens=40, sampling=sampling)) for prompt in prompts_for(backend)]
        plain = answers(loaded, wanted)
        for more in ({}, {"ngram_draft_tokens": 9, "ngram_min_match": 4}):
            drafted = answers(loaded, wanted, **asked_for(directory, backend), **more)
            assert [result.token_ids for result in drafted] == [result.token_ids for result in plain]
            counts = [result.speculation for result in drafted if result.speculation is not None]
            num_rounds = sum(result.scheduling.num_decode_rounds for result in drafted)
            num_tokens = sum(len(result.token_ids) for result in drafted)
            assert num_rounds + sum(each.num_accepted for each in counts) >= num_tokens - len(drafted)
            assert num_rounds < 0.8 * (num_tokens - len(drafted))


@pytest.mark.parametrize("backend", BACKENDS)
def test_sampled_answers_keep_to_their_constraints(
    loaded_for: Callable[[str], LoadedModel], directory: Path, backend: str
) -> None:
    loaded = loaded_for(backend)
    wanted = requests(prompts_for(backend), SamplingOptions(temperature=1.0, seed=3, top_k=0, top_p=1.0))
    plain = answers(loaded, wanted)
    drafted = answers(loaded, wanted, **asked_for(directory, backend))
    for (_, options), result, without in zip(wanted, drafted, plain, strict=True):
        if backend != "dflash2":
            assert result.token_ids == without.token_ids
        if options.constraint is not None and result.finish_reason is FinishReason.STOP_TOKEN:
            assert result.constraint is not None
            assert result.constraint.complete


def test_what_a_drafter_cannot_do_is_refused(
    loaded_for: Callable[[str], LoadedModel], directory: Path, tmp_path: Path
) -> None:
    loaded, dflash = loaded_for("mtp"), directory / "dflash"
    for arguments, field in [
        (("ngram", None, None), "speculation"),
        (("mtp", 6, None), "draft_tokens"),
        (("mtp", 0, None), "draft_tokens"),
        (("dflash", 16, dflash), "draft_tokens"),
        (("dflash", 8, dflash), "draft_tokens"),
        (("none", 3, None), "draft_tokens"),
        (("mtp", None, dflash), "draft_model"),
        (("dflash", None, None), "draft_model"),
        (("dflash2", None, dflash), "draft_model"),
        (("dflash", None, directory / "dflash2"), "draft_model"),
        (("dflash", None, 5), "draft_model"),
    ]:
        backend, num_drafts, draft_model = arguments
        with pytest.raises(InvalidOptions) as refused:
            Engine(loaded, speculation=backend, draft_tokens=num_drafts, draft_model=draft_model)  # type: ignore[arg-type]
        assert refused.value.field == field
    with pytest.raises(ModelLoadError, match="absent"):
        Engine(loaded, speculation="dflash", draft_model=tmp_path / "absent")


def test_a_model_of_another_kind_is_refused_and_told_which_ones_are_meant(
    loaded_for: Callable[[str], LoadedModel], directory: Path
) -> None:
    with pytest.raises(InvalidOptions, match=r"'mtp' is for Qwen3\.5 and Qwen3\.8-Flash-Next models, and .* is none"):
        Engine.load(speculation="mtp")
    for backend in ("dflash", "dflash2"):
        with pytest.raises(
            InvalidOptions, match=rf"'{backend}' is for Qwen3\.5 models, and qwen4_exp is none"
        ) as refused:
            Engine(loaded_for("mtp of streams"), speculation=backend, draft_model=directory / backend)
        assert refused.value.field == "speculation"


def test_a_model_without_a_predictor_is_refused(tmp_path: Path) -> None:
    tiny_qwen3_5(vocab_size=NUM_LOGITS).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_level())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    with pytest.raises(ModelLoadError, match="multi-token predictor"):
        Engine.load(tmp_path, speculation="mtp")


@pytest.mark.parametrize("backend", PREDICTORS)
def test_every_wrong_tensor_of_a_predictor_is_named(directory: Path, tmp_path: Path, backend: str) -> None:
    path = Path(shutil.copytree(model_of(directory, backend), tmp_path / "model"))

    def broken(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        del tensors["mtp.pre_fc_norm_hidden.weight"]
        return tensors | {"mtp.layers.0.self_attn.k_norm.weight": torch.ones(3)}

    rewrite_tensors(path, broken)
    with pytest.raises(ModelLoadError) as refused:
        Engine.load(path, speculation="mtp")
    assert "'mtp.pre_fc_norm_hidden.weight' is missing" in refused.value.message
    assert "'mtp.layers.0.self_attn.k_norm.weight' has shape [3], expected [16]" in refused.value.message
    Engine.load(path).close()


def test_the_number_of_drafts_has_a_default(loaded_for: Callable[[str], LoadedModel], directory: Path) -> None:
    for backend, expected in zip(BACKENDS, (3, 3, 7, 7), strict=True):
        asked = asked_for(directory, backend)
        options = checked_speculation(asked["speculation"], None, asked.get("draft_model"))
        drafter = open_drafter(options, loaded_for(backend), NUM_LOGITS)
        assert drafter is not None
        assert drafter.num_drafts == expected
