"""A plain parser of whole answers, which knows nothing of grammars."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar
from infernix.matching import TokenClass, Vocabulary
from support.answer_walks import RAW, TOOLS
from support.tool_answers import written_parameters


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
