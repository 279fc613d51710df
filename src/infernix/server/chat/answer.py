"""A chat completion, whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from infernix.results import FinishReason, GenerationResult
from infernix.server.accounts import Usage, constraint_record
from infernix.server.chat.messages import CUSTOM_ARGUMENT
from infernix.tools import ToolCall

_FINISH_REASONS = {
    FinishReason.STOP_TOKEN: "stop",
    FinishReason.STOP_STRING: "stop",
    FinishReason.OUTPUT_LIMIT: "length",
    FinishReason.CONTEXT_CAPACITY: "length",
}


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What all parts of an answer say, and which tools take a text."""

    id: str
    model: str
    custom_names: frozenset[str] = frozenset()
    created: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def of(cls, request_id: str, model: str, custom_names: frozenset[str]) -> AnswerHead:
        """The head of the answer to a request."""
        return cls(f"chatcmpl-{request_id.removeprefix('req_')}", model, custom_names)

    def call_id(self, sample: int, index: int) -> str:
        """The id of a sample's call."""
        return f"call_{self.id.removeprefix('chatcmpl-')}_{sample}_{index}"


def completion(head: AnswerHead, results: Sequence[GenerationResult]) -> dict[str, Any]:
    """The body of an answer with a choice for each result. The record of one constraint stands at its top; where there
    are several samples, each choice has its own.
    """
    body: dict[str, Any] = {
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [_choice(head, index, result) for index, result in enumerate(results)],
        "usage": usage(Usage.of(results)),
    }
    records = [constraint_record(result.constraint) for result in results]
    if records[0] is not None:
        if len(results) == 1:
            body["constraint"] = records[0]
        else:
            for choice, record in zip(body["choices"], records, strict=True):
                choice["constraint"] = record
    return body


def _choice(head: AnswerHead, index: int, result: GenerationResult) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if result.tool_calls and not result.text else result.text,
        "refusal": None,
    }
    if result.reasoning:
        message["reasoning_content"] = result.reasoning
    if result.tool_calls:
        message["tool_calls"] = [
            _call(head, call, head.call_id(index, place)) for place, call in enumerate(result.tool_calls)
        ]
    return {"index": index, "message": message, "logprobs": None, "finish_reason": finish_reason(result)}


def _call(head: AnswerHead, call: ToolCall, call_id: str) -> dict[str, Any]:
    if call.name in head.custom_names:
        custom = {"name": call.name, "input": call.arguments()[CUSTOM_ARGUMENT]}
        return {"id": call_id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments_json}
    return {"id": call_id, "type": "function", "function": function}


def finish_reason(result: GenerationResult) -> str:
    """`tool_calls` only for an answer that came to its own end: the calls of one that was cut may lack some."""
    reason = _FINISH_REASONS[result.finish_reason]
    return "tool_calls" if reason == "stop" and result.tool_calls else reason


def usage(usage: Usage) -> dict[str, Any]:
    """The token counts."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
