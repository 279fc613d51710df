"""Errors as clients see them: one class, and an envelope for each family of protocols."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class _Wire:
    status: int
    type: str
    anthropic_status: int
    anthropic_type: str


class ErrorKind(Enum):
    """What went wrong, with its HTTP status and type in the protocols of OpenAI and of Anthropic."""

    INVALID = _Wire(400, "invalid_request_error", 400, "invalid_request_error")
    UNAUTHENTICATED = _Wire(401, "authentication_error", 401, "authentication_error")
    NOT_FOUND = _Wire(404, "invalid_request_error", 404, "not_found_error")
    METHOD = _Wire(405, "invalid_request_error", 405, "invalid_request_error")
    BODY_TIMEOUT = _Wire(408, "invalid_request_error", 408, "timeout_error")
    TOO_LARGE = _Wire(413, "invalid_request_error", 413, "request_too_large")
    MEDIA_TYPE = _Wire(415, "invalid_request_error", 415, "invalid_request_error")
    OVERLOADED = _Wire(429, "rate_limit_error", 529, "overloaded_error")
    CLIENT_GONE = _Wire(499, "invalid_request_error", 499, "invalid_request_error")
    INTERNAL = _Wire(500, "server_error", 500, "api_error")
    QUEUE_TIMEOUT = _Wire(503, "server_error", 504, "timeout_error")
    UNAVAILABLE = _Wire(503, "server_error", 503, "api_error")


class ApiError(Exception):
    """An answer that is an error.

    `code` is stable and meant for programs; `param` is the path of the field at fault in the request's body, such as
    `messages[0].content`, behind which a JSON Pointer leads into a schema: `text.format.schema/properties/x`.
    """

    def __init__(self, kind: ErrorKind, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.code = code
        self.param = param


def invalid(message: str, param: str | None, code: str | None = None) -> ApiError:
    """The common case: a field that cannot be honoured."""
    return ApiError(ErrorKind.INVALID, message, code=code, param=param)


class Dialect(Enum):
    """The two ways to write an error."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    def status(self, error: ApiError) -> int:
        """The HTTP status."""
        wire = error.kind.value
        return wire.anthropic_status if self is Dialect.ANTHROPIC else wire.status

    def body(self, error: ApiError, request_id: str) -> dict[str, Any]:
        """The JSON body; also what a stream says that fails half-way."""
        wire = error.kind.value
        message = error.message if error.param is None else f"{error.param}: {error.message}"
        if self is Dialect.ANTHROPIC:
            # Where its own client looks for a code.
            details = {} if error.code is None else {"details": {"error_code": error.code}}
            return {
                "type": "error",
                "error": {"type": wire.anthropic_type, "message": message, **details},
                "request_id": request_id,
            }
        return {
            "error": {"message": message, "type": wire.type, "param": error.param, "code": error.code},
        }


def dialect_of(path: str) -> Dialect:
    """How errors are written under a path."""
    is_anthropic = path == "/v1/messages" or path.startswith("/v1/messages/")
    return Dialect.ANTHROPIC if is_anthropic else Dialect.OPENAI
