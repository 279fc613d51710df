"""What an answer may begin with: phase x constraint x tools, judged by a model that wants nothing but one token."""

from __future__ import annotations

import pytest

from infernix.options import OutputConstraint
from infernix.tools import ToolChoice, ToolDefinition, ToolMode
from support.chat_engine import converse, wanting
from support.chat_output import EOS, JSON_AS_TEXT, SECOND_EOS, THINK_CLOSE, TOOL_CLOSE, TOOL_OPEN, XML, text_tokens

(OPEN_TAG,) = text_tokens(b"<tool")  # ordinary letters
BRACE, SPACE, LETTER = ord("{"), ord(" "), ord("o")
PROBES = {EOS, SECOND_EOS, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE, BRACE, SPACE, LETTER, OPEN_TAG}
TEXT = {BRACE, SPACE, LETTER, OPEN_TAG}
ENDS = {EOS, SECOND_EOS}
CONSTRAINTS = {
    "none": None,
    "json_object": OutputConstraint.json_object(),
    "json_schema": OutputConstraint.json_schema({"type": "object", "properties": {"a": {"type": "null"}}}),
    "grammar": OutputConstraint.grammar('root ::= "ok" | "{"'),
    "regex": OutputConstraint.regex("( |o)?"),
    "choice": OutputConstraint.choice(["", "<tool_call>", " x"]),
}
CONTENT = {
    "json_object": {BRACE},
    "json_schema": {BRACE},
    "grammar": {BRACE, LETTER},
    "regex": {SPACE, LETTER} | ENDS,
    "choice": {SPACE, OPEN_TAG} | ENDS,
}
TOOLS = (ToolDefinition("f", strict=True, parameters='{"type": "object", "additionalProperties": false}'),)
AUTO, REQUIRED, NONE = ToolChoice(), ToolChoice(ToolMode.REQUIRED), ToolChoice(ToolMode.NONE)
# (constraint, tool choice, whether tools are declared) -> what may come first in the content.
FIRST = [
    ("none", AUTO, True, TEXT | ENDS | {TOOL_OPEN}),
    ("none", ToolChoice(parallel=False), True, TEXT | ENDS | {TOOL_OPEN}),
    ("none", REQUIRED, True, {TOOL_OPEN}),
    ("none", ToolChoice.named("f"), True, {TOOL_OPEN}),
    ("none", NONE, True, TEXT | ENDS),
    ("none", NONE, False, TEXT | ENDS),
    *((kind, AUTO, False, legal) for kind, legal in CONTENT.items()),
    *((kind, NONE, True, legal) for kind, legal in CONTENT.items()),
    *((kind, AUTO, True, {BRACE, TOOL_OPEN}) for kind in ("json_object", "json_schema")),
    *((kind, REQUIRED, True, {TOOL_OPEN}) for kind in ("json_object", "json_schema")),
    *((kind, ToolChoice.named("f"), True, {TOOL_OPEN}) for kind in ("json_object", "json_schema")),
]
IDS = [f"{kind}-{choice.mode}-{'tools' if declared else 'no tools'}" for kind, choice, declared, _ in FIRST]


def first_tokens(kind: str, choice: ToolChoice, declared: bool, *, thinking: bool) -> set[int]:
    """The probes that the model gets if it wants them."""
    return {
        probe
        for probe in PROBES
        if converse(
            wanting([probe]),
            XML,
            thinking=thinking,
            tools=TOOLS if declared else (),
            tool_choice=choice,
            constraint=CONSTRAINTS[kind],
            max_new_tokens=1,
        ).token_ids
        == (probe,)
    }


@pytest.mark.parametrize(("kind", "choice", "declared", "legal"), FIRST, ids=IDS)
def test_content_begins_as_constraint_and_tools_say(
    kind: str, choice: ToolChoice, declared: bool, legal: set[int]
) -> None:
    assert first_tokens(kind, choice, declared, thinking=False) == legal


@pytest.mark.parametrize(("kind", "choice", "declared"), [row[:3] for row in FIRST], ids=IDS)
def test_reasoning_begins_with_anything_but_an_end(kind: str, choice: ToolChoice, declared: bool) -> None:
    assert first_tokens(kind, choice, declared, thinking=True) == PROBES - ENDS


@pytest.mark.parametrize("kind", CONTENT)
def test_a_raw_text_begins_as_the_constraint_says(kind: str) -> None:
    granted = {
        probe
        for probe in PROBES
        if converse(wanting([probe]), prompt="<think>\n", constraint=CONSTRAINTS[kind], max_new_tokens=1).token_ids
        == (probe,)
    }
    assert granted == CONTENT[kind]


def test_a_vocabulary_without_marks_opens_a_call_with_letters() -> None:
    for choice, legal in [(REQUIRED, {OPEN_TAG}), (AUTO, TEXT | ENDS), (NONE, TEXT | ENDS)]:
        granted = {
            probe
            for probe in PROBES
            if converse(wanting([probe]), JSON_AS_TEXT, tools=TOOLS, tool_choice=choice, max_new_tokens=1).token_ids
            == (probe,)
        }
        assert granted == legal
