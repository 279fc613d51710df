"""What a response repeats of its request."""

from __future__ import annotations

from typing import Any

from infernix.frontend.template_json import parse_json
from infernix.server.responses.body import JsonSchemaFormat, ResponsesBody, TextOptions
from infernix.server.responses.tool_fields import FunctionChoice, ToolChoiceField
from infernix.server.responses.tools import echoed_tool


def echoed_fields(body: ResponsesBody) -> dict[str, Any]:
    """The fields that the request has, or that their absence means; null: left to the model's own defaults."""
    effort = None if body.reasoning is None else body.reasoning.effort
    is_parallel = body.parallel_tool_calls is not False
    return {
        "model": body.model,
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "store": body.store is not False,
        "background": False,
        "metadata": body.metadata or {},
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_logprobs": 0,
        "reasoning": {"effort": effort, "summary": None},
        "text": {"format": _format(body.text), "verbosity": "medium"},
        "tools": list(map(echoed_tool, body.tools or ())),
        "tool_choice": _choice(body.tool_choice),
        "parallel_tool_calls": is_parallel,
        "truncation": "disabled",
        "service_tier": "default",
        "user": None,
    }


def _format(text: TextOptions | None) -> dict[str, Any]:
    wanted = None if text is None else text.format
    if wanted is None:
        return {"type": "text"}
    if not isinstance(wanted, JsonSchemaFormat):
        return {"type": wanted.type}
    return {
        "type": wanted.type,
        "name": wanted.name,
        "description": wanted.description,
        "schema": parse_json(wanted.schema_.text),
        "strict": wanted.strict,
    }


def _choice(choice: ToolChoiceField | None) -> Any:
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    if isinstance(choice, FunctionChoice):
        return _named(choice)
    return {"type": choice.type, "mode": choice.mode, "tools": list(map(_named, choice.tools))}


def _named(choice: FunctionChoice) -> dict[str, str]:
    named = {"type": choice.type, "name": choice.name}
    return named if choice.namespace is None else named | {"namespace": choice.namespace}
