"""Function-calling requests of BFCL: `python -m tests.conformance.tools --data DIR [--json]`.

The tools of every request become the grammar of an answer, in both ways of writing calls, each with the vocabulary of a
model that writes so, once with strict tools where that can be and once without. Every expected call has to be accepted
token by token through the masks, and where none is expected, a text without one. `bfcl` says what is converted and what
is excluded. The exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.vocabularies import BenchmarkVocabulary, qwen, smollm2
from infernix.errors import ConstraintError
from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar, output_grammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.companions import NameCompanions
from infernix.frontend.tools.selection import select_tools
from infernix.matching import GrammarCompiler, Matcher
from infernix.tools import ToolChoice, ToolDefinition
from tests.conformance.bfcl import NoSuchValue, Request, expected_arguments, ordered, requests
from tests.conformance.cases import default_data

_MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
_THINKING = "The user wants something.\n</think>\n\n"
_TEXT = "None of the functions fits: <b>sorry</b>.\n\n"


@dataclass
class Tally:
    """`strict`: requests all of whose expected calls are of strict tools, in the XML way of writing."""

    requests: int = 0
    strict: int = 0
    accepted: int = 0
    calls: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    not_strict: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return {
            "requests": self.requests,
            "strict": self.strict,
            "accepted": self.accepted,
            "failed": self.failed,
            "excluded": dict(self.excluded),
            "calls": self.calls,
            "tools": dict(self.tools),
            "not_strict": dict(self.not_strict),
        }


class Writer:
    """One way of writing calls, with the vocabulary of a model."""

    def __init__(self, style: ToolStyle, model: BenchmarkVocabulary) -> None:
        self.style = style
        self._model = model
        ids = {data: token for token, data in enumerate(model.vocabulary.token_bytes)}
        self._marks = [ids.get(mark.encode()) for mark in _MARKS]
        self._framing = Framing(style, *self._marks)
        self._compiler = GrammarCompiler(model.vocabulary)
        self._companions = NameCompanions(model.vocabulary)

    def grammar(self, tools: Sequence[ToolDefinition]) -> OutputGrammar:
        """The grammar of an answer under the default choice. Raises a ConstraintError."""
        policy = select_tools(tools, ToolChoice(), self.style, None)
        phase = StartingPhase.CONTENT if self._framing.think_close is None else StartingPhase.THINKING
        grammar = output_grammar(self._framing, phase, policy, None)
        assert grammar is not None
        return grammar

    def matcher(self, grammar: OutputGrammar) -> Matcher:
        """At the beginning of an answer."""
        return self._compiler.compile(grammar).grammar.new_matcher(self._companions.companion(grammar))

    def written(self, tool: ToolDefinition, arguments: dict[str, Any]) -> str:
        """A call with its marks."""
        if self.style is ToolStyle.JSON:
            name = json.dumps(tool.name, ensure_ascii=False)
            body = f'{{"name": {name}, "arguments": {_json(arguments)}}}\n'
        else:
            parameters = [
                f"<parameter={name}>\n{value if isinstance(value, str) else _json(value)}\n</parameter>\n"
                for name, value in arguments.items()
            ]
            body = f"<function={tool.name}>\n{''.join(parameters)}</function>\n"
        return f"<tool_call>\n{body}</tool_call>"

    def refused_at(self, grammar: OutputGrammar, answer: str) -> str | None:
        """Where an answer is refused: what comes before the token that is; None if it is accepted."""
        vocabulary = self._model.vocabulary
        matcher = self.matcher(grammar)
        row = np.zeros(vocabulary.num_mask_words, np.int32)
        before = b""
        for token in (*self._tokens(answer if not grammar.thinks else _THINKING + answer), min(vocabulary.eos_ids)):
            is_legal = matcher.fill(row) and bool(row[token >> 5] >> (token & 31) & 1)
            if not (is_legal and matcher.accept(token)):
                return (before[-200:] + b" | " + vocabulary.token_bytes[token]).decode("utf-8", "replace")
            before += vocabulary.token_bytes[token]
        return None

    def _tokens(self, answer: str) -> list[int]:
        """The model's own tokens, marks as tokens where it has such."""
        tokens: list[int] = []
        while answer:
            places = {
                answer.find(mark): (mark, token)
                for mark, token in zip(_MARKS, self._marks, strict=True)
                if token is not None and mark in answer
            }
            begin = min(places, default=len(answer))
            tokens += self._model.encode(answer[:begin])
            mark, found = places.get(begin, ("", None))
            tokens += [] if found is None else [found]
            answer = answer[begin + len(mark) :]
        return tokens


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def strict_where_possible(function: dict[str, Any], writer: Writer, tally: Tally | None = None) -> ToolDefinition:
    """A tool whose arguments are enforced if its schema can be."""
    name, description, parameters = function["name"], function["description"], function["parameters"]
    tool = ToolDefinition.of(name, parameters, description=description, strict=True)
    try:
        writer.matcher(writer.grammar([tool]))
    except ConstraintError as error:
        tool = ToolDefinition.of(name, parameters, description=description)
        if tally is not None:
            tally.not_strict[f"{writer.style.value}: {_kind_of_refusal(error)}"] += 1
    if tally is not None:
        tally.tools[f"{writer.style.value} {'strict' if tool.strict else 'not strict'}"] += 1
    return tool


def _kind_of_refusal(error: ConstraintError) -> str:
    kind = "mixes strings and other values" if "mixes strings" in error.message else error.message.partition(" at /")[0]
    return f"{error.code}: {kind}"


def check_request(request: Request, writers: Iterable[Writer], tally: Tally) -> None:
    """Compiles the tools of a request and follows its expected calls, in all ways of writing: strict where they can be,
    then none of them strict."""
    tally.requests += 1
    failures: list[dict[str, str]] = []
    reasons: list[str] = []
    for writer in writers:
        strict = [strict_where_possible(function, writer, tally) for function in request.functions]
        called = [tool for tool in strict if tool.name in {name for name, _ in request.expected}]
        if writer.style is ToolStyle.XML and called and all(tool.strict for tool in called):
            tally.strict += 1
        for tools in (strict, [replace(tool, strict=False) for tool in strict]):
            try:
                answers = _answers(request, {tool.name: tool for tool in tools}, writer)
            except NoSuchValue as error:
                reasons.append(str(error))
                continue
            grammar = writer.grammar(tools)
            for answer in answers:
                tally.calls += answer.count("<tool_call>")
                refused = writer.refused_at(grammar, answer)
                if refused is not None:
                    failures.append({"id": request.name, "style": writer.style.value, "refused": refused})
    tally.failed += failures
    if reasons:
        tally.excluded[reasons[0]] += 1
    elif not failures:
        tally.accepted += 1


def _answers(request: Request, tools: dict[str, ToolDefinition], writer: Writer) -> list[str]:
    """Answers in which every expected value comes at least once. Raises NoSuchValue."""
    schemas = {function["name"]: function["parameters"] for function in request.functions}
    calls: list[list[str]] = []
    for name, expected in request.expected:
        schema = schemas[name]
        arguments = expected_arguments(schema if tools[name].strict else _untyped(schema), expected)
        calls.append([writer.written(tools[name], ordered(schema, value)) for value in arguments])
    turns = range(max(map(len, calls), default=1))
    answers = ["\n".join(written[turn % len(written)] for written in calls) for turn in turns]
    return answers if calls else [_TEXT]


def _untyped(schema: dict[str, Any]) -> dict[str, Any]:
    """The declared names of a tool that is not strict: nothing is asserted about their values."""
    return {"properties": {name: {} for name in schema["properties"]}, "required": schema["required"]}


def run(data: Path, sample: int | None = None) -> Tally:
    """All requests of the collection, or every one in `sample`."""
    folder = data / "bfcl" if (data / "bfcl").is_dir() else data
    found = list(requests(folder))
    if not found:
        raise FileNotFoundError(f"no requests below {folder}")
    writers = [Writer(ToolStyle.XML, qwen()), Writer(ToolStyle.JSON, smollm2())]
    tally = Tally()
    for request in found[::sample]:
        check_request(request, writers, tally)
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all requests and prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.tools", description=__doc__)
    parser.add_argument("--data", type=Path, default=default_data(), help="the folder bfcl/, or the one above it")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of one figure a line")
    options = parser.parse_args(arguments)
    tally = run(options.data)
    figures = tally.as_dict()
    if options.json:
        print(json.dumps(figures, ensure_ascii=False))
    else:
        for name, value in figures.items():
            print(f"{name:12} {json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, list) else value}")
    return int(bool(tally.failed))


if __name__ == "__main__":
    sys.exit(main())
