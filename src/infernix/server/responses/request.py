"""From the body of a responses request to a request of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infernix.errors import InfernixError
from infernix.messages import ChatPrompt
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import GenerationEvent, GenerationResult
from infernix.server.api_error import invalid
from infernix.server.body_model import read_body
from infernix.server.constraint_fields import (
    SourcedConstraint,
    json_object_constraint,
    one_constraint,
    schema_constraint,
    structured_constraint,
    tool_enforcement,
)
from infernix.server.engine_errors import FieldSources, api_error
from infernix.server.responses.answer import ResponseHead
from infernix.server.responses.body import (
    COUNT_IDLE_FIELDS,
    IDLE_FIELDS,
    RAW_PATHS,
    CountBody,
    JsonObjectFormat,
    JsonSchemaFormat,
    PromptBody,
    ResponsesBody,
)
from infernix.server.responses.conversation import conversation
from infernix.server.responses.echo import echoed_fields
from infernix.server.responses.history import History, read_history
from infernix.server.responses.stream import ResponseStream
from infernix.server.responses.tools import DeclaredTools, declared_tools, tool_choice
from infernix.server.service import Service
from infernix.server.status_routes import check_model
from infernix.server.thinking_fields import agreed_thinking, thinks
from infernix.tools import ToolChoice

# What was kept may be this many times as long as one request's body.
_MAX_KEPT_BODIES = 4


@dataclass(frozen=True, slots=True)
class ResponsesCall:
    """A responses request, understood."""

    prompt: ChatPrompt
    options: Sequence[RequestOptions]
    sources: FieldSources
    is_streamed: bool
    head: ResponseHead
    history: History
    service: Service
    is_stored: bool

    def answer(
        self, results: Sequence[GenerationResult], published: Sequence[Sequence[GenerationEvent]]
    ) -> dict[str, Any]:
        """The response object."""
        response = self.head.whole(published[0], results[0])
        self._keep(response)
        return response

    def stream(self) -> ResponseStream:
        """A writer of its events."""
        return ResponseStream(self.head, self._keep)

    def _keep(self, response: dict[str, Any]) -> None:
        if self.is_stored:
            stored = self.history.stored(response, continues=self.prompt.continue_final)
            self.service.responses.put(self.head.id, stored)


def read_call(service: Service, data: bytes, request_id: str) -> ResponsesCall:
    """What the body asks for. Raises ApiError for all that can be known without the engine."""
    body = read_body(data, ResponsesBody, raw_paths=RAW_PATHS, idle=IDLE_FIELDS)
    check_model(service, body.model)
    if body.stream_options is not None and not body.stream:
        raise invalid("only a stream has options", "stream_options", "invalid_value")
    key = request_id.removeprefix("req_")
    history = _history(service, body, key)
    tools = declared_tools(body.tools or ())
    thinking, thinking_field = _thinking(body)
    constraint = one_constraint(_format_constraint(body), structured_constraint(body.structured_outputs))
    sources = FieldSources(
        constraint=None if constraint is None else constraint.field,
        tools=tools.places,
        options={"max_new_tokens": "max_output_tokens"},
        prompt="input",
        thinking=thinking_field,
    )
    try:
        prompt = _prompt(body, history, tools, thinking)
        choice = tool_choice(
            body.tool_choice,
            tools,
            parallel=body.parallel_tool_calls is not False,
            enforcement=tool_enforcement(body.tool_constraints),
        )
        options = _options(service, body, None if constraint is None else constraint.constraint, choice)
    except InfernixError as error:
        raise api_error(error, sources) from error
    return ResponsesCall(
        prompt=prompt,
        options=(options,),
        sources=sources,
        is_streamed=bool(body.stream),
        head=ResponseHead(key, echoed_fields(body), tools.names),
        history=history,
        service=service,
        is_stored=body.store is not False,
    )


def read_count(service: Service, data: bytes) -> tuple[ChatPrompt, FieldSources]:
    """The prompt that a body makes. Constraints are looked at no further than their fields."""
    body = read_body(data, CountBody, raw_paths=RAW_PATHS, idle=COUNT_IDLE_FIELDS)
    if body.model is not None:
        check_model(service, body.model)
    one_constraint(_format_constraint(body), structured_constraint(body.structured_outputs))
    tools = declared_tools(body.tools or ())
    tool_choice(body.tool_choice, tools, parallel=True, enforcement=tool_enforcement(body.tool_constraints))
    thinking, thinking_field = _thinking(body)
    prompt = _prompt(body, _history(service, body, ""), tools, thinking)
    return prompt, FieldSources(tools=tools.places, prompt="input", thinking=thinking_field)


def _history(service: Service, body: PromptBody, key: str) -> History:
    return read_history(service.responses, body, key, max_bytes=_MAX_KEPT_BODIES * service.settings.max_body_bytes)


def _prompt(body: PromptBody, history: History, tools: DeclaredTools, thinking: bool | None) -> ChatPrompt:
    messages, continues = conversation(body.instructions, history.placed())
    return ChatPrompt(messages, tools.definitions, thinking=thinking, continue_final=continues)


def _format_constraint(body: PromptBody) -> SourcedConstraint | None:
    wanted = None if body.text is None else body.text.format
    if isinstance(wanted, JsonObjectFormat):
        return json_object_constraint("text.format")
    if isinstance(wanted, JsonSchemaFormat):
        return schema_constraint(wanted.schema_, "text.format.schema")
    return None


def _thinking(body: PromptBody) -> tuple[bool | None, str | None]:
    effort = None if body.reasoning is None else body.reasoning.effort
    return agreed_thinking({"enable_thinking": body.enable_thinking, "reasoning.effort": thinks(effort)})


def _options(
    service: Service, body: ResponsesBody, constraint: OutputConstraint | None, choice: ToolChoice
) -> RequestOptions:
    seed = service.new_seed() if body.seed is None else body.seed
    return RequestOptions(
        max_new_tokens=service.engine.max_context if body.max_output_tokens is None else body.max_output_tokens,
        constraint=constraint,
        sampling=SamplingOptions(
            temperature=body.temperature,
            top_k=body.top_k,
            top_p=body.top_p,
            min_p=body.min_p,
            presence_penalty=body.presence_penalty,
            frequency_penalty=body.frequency_penalty,
            seed=seed % 2**64,
        ),
        tool_choice=choice,
        thinking_budget=body.thinking_budget,
    )
