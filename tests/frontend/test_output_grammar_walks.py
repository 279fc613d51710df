"""Random answers, read back by a plain parser, judged by a JSON Schema validator, and read by the answer's reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random

import jsonschema
import pytest

from benchmarks.vocabularies import qwen, smollm2
from infernix.frontend.framing import THINK_CLOSE, Framing, ToolStyle
from infernix.frontend.phases import StartingPhase
from infernix.frontend.reading import ContentPiece
from infernix.frontend.tool_reader import ToolReader
from infernix.matching import TokenClass
from infernix.options import OutputConstraint
from infernix.tools import ToolCallDelta, ToolChoice, ToolMode
from support.answer_parser import parse_answer, read_call
from support.answer_walks import TOOLS, Model, draw_answer, model_of, small, unmarked
from support.tool_answers import MARKS, answer_grammar, framing_of


@cache
def whole_qwen() -> Model:
    return model_of(qwen().vocabulary)


@cache
def whole_smollm2() -> Model:
    return model_of(smollm2().vocabulary)


def check_call(style: ToolStyle, call: str) -> str:
    name, arguments = read_call(style, call)
    tool = TOOLS[name]
    if tool.strict:
        schema = json.loads(tool.parameters)
        jsonschema.validate(arguments, schema)
        declared = list(schema["properties"])
        assert list(arguments) == [key for key in declared if key in arguments]
    return name


FRAMINGS = [(small, ToolStyle.XML), (small, ToolStyle.JSON), (unmarked, ToolStyle.XML), (unmarked, ToolStyle.JSON)]
CONTENT_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.mark.parametrize(("make_model", "style"), FRAMINGS)
def test_answers_of_every_shape(make_model: Callable[[], Model], style: ToolStyle) -> None:
    model = make_model()
    framing = framing_of(model.vocabulary, style)
    seen: set[str] = set()
    for seed in range(40):
        rng = Random(seed)
        choice = rng.choice(
            (ToolChoice(), ToolChoice(ToolMode.REQUIRED), ToolChoice(ToolMode.REQUIRED, parallel=False))
        )
        tools = rng.sample(list(TOOLS.values()), rng.randint(1, 4))
        content = OutputConstraint.json_schema(CONTENT_SCHEMA) if rng.random() < 0.3 else None
        phase = rng.choice((StartingPhase.THINKING, StartingPhase.CONTENT))
        grammar = answer_grammar(framing, tools, choice, phase=phase, content=content)
        answer = parse_answer(model.vocabulary, framing, draw_answer(model, framing, grammar, rng), grammar)
        for call in answer.calls:
            name = check_call(style, call)
            assert name in {tool.name for tool in tools}
            seen.add(name)
        if choice.mode is ToolMode.REQUIRED:
            assert answer.calls
            assert answer.content == ""
        if not choice.parallel:
            assert len(answer.calls) == 1
        if content is not None and not answer.calls:
            jsonschema.validate(json.loads(answer.content), CONTENT_SCHEMA)
    assert seen >= {"everything", "open"}


@pytest.mark.parametrize("style", list(ToolStyle))
@pytest.mark.parametrize("make_model", [whole_qwen, whole_smollm2])
def test_calls_in_real_vocabularies(make_model: Callable[[], Model], style: ToolStyle) -> None:
    model = make_model()
    ids = {model.vocabulary.token_bytes[token]: token for token in range(model.vocabulary.num_tokens)}
    found = [ids.get(mark.encode()) for mark in MARKS]
    passing = tuple(
        token for mark, token in zip(MARKS, found, strict=True) if token is not None and mark != THINK_CLOSE
    )
    framing = Framing(style, *found, passing)
    phase = StartingPhase.THINKING if framing.think_close is not None else StartingPhase.CONTENT
    for seed in range(6):
        rng = Random(seed)
        tools = rng.sample(list(TOOLS.values()), 2)
        grammar = answer_grammar(framing, tools, ToolChoice(ToolMode.REQUIRED), phase=phase)
        answer = parse_answer(model.vocabulary, framing, draw_answer(model, framing, grammar, rng), grammar)
        assert {check_call(style, call) for call in answer.calls} <= {tool.name for tool in tools}
        assert answer.calls


@pytest.mark.parametrize(("make_model", "style"), FRAMINGS)
def test_the_reader_finds_the_same_calls(make_model: Callable[[], Model], style: ToolStyle) -> None:
    model = make_model()
    framing = framing_of(model.vocabulary, style)
    num_calls = 0
    for seed in range(100, 130):
        rng = Random(seed)
        tools = rng.sample(list(TOOLS.values()), rng.randint(1, 4))
        content = OutputConstraint.json_schema(CONTENT_SCHEMA) if rng.random() < 0.3 else None
        choice = ToolChoice(rng.choice((ToolMode.AUTO, ToolMode.REQUIRED)))
        grammar = answer_grammar(framing, tools, choice, content=content)
        tokens = draw_answer(model, framing, grammar, rng)
        assert grammar.policy is not None
        reader = ToolReader(grammar.policy, framing, has_json_content=grammar.has_json_branch)
        events = []
        for token in tokens[:-1]:
            is_text = model.vocabulary.classes[token] == TokenClass.TEXT
            events += reader.text(model.vocabulary.token_bytes[token]) if is_text else reader.control(token)
        events += reader.finish(is_complete=True)
        answer = parse_answer(model.vocabulary, framing, tokens, grammar)
        content_bytes = b"".join(event.data for event in events if isinstance(event, ContentPiece))
        assert content_bytes.decode() == answer.content
        fragments = [
            "".join(event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == index)
            for index in range(len(answer.calls))
        ]
        assert fragments == [call.arguments_json for call in reader.calls]
        for call, written in zip(reader.calls, answer.calls, strict=True):
            name, arguments = read_call(style, written)
            assert call.name == name
            if TOOLS[name].strict or style is ToolStyle.JSON:
                assert call.arguments() == arguments
            else:
                # A value that is nothing but white space is left out.
                assert set(call.arguments()) <= set(arguments)
        num_calls += len(answer.calls)
    assert num_calls > 10
