"""Phase x constraint x tools x budget: whatever a model wants, the answer has the form that was asked for.

Models without any idea answer every combination. What they said is read a second time, plainly, from the tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from infernix.errors import InvalidChoice, InvalidGrammar, InvalidRegex
from infernix.frontend.framing import Framing
from infernix.options import OutputConstraint, SamplingOptions
from infernix.results import FinishReason, GenerationResult, OutputBranch
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import FORCED_TEXT, converse, noise
from support.chat_output import CHAT, EOS, FORCED_END, JSON, THINK_CLOSE, TOOL_CLOSE, TOOL_OPEN, XML, text_tokens
from support.plain_answer import plain_answer

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string", "maxLength": 3}},
    "required": ["a"],
    "additionalProperties": False,
}
CHOICES = ["ok", "yes", " \n", "<tool_call>"]
CONSTRAINTS: dict[str, tuple[OutputConstraint | None, Callable[[str], Any]]] = {
    "none": (None, lambda text: True),
    "json_object": (OutputConstraint.json_object(), lambda text: isinstance(json.loads(text), dict)),
    "json_schema": (
        OutputConstraint.json_schema(SCHEMA),
        lambda text: jsonschema.validate(json.loads(text), SCHEMA) is None,
    ),
    "grammar": (OutputConstraint.grammar('root ::= "ok" root? "\\n"'), re.compile(r"(ok)+\n+").fullmatch),
    "regex": (OutputConstraint.regex(" (lo)+a"), re.compile(" (lo)+a").fullmatch),
    "choice": (OutputConstraint.choice(CHOICES), CHOICES.__contains__),
}
STRICT = ToolDefinition(
    "加",
    parameters=json.dumps(
        {
            "type": "object",
            "properties": {"数": {"type": "integer"}, "注": {"type": "string", "maxLength": 4}},
            "required": ["数"],
            "additionalProperties": False,
        }
    ),
    strict=True,
)
LOOSE = ToolDefinition("say", parameters='{"properties": {"text": {"type": "string"}}, "required": ["text"]}')
TYPES = {"加": {"数": "integer", "注": "string"}, "say": {"text": "string"}}
CHOICES_OF_TOOLS = {
    "undeclared": ((), ToolChoice()),
    "auto": ((STRICT, LOOSE), ToolChoice()),
    "single": ((LOOSE,), ToolChoice(parallel=False)),
    "required": ((STRICT, LOOSE), ToolChoice(ToolMode.REQUIRED)),
    "named strict": ((LOOSE, STRICT), ToolChoice.named("加")),
    "named loose": ((LOOSE, STRICT), ToolChoice.named("say")),
    "allowed": ((LOOSE, STRICT), ToolChoice(allowed_names=("加",))),
    "not called": ((STRICT, LOOSE), ToolChoice(ToolMode.NONE)),
}
# Without them, an idle model would take hundreds of tokens to end anything.
LIKES = {
    EOS: 4.0,
    THINK_CLOSE: 4.0,
    TOOL_CLOSE: 4.0,
    TOOL_OPEN: 4.0,
    **dict.fromkeys(text_tokens(b"\n</parameter>\n"), 5.0),
    **dict.fromkeys(map(ord, '"}1'), 4.0),
}
NOTHING_ASKED = ("none", "undeclared")
REFUSED = {"grammar": InvalidGrammar, "regex": InvalidRegex, "choice": InvalidChoice}


COMBINATIONS = [(kind, tools) for kind in CONSTRAINTS for tools in CHOICES_OF_TOOLS if (kind, tools) != NOTHING_ASKED]


@pytest.mark.parametrize("budget", [None, 5])
@pytest.mark.parametrize("thinking", [True, False])
@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
@pytest.mark.parametrize(("kind", "tools"), COMBINATIONS)
def test_every_combination(kind: str, tools: str, framing: Framing, thinking: bool, budget: int | None) -> None:
    constraint, belongs = CONSTRAINTS[kind]
    declared, choice = CHOICES_OF_TOOLS[tools]
    may_call = bool(declared) and choice.mode is not ToolMode.NONE
    request: dict[str, Any] = {
        "thinking": thinking,
        "tools": declared,
        "tool_choice": choice,
        "constraint": constraint,
        "thinking_budget": budget,
    }
    if may_call and kind in REFUSED:
        with pytest.raises(REFUSED[kind], match="active tools can be combined with JSON"):
            converse(noise(0, {}), framing, **request)
        return
    for seed in range(3):
        sampling = SamplingOptions(temperature=1.0, seed=seed)
        result = converse(noise(seed, LIKES), framing, max_new_tokens=120, sampling=sampling, **request)
        check_reading(result, framing, thinks=thinking, has_calls=may_call)
        check_thinking(result, budget if thinking else None, thinks=thinking)
        check_calls(result, tools)
        check_end(result)
        if result.finish_reason is FinishReason.STOP_TOKEN and not result.tool_calls:
            assert belongs(result.text)


def check_reading(result: GenerationResult, framing: Framing, *, thinks: bool, has_calls: bool) -> None:
    plain = plain_answer(result.token_ids, framing, TYPES if has_calls else None, thinks=thinks)
    assert result.reasoning == plain.reasoning.decode("utf-8", "replace")
    assert result.text == plain.content.decode("utf-8", "replace")
    assert [(call.name, call.arguments()) for call in result.tool_calls] == [call for call in plain.calls if call]
    assert result.constraint is not None
    is_open = thinks and THINK_CLOSE not in result.token_ids
    branch = OutputBranch.TOOLS if plain.calls else OutputBranch.CONTENT if plain.content else OutputBranch.UNDECIDED
    assert result.constraint.branch is (OutputBranch.UNDECIDED if is_open else branch)


def check_thinking(result: GenerationResult, budget: int | None, *, thinks: bool) -> None:
    thinking = result.thinking
    assert (thinking is not None) == thinks
    if thinking is None:
        assert result.reasoning == ""
        return
    assert thinking.budget == budget
    assert budget is None or thinking.num_model_tokens <= budget
    num_open = result.token_ids.index(THINK_CLOSE) if THINK_CLOSE in result.token_ids else len(result.token_ids)
    if thinking.was_forced:
        assert (thinking.num_model_tokens, thinking.num_injected_tokens) == (budget, len(FORCED_END))
        assert result.token_ids[thinking.num_model_tokens :][: len(FORCED_END)] == FORCED_END
        assert result.reasoning.endswith(FORCED_TEXT)
    else:
        assert (thinking.num_model_tokens, thinking.num_injected_tokens) == (num_open, 0)


def check_calls(result: GenerationResult, tools: str) -> None:
    declared, choice = CHOICES_OF_TOOLS[tools]
    allowed = {tool.name: tool for tool in declared if tool.name in (choice.allowed_names or TYPES)}
    for call in result.tool_calls:
        tool = allowed[call.name]
        if tool.strict:
            jsonschema.validate(call.arguments(), json.loads(tool.parameters))
    assert result.tool_calls == () or choice.mode is not ToolMode.NONE
    assert len(result.tool_calls) <= 1 or choice.parallel
    # More calls are not generated either.
    assert result.token_ids.count(TOOL_CLOSE) <= 1 or choice.parallel or result.thinking is not None
    if choice.mode is ToolMode.REQUIRED:
        assert result.text == ""
        assert result.tool_calls or result.finish_reason is not FinishReason.STOP_TOKEN


def check_end(result: GenerationResult) -> None:
    """An end token ends an answer, stands nowhere else, and only where the answer may end."""
    assert result.constraint is not None
    is_stopped = result.finish_reason is FinishReason.STOP_TOKEN
    assert (result.constraint.terminated, result.constraint.complete or not is_stopped) == (is_stopped, True)
    assert not CHAT.eos_ids & set(result.token_ids[:-1])
    assert (result.token_ids[-1] in CHAT.eos_ids) == is_stopped
    assert is_stopped or result.num_generated_tokens == 120
