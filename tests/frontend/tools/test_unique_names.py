"""Companions of open argument names: what they refuse is what a plain reader of the whole text finds twice, and the
bits they clear are those of the tokens that they refuse."""

from __future__ import annotations

import json
from collections.abc import Hashable
from random import Random

import numpy as np
import pytest

from infernix.frontend.framing import ToolStyle
from infernix.frontend.output_grammar import OutputGrammar
from infernix.frontend.phases import StartingPhase
from infernix.frontend.tools.companions import NameCompanions
from infernix.matching import Companion, CompiledGrammar, compile_grammar
from infernix.matching.vocabulary import TokenClass, Vocabulary
from infernix.options import OutputConstraint
from infernix.tools import ToolDefinition
from support.tool_answers import (
    answer_grammar,
    framing_of,
    json_call_text,
    spell_answer,
    tool_vocabulary,
    written_arguments,
    written_parameters,
    xml_call_text,
)

OPEN_TOOL = ToolDefinition.of("f", {"type": "object"})
STRICT_TOOL = ToolDefinition.of(
    "g",
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    strict=True,
)
NAMES = ("a", "ab", "b", "é", "城", '"', "\\")


def random_xml_call(rng: Random) -> str:
    names = [name for name in NAMES if name not in '"\\']
    values = ("", "v", "a>\n", "\n", "</parameter>", "x\n</param", "<parameter=a>", "1\n2", "é")
    arguments = [(rng.choice(names), rng.choice(values)) for _ in range(rng.randint(0, 4))]
    return xml_call_text(rng.choice("fg"), arguments)


def random_spelling(name: str, rng: Random) -> str:
    spelled = ""
    for character in name:
        if character in '"\\':
            spelled += rng.choice((f"\\{character}", f"\\u{ord(character):04x}"))
        else:
            spelled += rng.choice((character, f"\\u{ord(character):04X}"))
    return f'"{spelled}"'


def random_json_call(rng: Random) -> str:
    values = ("1", '"a"', r'"\", \"a\": "', "{}", '{"a": 1, "a": 2}', '["a", "a"]', r'"\\"', "null")
    members = [f"{random_spelling(rng.choice(NAMES), rng)}: {rng.choice(values)}" for _ in range(rng.randint(0, 4))]
    return json_call_text("f", "{" + ", ".join(members) + "}")


def random_vocabulary(texts: list[str], rng: Random, *, has_marks: bool) -> Vocabulary:
    """Pieces of the texts, short and long, so that tokens begin and end anywhere in a call."""
    pieces = []
    for _ in range(60):
        data = rng.choice(texts).replace("<tool_call>", "").replace("</tool_call>", "").encode()
        begin = rng.randrange(max(len(data), 1))
        pieces.append(data[begin : begin + rng.choice((2, 3, 5, 9, 17, 40, 80))])
    return tool_vocabulary([piece for piece in pieces if piece], has_marks=has_marks)


def refused_tokens(companion: Companion, state: Hashable, tokens: set[int]) -> set[int]:
    return {token for token in tokens if companion.after(state, token) is None}


def set_tokens(row: np.ndarray[tuple[int], np.dtype[np.int32]]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def check_answer(
    grammar: OutputGrammar, compiled: CompiledGrammar, vocabulary: Vocabulary, tokens: list[int], style: ToolStyle
) -> int:
    """Follows the tokens up to the first that is refused; the number of those before it."""
    companion = NameCompanions(vocabulary).companion(grammar)
    assert companion is not None
    matcher = compiled.new_matcher()
    state = companion.start()
    usable = set(np.flatnonzero(vocabulary.classes <= TokenClass.CONTROL).tolist())
    everything = np.full(vocabulary.num_mask_words, -1, np.int32)
    call: bytes | None = None
    for count, token in enumerate(tokens):
        row = np.zeros(vocabulary.num_mask_words, np.int32)
        assert matcher.fill(row)
        for before in (row, everything):
            after = before.copy()
            companion.clear(state, after)
            legal = set_tokens(before)
            assert legal - set_tokens(after) == refused_tokens(companion, state, legal & usable)
        if token == grammar.framing.tool_open:
            call = b""
        elif call is not None and vocabulary.classes[token] == TokenClass.TEXT:
            call += vocabulary.token_bytes[token]
        following = companion.after(state, token)
        names: list[str] = []
        if call is not None:
            text = call.decode("utf-8", "ignore")
            names = (
                [name for name, _ in written_parameters(text)] if style is ToolStyle.XML else written_arguments(text)
            )
        assert (following is None) == (len(set(names)) < len(names)), (names, call)
        if following is None:
            return count
        assert matcher.accept(token)
        state = following
    return len(tokens)


@pytest.mark.parametrize("style", list(ToolStyle))
def test_random_calls_in_random_vocabularies(style: ToolStyle) -> None:
    make_call = random_xml_call if style is ToolStyle.XML else random_json_call
    num_refused = 0
    for seed in range(8):
        rng = Random(seed)
        texts = [make_call(rng) for _ in range(20)]
        vocabulary = random_vocabulary(texts, rng, has_marks=True)
        framing = framing_of(vocabulary, style)
        grammar = answer_grammar(framing, [OPEN_TOOL, STRICT_TOOL], phase=StartingPhase.THINKING)
        compiled = compile_grammar(grammar.build(), vocabulary)
        for _ in range(4):
            calls = "\n".join(rng.choice(texts).replace("=g>", "=f>") for _ in range(rng.randint(1, 2)))
            answer = f"so <tool_call>x\n<function=f>\n</think>\n\nok {calls}"
            tokens = spell_answer(vocabulary, framing, answer, rng)
            num_refused += check_answer(grammar, compiled, vocabulary, tokens, style) < len(tokens)
    assert num_refused > 10


@pytest.mark.parametrize("style", list(ToolStyle))
def test_names_count_by_call_and_not_in_thinking(style: ToolStyle) -> None:
    vocabulary = tool_vocabulary()
    framing = framing_of(vocabulary, style)
    grammar = answer_grammar(framing, [OPEN_TOOL], phase=StartingPhase.THINKING)
    compiled = compile_grammar(grammar.build(), vocabulary)
    call = xml_call_text("f", [("a", "1"), ("b", "a")]) if style is ToolStyle.XML else json_call_text("f", '{"a": 1}')
    tokens = spell_answer(vocabulary, framing, f"{call}{call}\n</think>\n\n{call}\n{call}")
    matcher = compiled.new_matcher(NameCompanions(vocabulary).companion(grammar))
    assert all(map(matcher.accept, tokens))
    assert matcher.may_end


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a", "\\u0061"),
        ("é", "\\u00e9"),
        ("😀", "\\ud83d\\ude00"),
        ('\\"', "\\u0022"),
        ("\\/", "/"),
        ("\\n", "\\u000a"),
    ],
)
def test_another_spelling_is_the_same_name(first: str, second: str) -> None:
    vocabulary = tool_vocabulary()
    framing = framing_of(vocabulary, ToolStyle.JSON)
    grammar = answer_grammar(framing, [OPEN_TOOL])
    compiled = compile_grammar(grammar.build(), vocabulary)
    for one, other in ((first, second), (second, first)):
        matcher = compiled.new_matcher(NameCompanions(vocabulary).companion(grammar))
        begin = json_call_text("f", f'{{"{one}": {{"{other}": 1}}, "{other}').partition("}\n</tool_call>")[0]
        assert all(map(matcher.accept, spell_answer(vocabulary, framing, begin)))
        row = np.zeros(vocabulary.num_mask_words, np.int32)
        assert matcher.fill(row)
        assert ord('"') not in set_tokens(row)
        assert not matcher.accept(ord('"'))
        assert matcher.accept(ord("x"))


def test_a_call_that_opens_by_text() -> None:
    vocabulary = tool_vocabulary(["<tool", "_call>", '{"', '": ', '"a"'], has_marks=False)
    framing = framing_of(vocabulary, ToolStyle.JSON)
    grammar = answer_grammar(framing, [OPEN_TOOL], phase=StartingPhase.THINKING)
    compiled = compile_grammar(grammar.build(), vocabulary)
    call = json_call_text("f", '{"a": "<tool_call>", "b": 1}')
    answer = f"{call}</think>\n\n<tool_<tool_call {call}\n{call}"
    matcher = compiled.new_matcher(NameCompanions(vocabulary).companion(grammar))
    assert all(map(matcher.accept, spell_answer(vocabulary, framing, answer)))
    twice = json_call_text("f", '{"a": 1, "a')
    assert all(map(matcher.accept, spell_answer(vocabulary, framing, "\n" + twice.partition("}\n")[0])))
    assert not matcher.accept(ord('"'))


def test_json_content_may_spell_a_call() -> None:
    vocabulary = tool_vocabulary(has_marks=False)
    framing = framing_of(vocabulary, ToolStyle.JSON)
    content = OutputConstraint.json_object()
    for phase, thinking in ((StartingPhase.CONTENT, ""), (StartingPhase.THINKING, "</think>\n\n")):
        grammar = answer_grammar(framing, [OPEN_TOOL], phase=phase, content=content)
        compiled = compile_grammar(grammar.build(), vocabulary)
        inner = json_call_text("f", "{'a': {'b': 1}, 'a': 2}")
        content_text = json.dumps({"x": inner, "y": 1})
        matcher = compiled.new_matcher(NameCompanions(vocabulary).companion(grammar))
        assert all(map(matcher.accept, spell_answer(vocabulary, framing, thinking + content_text)))
        assert matcher.may_end
        matcher = compiled.new_matcher(NameCompanions(vocabulary).companion(grammar))
        call = json_call_text("f", '{"a": 1, "a": 2}')
        accepted = [matcher.accept(token) for token in spell_answer(vocabulary, framing, thinking + call)]
        assert not all(accepted)


def test_declared_names_need_no_companion() -> None:
    vocabulary = tool_vocabulary()
    for style in ToolStyle:
        grammar = answer_grammar(framing_of(vocabulary, style), [STRICT_TOOL])
        assert NameCompanions(vocabulary).companion(grammar) is None
