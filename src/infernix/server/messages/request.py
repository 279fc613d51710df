"""From the body of a Messages request to a request of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infernix.errors import InfernixError
from infernix.messages import ChatPrompt
from infernix.options import RequestOptions, SamplingOptions
from infernix.results import GenerationEvent, GenerationResult
from infernix.server.api_error import invalid
from infernix.server.body_model import read_body
from infernix.server.constraint_fields import (
    SourcedConstraint,
    one_constraint,
    schema_constraint,
    structured_constraint,
    tool_enforcement,
)
from infernix.server.engine_errors import FieldSources, api_error
from infernix.server.messages.answer import AnswerHead, whole_message
from infernix.server.messages.block_fields import AssistantMessage
from infernix.server.messages.body import (
    COUNT_IDLE_FIELDS,
    IDLE_FIELDS,
    RAW_PATHS,
    CountBody,
    MessagesBody,
    ThinkingDisabled,
    ThinkingEnabled,
)
from infernix.server.messages.conversation import conversation
from infernix.server.messages.stream import MessageStream
from infernix.server.messages.tools import declared_tools, tool_choice
from infernix.server.service import Service

_OPTION_FIELDS = {
    "max_new_tokens": "max_tokens",
    "stop": "stop_sequences",
    "thinking_budget": "thinking.budget_tokens",
}


@dataclass(frozen=True, slots=True)
class MessagesCall:
    """A Messages request, understood."""

    prompt: ChatPrompt
    options: Sequence[RequestOptions]
    sources: FieldSources
    is_streamed: bool
    head: AnswerHead

    def answer(
        self, results: Sequence[GenerationResult], published: Sequence[Sequence[GenerationEvent]]
    ) -> dict[str, Any]:
        """The message."""
        return whole_message(self.head, results[0], published[0])

    def stream(self) -> MessageStream:
        """A writer of its events."""
        return MessageStream(self.head)


def read_call(service: Service, data: bytes, request_id: str) -> MessagesCall:
    """What the body asks for. Raises ApiError for all that can be known without the engine.

    Any model's name is taken; the answer says which model gave it.
    """
    body = read_body(data, MessagesBody, raw_paths=RAW_PATHS, idle=IDLE_FIELDS)
    constraint = one_constraint(_format_constraint(body), structured_constraint(body.structured_outputs))
    sources = _sources(body, constraint)
    try:
        prompt = _prompt(body)
        options = _options(service, body, prompt, constraint)
    except InfernixError as error:
        raise api_error(error, sources) from error
    head = AnswerHead(request_id, service.settings.model_id)
    return MessagesCall(prompt, [options], sources, bool(body.stream), head)


def read_count(service: Service, data: bytes) -> tuple[ChatPrompt, FieldSources]:
    """The prompt whose tokens are to be counted. Raises ApiError; constraints are not looked into."""
    body = read_body(data, CountBody, raw_paths=RAW_PATHS, idle=COUNT_IDLE_FIELDS)
    return _prompt(body), _sources(body, None)


def _sources(body: CountBody, constraint: SourcedConstraint | None) -> FieldSources:
    return FieldSources(
        constraint=None if constraint is None else constraint.field,
        tools=tuple(f"tools/{index}" for index in range(len(body.tools or ()))),
        tool_parameters="input_schema",
        options=_OPTION_FIELDS,
        thinking="thinking",
    )


def _format_constraint(body: CountBody) -> SourcedConstraint | None:
    wanted = None if body.output_config is None else body.output_config.format
    return None if wanted is None else schema_constraint(wanted.schema_, "output_config.format.schema")


def _prompt(body: CountBody) -> ChatPrompt:
    is_continued = isinstance(body.messages[-1], AssistantMessage)
    thinking = None if body.thinking is None else not isinstance(body.thinking, ThinkingDisabled)
    turns = conversation(body.system, body.messages)
    if is_continued and thinking:
        raise invalid("an answer that was begun cannot think any more", "thinking", "invalid_value")
    return ChatPrompt(turns, declared_tools(body.tools or ()), thinking=thinking, continue_final=is_continued)


def _options(
    service: Service, body: MessagesBody, prompt: ChatPrompt, constraint: SourcedConstraint | None
) -> RequestOptions:
    budget = body.thinking.budget_tokens if isinstance(body.thinking, ThinkingEnabled) else None
    if budget is not None and body.max_tokens is not None and budget >= body.max_tokens:
        raise invalid("expected fewer than max_tokens", "thinking.budget_tokens", "invalid_value")
    seed = service.new_seed() if body.seed is None else body.seed
    return RequestOptions(
        max_new_tokens=service.engine.max_context if body.max_tokens is None else body.max_tokens,
        constraint=None if constraint is None else constraint.constraint,
        sampling=SamplingOptions(temperature=body.temperature, top_k=body.top_k, top_p=body.top_p, seed=seed % 2**64),
        tool_choice=tool_choice(body.tool_choice, prompt.tools, tool_enforcement(body.tool_constraints)),
        thinking_budget=budget,
        stop=tuple(body.stop_sequences or ()),
    )
