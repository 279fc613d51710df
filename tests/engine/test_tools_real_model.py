"""Tools with the embedded model, whose vocabulary has no marks for calls: they are text, in the JSON form."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from infernix.engine import Engine
from infernix.messages import ChatPrompt, Message
from infernix.models import open_model
from infernix.options import OutputConstraint, RequestOptions, SamplingOptions
from infernix.results import FinishReason, GenerationResult, OutputBranch
from infernix.tools import ToolCall, ToolChoice, ToolDefinition, ToolEnforcement, ToolMode
from support.chat_engine import check_pieces

pytestmark = pytest.mark.real_model

WEATHER = ToolDefinition.of(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 60},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
        "additionalProperties": False,
    },
    description="Says the current weather in a city.",
    strict=True,
)
ADD = ToolDefinition.of(
    "add",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    | {"additionalProperties": False},
    description="Adds two numbers.",
    strict=True,
)
NOTE = ToolDefinition.of("note", {"properties": {"text": {"type": "string"}}}, description="Keeps a note.")
PARIS = {"role": "user", "content": "What is the weather in Paris?"}
PARIS_CALL = ToolCall("get_weather", '{"city": "Paris"}')
ANSWER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 60}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
REQUIRED = ToolChoice(ToolMode.REQUIRED, parallel=False)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(open_model("smollm2", device="cpu"))


def ask(
    engine: Engine, messages: Any, *tools: ToolDefinition, sampling: SamplingOptions | None = None, **options: Any
) -> GenerationResult:
    """The streamed answer."""
    options = {"max_new_tokens": 60, "sampling": sampling or SamplingOptions.greedy()} | options
    stream = engine.stream(ChatPrompt(messages, tools), RequestOptions(**options))
    check_pieces(list(stream.deltas()), stream.result)
    return stream.result


def test_a_required_call_is_made_with_what_the_question_says(engine: Engine) -> None:
    result = ask(engine, [PARIS], WEATHER, tool_choice=REQUIRED)
    assert (result.text, result.tool_calls) == ("", (PARIS_CALL,))
    assert result.finish_reason is FinishReason.STOP_TOKEN
    assert result.constraint is not None
    assert (result.constraint.branch, result.constraint.complete) == (OutputBranch.TOOLS, True)


def test_the_right_one_of_two_tools_is_called(engine: Engine) -> None:
    question = [{"role": "user", "content": "What is 17 plus 25?"}]
    result = ask(engine, question, WEATHER, ADD, tool_choice=REQUIRED)
    assert [(call.name, call.arguments()) for call in result.tool_calls] == [("add", {"a": 17, "b": 25})]
    result = ask(engine, question, WEATHER, ADD, tool_choice=ToolChoice.named("get_weather"))
    assert [call.name for call in result.tool_calls] == ["get_weather"]


def test_an_answer_may_be_text_where_no_call_is_required(engine: Engine) -> None:
    """The embedded model hardly ever calls a tool by itself."""
    for enforcement in ToolEnforcement:
        choice = ToolChoice(enforcement=enforcement)
        result = ask(engine, [PARIS], WEATHER, NOTE, tool_choice=choice, max_new_tokens=12)
        assert (result.tool_calls, bool(result.text)) == ((), True)
        assert result.tool_diagnostics is not None
        # A strict tool is enforced whatever the enforcement is.
        assert result.constraint is not None
    free = ask(engine, [PARIS], NOTE, tool_choice=choice, max_new_tokens=12)
    assert free.constraint is None


def test_the_result_of_a_call_becomes_an_answer_in_the_format(engine: Engine) -> None:
    conversation: list[Any] = [PARIS]
    result = ask(engine, conversation, WEATHER, tool_choice=REQUIRED)
    conversation += [
        Message("assistant", result.text, tool_calls=result.tool_calls),
        Message("tool", "18 degrees Celsius, light rain", name="get_weather"),
    ]
    constraint = OutputConstraint.json_schema(ANSWER)
    result = ask(engine, conversation, WEATHER, tool_choice=ToolChoice(ToolMode.NONE), constraint=constraint)
    assert json.loads(result.text) == {"city": "Paris", "degrees": 18}
    assert result.tool_calls == ()


def test_a_format_and_tools_give_the_one_or_the_other(engine: Engine) -> None:
    """The model is free to choose; whichever it takes is whole, and nothing of the other is in it."""
    for seed in range(2):
        sampling = SamplingOptions(temperature=1.5, seed=seed)
        constraint = OutputConstraint.json_schema(ANSWER)
        result = ask(engine, [PARIS], WEATHER, constraint=constraint, sampling=sampling)
        assert result.constraint is not None
        assert result.constraint.branch is not OutputBranch.UNDECIDED
        for call in result.tool_calls:
            jsonschema.validate(call.arguments(), json.loads(WEATHER.parameters))
        if result.constraint.branch is OutputBranch.CONTENT:
            assert result.tool_calls == ()
            if result.finish_reason is FinishReason.STOP_TOKEN:
                jsonschema.validate(json.loads(result.text), ANSWER)
        else:
            assert result.text == ""


def test_hot_sampling_keeps_to_the_tools(engine: Engine) -> None:
    """Strict arguments satisfy their schema, and those of other tools are JSON with no name twice."""
    tools = {tool.name: tool for tool in (WEATHER, ADD, NOTE)}
    num_complete = 0
    for seed in range(2):
        sampling = SamplingOptions(temperature=2.0, seed=seed, top_k=40)
        result = ask(engine, [PARIS], *tools.values(), tool_choice=REQUIRED, sampling=sampling, max_new_tokens=50)
        for call in result.tool_calls:
            num_complete += 1
            pairs = json.loads(call.arguments_json, object_pairs_hook=list)
            assert len({name for name, _ in pairs}) == len(pairs)
            if tools[call.name].strict:
                jsonschema.validate(call.arguments(), json.loads(tools[call.name].parameters))
    assert num_complete >= 1


def test_a_cut_call_is_none(engine: Engine) -> None:
    result = ask(engine, [PARIS], WEATHER, tool_choice=REQUIRED, max_new_tokens=20)
    assert (result.tool_calls, result.text, result.finish_reason) == ((), "", FinishReason.OUTPUT_LIMIT)
    assert result.constraint is not None
    assert not result.constraint.complete


@pytest.mark.parametrize("enforcement", list(ToolEnforcement))
def test_a_call_that_was_begun_is_continued(engine: Engine, enforcement: ToolEnforcement) -> None:
    """A strict one, and one that is free under AUTOMATIC, where the reader takes it as the model writes it."""
    for tool, begun, call in [
        (WEATHER, '{"name": "get_weather", "arguments": {"city": "Ber', ToolCall("get_weather", '{"city": "Berlin"}')),
        (NOTE, '{"name": "note", "arguments": {"text": "Paris"', ToolCall("note", '{"text": "Paris"}')),
    ]:
        messages = [PARIS, {"role": "assistant", "content": f"<tool_call>\n{begun}"}]
        choice = ToolChoice(enforcement=enforcement)
        options = RequestOptions(30, sampling=SamplingOptions.greedy(), tool_choice=choice)
        result = engine.generate(ChatPrompt(messages, (tool,), continue_final=True), options)
        assert (result.text, result.tool_calls) == ("", (call,))
        assert (result.constraint is None) == (tool is NOTE and enforcement is ToolEnforcement.AUTOMATIC)
