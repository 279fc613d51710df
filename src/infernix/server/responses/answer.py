"""A response object."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infernix.results import GenerationEvent, GenerationResult
from infernix.server.accounts import Usage, constraint_record
from infernix.server.api_error import ApiError
from infernix.server.responses.output import COMPLETED, IN_PROGRESS, INCOMPLETE, Output, is_cut
from infernix.server.responses.tools import CallName

Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What all forms of a response say.

    key     what the ids of the response and of its items are made of
    echo    the fields that repeat the request's
    names   whom each of the engine's function names stands for
    """

    key: str
    echo: Mapping[str, Any]
    names: Mapping[str, CallName] = field(default_factory=dict)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def id(self) -> str:
        """The response's id."""
        return f"resp_{self.key}"

    def output(self) -> Output:
        """The output, nothing of which is known yet."""
        return Output(self.key, self.names)

    def begun(self) -> dict[str, Any]:
        """The response object before there is any output."""
        return self._response(IN_PROGRESS, ())

    def finished(self, items: Items, result: GenerationResult) -> dict[str, Any]:
        """The response object of an answer that came to its end, or to a limit."""
        more: dict[str, Any] = {"usage": _usage(Usage.of([result]))}
        record = constraint_record(result.constraint)
        if record is not None:
            more["constraint"] = record
        if is_cut(result):
            return self._response(INCOMPLETE, items, incomplete_details={"reason": "max_output_tokens"}, **more)
        return self._response(COMPLETED, items, completed_at=int(time.time()), **more)

    def failed(self, items: Items, error: ApiError) -> dict[str, Any]:
        """The response object of an answer that an error ended after these items."""
        details = {
            "code": error.code or "server_error",
            "message": error.message,
            "param": error.param,
            "type": error.kind.value.type,
        }
        return self._response("failed", items, error=details)

    def whole(self, events: Sequence[GenerationEvent], result: GenerationResult) -> dict[str, Any]:
        """The response object of an answer that published these events."""
        output = self.output()
        for _ in (*output.published(events), *output.finished(result)):
            pass
        return self.finished(output.items, result)

    def _response(self, status: str, items: Items, **more: Any) -> dict[str, Any]:
        """`more` are members that are null otherwise, or come only with some responses."""
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "completed_at": None,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "output": list(items),
            "usage": None,
            **self.echo,
            **more,
        }


def _usage(usage: Usage) -> dict[str, Any]:
    """The token counts. What goes into the cache is not counted: everything does."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
