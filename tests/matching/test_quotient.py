"""Merged states against plain partition refinement, on automata of all shapes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import infernix.matching.quotient
from infernix.matching.determinize import Subsets
from infernix.matching.quotient import Quotient, merge_equal

NUM_CLASSES = 6
NUM_LETTERS = 10
# low, high, target; letters from NUM_CLASSES on are labels.
Row = tuple[int, int, int]
Automaton = list[tuple[bool, list[Row]]]


def subsets_of(states: Automaton, num_deterministic: int | None = None) -> Subsets:
    begins = np.cumsum([0, *(len(rows) for _, rows in states)]).astype(np.int32)
    return Subsets(
        rule_starts=np.arange(2, len(states), dtype=np.int32),
        final=np.array([is_final for is_final, _ in states], np.int32),
        row_begins=begins,
        rows=np.array([row for _, rows in states for row in rows], np.int32).reshape(-1, 3),
        first_nondeterministic=len(states) if num_deterministic is None else num_deterministic,
    )


def by_letter(rows: list[Row]) -> dict[int, int]:
    return {letter: target for low, high, target in rows for letter in range(low, high + 1)}


def plain_sets(states: Automaton) -> list[int]:
    """By state the first one with the same future: sets are split by their letters' sets until nothing changes."""
    set_of = [int(is_final) for is_final, _ in states]
    while True:
        keys = [
            (set_of[state], tuple(sorted((letter, set_of[target]) for letter, target in by_letter(rows).items())))
            for state, (_, rows) in enumerate(states)
        ]
        numbers = {key: number for number, key in reversed(list(enumerate(keys)))}
        if len(numbers) == len(set(set_of)):
            return [keys.index(key) for key in keys]
        set_of = [numbers[key] for key in keys]


def states_of(quotient: Quotient) -> Automaton:
    states: Automaton = [(bool(is_final), []) for is_final in quotient.final.tolist()]
    for source, row in zip(quotient.sources.tolist(), quotient.rows.tolist(), strict=True):
        states[source][1].append(tuple(row))
    return states


def check(states: Automaton) -> Quotient:
    """The quotient has a state for each set, in the order of the first members, which keep their rows."""
    quotient = merge_equal(subsets_of(states), NUM_CLASSES, NUM_LETTERS)
    first = plain_sets(states)
    kept = sorted(set(first))
    number = {state: kept.index(first[state]) for state in range(len(states))}
    expected = [
        (states[state][0], [(low, high, number[target]) for low, high, target in states[state][1]]) for state in kept
    ]
    assert states_of(quotient) == expected
    assert quotient.rule_starts.tolist() == [number[state] for state in range(2, len(states))]
    return quotient


def random_rows(source: Random, targets: range, density: float) -> list[Row]:
    rows: list[Row] = []
    letter = 0
    while letter < NUM_CLASSES:
        width = source.choice((1, 1, 1, 2, 3))
        if letter + width <= NUM_CLASSES and source.random() < density:
            rows.append((letter, letter + width - 1, source.choice(targets)))
        letter += width
    labels = [label for label in range(NUM_CLASSES, NUM_LETTERS) if source.random() < density / 3]
    source.shuffle(labels)
    return rows + [(label, label, source.choice(targets)) for label in labels]


def random_states(source: Random, num_states: int, *, is_acyclic: bool, density: float, period: int) -> Automaton:
    """States of which every one leads on to a final one; with a period, later ones repeat what earlier ones say."""
    states: Automaton = [(False, []), (True, [])]
    for state in range(2, num_states):
        if period and state >= 2 + period:
            is_final, rows = states[state - period]
            # The first step still leads to a final state.
            copies = [(low, high, state if index else target) for index, (low, high, target) in enumerate(rows)]
            states.append((is_final, rows if is_acyclic or source.random() < 0.5 else copies))
            continue
        targets = range(1, state) if is_acyclic else range(1, num_states)
        rows = random_rows(source, targets, density)
        ahead = source.randrange(1, state)
        rows[:1] = [(*rows[0][:2], ahead)] if rows else [(0, 0, ahead)]
        states.append((source.random() < 0.15, rows))
    return states


@pytest.mark.parametrize("is_acyclic", [False, True])
@pytest.mark.parametrize("density", [0.15, 0.5, 0.9])
@pytest.mark.parametrize("period", [0, 1, 7])
def test_random_automata(is_acyclic: bool, density: float, period: int) -> None:
    source = Random(f"{is_acyclic} {density} {period}")
    num_merged = 0
    for num_states in [*range(3, 30), 60, 120]:
        states = random_states(source, num_states, is_acyclic=is_acyclic, density=density, period=period)
        num_merged += len(states) - len(check(states).final)
    assert num_merged > 0 or not period


def unrolled_loops(lengths: list[int]) -> Automaton:
    """Words that a loop repeats, written out any number of times before it; all that are in step have equal futures."""
    states: Automaton = [(False, []), (True, [])]
    word = (0, 2, 1, 3)
    for length in lengths:
        begin = len(states)
        for place in range(length):
            back = begin + length - len(word) if place == length - 1 else begin + place + 1
            rows = [(word[place % len(word)],) * 2 + (back,)]
            if place % len(word) == 0:
                rows.append((5, 5, 1))
            states.append((False, rows))
    return states


def test_loops_that_are_written_out() -> None:
    assert len(check(unrolled_loops([4, 8, 12, 400])).final) == 2 + 4


def test_equal_beginnings_of_different_loops_stay_apart() -> None:
    states = unrolled_loops([8, 8])
    states[6] = (False, [*states[6][1], (4, 4, 1)])
    # Two states with two steps, before and in the first loop; three with one, which lead to the same; the second loop.
    assert len(check(states).final) == 2 + 2 + 3 + 4


def test_chains_into_the_same_loop() -> None:
    """The ends of literals before a loop are shared, their different beginnings are not."""
    states: Automaton = [(False, []), (True, [(0, 0, 2)]), (True, [(1, 1, 1)])]
    states[1] = (True, [])
    states[2] = (True, [(0, 1, 2)])
    for first in (2, 3, 4):
        begin = len(states)
        states += [(False, [(first, first, begin + 1)]), (False, [(2, 2, begin + 2)]), (False, [(3, 3, 2)])]
    assert len(check(states).final) == 3 + 3 + 2


def test_labels_in_any_order() -> None:
    states: Automaton = [(False, []), (True, []), (False, [(0, 0, 1), (7, 7, 2), (8, 8, 1), (9, 9, 1)])]
    states.append((False, [(0, 0, 1), (9, 9, 1), (7, 7, 3), (8, 8, 1)]))
    states.append((False, [(0, 0, 1), (9, 9, 1), (8, 8, 4), (7, 7, 1)]))
    states.append((False, [(9, 9, 1), (8, 8, 1)]))
    states.append((False, [(8, 8, 1), (9, 9, 1)]))
    states.append((False, [(8, 8, 1), (7, 7, 1)]))
    assert len(check(states).final) == 6


def test_nondeterministic_states_stay_as_they_were() -> None:
    states: Automaton = [(False, []), (True, []), (False, [(0, 0, 1)]), (False, [(0, 0, 1)])]
    states += [(False, [(0, 0, 1), (0, 0, 4)]), (False, [(0, 0, 1), (0, 0, 4)])]
    quotient = merge_equal(subsets_of(states, num_deterministic=4), NUM_CLASSES, NUM_LETTERS)
    assert states_of(quotient) == [*states[:3], (False, [(0, 0, 1), (0, 0, 3)]), (False, [(0, 0, 1), (0, 0, 3)])]
    assert quotient.rule_starts.tolist() == [2, 2, 3, 4]


def test_beyond_the_bound_only_what_needs_no_refinement_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    states = unrolled_loops([4, 8])
    states += [(False, [(0, 0, 1)]), (False, [(0, 0, 1)])]
    assert len(check(states).final) == 2 + 4 + 1
    monkeypatch.setattr(infernix.matching.quotient, "MAX_MERGED_STEPS", 2)
    quotient = merge_equal(subsets_of(states), NUM_CLASSES, NUM_LETTERS)
    # The longer loop has two states with two steps; what leads from either to the second of them is the same.
    assert len(quotient.final) == 2 + 4 + (2 + 3) + 1
