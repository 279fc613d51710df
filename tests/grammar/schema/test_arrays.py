"""Arrays at the level of nodes: positions, tail, counts, whitespace, sizes."""

from __future__ import annotations

import itertools
import random

import pytest

from infernix.grammar import ir
from infernix.grammar.decimals import integer_range
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.arrays import lower_array
from infernix.grammar.schema.nodes import ArrayNode
from infernix.matching.network import build_network
from support.recognizer import Recognizer

# What one position admits, by its letter; a capital letter admits what both of its halves do.
KINDS = {"0": "0", "1": "1", "2": "2", "B": "01", "-": ""}


def grammar_of(prefix: str, items: str, low: int, high: int | None, *, by_rules: bool = True) -> ir.Grammar:
    """Arrays of digits; `prefix` and `items` name the kinds of their positions."""
    builder = ir.GrammarBuilder()
    expressions: dict[str, ir.Expression | None] = {"-": None}
    for kind, values in KINDS.items():
        if values:
            body = ir.choice(*map(ir.text, values))
            expressions[kind] = builder.add(kind, body) if by_rules else body
    node = ArrayNode(0, low, high, tuple(range(len(prefix))))
    body = lower_array(node, [expressions[kind] for kind in prefix], expressions[items], JsonRules(builder))
    return builder.build(builder.add("root", body))


def holds(prefix: str, items: str, low: int, high: int | None, values: str) -> bool:
    """The definition: each element is one of its position's, and the number of elements lies within the bounds."""
    if len(values) < low or (high is not None and len(values) > high):
        return False
    return all(value in KINDS[prefix[index] if index < len(prefix) else items] for index, value in enumerate(values))


CASES = [
    (prefix, items, low, high)
    for prefix in ["", "0", "01", "00", "0B", "11B", "0-1", "-", "B11"]
    for items in "01B-"
    for low, high in [(0, None), (0, 0), (0, 1), (1, 2), (2, None), (2, 2), (3, 4), (4, 3)]
]


@pytest.mark.parametrize(("prefix", "items", "low", "high"), CASES)
def test_all_short_arrays(prefix: str, items: str, low: int, high: int | None) -> None:
    recognizer = Recognizer(grammar_of(prefix, items, low, high))
    for count in range(6):
        for values in map("".join, itertools.product("01", repeat=count)):
            expected = holds(prefix, items, low, high, values)
            assert recognizer.matches(f"[{','.join(values)}]".encode()) == expected, values


@pytest.mark.parametrize("seed", range(4))
def test_random_arrays_with_whitespace(seed: int) -> None:
    generator = random.Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(60):
        prefix = "".join(generator.choices("012BBB-", k=generator.randint(0, 5)))
        items = generator.choice("012BB-")
        low = generator.randint(0, 3)
        high = generator.choice([None, generator.randint(low, low + 5)])
        recognizer = Recognizer(grammar_of(prefix, items, low, high, by_rules=generator.random() < 0.5))
        for _ in range(12):
            kinds = [prefix[index] if index < len(prefix) else items for index in range(generator.randint(0, 8))]
            values = "".join(generator.choice(KINDS[kind] or "012") for kind in kinds)
            if values and generator.random() < 0.2:
                place = generator.randrange(len(values))
                values = values[:place] + generator.choice("012") + values[place + 1 :]
            expected = holds(prefix, items, low, high, values)
            outcomes[expected] += 1
            text = "".join(
                token + "".join(generator.choices(" \t\r\n", k=generator.choice([0, 0, 1, 32])))
                for token in ["[", *",".join(values)]
            )
            text += "]"
            assert recognizer.matches(text.encode()) == expected, (prefix, items, low, high, text)
    assert min(outcomes.values()) > 100


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("prefix", ["", "01"])
def test_each_slot_holds_one_run_of_whitespace(prefix: str, extra: int) -> None:
    recognizer = Recognizer(grammar_of(prefix, "B", 0, None))
    space = " " * (32 + extra)
    for tokens in (["[", "]"], ["[", "0", "]"], ["[", "0", ",", "1", "]"], ["[", "0", ",", "1", ",", "0", "]"]):
        for slot in range(1, len(tokens)):
            text = "".join(tokens[:slot]) + space + "".join(tokens[slot:])
            assert recognizer.matches(text.encode()) == (extra == 0), text
        for text in (" " + "".join(tokens), "".join(tokens) + " "):
            assert not recognizer.matches(text.encode())


@pytest.mark.parametrize("text", ["[,]", "[0,]", "[,0]", "[0 1]", "[0,,1]", "[01]", "[0", "0]", "", "[0,1"])
def test_commas_stand_between_elements_only(text: str) -> None:
    assert not Recognizer(grammar_of("01", "B", 0, None)).matches(text.encode())


@pytest.mark.parametrize(
    ("prefix", "items", "low", "high"), [("0-", "0", 2, None), ("", "-", 1, None), ("00", "-", 3, 5), ("", "0", 2, 1)]
)
def test_an_array_that_would_have_to_be_longer_than_it_can_be(prefix: str, items: str, low: int, high: int) -> None:
    grammar = grammar_of(prefix, items, low, high)
    assert grammar.rules[grammar.root].body == ir.NOTHING


def test_equal_positions_are_a_count_however_they_are_written() -> None:
    assert grammar_of("000", "-", 3, None) == grammar_of("", "0", 3, 3) == grammar_of("00", "0", 3, 3)
    assert grammar_of("100", "0", 1, None) == grammar_of("1", "0", 1, None)
    assert grammar_of("01", "2", 0, 2) == grammar_of("01", "-", 0, None)


def test_a_count_is_never_written_out() -> None:
    small, large = grammar_of("1", "0", 100, 200), grammar_of("1", "0", 2**30, 2**31 - 1)
    assert len(small.rules) == len(large.rules)
    assert build_network(small).num_states == build_network(large).num_states
    assert Recognizer(large).is_prefix(b"[1,0,0")


def depth_of(expression: ir.Expression) -> int:
    parts: tuple[ir.Expression, ...] = ()
    match expression:
        case ir.Sequence(parts) | ir.Choice(parts):
            pass
        case ir.Repeat(body):
            parts = (body,)
    return 1 + max(map(depth_of, parts), default=0)


def tuples(count: int, low: int) -> ir.Grammar:
    """Position i is the integer i; all others are strings."""
    builder = ir.GrammarBuilder()
    rules = JsonRules(builder)
    prefix = [builder.add(str(index), integer_range(index, index)) for index in range(count)]
    node = ArrayNode(0, low, None, tuple(range(count)))
    return builder.build(builder.add("root", lower_array(node, prefix, rules.string, rules)))


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_the_size_is_linear_in_the_number_of_positions(share: float) -> None:
    small, large = (tuples(count, int(count * share)) for count in (100, 1000))
    assert len(large.rules) < 11 * len(small.rules)
    assert max(depth_of(rule.body) for rule in large.rules) < 10
    assert build_network(large).num_states < 11 * build_network(small).num_states


def test_a_thousand_positions() -> None:
    recognizer = Recognizer(tuples(1000, 3))
    values = [*map(str, range(1000)), '"x"', '"y"']
    for count, expected in [(0, False), (2, False), (3, True), (501, True), (1000, True), (1002, True)]:
        assert recognizer.matches(f"[{', '.join(values[:count])}]".encode()) == expected
    assert not recognizer.matches(b'[0,1,2,"x"]')
