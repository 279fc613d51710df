"""Random answers, drawn through the masks, read back by a plain parser and judged by a JSON Schema validator."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest

from benchmarks.vocabularies import qwen, smollm2
from infernix.frontend.framing import THINK_CLOSE, Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.companions import NameCompanions
from infernix.matching import GrammarCompiler, TokenClass, Vocabulary
from infernix.options import OutputConstraint
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.tool_answers import MARKS, answer_grammar, framing_of, tool_vocabulary, written_parameters

MAX_TOKENS = 4000
MERGED = (
    '": ',
    ', "',
    '{"',
    '"}',
    "</parameter>\n",
    "<parameter=",
    ">\n",
    "\n\n",
    "true",
    "10",
    "ab",
    "é",
    '", "a": "',
)

STRICT_PARAMETERS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "short": {"type": "string", "minLength": 2, "maxLength": 7},
    "pattern": {"type": "string", "pattern": "^[a-c]+(\n[<d]+)?$", "maxLength": 30},
    "choice": {"enum": ["a", "ab", "b\n", "x\n</parameter>\n", ""]},
    "count": {"type": "integer", "minimum": -5, "maximum": 1000},
    "ratio": {"type": "number", "exclusiveMinimum": 0},
    "flag": {"type": ["boolean", "null"]},
    "list": {"type": "array", "items": {"type": ["string", "integer"]}, "maxItems": 4},
    "nested": {
        "type": "object",
        "properties": {"deep": {"type": "array", "items": {"const": {"k": [1, "v"]}}}, "城": {"type": "string"}},
        "required": ["城"],
        "additionalProperties": {"type": "boolean"},
    },
    "constant": {"const": {"a": [True, {"b": None}]}},
}
RAW = {"text", "short", "pattern", "choice"}
NAMES = list(STRICT_PARAMETERS)


def strict_tool(name: str, arguments: Iterable[str], required: Iterable[str]) -> ToolDefinition:
    properties = {argument: STRICT_PARAMETERS[argument] for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolDefinition.of(name, schema, strict=True)


TOOLS = {
    tool.name: tool
    for tool in (
        strict_tool("everything", NAMES, NAMES),
        strict_tool("all_optional", NAMES, []),
        strict_tool("some", reversed(NAMES), NAMES[::3]),
        strict_tool("nothing", [], []),
        strict_tool("strings", sorted(RAW), ["text"]),
        ToolDefinition.of("open", {"type": "object", "properties": {"count": {"type": "integer"}}}),
        ToolDefinition.of("天気"),
    )
}


@dataclass(frozen=True)
class Model:
    vocabulary: Vocabulary
    compiler: GrammarCompiler
    companions: NameCompanions
    first_bytes: np.ndarray[Any, np.dtype[np.uint8]]


def model_of(vocabulary: Vocabulary) -> Model:
    first_bytes = np.array([data[0] if data else 0 for data in vocabulary.token_bytes], np.uint8)
    return Model(vocabulary, GrammarCompiler(vocabulary), NameCompanions(vocabulary), first_bytes)


@cache
def small() -> Model:
    return model_of(tool_vocabulary(MERGED))


@cache
def unmarked() -> Model:
    return model_of(tool_vocabulary(MERGED, has_marks=False))


@cache
def whole_qwen() -> Model:
    return model_of(qwen().vocabulary)


@cache
def whole_smollm2() -> Model:
    return model_of(smollm2().vocabulary)


def preferred_bytes(text: bytes) -> bytes:
    """What leads to the end soonest, after this text."""
    tail = text[-16:]
    value_end = b"\n</parameter>\n"
    for length in range(len(value_end) - 1, 0, -1):
        if tail.endswith(value_end[:length]):
            return value_end[length : length + 1]
    if re.search(rb"<parameter=[^<>\n]+$", text[-1000:]):
        return b">"
    return b'}]"' if tail[-1:] in (b"{", b"[") else b'\n"}],:ntf0123456789-[{<'


def draw_answer(model: Model, framing: Framing, grammar: OutputGrammar, rng: Random) -> list[int]:
    """Tokens drawn through the masks: first freely, some calls long, then in haste."""
    matcher = model.compiler.compile(grammar).grammar.new_matcher(model.companions.companion(grammar))
    row = np.zeros(model.vocabulary.num_mask_words, np.int32)
    tokens: list[int] = []
    text = b""
    num_free, by_byte = rng.choice((0, 10, 60)), rng.random() < 0.5
    marks = [token for token in (framing.think_close, framing.tool_close, framing.tool_open) if token is not None]
    while len(tokens) < MAX_TOKENS:
        assert matcher.fill(row), text
        legal = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        is_hasty = len(tokens) >= num_free or rng.random() < 0.15
        token = _hasty(model, legal, marks, text) if is_hasty else None
        if token is None:
            bytes_left = np.unique(model.first_bytes[legal])
            byte = bytes_left[rng.randrange(len(bytes_left))]
            candidates = legal[model.first_bytes[legal] == byte] if by_byte else legal
            token = int(candidates[rng.randrange(len(candidates))])
        assert matcher.accept(token), (token, text)
        tokens.append(token)
        if token in model.vocabulary.eos_ids:
            return tokens
        is_text = model.vocabulary.classes[token] == TokenClass.TEXT
        text = text + model.vocabulary.token_bytes[token] if is_text else b""
    raise AssertionError(f"no end after {text[-200:]!r}")


def _hasty(model: Model, legal: np.ndarray[Any, Any], marks: list[int], text: bytes) -> int | None:
    for token in (*model.vocabulary.eos_ids, *marks):
        if token in legal:
            return token
    first = model.first_bytes[legal]
    for byte in preferred_bytes(text):
        found = legal[first == byte]
        if len(found):
            return int(min(found, key=lambda token: len(model.vocabulary.token_bytes[token])))
    return None


@dataclass(frozen=True)
class Answer:
    """What a plain parser finds: the content before the first call, and each call's text between its marks."""

    content: str
    calls: list[str]


def parse_answer(vocabulary: Vocabulary, framing: Framing, tokens: list[int], grammar: OutputGrammar) -> Answer:
    assert tokens[-1] in vocabulary.eos_ids
    tokens = tokens[:-1]
    if grammar.thinks:
        assert framing.think_close is not None
        tokens = tokens[tokens.index(framing.think_close) + 1 :]
    # A mark as a token is a character that no text has.
    data = b"".join(
        b"\xff" + vocabulary.token_bytes[token]
        if vocabulary.classes[token] == TokenClass.CONTROL
        else vocabulary.token_bytes[token]
        for token in tokens
    )
    if grammar.thinks:
        assert data.startswith(b"\n\n")
        data = data[2:]
    if framing.tool_open is None and (not grammar.has_json_branch or data[:1] == b"<"):
        data = re.sub(
            rb"<tool_call>\n(?=[<{])|\n</tool_call>(?=\n<tool_call>\n|$)",
            lambda found: found[0].replace(b"<", b"\xff<"),
            data,
        )
    content, *calls = data.split(b"\xff<tool_call>")
    bodies = []
    for number, call in enumerate(calls):
        body, closer, rest = call.partition(b"\xff</tool_call>")
        assert closer
        assert rest == (b"" if number == len(calls) - 1 else b"\n")
        bodies.append(body.decode())
    return Answer(content.decode(), bodies)


def read_call(style: ToolStyle, call: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments; those of the XML way that are text by their schema are strings."""
    if style is ToolStyle.JSON:
        assert call[:1] == "\n" == call[-1:]
        pairs: list[list[str]] = []

        def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
            pairs.append([name for name, _ in members])
            return dict(members)

        document = json.loads(call, object_pairs_hook=unique)
        assert list(document) == ["name", "arguments"]
        # The last object but one that ends is that of the arguments.
        assert len(set(pairs[-2])) == len(pairs[-2])
        return document["name"], document["arguments"]
    header = re.match(r"\n<function=(.*)>\n", call)
    assert header is not None
    assert call.endswith("</function>\n")
    name = header[1]
    parameters = written_parameters(call)
    assert len({key for key, _ in parameters}) == len(parameters)
    rebuilt = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    assert call == f"{header[0]}{rebuilt}</function>\n"
    is_strict = TOOLS[name].strict
    return name, {key: json.loads(value or "") if is_strict and key not in RAW else value for key, value in parameters}


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
    for seed in range(60):
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
    for seed in range(15):
        rng = Random(seed)
        tools = rng.sample(list(TOOLS.values()), 2)
        grammar = answer_grammar(framing, tools, ToolChoice(ToolMode.REQUIRED), phase=phase)
        answer = parse_answer(model.vocabulary, framing, draw_answer(model, framing, grammar, rng), grammar)
        assert {check_call(style, call) for call in answer.calls} <= {tool.name for tool in tools}
        assert answer.calls
