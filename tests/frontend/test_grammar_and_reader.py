"""The grammar of an answer and its reader agree: random answers of every grammar are read, and every call satisfies its
tool's schema."""

from __future__ import annotations

import json
from random import Random

import jsonschema
import numpy as np
import pytest

from infernix.frontend.constraint import ConstraintState
from infernix.frontend.framing import Framing
from infernix.frontend.output_grammar import output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.session import OutputSession
from infernix.frontend.tools.companions import NameCompanions
from infernix.frontend.tools.selection import select_tools
from infernix.matching import compile_grammar
from infernix.matching.compiled import CompiledGrammar
from infernix.ops import masks
from infernix.options import OutputConstraint
from infernix.results import CacheAccess, FinishReason, OutputBranch, PublishedDelta
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_output import (
    CHAT,
    EOS,
    FORCED_END,
    JSON,
    JSON_AS_TEXT,
    SECOND_EOS,
    XML,
    XML_AS_TEXT,
    chat_session,
    is_control,
    joined_calls,
    published,
    reasoning_of,
)

COMPANIONS = NameCompanions(CHAT)
STRICT = {
    "weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 4},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "where": {
                "type": "object",
                "properties": {"a": {"type": "boolean"}, "b": {"enum": ["在", "x"]}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    },
    "ping": {"type": "object", "properties": {}, "additionalProperties": False},
}
LOOSE = {"note": {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}, "天气": {}}
ANSWER = OutputConstraint.json_schema(
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 6}}, "additionalProperties": False}
)
# Random text wanders: what leads on is preferred, so that answers end.
_LEADING = ("</", "para", "\n</parameter>\n", "</function>\n", "<function=", "}", '"', "\n\n")


def tools_of(*, strict: bool) -> list[ToolDefinition]:
    schemas = STRICT if strict else LOOSE
    return [ToolDefinition.of(name, schema, strict=strict) for name, schema in schemas.items()]


class Answers:
    """Sessions of one kind of answer."""

    def __init__(
        self,
        framing: Framing,
        phase: StartingPhase,
        tools: list[ToolDefinition],
        choice: ToolChoice,
        content: OutputConstraint | None,
    ) -> None:
        self.framing, self.phase, self.content = framing, phase, content
        kind = None if content is None else content.kind
        self.policy = select_tools(tools, choice, framing.tool_style, kind)
        self.grammar = output_grammar(framing, phase, self.policy, content)
        assert self.grammar is not None
        self.compiled: CompiledGrammar = compile_grammar(self.grammar.build(), CHAT)

    def session(self, num_tokens: int, thinking_budget: int | None, continuation: str | None = None) -> OutputSession:
        assert self.grammar is not None
        matcher = self.compiled.new_matcher(COMPANIONS.companion(self.grammar))
        return chat_session(
            self.framing,
            self.phase,
            num_tokens,
            state=ConstraintState(matcher, CacheAccess.BUILT, prepare_seconds=0.0),
            content=self.content,
            tools=self.policy,
            thinking_budget=thinking_budget,
            continuation=continuation,
        )


def walk(session: OutputSession, rng: Random) -> list[PublishedDelta]:
    """Legal tokens until the end."""
    deltas: list[PublishedDelta] = []
    words = np.zeros(CHAT.num_mask_words, dtype=np.int32)
    leading = {token for token, data in enumerate(CHAT.token_bytes) if data.decode(errors="replace") in _LEADING}
    while session.finish_reason is None:
        if session.pending_control_tokens:
            session.preview_control(session.pending_control_tokens)
        else:
            assert session.fill_mask(words)
            legal = [int(token) for token in masks.legal_ids(words, CHAT.num_tokens)]
            special = [token for token in legal if is_control(token) and rng.random() < 0.5]
            special += [token for token in legal if token in leading and rng.random() < 0.2]
            session.preview_model([rng.choice(special or legal)])
        deltas += session.commit_preview()
    return deltas


def check_call(name: str, arguments_json: str) -> None:
    arguments = json.loads(arguments_json)
    assert isinstance(arguments, dict)
    if name in STRICT:
        jsonschema.validate(arguments, STRICT[name])
    else:
        assert name in LOOSE


FRAMINGS = {"xml": XML, "json": JSON, "xml-text": XML_AS_TEXT, "json-text": JSON_AS_TEXT}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "loose"])
@pytest.mark.parametrize("mode", [ToolMode.AUTO, ToolMode.REQUIRED])
@pytest.mark.parametrize("content", [None, ANSWER], ids=["text", "schema"])
def test_every_answer_is_read(framing: Framing, strict: bool, mode: ToolMode, content: OutputConstraint | None) -> None:
    rng = Random(f"{framing} {strict} {mode}")
    thinks = framing.think_close is not None
    phase = StartingPhase.THINKING if thinks else StartingPhase.CONTENT
    answers = Answers(framing, phase, tools_of(strict=strict), ToolChoice(mode), content)
    num_finished = num_calls = 0
    for _ in range(12):
        budget = rng.choice([0, 3, 9]) if thinks else None
        session = answers.session(rng.choice([40, 400]), budget)
        deltas = walk(session, rng)
        observation = session.observe_constraint()
        assert observation is not None
        calls = joined_calls(deltas)
        assert published(deltas) == session.text
        assert reasoning_of(deltas) == session.reasoning
        for index, call in enumerate(session.tool_calls):
            assert calls[index] == call
            check_call(call.name, call.arguments_json)
        assert observation.terminated == (session.finish_reason is FinishReason.STOP_TOKEN)
        num_calls += len(session.tool_calls)
        if observation.terminated:
            num_finished += 1
            assert len(calls) == len(session.tool_calls)
            assert session.tool_calls or mode is ToolMode.AUTO
            assert observation.branch is not OutputBranch.TOOLS or session.tool_calls
            if content is not None and not session.tool_calls:
                assert set(json.loads(session.text)) <= {"a"}
            if content is not None and session.tool_calls:
                assert session.text == ""
        if budget is not None:
            assert session.thinking_statistics is not None
            assert session.thinking_statistics.num_model_tokens <= budget
    assert num_finished >= 3
    assert num_calls >= 3 or mode is ToolMode.AUTO


@pytest.mark.parametrize("framing", [XML, JSON], ids=["xml", "json"])
def test_a_cut_answer_can_be_continued_from_its_text(framing: Framing) -> None:
    """What was generated before a limit, given back as a prefix, is a prefix, whatever stands there."""
    rng = Random(12)
    answers = Answers(framing, StartingPhase.CONTENT, tools_of(strict=False), ToolChoice(ToolMode.REQUIRED), None)
    num_continued = 0
    for _ in range(25):
        session = answers.session(rng.randint(1, 40), None)
        walk(session, rng)
        data = b"".join(CHAT.token_bytes[token] for token in session.token_ids if token not in (EOS, SECOND_EOS))
        if session.tool_calls or session.finish_reason is FinishReason.STOP_TOKEN:
            continue
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if text.count("<tool_call>") > 1:  # one of them in ordinary letters: the text does not tell which is the token
            continue
        num_continued += 1
        rest = answers.session(400, None, continuation=text)
        deltas = walk(rest, rng)
        assert {index: call for index, call in joined_calls(deltas).items() if index < len(rest.tool_calls)} == dict(
            enumerate(rest.tool_calls)
        )
    assert num_continued > 5


def test_the_forced_end_belongs_to_every_grammar_with_thinking() -> None:
    for choice in (ToolChoice(), ToolChoice(ToolMode.REQUIRED), ToolChoice(ToolMode.NONE)):
        answers = Answers(XML, StartingPhase.THINKING, tools_of(strict=True), choice, None)
        session = answers.session(100, 0)
        assert session.preview_control(FORCED_END).num_accepted == len(FORCED_END)
