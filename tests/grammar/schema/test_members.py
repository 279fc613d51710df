"""Members in declared order, in a syntax of their own, against a plain list of what may be written."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from infernix.grammar import ir
from infernix.grammar.schema.members import Member, MemberSyntax, lower_members
from support.recognizer import Recognizer

SYNTAX = MemberSyntax(
    opening=ir.text("<"),
    next_opening=ir.text("+"),
    spelled_name=lambda name: f"{name}:".encode(),
    after_name=ir.EMPTY,
    after_value=ir.text(";"),
    closing=ir.text("."),
)


def recognizer(members: list[tuple[str, bool]], others: str | None = None) -> Recognizer:
    builder = ir.GrammarBuilder()
    declared = [Member(name, ir.text("v"), required) for name, required in members]
    following = None if others is None else builder.add("others", ir.text(others))
    return Recognizer(builder.build(builder.add("root", lower_members(declared, following, SYNTAX, builder))))


def written(names: list[str]) -> str:
    return "<" + "+".join(f"{name}:v;" for name in names) + "." if names else "."


@pytest.mark.parametrize("seed", range(6))
def test_every_choice_of_members_in_order_and_no_other(seed: int) -> None:
    rng = Random(seed)
    names = rng.sample(["a", "ab", "abc", "b", "ba", "城", "城市"], rng.randint(0, 4))
    members = [(name, rng.random() < 0.4) for name in names]
    language = recognizer(members)
    for length in range(4):
        for chosen in product(["a", "ab", "abc", "b", "ba", "城", "城市"], repeat=length):
            in_order = [name for name in names if name in chosen] == list(chosen)
            complete = all(name in chosen for name, required in members if required)
            assert language.matches(written(list(chosen)).encode()) == (in_order and complete)


@pytest.mark.parametrize("num_members", [9, 40])
def test_large_groups(num_members: int) -> None:
    names = [f"m{number}" for number in range(num_members)]
    language = recognizer([(name, name == "m5") for name in names])
    rng = Random(num_members)
    for _ in range(30):
        chosen = [name for name in names if rng.random() < 0.5]
        assert language.matches(written(chosen).encode()) == ("m5" in chosen)
        shuffled = rng.sample(chosen, len(chosen))
        assert language.matches(written(shuffled).encode()) == ("m5" in chosen and shuffled == chosen)


def test_others_come_last_and_end_by_themselves() -> None:
    language = recognizer([("a", False)], "x:!.")
    for text in (".", "<a:v;.", "<x:!.", "<a:v;+x:!."):
        assert language.matches(text.encode())
    for text in ("<x:!", "<x:!.+a:v;.", "<", "<."):
        assert not language.matches(text.encode())
