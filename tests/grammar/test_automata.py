"""Automata over characters against Python's `re` and against plain enumeration of all short texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infernix.grammar import ir
from infernix.grammar.automata import (
    MAX_STATES,
    NO_STATE,
    AutomatonTooLarge,
    Dfa,
    LazyAutomaton,
    avoiding,
    determinize,
    intersect,
    with_length,
)
from infernix.grammar.minimization import minimized
from infernix.grammar.regex_syntax import parse_pattern
from support.random_patterns import BODIES, python_pattern, texts

TEXTS = texts(5)


def expression(regex: str) -> ir.Expression:
    return ir.choice(*(alternative.body for alternative in parse_pattern(regex).alternatives))


def dfa_of(regex: str) -> Dfa:
    return determinize(expression(regex))


def language(dfa: Dfa) -> set[str]:
    return {text for text in TEXTS if dfa.accepts(text)}


def expected(regex: str) -> set[str]:
    pattern = python_pattern(regex)
    return {text for text in TEXTS if pattern.fullmatch(text)}


def check_trimmed(dfa: Dfa) -> None:
    """Every state is reached from the start and leads to acceptance, by a search of its own."""
    reached = {0} if dfa.rows else set()
    pending = list(reached)
    while pending:
        for target in dfa.rows[pending.pop()]:
            if target not in (NO_STATE, *reached):
                reached.add(target)
                pending.append(target)
    assert reached == set(range(dfa.num_states))
    live = {state for state, accepts in enumerate(dfa.accepting) if accepts}
    while True:
        more = {state for state, row in enumerate(dfa.rows) if live & set(row)} - live
        if not more:
            break
        live |= more
    assert live == set(range(dfa.num_states))


@settings(max_examples=300, deadline=None)
@given(BODIES)
def test_an_automaton_accepts_what_its_expression_matches(regex: str) -> None:
    dfa = dfa_of(regex)
    check_trimmed(dfa)
    assert language(dfa) == expected(regex)
    lazy = LazyAutomaton(expression(regex))
    assert {text for text in TEXTS if lazy.accepts(text)} == expected(regex)


@pytest.mark.parametrize(
    "regex", ["((a?)?)*", "(((.)?)?)*", "((a?)?)+b?", "((a?)?){0,3}", "((a?b?)?){2,3}", "((a?)?)*(b?)*"]
)
def test_repetitions_inside_each_other_that_may_be_empty(regex: str) -> None:
    """After a character, the inner repetition with nothing left is met before the one that begins anew."""
    dfa = dfa_of(regex)
    check_trimmed(dfa)
    assert language(dfa) == expected(regex)
    lazy = LazyAutomaton(expression(regex))
    assert {text for text in TEXTS if lazy.accepts(text)} == expected(regex)


@settings(max_examples=150, deadline=None)
@given(BODIES, BODIES)
def test_an_intersection_accepts_what_both_do(left: str, right: str) -> None:
    both = intersect(dfa_of(left), dfa_of(right))
    check_trimmed(both)
    assert language(both) == expected(left) & expected(right)


@settings(max_examples=150, deadline=None)
@given(BODIES, st.integers(0, 4), st.none() | st.integers(0, 5))
def test_lengths(regex: str, minimum: int, maximum: int | None) -> None:
    bounded = with_length(dfa_of(regex), minimum, maximum)
    check_trimmed(bounded)
    assert language(bounded) == {
        text for text in expected(regex) if minimum <= len(text) and (maximum is None or len(text) <= maximum)
    }


@settings(max_examples=200, deadline=None)
@given(BODIES)
def test_distances_and_longest_texts(regex: str) -> None:
    dfa = dfa_of(regex)
    lengths = {len(text) for text in expected(regex)}
    assert dfa.num_to_end[0] == min(lengths, default=dfa.num_to_end[0])
    if dfa.max_length is not None and dfa.max_length <= 5:
        assert dfa.max_length == max(lengths)
    if dfa.max_length is None or dfa.max_length > 5:
        # Then some text longer than those enumerated is accepted.
        assert with_length(dfa, 6, None).rows


@settings(max_examples=200, deadline=None)
@given(st.text("ab", min_size=1, max_size=4))
def test_texts_that_must_not_occur(avoided: str) -> None:
    dfa = avoiding(avoided)
    check_trimmed(dfa)
    assert language(dfa) == {text for text in TEXTS if avoided not in text}
    assert dfa.num_states == len(avoided)


def test_the_empty_text_occurs_everywhere() -> None:
    with pytest.raises(ValueError, match="empty"):
        avoiding("")


@settings(max_examples=200, deadline=None)
@given(BODIES, st.integers(0, 2), st.none() | st.integers(2, 4))
def test_minimized(regex: str, minimum: int, maximum: int | None) -> None:
    dfa = with_length(dfa_of(regex), minimum, maximum)
    small = minimized(dfa)
    check_trimmed(small)
    assert language(small) == language(dfa)
    # Two states are told apart by some text: Moore's algorithm, with nothing clever in it.
    colors = [int(accepts) for accepts in small.accepting]
    for _ in range(small.num_states):
        signatures = [
            (colors[state], *(NO_STATE if target == NO_STATE else colors[target] for target in row))
            for state, row in enumerate(small.rows)
        ]
        numbers = {signature: number for number, signature in enumerate(dict.fromkeys(signatures))}
        colors = [numbers[signature] for signature in signatures]
    assert len(set(colors)) == small.num_states


def test_nothing_in_common() -> None:
    nothing = intersect(dfa_of("a+"), dfa_of("b+"))
    assert nothing.num_states == 0
    assert nothing.max_length == -1
    assert not nothing.accepts("")
    assert intersect(nothing, dfa_of("a")).num_states == 0
    assert with_length(nothing, 0, 5).num_states == 0
    assert with_length(dfa_of("aaa"), 0, 2).num_states == 0
    assert minimized(nothing).num_states == 0


def test_the_longest_text_may_not_exist() -> None:
    assert dfa_of("a{2,9}b?").max_length == 10
    assert dfa_of("").max_length == 0
    assert dfa_of("(ab)*").max_length is None
    assert dfa_of("a*b").max_length is None


def test_what_any_text_completes_is_one_state() -> None:
    # Each count that the repetition may have reached would be a state otherwise.
    assert determinize(ir.Sequence((expression(".{1,200}"), expression("[\\s\\S]*")))).num_states <= 3


def test_counts_cost_nothing_before_they_are_reached() -> None:
    lazy = LazyAutomaton(expression("(a{50000}|b{1,90000}c)"))
    assert lazy.accepts("bbbc")
    assert not lazy.accepts("aaac")


def test_bounds() -> None:
    with pytest.raises(AutomatonTooLarge, match=f"more than {MAX_STATES} states \\(MAX_STATES\\)"):
        dfa_of("[ab]*a[ab]{16}")
    with pytest.raises(AutomatonTooLarge, match="MAX_STEPS"):
        dfa_of("([ab]{1,100}c?){1,100}")
    with pytest.raises(AutomatonTooLarge, match="MAX_STEPS"):
        LazyAutomaton(expression("([ab]{1,100}c?){1,100}")).accepts("ab" * 5000)
    with pytest.raises(AutomatonTooLarge, match="more than 10 states"):
        determinize(expression("a{20}"), max_states=10)
    with pytest.raises(AutomatonTooLarge, match="more than 10 steps"):
        determinize(expression("a{20}"), max_steps=10)
    with pytest.raises(AutomatonTooLarge, match="MAX_STATES"):
        avoiding("a" * (MAX_STATES + 1))
    with pytest.raises(AutomatonTooLarge, match="MAX_STATES"):
        with_length(avoiding("abcdefghij"), 0, 8192)


def test_deep_expressions() -> None:
    regex = "(" * 256 + "a|bc" + ")?" * 256
    assert language(dfa_of(regex)) == {"", "a"}
    assert dfa_of(regex).accepts("bc")
    assert dfa_of("(" * 200 + "a*b?" + ")*" * 200).accepts("abba")


def test_a_lazy_automaton_forgets_between_texts() -> None:
    lazy = LazyAutomaton(expression("([ab]{1,60}c?){1,60}"))
    # Each text is well within MAX_STEPS, all together are not.
    for place in range(1, 9):
        assert lazy.accepts("a" * (9 * place) + "c" + "b" * 30 + "c" + "b" * 50)
