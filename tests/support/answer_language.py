"""Whether answers belong to the language of an answer's grammar, spelled in many ways in nasty vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from infernix.frontend.framing import Framing, ToolStyle
from infernix.frontend.output_grammar import OutputGrammar
from infernix.matching import CompiledGrammar, GrammarCompiler
from support.tool_answers import framing_of, spell_answer, tool_vocabulary

MERGED = ("\n\n", "\n\n{", "\n\nHi", "</think>", "<tool_call>", "</function>\n", ">\n", "\n</", '": ', ', "', "{}")
MARKED, UNMARKED = tool_vocabulary(MERGED), tool_vocabulary(MERGED, has_marks=False)
FRAMINGS = {
    "xml": framing_of(MARKED, ToolStyle.XML),
    "json": framing_of(MARKED, ToolStyle.JSON),
    "xml by text": framing_of(UNMARKED, ToolStyle.XML),
    "json by text": framing_of(UNMARKED, ToolStyle.JSON),
}
COMPILERS = {True: GrammarCompiler(MARKED), False: GrammarCompiler(UNMARKED)}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def accepts(framing: Framing, grammar: OutputGrammar, *answers: str, num_spellings: int = 2) -> bool:
    """Whether all the answers belong to the language, or none, each in several spellings: anything else is an error."""
    compiler = COMPILERS[framing.tool_open is not None]
    compiled = compiler.compile(grammar).grammar
    found = {
        accepts_tokens(compiled, spell_answer(compiled.vocabulary, framing, answer, rng))
        for answer in answers
        for rng in (None, *(Random(f"{seed}{answer}") for seed in range(num_spellings - 1)))
    }
    assert len(found) == 1, answers
    return found.pop()


def accepts_tokens(compiled: CompiledGrammar, tokens: Sequence[int]) -> bool:
    """Whether the tokens and an end token behind them are legal, each by the mask of its position."""
    matcher = compiled.new_matcher()
    row = np.zeros(compiled.vocabulary.num_mask_words, np.int32)
    eos = min(compiled.vocabulary.eos_ids)
    for token in (*tokens, eos):
        assert matcher.fill(row)
        is_legal = bool(row[token >> 5] >> (token & 31) & 1)
        assert matcher.accept(token) == is_legal
        if not is_legal:
            return False
    return matcher.is_terminated
