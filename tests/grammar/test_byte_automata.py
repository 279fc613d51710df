"""Automata over bytes against the spellings that Python writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.grammar import ir
from infernix.grammar.automata import determinize
from infernix.grammar.byte_automata import json_string, raw_text
from infernix.grammar.unicode import character_class

BOUNDS = [0, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD]
BOUNDS += [0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
RANGES = st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)).map(lambda ends: (min(ends), max(ends)))
CLASSES = st.lists(RANGES, min_size=1, max_size=3).map(character_class).filter(lambda node: bool(node.ranges))


def accepts(automaton: ir.Automaton, data: bytes) -> bool:
    """Follows the edges one by one; at most one may match."""
    state = 0
    for byte in data:
        targets = [target for source, low, high, target in automaton.edges if source == state and low <= byte <= high]
        assert len(targets) <= 1
        if not targets:
            return False
        state = targets[0]
    return state in automaton.accepting


@settings(max_examples=100, deadline=None)
@given(CLASSES, CLASSES)
def test_every_character_is_spelled_in_one_way(first: ir.CharacterClass, second: ir.CharacterClass) -> None:
    dfa = determinize(ir.Sequence((first, ir.Repeat(second, 0, 1))))
    escaped, after_quote, raw = json_string(dfa), json_string(dfa, opening_quote=False), raw_text(dfa)
    texts = [chr(code) for code in BOUNDS] + [chr(code) + chr(other) for code in BOUNDS[::3] for other in BOUNDS[::4]]
    for text in ["", *texts]:
        written = json.dumps(text, ensure_ascii=False).encode()
        assert accepts(escaped, written) == dfa.accepts(text)
        assert accepts(after_quote, written[1:]) == dfa.accepts(text)
        assert accepts(raw, text.encode()) == dfa.accepts(text)


@pytest.mark.parametrize(
    "data",
    ['"\\u0061"', '"\\/"', '"\\u001F"', '"\\u000a"', '"\\u0022"', '"\n"', '"a', 'a"', '"a"b', '"\\ud83d\\ude00"'],
)
def test_other_spellings_are_none(data: str) -> None:
    assert not accepts(json_string(determinize(ir.Repeat(character_class((), negated=True), 0, None))), data.encode())


@pytest.mark.parametrize("data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"])
def test_bytes_that_are_not_utf8(data: bytes) -> None:
    anything = determinize(ir.Repeat(character_class((), negated=True), 0, None))
    assert not accepts(raw_text(anything), data)
    assert not accepts(json_string(anything), b'"' + data + b'"')


def test_ways_into_one_state_share_their_ends() -> None:
    dfa = determinize(ir.Repeat(character_class((), negated=True), 0, None))
    # Start, end and character border; 7 states inside UTF-8 characters, 6 inside escapes.
    assert json_string(dfa).num_states <= dfa.num_states + 2 + 7 + 6
    assert raw_text(dfa).num_states <= dfa.num_states + 7
