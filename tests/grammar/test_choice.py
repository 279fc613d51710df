from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.errors import ConstraintTooLarge, InvalidChoice
from infernix.grammar import choice as choice_module
from infernix.grammar import ir
from infernix.grammar.choice import build_choice
from support.recognizer import Recognizer


def _members(choices: list[str]) -> list[bytes]:
    """The literals that the grammar chooses from, in its order."""
    grammar = build_choice(choices)
    assert len(grammar.rules) == 1
    body = grammar.rules[grammar.root].body
    options = body.options if isinstance(body, ir.Choice) else (body,)
    members = [option.data for option in options if isinstance(option, ir.Literal)]
    assert len(members) == len(options)
    return members


def test_members_are_the_exact_bytes() -> None:
    choices = ["yes", "Yes", " yes", "yes ", "é", "e\u0301", "在线", "😀", "a\nb", "\x00", '"{}\\']
    assert _members(choices) == sorted(choice.encode() for choice in choices)


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
    assert build_choice([""]) == ir.Grammar.of(ir.EMPTY)


def test_order_and_duplicates_carry_no_meaning() -> None:
    assert build_choice(["b", "a", "b", "ab", "a"]) == build_choice(["ab", "a", "b"])


@settings(max_examples=200)
@given(st.lists(st.text("ab\u00e9\u00ea\u20ac😀", max_size=5), min_size=1, max_size=12))
def test_each_different_word_once(choices: list[str]) -> None:
    assert _members(choices) == sorted({choice.encode() for choice in choices})


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(InvalidChoice, match="empty") as caught:
        build_choice([])
    assert caught.value.index is None


@pytest.mark.parametrize("surrogate", ["\ud83d", "x\udfff", "\ud83d\ude00"])
def test_a_lone_surrogate_is_refused_with_its_index(surrogate: str) -> None:
    with pytest.raises(InvalidChoice, match="surrogate") as caught:
        build_choice(["a", "", surrogate])
    assert caught.value.index == 2


def test_the_total_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "MAX_SOURCE_BYTES", 5)
    assert _members(["é", "abc"]) == [b"abc", "é".encode()]
    with pytest.raises(ConstraintTooLarge, match="MAX_SOURCE_BYTES"):
        build_choice(["é", "abcd"])


def test_duplicates_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "MAX_SOURCE_BYTES", 5)
    assert _members(["abc", "ab", "abc", "ab"]) == [b"ab", b"abc"]
