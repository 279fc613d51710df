"""Requests: from a prompt and options to committed text."""

from __future__ import annotations

from infernix.engine.engine import Engine
from infernix.engine.prompt import Prompt
from infernix.engine.stream import GenerationStream

__all__ = ["Engine", "GenerationStream", "Prompt"]
