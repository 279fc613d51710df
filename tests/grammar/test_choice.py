from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.errors import ConstraintTooLarge, InvalidChoice
from infernix.grammar import choice as choice_module
from infernix.grammar import ir
from infernix.grammar.choice import build_choice
from support.recognizer import Recognizer


def _automaton(choices: list[str]) -> ir.Automaton:
    grammar = build_choice(choices)
    assert len(grammar.rules) == 1
    body = grammar.rules[grammar.root].body
    assert isinstance(body, ir.Automaton)
    return body


def _members(automaton: ir.Automaton) -> list[bytes]:
    """All words of an automaton without cycles; a word reached on two ways is listed twice."""
    outgoing: dict[int, list[tuple[int, int]]] = {}
    for source, low, high, target in automaton.edges:
        outgoing.setdefault(source, []).extend((byte, target) for byte in range(low, high + 1))
    members: list[bytes] = []
    pending = [(0, b"")]
    while pending:
        state, word = pending.pop()
        if state in automaton.accepting:
            members.append(word)
        pending.extend((target, word + bytes([byte])) for byte, target in outgoing.get(state, []))
    return sorted(members)


def test_members_are_the_exact_bytes() -> None:
    choices = ["yes", "Yes", " yes", "yes ", "é", "e\u0301", "在线", "😀", "a\nb", "\x00", '"{}\\']
    assert _members(_automaton(choices)) == sorted(choice.encode() for choice in choices)


@pytest.mark.parametrize(
    ("choices", "accepted", "refused"),
    [
        (["in", "inside", "insides"], ["in", "inside", "insides"], ["", "i", "ins", "insidess"]),
        (["", "yes"], ["", "yes"], ["y", "yesyes"]),
        ([""], [""], ["a", "\x00"]),
        (["在线", "离线"], ["在线", "离线"], ["在", "离", "线"]),
    ],
)
def test_language(choices: list[str], accepted: list[str], refused: list[str]) -> None:
    recognizer = Recognizer(build_choice(choices))
    assert [text for text in accepted if not recognizer.matches(text.encode())] == []
    assert [text for text in refused if recognizer.matches(text.encode())] == []


def test_the_empty_choice_alone_allows_no_byte() -> None:
    assert _automaton([""]) == ir.Automaton(1, (), frozenset({0}))


def test_order_and_duplicates_carry_no_meaning() -> None:
    assert build_choice(["b", "a", "b", "ab", "a"]) == build_choice(["ab", "a", "b"])


@settings(max_examples=200)
@given(st.lists(st.text("ab\u00e9\u00ea\u20ac😀", max_size=5), min_size=1, max_size=12))
def test_one_deterministic_tree_with_exactly_these_words(choices: list[str]) -> None:
    automaton = _automaton(choices)
    assert _members(automaton) == sorted({choice.encode() for choice in choices})
    assert len({(source, low) for source, low, _, _ in automaton.edges}) == len(automaton.edges)
    assert all(low == high for _, low, high, _ in automaton.edges)
    assert {target for *_, target in automaton.edges} == set(range(1, automaton.num_states))


def test_shared_prefixes_share_states() -> None:
    assert _automaton(["abcd", "abce", "ab"]).num_states == 6


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InvalidChoice, match="empty") as caught:
        build_choice([])
    assert caught.value.index is None


@pytest.mark.parametrize("surrogate", ["\ud83d", "x\udfff", "\ud83d\ude00"])
def test_a_lone_surrogate_is_refused_with_its_index(surrogate: str) -> None:
    with pytest.raises(InvalidChoice, match="surrogate") as caught:
        build_choice(["a", "", surrogate])
    assert caught.value.index == 2


def test_a_hundred_thousand_choices() -> None:
    automaton = _automaton([f"choice number {number}" for number in range(100_000)])
    assert len(automaton.accepting) == 100_000
    # "choice number " and the digits: 10 + 90 + ... + 90,000 numbers are all distinct prefixes, 0 being no prefix.
    assert automaton.num_states == 1 + len("choice number ") + 100_000


def test_one_very_long_choice() -> None:
    automaton = _automaton(["a" * 1_000_000, "a" * 999_999 + "b"])
    assert automaton.num_states == 1_000_002
    assert len(automaton.accepting) == 2


def test_the_total_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "MAX_SOURCE_BYTES", 5)
    assert _members(_automaton(["é", "abc"])) == [b"abc", "é".encode()]
    with pytest.raises(ConstraintTooLarge, match="MAX_SOURCE_BYTES"):
        build_choice(["é", "abcd"])
