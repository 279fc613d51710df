"""Drafters of each kind on tiny random models, and what they should propose, worked out over a whole text anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from models.test_qwen4_exp_mtp import predictor_tensors as streams_predictor_tensors
from models.tiny_dflash import CONFIG, CONFIG2, drafter_tensors, write_drafter
from models.tiny_mtp import predictor_tensors
from models.tiny_qwen3_5 import load_qwen3_5, rewrite_tensors, tiny_qwen3_5
from models.tiny_qwen4_exp import load_qwen4_exp, tiny_qwen4_exp

from infernix.models.dflash import ContextRow
from infernix.models.dflash2 import DFlash2Drafter, open_dflash
from infernix.models.features import FeatureModel
from infernix.models.files import read_json_object
from infernix.models.model import ModelRow
from infernix.models.mtp import MtpPredictor, MtpRow, TokenPredictor
from infernix.models.qwen3_5_config import read_qwen3_5_config
from infernix.models.qwen4_exp_mtp import Qwen4ExpMtpPredictor
from infernix.models.weights import WeightFiles
from infernix.options import SamplingParameters
from infernix.program.drafters.dflash import BlockDrafter
from infernix.program.drafters.mtp import MtpDrafter
from infernix.program.drafters.neural import NeuralDrafter
from support.scripted_program import VOCABULARY

KINDS = ("mtp", "mtp of streams", "dflash", "dflash2")
NUM_TOKENS = VOCABULARY.num_tokens


def model_directory(path: Path) -> Path:
    """A tiny model with a predictor of its own, without a tokenizer."""
    tiny_qwen3_5().save_pretrained(path)
    rewrite_tensors(path, lambda tensors: tensors | predictor_tensors(experts=False))
    return path


@dataclass(frozen=True)
class Networks:
    """Models, and the networks that draft for them: `model` is a Qwen3.5, `streams_model` a Qwen3.8-Flash-Next."""

    model: FeatureModel
    predictor: MtpPredictor
    dflash: Any
    dflash2: Any
    streams_model: FeatureModel
    streams_predictor: Qwen4ExpMtpPredictor

    @classmethod
    def make(cls, path: Path) -> Networks:
        directory = model_directory(path / "model")
        model = load_qwen3_5(directory)
        config = read_qwen3_5_config(read_json_object(directory / "config.json"), directory / "config.json")
        tiny_qwen4_exp().save_pretrained(path / "streams")
        rewrite_tensors(path / "streams", lambda tensors: tensors | streams_predictor_tensors())
        streams_model = load_qwen4_exp(path / "streams")
        return cls(
            model,
            MtpPredictor(config, weights_of(directory), model),
            open_dflash(write_drafter(path / "dflash", CONFIG, drafter_tensors()), model),
            open_dflash(write_drafter(path / "dflash2", CONFIG2, drafter_tensors(with_selector=True)), model),
            streams_model,
            Qwen4ExpMtpPredictor(weights_of(path / "streams"), streams_model),
        )

    def model_of(self, kind: str) -> FeatureModel:
        """The model that a kind of drafter is for."""
        return self.streams_model if kind == "mtp of streams" else self.model

    def predictor_of(self, kind: str) -> TokenPredictor | None:
        """The predictor in a kind of drafter, if there is one."""
        return {"mtp": self.predictor, "mtp of streams": self.streams_predictor}.get(kind)

    def drafter(self, kind: str, num_drafts: int) -> NeuralDrafter:
        predictor, model = self.predictor_of(kind), self.model_of(kind)
        if predictor is not None:
            return MtpDrafter(predictor, model, num_tokens=NUM_TOKENS, num_drafts=num_drafts)
        return BlockDrafter(getattr(self, kind), model, num_tokens=NUM_TOKENS, num_drafts=num_drafts)

    def expected(
        self, kind: str, ledger: Sequence[int], num_drafts: int, width: int, sampling: SamplingParameters
    ) -> list[int]:
        """The drafts behind a text, its last token being the anchor, in blocks of `width` drafts."""
        known, model, predictor = len(ledger) - 1, self.model_of(kind), self.predictor_of(kind)
        rows = [ModelRow(ledger[:known], model.new_cache(known), 0)]
        if predictor is not None:
            return predicted(predictor, ledger, model.forward_features(rows).hidden, num_drafts)
        network = getattr(self, kind)
        taps = model.forward_features(rows, network.config.taps).taps
        assert taps is not None
        cache = network.new_pool(known).new_cache(known)
        network.append_context([ContextRow(taps, cache)])
        if isinstance(network, DFlash2Drafter):
            [candidates] = network.candidates([ledger[-1]], [cache], width, NUM_TOKENS)
            return candidates.walk(sampling.temperature, sampling.seed, len(ledger))[0][:num_drafts]
        drafts: list[int] = network.draft([ledger[-1]], [cache], width, NUM_TOKENS)[0, :num_drafts].tolist()
        return drafts


def weights_of(directory: Path) -> WeightFiles:
    return WeightFiles(directory, dtype=torch.float32, device=torch.device("cpu"))


def predicted(predictor: TokenPredictor, ledger: Sequence[int], hidden: torch.Tensor, num_drafts: int) -> list[int]:
    """A predictor's chain of drafts behind a text that it reads at once."""
    cache = predictor.new_pool(len(ledger) + num_drafts).new_cache(len(ledger) + num_drafts)
    output = predictor.forward_rows([MtpRow(ledger[1:], hidden, cache)])[-1:]
    drafts: list[int] = []
    while True:
        drafts.append(int(predictor.head(output)[0, :NUM_TOKENS].argmax()))
        if len(drafts) == num_drafts:
            return drafts
        output = predictor.forward_rows([MtpRow(drafts[-1:], output, cache)])
