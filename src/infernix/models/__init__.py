"""Language models: opening them, and what the engine needs of one."""

from __future__ import annotations

from infernix.models.loading import LoadedModel, open_model
from infernix.models.model import LanguageModel, SequenceCache

__all__ = ["LanguageModel", "LoadedModel", "SequenceCache", "open_model"]
