"""Infernix: a language model engine whose output has exactly the shape that was asked for.

from infernix import Engine, OutputConstraint, RequestOptions

with Engine.load() as engine:
    options = RequestOptions(constraint=OutputConstraint.choice(["yes", "no"]))
    print(engine.generate("Is water wet? Answer:", options).text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infernix.errors import (
    CacheCapacityExceeded,
    ConstraintDeadEnd,
    ConstraintError,
    ConstraintSource,
    ConstraintTooLarge,
    ContextLengthExceeded,
    EmptyLanguage,
    EngineClosed,
    EngineUnavailable,
    InfernixError,
    InternalError,
    InvalidChoice,
    InvalidGrammar,
    InvalidJsonSchema,
    InvalidOptions,
    InvalidPrompt,
    InvalidRegex,
    InvalidToolConstraint,
    ModelLoadError,
    NonFiniteLogits,
    Overloaded,
    QueueTimeout,
    RequestError,
    TextLocation,
    ThinkingBudgetCapacity,
    UnsatisfiableJsonSchema,
    UnsupportedJsonSchema,
)
from infernix.messages import ChatPrompt, Message
from infernix.options import (
    ConstraintKind,
    OutputConstraint,
    RequestOptions,
    SamplingOptions,
    SamplingParameters,
    SchemaModel,
)
from infernix.results import (
    CacheAccess,
    ConstraintObservation,
    DraftCounts,
    FinishReason,
    GenerationResult,
    GenerationStarted,
    GenerationTimings,
    OutputBranch,
    OutputChannel,
    OutputDelta,
    SchedulingStatistics,
    SpeculationBackend,
    SpeculativeStatistics,
    ThinkingStatistics,
    ToolDiagnostics,
    ToolFallback,
)
from infernix.tools import ToolCall, ToolCallDelta, ToolChoice, ToolDefinition, ToolEnforcement, ToolMode

if TYPE_CHECKING:
    from infernix.engine import Engine, EngineStatistics, GenerationHandle, GenerationStream, JsonLinesLog

__all__ = [
    "CacheAccess",
    "CacheCapacityExceeded",
    "ChatPrompt",
    "ConstraintDeadEnd",
    "ConstraintError",
    "ConstraintKind",
    "ConstraintObservation",
    "ConstraintSource",
    "ConstraintTooLarge",
    "ContextLengthExceeded",
    "DraftCounts",
    "EmptyLanguage",
    "Engine",
    "EngineClosed",
    "EngineStatistics",
    "EngineUnavailable",
    "FinishReason",
    "GenerationHandle",
    "GenerationResult",
    "GenerationStarted",
    "GenerationStream",
    "GenerationTimings",
    "InfernixError",
    "InternalError",
    "InvalidChoice",
    "InvalidGrammar",
    "InvalidJsonSchema",
    "InvalidOptions",
    "InvalidPrompt",
    "InvalidRegex",
    "InvalidToolConstraint",
    "JsonLinesLog",
    "Message",
    "ModelLoadError",
    "NonFiniteLogits",
    "OutputBranch",
    "OutputChannel",
    "OutputConstraint",
    "OutputDelta",
    "Overloaded",
    "QueueTimeout",
    "RequestError",
    "RequestOptions",
    "SamplingOptions",
    "SamplingParameters",
    "SchedulingStatistics",
    "SchemaModel",
    "SpeculationBackend",
    "SpeculativeStatistics",
    "TextLocation",
    "ThinkingBudgetCapacity",
    "ThinkingStatistics",
    "ToolCall",
    "ToolCallDelta",
    "ToolChoice",
    "ToolDefinition",
    "ToolDiagnostics",
    "ToolEnforcement",
    "ToolFallback",
    "ToolMode",
    "UnsatisfiableJsonSchema",
    "UnsupportedJsonSchema",
]


def __getattr__(name: str) -> Any:
    # Checking a constraint needs no model, and importing this package must not cost the seconds that PyTorch takes.
    if name in ("Engine", "EngineStatistics", "GenerationHandle", "GenerationStream", "JsonLinesLog"):
        from infernix import engine

        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
