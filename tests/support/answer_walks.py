"""Tools of every kind, and random answers with calls of them, drawn through the masks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np

from infernix.frontend.framing import Framing
from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.tools.companions import NameCompanions
from infernix.matching import GrammarCompiler, TokenClass, Vocabulary
from infernix.tools import ToolDefinition
from support.tool_answers import tool_vocabulary

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
    num_free, by_byte = rng.choice((0, 10, 40)), rng.random() < 0.5
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
