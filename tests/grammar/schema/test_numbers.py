"""Bounded numbers against exact arithmetic: every short text, and long texts at the bounds."""

from __future__ import annotations

import itertools
import random
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import pytest

from infernix.grammar import ir
from infernix.grammar.decimals import INT64_MAX, INT64_MIN, json_number
from infernix.grammar.json_values import JsonRules
from infernix.grammar.schema.nodes import Bound, IntegerNode, NumberNode
from infernix.grammar.schema.numbers import (
    Emptiness,
    admits_number,
    integer_limits,
    lower_integer,
    lower_number,
    number_emptiness,
)
from support.automaton_texts import AutomatonTexts
from support.number_texts import Limit, is_decimal_text, is_integer_text

LOWER = ("minimum", "exclusiveMinimum")
UPPER = ("maximum", "exclusiveMaximum")
VALUES = ["-10", "-5", "-1", "-0.5", "0", "0.5", "1", "2", "5", "10"]
NASTY = ["-99.95", "-1e-7", "1e-9", "0.1", "0.3", "0.999", "1.05", "9.5", "1e5", "-9223372036854775808", "1e300"]


def node(*limits: Limit) -> NumberNode:
    """At most one lower and one upper limit."""
    lower = [Bound(limit.value, limit.keyword in LOWER[1:]) for limit in limits if limit.keyword in LOWER]
    upper = [Bound(limit.value, limit.keyword in UPPER[1:]) for limit in limits if limit.keyword in UPPER]
    return NumberNode(next(iter(lower), None), next(iter(upper), None))


def limits_of(keywords: tuple[str, ...], values: list[str]) -> list[Limit]:
    return [Limit(keyword, Fraction(value)) for keyword in keywords for value in values]


def language(*limits: Limit) -> AutomatonTexts:
    lowered = lower_number(node(*limits), JsonRules(ir.GrammarBuilder()))
    if lowered == ir.NOTHING:
        return AutomatonTexts(ir.Automaton(1, (), frozenset()))
    assert isinstance(lowered, ir.Automaton)
    return AutomatonTexts(lowered)


def keeps(text: str, limits: tuple[Limit, ...]) -> bool:
    return (is_integer_text(text) or is_decimal_text(text)) and all(limit.is_kept_by(text) for limit in limits)


@cache
def short_texts() -> frozenset[str]:
    """Every spelling of a number in at most four characters; of all strings over the alphabet."""
    texts = ("".join(letters) for n in range(5) for letters in itertools.product("-+.0123456789eE", repeat=n))
    return frozenset(text for text in texts if is_integer_text(text) or is_decimal_text(text))


@cache
def short_texts_within(limit: Limit) -> frozenset[str]:
    return frozenset(filter(limit.is_kept_by, short_texts()))


@pytest.mark.parametrize("keyword", [*LOWER, *UPPER])
def test_every_short_text_under_one_bound(keyword: str) -> None:
    for limit in limits_of((keyword,), [*VALUES, *NASTY]):
        assert language(limit).up_to(4) == short_texts_within(limit), limit


@pytest.mark.parametrize(("lower_keyword", "upper_keyword"), list(itertools.product(LOWER, UPPER)))
def test_every_short_text_under_two_bounds(lower_keyword: str, upper_keyword: str) -> None:
    pairs = itertools.product(
        limits_of((lower_keyword,), [*VALUES, "0.1", "-99.95"]), limits_of((upper_keyword,), [*VALUES, "0.3", "99.5"])
    )
    for lower, upper in pairs:
        expected = short_texts_within(lower) & short_texts_within(upper)
        assert language(lower, upper).up_to(4) == expected, (lower, upper)
        assert (number_emptiness(node(lower, upper)) is None) >= bool(expected)


@pytest.mark.parametrize("keyword", [*LOWER, *UPPER])
@pytest.mark.parametrize("value", VALUES)
def test_every_short_integer(keyword: str, value: str) -> None:
    limit = Limit(keyword, Fraction(value))
    low_high = integer_limits(node(limit))
    assert low_high is not None
    lowered = lower_integer(IntegerNode(*low_high), JsonRules(ir.GrammarBuilder()))
    assert isinstance(lowered, ir.Automaton)
    expected = {text for text in short_texts_within(limit) if is_integer_text(text) and text != "-0"}
    assert AutomatonTexts(lowered).up_to(4) == expected


HARD = [
    *["0.1", "0.3", "1", "9", "10", "2.675", "9.999999999999998", "123456.789", "0.12345678901234568", "1e-7", "1e-17"],
    *["1e16", "1e22", "1e23", "4503599627370496.5", "9007199254740991", "9007199254740993", "1152921504606846977"],
    *["9223372036854775807", "9223372036854776000", "1e300", "1.7976931348623157e308", "5e-324", "2e-308"],
]


def spellings(number: Decimal) -> set[str]:
    """A decimal in scientific and in plain form."""
    sign, digits, _ = number.as_tuple()
    exponent = number.adjusted()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    prefix = "-" if sign else ""
    scientific = f"{prefix}{text[0]}.{text[1:]}e{exponent}" if len(text) > 1 else f"{prefix}{text}e{exponent}"
    plain = f"{number:f}" if abs(exponent) <= 20 else "0"
    return {scientific, scientific.replace("e", "000e"), plain, f"{plain}0", f"{plain}.0", plain.partition(".")[0]}


def texts_near(value: str) -> set[str]:
    texts = set()
    for digits in (2, 15, 16, 17):
        context = Context(prec=digits, Emin=-400, Emax=400)
        number = context.create_decimal(value)
        for follow in (context.next_plus, context.next_minus):
            near = number
            for _ in range(8):
                texts |= spellings(near)
                near = follow(near)
    return texts


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("value", HARD)
def test_long_texts_near_a_bound(value: str, sign: str) -> None:
    texts = texts_near(sign + value) | texts_near(value) | {"0", "-0", "0.0", "1e-300", "-1e-300", "1e300", "-1e300"}
    for limit in limits_of((*LOWER, *UPPER), [sign + value]):
        near = language(limit)
        wrong = [text for text in texts if (text in near) != keeps(text, (limit,))]
        assert wrong == [], limit


@pytest.mark.parametrize("seed", range(6))
def test_random_texts_of_random_ranges(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(12):
        first, second = sorted(generator.sample([*HARD, *("-" + value for value in HARD)], 2), key=Fraction)
        limits = Limit(generator.choice(LOWER), Fraction(first)), Limit(generator.choice(UPPER), Fraction(second))
        within = language(*limits)
        drawn = [within.draw(generator) for _ in range(60)]
        assert [text for text in drawn if not keeps(text, limits)] == [], limits
        texts = texts_near(first) | texts_near(second)
        assert [text for text in texts if (text in within) != keeps(text, limits)] == [], limits


def test_all_spellings_belong_to_the_unbounded_number() -> None:
    """A bound takes texts away and never adds one."""
    generator = random.Random(1)
    free = AutomatonTexts(json_number())
    for limit in limits_of((*LOWER, *UPPER), [*VALUES, *HARD]):
        within = language(limit)
        if number_emptiness(node(limit)) is None:
            assert [text for text in (within.draw(generator) for _ in range(30)) if text not in free] == []


@pytest.mark.parametrize(
    ("limits", "inside", "outside"),
    [
        ([("exclusiveMinimum", "0")], ["0.1", "1e-300", "5e-324"], ["0", "0.0", "-0", "-0.0", "0e5", "-0.1", "1e-400"]),
        ([("minimum", "0")], ["0", "-0", "-0.0", "0.0e1", "0.1"], ["-0.1", "-1", "-5e-324"]),
        ([("minimum", "2")], ["2", "2.0", "2e0", "10", "2.5", "1e1"], ["1", "1.9999999999999999", "0", "-2"]),
        ([("minimum", "1"), ("maximum", "5")], ["1", "5", "5.0", "4.99"], ["5.7", "0.99", "5.0000000000000009"]),
        ([("minimum", "-5")], ["-5", "-5.0", "-4.9", "0", "3"], ["-5.1", "-6", "-50"]),
        ([("exclusiveMaximum", "10")], ["9", "9.99", "-1e300"], ["10", "10.0", "1e1", "1e+01", "9.9999999999999999"]),
        ([("minimum", "0.1"), ("maximum", "0.1000000001")], ["0.1", "0.10000000005", "1e-1"], ["0", "0.2", "0.09"]),
        ([("minimum", "1e300")], ["1e300", "1.5e305", "1.7976931348623157e308"], ["9.9e299", "1e309", "1.8e308", "5"]),
        ([("maximum", "-1e-310")], ["-1e-310", "-1"], ["-9e-311", "0", "-0.0"]),
    ],
)
def test_examples(limits: list[tuple[str, str]], inside: list[str], outside: list[str]) -> None:
    texts = language(*(Limit(keyword, Fraction(value)) for keyword, value in limits))
    assert [text for text in inside if text not in texts] == []
    assert [text for text in outside if text in texts] == []


@pytest.mark.parametrize("text", ["1.5e2", "1.5E+2", "1.5e002", "150", "150.0", "1.500e2"])
def test_published_spellings(text: str) -> None:
    assert text in language(Limit("minimum", Fraction(150)), Limit("maximum", Fraction(150)))


@pytest.mark.parametrize(
    "text", ["15e1", "0.15e3", "150.0e0", "1.5e0002", "0150", "+150", "150.", "1.5e", "150.000000000000000", "1500e-1"]
)
def test_other_spellings_are_not_published(text: str) -> None:
    assert text not in language(Limit("minimum", Fraction(150)), Limit("maximum", Fraction(150)))


@pytest.mark.parametrize("keyword", [*LOWER, *UPPER])
def test_each_bound_has_an_effect(keyword: str) -> None:
    for value in [*VALUES, *NASTY]:
        rules = JsonRules(ir.GrammarBuilder())
        assert lower_number(node(Limit(keyword, Fraction(value))), rules) not in (json_number(), rules.number)


def test_without_bounds_the_shared_rules_are_used() -> None:
    rules = JsonRules(ir.GrammarBuilder())
    assert lower_number(NumberNode(), rules) == rules.number
    assert lower_integer(IntegerNode(INT64_MIN, INT64_MAX), rules) == rules.integer


def number_node(low: str | None, high: str | None, *, exclusive: bool = False) -> NumberNode:
    return NumberNode(
        None if low is None else Bound(Fraction(low), exclusive),
        None if high is None else Bound(Fraction(high), exclusive),
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (number_node(None, None), None),
        (number_node("1", "1"), None),
        (number_node("0.1", "0.1"), None),
        (number_node("-0.0", "0"), None),
        (number_node("5e-324", "5e-324"), None),
        (number_node("9007199254740993", "9007199254740993"), None),
        (number_node("9223372036854775807", "9223372036854775807"), None),
        (number_node("1", "0"), Emptiness.UNSATISFIABLE),
        (number_node("1", "1", exclusive=True), Emptiness.UNSATISFIABLE),
        (NumberNode(Bound(Fraction(1), False), Bound(Fraction(1), True)), Emptiness.UNSATISFIABLE),
        (number_node("0.1", "0.10000000000000002", exclusive=True), Emptiness.UNPUBLISHABLE),
        (number_node("0", "5e-324", exclusive=True), Emptiness.UNPUBLISHABLE),
        (number_node("1.7976931348623157e308", None, exclusive=True), Emptiness.UNPUBLISHABLE),
        (number_node(None, "-1.7976931348623157e308", exclusive=True), Emptiness.UNPUBLISHABLE),
        (number_node("9007199254740992", "9007199254740993", exclusive=True), Emptiness.UNPUBLISHABLE),
    ],
)
def test_empty_ranges(number: NumberNode, expected: Emptiness | None) -> None:
    assert number_emptiness(number) == expected
    lowered = lower_number(number, JsonRules(ir.GrammarBuilder()))
    assert (lowered == ir.NOTHING) == (expected is not None)


def test_a_literal_is_compared_exactly() -> None:
    """Before anything is rounded: the decimal of the source against the decimal of the bound."""
    for limit in limits_of((*LOWER, *UPPER), [*VALUES, *HARD]):
        for value in [*VALUES, *HARD]:
            assert admits_number(node(limit), Fraction(value)) == limit.holds(Fraction(value))
    both = number_node("0.3", "0.5")
    assert [admits_number(both, Fraction(text)) for text in ("0.29", "0.3", "0.5", "0.51")] == [
        False,
        True,
        True,
        False,
    ]


def test_integer_limits_end_at_64_bits() -> None:
    assert integer_limits(NumberNode()) == (INT64_MIN, INT64_MAX)
    assert integer_limits(number_node("-1e300", "1e300")) == (INT64_MIN, INT64_MAX)
    assert integer_limits(number_node("0.5", "1.5")) == (1, 1)
    assert integer_limits(number_node("-1", "1", exclusive=True)) == (0, 0)
    assert integer_limits(number_node("0.1", "0.9")) is None
    assert integer_limits(number_node("9223372036854775807", None, exclusive=True)) is None


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("0", None),
        ("-180", "180"),
        ("0.1", "0.1000000001"),
        (None, "9223372036854775807"),
        ("-12345678901.234567", "98765432109.876543"),
        ("-1.2345678901234567e-300", "9.8765432109876543e250"),
    ],
)
def test_automata_stay_small(low: str | None, high: str | None) -> None:
    lowered = lower_number(number_node(low, high), JsonRules(ir.GrammarBuilder()))
    assert isinstance(lowered, ir.Automaton)
    assert lowered.num_states < 300
    assert len(lowered.edges) < 900
    # Without cycles, an automaton is the smallest one if no two states accept and move alike.
    moves: dict[int, set[tuple[int, ...]]] = {}
    for source, *move in lowered.edges:
        moves.setdefault(source, set()).add(tuple(move))
    states = {(state in lowered.accepting, frozenset(moves.get(state, ()))) for state in range(lowered.num_states)}
    assert len(states) == lowered.num_states


def test_equal_nodes_share_their_automaton() -> None:
    rules = JsonRules(ir.GrammarBuilder())
    assert lower_number(number_node("0", "1"), rules) is lower_number(number_node("0", "1.0"), rules)
    assert lower_integer(IntegerNode(0, 5), rules) is lower_integer(IntegerNode(0, 5), rules)
