"""The network that drafts for a model: which one is asked for, whether it can be had, and opening it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infernix.engine.limits import check_integer
from infernix.errors import InvalidOptions
from infernix.models import LoadedModel
from infernix.models.dflash2 import DFlash2Drafter, open_dflash
from infernix.models.mtp import MtpPredictor
from infernix.models.qwen3_5 import Qwen35Model
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_mtp import Qwen4ExpMtpPredictor
from infernix.models.weights import WeightFiles
from infernix.options import shown_value
from infernix.program.drafters.dflash import MAX_BLOCK_DRAFTS, BlockDrafter
from infernix.program.drafters.mtp import MAX_MTP_DRAFTS, MtpDrafter
from infernix.program.drafters.neural import NeuralDrafter
from infernix.results import SpeculationBackend

DEFAULT_MTP_DRAFTS = 3
DEFAULT_BLOCK_DRAFTS = 7


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """A backend, its drafts a round (None: its own number), and the directory of a drafter that has one."""

    backend: SpeculationBackend = SpeculationBackend.NONE
    num_draft_tokens: int | None = None
    draft_model: Path | None = None


def checked_speculation(
    backend: str, num_draft_tokens: int | None, draft_model: str | Path | None
) -> SpeculationOptions:
    """Raises InvalidOptions for an unknown backend, a number out of its range, and for what the backend has no use for
    or lacks.
    """
    if backend not in list(SpeculationBackend):
        known = ", ".join(SpeculationBackend)
        raise InvalidOptions(f"expected one of {known}, got {shown_value(backend)}", field="speculation")
    chosen = SpeculationBackend(backend)
    has_directory = chosen in (SpeculationBackend.DFLASH, SpeculationBackend.DFLASH2)
    if draft_model is not None and (not isinstance(draft_model, str | Path) or draft_model == ""):
        raise InvalidOptions(f"expected the path of a directory, got {shown_value(draft_model)}", field="draft_model")
    if has_directory and draft_model is None:
        raise InvalidOptions(f"{chosen.value!r} needs the directory of a drafter", field="draft_model")
    if not has_directory and draft_model is not None:
        raise InvalidOptions(f"{chosen.value!r} has no drafter in a directory of its own", field="draft_model")
    if num_draft_tokens is not None:
        if chosen is SpeculationBackend.NONE:
            raise InvalidOptions("without a drafter there are no drafts", field="draft_tokens")
        check_integer("draft_tokens", num_draft_tokens, 1, MAX_BLOCK_DRAFTS if has_directory else MAX_MTP_DRAFTS)
    return SpeculationOptions(chosen, num_draft_tokens, None if draft_model is None else Path(draft_model))


def open_drafter(options: SpeculationOptions, loaded: LoadedModel, num_tokens: int) -> NeuralDrafter | None:
    """The drafter for a model of which the first `num_tokens` ids are tokens; None where none is asked for.

    Raises InvalidOptions where the model or the drafter cannot do what is asked, and ModelLoadError for files that are
    missing, corrupt or made for another model.
    """
    if options.backend is SpeculationBackend.NONE:
        return None
    if options.backend is SpeculationBackend.MTP:
        return _open_predictor(options, loaded, num_tokens)
    return _open_block_drafter(options, loaded, num_tokens)


def _open_predictor(options: SpeculationOptions, loaded: LoadedModel, num_tokens: int) -> NeuralDrafter:
    model = loaded.model
    if not isinstance(model, Qwen35Model | Qwen4ExpModel):
        raise _of_another_kind(options, "Qwen3.5 and Qwen3.8-Flash-Next", loaded)
    if loaded.directory is None:
        raise InvalidOptions("the model was not opened from a directory, where its predictor is", field="speculation")
    weights = WeightFiles(loaded.directory, dtype=model.dtype, device=model.device)
    predictor = (
        MtpPredictor(model.config, weights, model)
        if isinstance(model, Qwen35Model)
        else Qwen4ExpMtpPredictor(weights, model)
    )
    num_drafts = options.num_draft_tokens or DEFAULT_MTP_DRAFTS
    return MtpDrafter(predictor, model, num_tokens=num_tokens, num_drafts=num_drafts)


def _open_block_drafter(options: SpeculationOptions, loaded: LoadedModel, num_tokens: int) -> NeuralDrafter:
    model = loaded.model
    if not isinstance(model, Qwen35Model):
        raise _of_another_kind(options, "Qwen3.5", loaded)
    assert options.draft_model is not None
    network = open_dflash(options.draft_model, model)
    found = SpeculationBackend.DFLASH2 if isinstance(network, DFlash2Drafter) else SpeculationBackend.DFLASH
    if found is not options.backend:
        raise InvalidOptions(
            f"{options.draft_model} is a {found.value!r} drafter, not a {options.backend.value!r} one",
            field="draft_model",
        )
    num_drafts = options.num_draft_tokens or min(DEFAULT_BLOCK_DRAFTS, network.max_drafts)
    if num_drafts > network.max_drafts:
        raise InvalidOptions(
            f"{num_drafts} drafts, but the drafter's blocks have {network.max_drafts}", field="draft_tokens"
        )
    return BlockDrafter(network, model, num_tokens=num_tokens, num_drafts=num_drafts)


def _of_another_kind(options: SpeculationOptions, wanted: str, loaded: LoadedModel) -> InvalidOptions:
    return InvalidOptions(
        f"{options.backend.value!r} is for {wanted} models, and {loaded.name} is none", field="speculation"
    )
