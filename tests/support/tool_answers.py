"""Answers with tool calls in small vocabularies: framings, spellings and plain readers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from random import Random

from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar, output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.selection import select_tools
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import OutputConstraint
from infernix.tools import ToolChoice, ToolDefinition
from support.vocabularies import spell, text_vocabulary

MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def tool_vocabulary(merged: Sequence[bytes | str] = (), *, has_marks: bool = True) -> Vocabulary:
    """Every byte under its own value, `merged`, the four marks as control tokens, and an end token."""
    marks = MARKS if has_marks else MARKS[:2]
    return text_vocabulary([*(bytes([byte]) for byte in range(256)), *merged], control=marks)


def framing_of(vocabulary: Vocabulary, style: ToolStyle) -> Framing:
    """The framing of a vocabulary in which the control tokens are marks; all but `</think>` pass inside reasoning."""
    ids = {
        vocabulary.token_bytes[token].decode(): token
        for token in range(vocabulary.num_tokens)
        if vocabulary.classes[token] == TokenClass.CONTROL
    }
    passing = tuple(token for spelling, token in ids.items() if spelling in MARKS and spelling != "</think>")
    think_open, think_close, tool_open, tool_close = (ids.get(spelling) for spelling in MARKS)
    return Framing(style, think_open, think_close, tool_open, tool_close, passing)


def answer_grammar(
    framing: Framing,
    tools: Sequence[ToolDefinition],
    choice: ToolChoice | None = None,
    *,
    phase: StartingPhase = StartingPhase.CONTENT,
    content: OutputConstraint | None = None,
) -> OutputGrammar:
    """The grammar of an answer, which is constrained."""
    kind = None if content is None else content.kind
    policy = select_tools(tools, choice or ToolChoice(), framing.tool_style, kind)
    grammar = output_grammar(framing, phase, policy, content)
    assert grammar is not None
    return grammar


def spell_answer(vocabulary: Vocabulary, framing: Framing, answer: str, rng: Random | None = None) -> list[int]:
    """The tokens of an answer, marks as tokens where there are such tokens."""
    marks = {
        spelling: token
        for spelling, token in zip(
            MARKS, (framing.think_open, framing.think_close, framing.tool_open, framing.tool_close), strict=True
        )
        if token is not None
    }
    pieces = re.split("(" + "|".join(map(re.escape, marks)) + ")", answer) if marks else [answer]
    tokens: list[int] = []
    for piece in pieces:
        tokens += [marks[piece]] if piece in marks else spell(vocabulary, piece.encode(), rng) if piece else []
    return tokens


def xml_call_text(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    """A call with its marks; the arguments are names and values as they are written."""
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments)
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def json_call_text(name: str, arguments: str) -> str:
    """A call with its marks; the arguments are a JSON object as it is written."""
    return f'<tool_call>\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}}}\n</tool_call>'


def written_parameters(call: str) -> list[tuple[str, str | None]]:
    """The names that are complete in what is there of an XML call behind its opener, each with its value if that is
    complete too."""
    found: list[tuple[str, str | None]] = []
    header = re.match(r"\n<function=[^>]*>\n", call)
    rest = call[header.end() :] if header else ""
    while match := re.match(r"<parameter=([^>]*)>", rest):
        rest = rest[match.end() + 1 :]
        value, is_ended, rest = rest.partition("\n</parameter>\n")
        found.append((match[1], value if is_ended else None))
    return found


def written_arguments(call: str) -> list[str]:
    """The argument names that are complete in what is there of a JSON call behind its opener."""
    names: list[str] = []
    depth, at, is_name = 0, 0, False
    while at < len(call):
        character = call[at]
        at += 1
        if character == '"':
            try:
                value, at = scanstring(call, at)
            except json.JSONDecodeError:
                break
            if is_name and depth == 2:
                names.append(value)
            is_name = False
        elif character in "{[":
            depth += 1
            is_name = character == "{"
        elif character in "}]":
            depth -= 1
            if depth == 0:
                break
        elif character == ",":
            is_name = True
    return names
