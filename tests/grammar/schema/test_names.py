"""Names of other members, against a plain enumeration of names and spellings."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.grammar.schema.names import MAX_NAME_STATES, names_except

CHARACTERS = [
    "a",
    "b",
    "é",
    "è",
    "日",
    "本",
    "😀",
    "😁",
    '"',
    "\\",
    "\n",
    "\r",
    "\x00",
    "\x1f",
    "\x7f",
    "/",
    "u",
    "\u2028",
]
NAMES = st.lists(st.sampled_from(CHARACTERS), max_size=3).map("".join)


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


def after_quote(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode()[1:]


@settings(max_examples=150, deadline=None)
@given(st.lists(NAMES, max_size=6), st.lists(NAMES, min_size=5, max_size=15))
def test_a_name_is_another_one_if_its_value_is_not_declared(declared: list[str], candidates: list[str]) -> None:
    automaton = names_except(declared)
    near = [name + character for name in declared for character in CHARACTERS] + [name[:-1] for name in declared]
    for name in [*declared, *candidates, *near, ""]:
        assert accepts(automaton, after_quote(name)) == (name not in declared), name


@pytest.mark.parametrize(
    "data", ['\\u0061"', '\\/"', '\\u001F"', '\\u000a"', '\\ud83d\\ude00"', "a", 'b"c', '\n"', '""', '\\x"']
)
def test_other_spellings_are_no_names(data: str) -> None:
    assert not accepts(names_except(["a", "\n", "😀", ""]), data.encode())


@pytest.mark.parametrize(
    "declared", [[], [""], ["a", "ab", "abc"], ["\x00", "\x01", "\n", '"'], ["é", "è", "日本", "日"]]
)
def test_no_name_is_a_dead_end(declared: list[str]) -> None:
    automaton = names_except(declared)
    assert {source for source, *_ in automaton.edges} | automaton.accepting == set(range(automaton.num_states))
    assert all(source not in automaton.accepting for source, *_ in automaton.edges)


def test_the_size_is_that_of_the_names() -> None:
    names = [f"property_{index}" for index in range(100)]
    small, large = names_except(names[:50]), names_except(names)
    num_bytes = sum(map(len, names))
    assert large.num_states < num_bytes + 20
    assert len(large.edges) - len(small.edges) < 12 * num_bytes


def test_the_bound_counts_states() -> None:
    assert names_except(["a" * (MAX_NAME_STATES - 1)]).num_states > MAX_NAME_STATES
    with pytest.raises(ConstraintTooLarge, match="MAX_NAME_STATES = 65536"):
        names_except(["a" * MAX_NAME_STATES])
