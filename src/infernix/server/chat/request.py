"""From the body of a chat completion request to a request of the engine."""

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
from infernix.server.chat.answer import AnswerHead, completion
from infernix.server.chat.body import IDLE_FIELDS, RAW_PATHS, ChatBody, JsonObjectFormat, JsonSchemaFormat
from infernix.server.chat.messages import conversation
from infernix.server.chat.stream import ChatStream
from infernix.server.chat.tools import declared_tools, tool_choice
from infernix.server.constraint_fields import (
    SourcedConstraint,
    json_object_constraint,
    one_constraint,
    schema_constraint,
    structured_constraint,
    tool_enforcement,
)
from infernix.server.engine_errors import FieldSources, api_error
from infernix.server.service import Service
from infernix.server.status_routes import check_model
from infernix.server.thinking_fields import agreed_thinking, thinks
from infernix.tools import ToolChoice


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A chat completion request, understood."""

    prompt: ChatPrompt
    options: Sequence[RequestOptions]
    sources: FieldSources
    is_streamed: bool
    includes_usage: bool
    head: AnswerHead

    def answer(
        self, results: Sequence[GenerationResult], published: Sequence[Sequence[GenerationEvent]]
    ) -> dict[str, Any]:
        """The completion, whose parts have no order among each other."""
        return completion(self.head, results)

    def stream(self) -> ChatStream:
        """A writer of its chunks."""
        return ChatStream(self.head, len(self.options), includes_usage=self.includes_usage)


def read_call(service: Service, data: bytes, request_id: str) -> ChatCall:
    """What the body asks for. Raises ApiError for all that can be known without the engine."""
    body = read_body(data, ChatBody, raw_paths=RAW_PATHS, idle=IDLE_FIELDS)
    check_model(service, body.model)
    if body.stream_options is not None and not body.stream:
        raise invalid("only a stream has options", "stream_options", "invalid_value")
    tools = declared_tools(body.tools or ())
    thinking, thinking_field = _thinking(body)
    constraint = one_constraint(_format_constraint(body), structured_constraint(body.structured_outputs))
    sources = FieldSources(
        constraint=None if constraint is None else constraint.field,
        tools=tools.places,
        options={"max_new_tokens": "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"},
        thinking=thinking_field,
    )
    try:
        prompt = ChatPrompt(
            conversation(body.messages),
            tools.definitions,
            thinking=thinking,
            continue_final=body.messages[-1].role == "assistant",
        )
        choice = tool_choice(
            body.tool_choice,
            tools,
            parallel=body.parallel_tool_calls is not False,
            enforcement=tool_enforcement(body.tool_constraints),
        )
        options = _options(service, body, None if constraint is None else constraint.constraint, choice)
    except InfernixError as error:
        raise api_error(error, sources) from error
    head = AnswerHead.of(request_id, service.settings.model_id, tools.custom_names)
    includes_usage = body.stream_options is not None and body.stream_options.include_usage is True
    return ChatCall(prompt, options, sources, bool(body.stream), includes_usage, head)


def _format_constraint(body: ChatBody) -> SourcedConstraint | None:
    wanted = body.response_format
    if isinstance(wanted, JsonObjectFormat):
        return json_object_constraint("response_format")
    if isinstance(wanted, JsonSchemaFormat):
        return schema_constraint(wanted.json_schema.schema_, "response_format.json_schema.schema")
    return None


def _thinking(body: ChatBody) -> tuple[bool | None, str | None]:
    kwargs = body.chat_template_kwargs
    return agreed_thinking(
        {
            "reasoning_effort": thinks(body.reasoning_effort),
            "enable_thinking": body.enable_thinking,
            "chat_template_kwargs.enable_thinking": None if kwargs is None else kwargs.enable_thinking,
        }
    )


def _options(
    service: Service, body: ChatBody, constraint: OutputConstraint | None, choice: ToolChoice
) -> list[RequestOptions]:
    """One for each sample; they differ in their seeds only."""
    num_samples = body.n or 1
    if num_samples > service.settings.max_outstanding:
        raise invalid(f"at most {service.settings.max_outstanding} samples fit", "n", "invalid_value")
    seed = service.new_seed() if body.seed is None else body.seed
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return [
        RequestOptions(
            max_new_tokens=_max_tokens(body, service.engine.max_context),
            constraint=constraint,
            sampling=SamplingOptions(
                temperature=body.temperature,
                top_k=body.top_k,
                top_p=body.top_p,
                min_p=body.min_p,
                presence_penalty=body.presence_penalty,
                frequency_penalty=body.frequency_penalty,
                seed=(seed + sample) % 2**64,
            ),
            tool_choice=choice,
            thinking_budget=body.thinking_budget,
            stop=stop,
            ignore_eos=body.ignore_eos or False,
        )
        for sample in range(num_samples)
    ]


def _max_tokens(body: ChatBody, otherwise: int) -> int:
    new, old = body.max_completion_tokens, body.max_tokens
    if new is not None and old is not None and new != old:
        raise invalid("max_tokens and max_completion_tokens differ", "max_tokens", "invalid_value")
    given = old if new is None else new
    return otherwise if given is None else given
