"""What the engine raises, as an error of the API, with the place in the request's own body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from infernix.errors import (
    ConstraintError,
    ConstraintSource,
    ContextLengthExceeded,
    EngineUnavailable,
    InfernixError,
    InvalidChoice,
    InvalidOptions,
    InvalidPrompt,
    Overloaded,
    QueueTimeout,
    RequestError,
    ThinkingBudgetCapacity,
)
from infernix.server.api_error import ApiError, ErrorKind

_TOOL_POINTER = re.compile(r"/(\d+)(/parameters)?((?:/.*)?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldSources:
    """Where in a request's body the parts of an engine's request come from.

    constraint       the field of the content constraint, such as `response_format.json_schema.schema`
    tools            for each declared tool the path of its declaration, such as `tools/0/function`
    tool_parameters  what a declaration calls the schema of the arguments
    tool_choice_field   the field of the choice among the tools
    options          for each engine option the field that sets it
    prompt           the field of the conversation
    thinking         the field that asks for thinking or for none
    """

    constraint: str | None = None
    tools: tuple[str, ...] = ()
    tool_parameters: str = "parameters"
    tool_choice_field: str = "tool_choice"
    options: Mapping[str, str] = field(default_factory=dict)
    prompt: str = "messages"
    thinking: str | None = None


def api_error(error: Exception, sources: FieldSources) -> ApiError:
    """The error for a client. What no client can do anything about is told without detail."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestError):
        return ApiError(ErrorKind.INVALID, _message(error), code=error.code, param=_param(error, sources))
    if isinstance(error, Overloaded):
        return ApiError(ErrorKind.OVERLOADED, error.message, code="server_overloaded")
    if isinstance(error, QueueTimeout):
        return ApiError(ErrorKind.QUEUE_TIMEOUT, error.message, code="request_queue_timeout")
    if isinstance(error, EngineUnavailable):
        return ApiError(ErrorKind.UNAVAILABLE, error.message, code="service_unavailable")
    if isinstance(error, InfernixError):
        return ApiError(ErrorKind.INTERNAL, error.message, code=error.code)
    return ApiError(ErrorKind.INTERNAL, "internal error", code="internal_error")


def _message(error: RequestError) -> str:
    return error.reason if isinstance(error, InvalidOptions) else error.message


def _param(error: RequestError, sources: FieldSources) -> str | None:
    if isinstance(error, InvalidOptions):
        return sources.options.get(error.field, error.field)
    if isinstance(error, ConstraintError):
        return _constraint_param(error, sources)
    if isinstance(error, ThinkingBudgetCapacity):
        return sources.options.get("thinking_budget", "thinking_budget")
    if isinstance(error, InvalidPrompt) and error.field == "thinking" and sources.thinking is not None:
        return sources.thinking
    if isinstance(error, InvalidPrompt | ContextLengthExceeded):
        return sources.prompt
    return None


def _constraint_param(error: ConstraintError, sources: FieldSources) -> str | None:
    if error.source is ConstraintSource.TOOLS:
        found = _TOOL_POINTER.fullmatch(error.pointer)
        if found is None or int(found[1]) >= len(sources.tools):
            return sources.tool_choice_field
        parameters = f"/{sources.tool_parameters}" if found[2] else ""
        return f"{sources.tools[int(found[1])]}{parameters}{found[3]}"
    if isinstance(error, InvalidChoice) and error.index is not None and sources.constraint is not None:
        return f"{sources.constraint}/{error.index}"
    return None if sources.constraint is None else f"{sources.constraint}{error.pointer}"
