"""Networks that draft, through the engine: the answers are those without, in fewer rounds where the drafts are good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from frontend.tokenizer_files import byte_level
from models.tiny_dflash import CONFIG, CONFIG2, drafter_tensors, write_drafter
from models.tiny_mtp import predictor_tensors
from models.tiny_qwen3_5 import HIDDEN, rewrite_tensors, tiny_qwen3_5

from infernix.engine import Engine
from infernix.engine.speculation import checked_speculation, open_drafter
from infernix.errors import InvalidOptions, ModelLoadError
from infernix.models import LoadedModel, open_model
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationResult

NUM_LOGITS = 3 + 256 + 6 + 7
PROMPTS = ["one two three", "abcabcabcabcabc", "x", "The quick brown fox jumps over the lazy dog. " * 3]
_WRITES = ("o_proj.weight", "out_proj.weight", "down_proj.weight")


def predictable(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A model that mostly goes by its last token, and a predictor that knows no more than that."""
    more = {
        name: tensor * (0.0 if "norm" in name else 1.0) for name, tensor in predictor_tensors(experts=False).items()
    }
    more["mtp.fc.weight"] = torch.cat((torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)), dim=1)
    more["mtp.norm.weight"] = tensors["model.norm.weight"]
    tensors |= more
    return {name: tensor * (0.01 if name.endswith(_WRITES) else 1.0) for name, tensor in tensors.items()}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opened") / "tiny-qwen3_5"
    tiny_qwen3_5(vocab_size=NUM_LOGITS).save_pretrained(path)
    rewrite_tensors(path, predictable)
    (path / "tokenizer.json").write_text(byte_level())
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    tensors = drafter_tensors(with_selector=True)
    for name, tensor in tensors.items():
        if name.endswith("codebook"):
            tensors[name] = tensor.repeat(3, 1)[:NUM_LOGITS]
    write_drafter(path / "dflash", CONFIG, drafter_tensors())
    write_drafter(path / "dflash2", CONFIG2, tensors)
    return path


@pytest.fixture(scope="module")
def loaded(directory: Path) -> LoadedModel:
    return open_model(directory)


def asked_for(directory: Path, backend: str) -> dict[str, Any]:
    """What an engine is told for a backend."""
    drafter = {"draft_model": directory / backend} if backend.startswith("dflash") else {}
    return {"speculation": backend, "draft_tokens": 4} | drafter


def requests(sampling: SamplingOptions, **options: Any) -> list[tuple[str, RequestOptions]]:
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
        for number, prompt in enumerate(PROMPTS)
        for constraint in constraints
    ]


def answers(loaded: LoadedModel, wanted: list[tuple[str, RequestOptions]], **options: Any) -> list[GenerationResult]:
    """All at once, some of them waiting for memory."""
    with Engine(loaded, max_concurrency=3, cache_tokens=320, max_pending_requests=64, **options) as engine:
        handles = [engine.submit(engine.prepare(prompt), chosen) for prompt, chosen in wanted]
        results = [handle.wait() for handle in handles]
        assert engine.statistics().counters.num_failed_drafts == 0
    return results


@pytest.mark.parametrize("backend", ["mtp", "dflash", "dflash2"])
def test_greedy_answers_are_the_same(loaded: LoadedModel, directory: Path, backend: str) -> None:
    wanted = requests(SamplingOptions(temperature=0.0))
    plain = answers(loaded, wanted)
    drafted = answers(loaded, wanted, **asked_for(directory, backend))
    for without, with_drafts in zip(plain, drafted, strict=True):
        assert (with_drafts.token_ids, with_drafts.text) == (without.token_ids, without.text)
        assert with_drafts.finish_reason is without.finish_reason
        assert with_drafts.constraint is None or without.constraint is not None
        counts = with_drafts.speculation
        assert counts is not None
        if len(without.token_ids) > 12:
            assert counts.num_drafted > 0
    assert any(result.finish_reason is FinishReason.STOP_TOKEN for result in drafted)


def test_a_good_predictor_spares_rounds(loaded: LoadedModel, directory: Path) -> None:
    """Also where copies take its place now and then; the seed's text stays, because its drafts are never drawn."""
    for sampling in (SamplingOptions(temperature=0.0), SamplingOptions(temperature=0.3, seed=5)):
        wanted = [(prompt, RequestOptions(max_new_tokens=60, sampling=sampling)) for prompt in PROMPTS]
        plain = answers(loaded, wanted)
        for more in ({}, {"ngram_draft_tokens": 9, "ngram_min_match": 4}):
            drafted = answers(loaded, wanted, **asked_for(directory, "mtp"), **more)
            assert [result.token_ids for result in drafted] == [result.token_ids for result in plain]
            counts = [result.speculation for result in drafted if result.speculation is not None]
            num_rounds = sum(result.scheduling.num_decode_rounds for result in drafted)
            num_tokens = sum(len(result.token_ids) for result in drafted)
            assert num_rounds + sum(each.num_accepted for each in counts) >= num_tokens - len(drafted)
            assert num_rounds < 0.8 * (num_tokens - len(drafted))


@pytest.mark.parametrize("backend", ["mtp", "dflash", "dflash2"])
def test_sampled_answers_keep_to_their_constraints(loaded: LoadedModel, directory: Path, backend: str) -> None:
    wanted = requests(SamplingOptions(temperature=1.0, seed=3, top_k=0, top_p=1.0))
    plain = answers(loaded, wanted)
    drafted = answers(loaded, wanted, **asked_for(directory, backend))
    for (_, options), result, without in zip(wanted, drafted, plain, strict=True):
        if backend != "dflash2":
            assert result.token_ids == without.token_ids
        if options.constraint is not None and result.finish_reason is FinishReason.STOP_TOKEN:
            assert result.constraint is not None
            assert result.constraint.complete


def test_what_a_drafter_cannot_do_is_refused(loaded: LoadedModel, directory: Path, tmp_path: Path) -> None:
    dflash = directory / "dflash"
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


def test_a_model_without_a_predictor_is_refused(tmp_path: Path, loaded: LoadedModel) -> None:
    tiny_qwen3_5(vocab_size=NUM_LOGITS).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(byte_level())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0}))
    with pytest.raises(ModelLoadError, match="multi-token predictor"):
        Engine.load(tmp_path, speculation="mtp")
    with pytest.raises(InvalidOptions, match=r"is for Qwen3\.5 models"):
        Engine.load(speculation="mtp")


def test_the_number_of_drafts_has_a_default(loaded: LoadedModel, directory: Path) -> None:
    for backend, expected in [("mtp", 3), ("dflash", 7), ("dflash2", 7)]:
        asked = asked_for(directory, backend)
        options = checked_speculation(backend, None, asked.get("draft_model"))
        drafter = open_drafter(options, loaded, NUM_LOGITS)
        assert drafter is not None
        assert drafter.num_drafts == expected
