"""Requests: from a prompt and options to committed text."""

from __future__ import annotations

from infernix.engine.engine import Engine
from infernix.engine.handle import GenerationHandle
from infernix.engine.prompt import Prompt
from infernix.engine.request_log import JsonLinesLog, RequestLog
from infernix.engine.statistics import Counters, EngineStatistics
from infernix.engine.stream import GenerationStream
from infernix.frontend.prompt import PreparedPrompt

__all__ = [
    "Counters",
    "Engine",
    "EngineStatistics",
    "GenerationHandle",
    "GenerationStream",
    "JsonLinesLog",
    "PreparedPrompt",
    "Prompt",
    "RequestLog",
]
