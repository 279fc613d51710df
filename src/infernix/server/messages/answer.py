"""A message, whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infernix.results import FinishReason, GenerationEvent, GenerationResult
from infernix.server.accounts import Usage, constraint_record
from infernix.server.messages.blocks import whole_blocks

_STOP_REASONS = {
    FinishReason.STOP_TOKEN: "end_turn",
    FinishReason.STOP_STRING: "stop_sequence",
    FinishReason.OUTPUT_LIMIT: "max_tokens",
    FinishReason.CONTEXT_CAPACITY: "model_context_window_exceeded",
}


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What identifies an answer: the request's id, and the model that gives it."""

    request_id: str
    model: str

    @property
    def call_ids(self) -> str:
        """What the ids of the answer's calls begin with."""
        return f"toolu_{self.request_id.removeprefix('req_')}"

    def message(self, content: list[dict[str, Any]], stop: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        """A message with this content."""
        return {
            "id": f"msg_{self.request_id.removeprefix('req_')}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            **stop,
            "usage": usage,
        }


def whole_message(head: AnswerHead, result: GenerationResult, published: Sequence[GenerationEvent]) -> dict[str, Any]:
    """The body of an answer, with the record of its constraint where there is one."""
    content = whole_blocks(published, result, head.call_ids)
    body = head.message(content, stop_fields(result), usage_fields(Usage.of([result])))
    return body | constraint_fields(result)


def stop_fields(result: GenerationResult) -> dict[str, Any]:
    """Why the answer ended: `tool_use` only where it came to its own end, since one that was cut may lack calls."""
    reason = _STOP_REASONS[result.finish_reason]
    if reason == "end_turn" and result.tool_calls:
        reason = "tool_use"
    return {"stop_reason": reason, "stop_sequence": result.matched_stop_string}


def usage_fields(usage: Usage) -> dict[str, Any]:
    """The token counts. `input_tokens` are those of the prompt that were not known from earlier requests."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


def constraint_fields(result: GenerationResult) -> dict[str, Any]:
    """The record of the constraint under its name, or nothing."""
    record = constraint_record(result.constraint)
    return {} if record is None else {"constraint": record}
