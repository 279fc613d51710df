"""Which of our definitions runs an architecture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infernix.models.config import SUPPORTED_ARCHITECTURES, ModelConfig, read_model_config
from infernix.models.config_fields import ConfigFields
from infernix.models.llama import LlamaModel
from infernix.models.model import LanguageModel
from infernix.models.qwen3_5 import Qwen35Model
from infernix.models.qwen3_5_config import QWEN3_5_ARCHITECTURES, Qwen35Config, read_qwen3_5_config
from infernix.models.qwen4_exp import Qwen4ExpModel
from infernix.models.qwen4_exp_config import QWEN4_EXP_ARCHITECTURES, Qwen4ExpConfig, read_qwen4_exp_config
from infernix.models.weights import WeightFiles
from infernix.options import shown_value

AnyModelConfig = ModelConfig | Qwen35Config | Qwen4ExpConfig


def read_any_config(document: Mapping[str, Any], source: Path) -> AnyModelConfig:
    """The network that `document`, the content of the config.json `source`, describes.

    Raises ModelLoadError, naming the file and the field, also for an architecture that no definition runs.
    """
    fields = ConfigFields(document, source)
    names = fields.value("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        fields.fail("architectures", f"expected a list of one name, got {shown_value(names)}")
    if names[0] in QWEN3_5_ARCHITECTURES:
        return read_qwen3_5_config(document, source)
    if names[0] in SUPPORTED_ARCHITECTURES:
        return read_model_config(document, source)
    if names[0] in QWEN4_EXP_ARCHITECTURES:
        return read_qwen4_exp_config(document, source)
    known = ", ".join(SUPPORTED_ARCHITECTURES + QWEN3_5_ARCHITECTURES + QWEN4_EXP_ARCHITECTURES)
    fields.fail("architectures", f"{shown_value(names[0])} is not supported, only {known}")


def build_model(config: AnyModelConfig, weights: WeightFiles) -> LanguageModel:
    """The network over its weights; ModelLoadError for tensors that are missing or misshapen."""
    if isinstance(config, ModelConfig):
        return LlamaModel(config, weights)
    return Qwen35Model(config, weights) if isinstance(config, Qwen35Config) else Qwen4ExpModel(config, weights)
