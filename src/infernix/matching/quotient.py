"""States with equal futures become one, over all rules: `state_groups`, then refinement of the few that this leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infernix.matching.determinize import Subsets, mixed
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner, kernel
from infernix.matching.minimization import HEADER, NUM_TABLES, SET_OF, begin_partition, mark, refine, split
from infernix.matching.state_groups import ANCHOR, group_states

# Steps by single letters between anchors: with more of them, no two of these are merged. That costs memory only.
MAX_MERGED_STEPS = 1 << 18


@inner
def _partition_anchors(values: Ints, group_of: Ints, num_anchors: int, numbers: Ints, states: Ints) -> None:
    """Numbers the anchors, and makes `states` their partition into groups. `numbers` keeps those of other states."""
    number = 0
    for state in range(len(values)):
        if values[state] == ANCHOR:
            numbers[state] = number
            number += 1
    begin_partition(states, num_anchors)
    # The members of a group as a list, by number: the first, and behind each the next one.
    first = np.full(num_anchors, -1, np.int32)
    following = np.empty(num_anchors, np.int32)
    for state in range(len(values)):
        if values[state] == ANCHOR:
            group = numbers[group_of[state]]
            following[numbers[state]] = first[group]
            first[group] = numbers[state]
    for group in range(num_anchors):
        member = first[group] + 0
        while member >= 0:
            mark(states, member)
            member = following[member] + 0
        split(states)


@inner
def _anchor_steps(
    values: Ints, anchors: Ints, row_begins: Ints, rows: Ints, num_letters: int, numbers: Ints, steps: Ints
) -> int:
    """Writes the rows that lead from anchors to anchors, or to links, as number, first letter, last letter, number of
    the anchor there. Letters that none of them tells apart are one. Returns how many rows there are.
    """
    letter_of = np.zeros(num_letters + 1, np.int32)
    num_steps = 0
    for state in range(len(values)):
        if values[state] == ANCHOR:
            for row in range(row_begins[state], row_begins[state + 1]):
                target = rows[3 * row + 2] + 0
                if values[target] < 0:
                    if values[target] != ANCHOR:
                        target = anchors[target] + 0
                    letter_of[rows[3 * row]] = 1
                    letter_of[rows[3 * row + 1] + 1] = 1
                    steps[4 * num_steps] = numbers[state]
                    steps[4 * num_steps + 1] = rows[3 * row]
                    steps[4 * num_steps + 2] = rows[3 * row + 1]
                    steps[4 * num_steps + 3] = numbers[target]
                    num_steps += 1
    for letter in range(1, num_letters + 1):
        letter_of[letter] += letter_of[letter - 1]
    for step in range(num_steps):
        steps[4 * step + 1] = letter_of[steps[4 * step + 1]]
        steps[4 * step + 2] = letter_of[steps[4 * step + 2]]
    return num_steps


@inner
def _merge_anchors(steps: Ints, num_steps: int, num_letters: int, states: Ints, max_transitions: int) -> None:
    """Refines the partition `states` by the steps of `_anchor_steps`.

    With more than max_transitions of them, by single letters, every anchor is alone.
    """
    letter_ends = np.zeros(num_letters + 2, np.int32)
    target_begins = np.zeros(states[0] + 1, np.int32)
    num_transitions = 0
    for step in range(num_steps):
        width = steps[4 * step + 2] - steps[4 * step + 1] + 1
        num_transitions += width
        target_begins[steps[4 * step + 3] + 2] += width
        for letter in range(steps[4 * step + 1], steps[4 * step + 2] + 1):
            letter_ends[letter + 1] += 1
        if num_transitions > max_transitions:
            for state in range(states[0]):
                states[HEADER + SET_OF * states[0] + state] = state
            return
    for letter in range(len(letter_ends) - 1):
        letter_ends[letter + 1] += letter_ends[letter]
    for state in range(len(target_begins) - 1):
        target_begins[state + 1] += target_begins[state]
    # letter_ends[l] and target_begins[t + 1] are where the next transition of a letter, or into a target, belongs.
    sources = np.empty(num_transitions, np.int32)
    incoming = np.empty(num_transitions, np.int32)
    for step in range(num_steps):
        place = steps[4 * step + 3] + 1
        for letter in range(steps[4 * step + 1], steps[4 * step + 2] + 1):
            transition = letter_ends[letter]
            letter_ends[letter] += 1
            sources[transition] = steps[4 * step]
            incoming[target_begins[place]] = transition
            target_begins[place] += 1
    num_used = 0
    end = 0
    for letter in range(len(letter_ends)):
        if letter_ends[letter] > end:
            end = letter_ends[letter] + 0
            letter_ends[num_used] = end
            num_used += 1
    transitions = np.zeros(HEADER + NUM_TABLES * (num_transitions + 1), np.int32)
    refine(num_used, letter_ends, sources, target_begins, incoming, states, transitions)


@inner
def _link_slot(link: int, part: int, values: Ints, parts: Ints, slots: Ints) -> int:
    """The slot of the first link with the same letters before an anchor of set `part`, or the free one for it."""
    slot = mixed(mixed(part) - values[link]) & (len(slots) - 1)
    while slots[slot] >= 0:
        other = slots[slot] + 0
        if values[other] == values[link] and parts[other] == part:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@inner
def _first_equal(values: Ints, anchors: Ints, numbers: Ints, states: Ints, num_links: int, parts: Ints) -> None:
    """Makes of `values` by state the first one in order with the same future. parts: room, by state."""
    set_of = HEADER + SET_OF * states[0]
    first_of_set = np.full(states[0], -1, np.int32)
    first_of_value = np.full(len(values), -1, np.int32)
    num_slots = 4
    while num_slots < 2 * num_links:
        num_slots *= 2
    slots = np.full(num_slots, -1, np.int32)
    for state in range(len(values)):
        value = values[state] + 0
        if value >= 0:
            if first_of_value[value] < 0:
                first_of_value[value] = state
            numbers[state] = first_of_value[value]
        elif value == ANCHOR:
            part = states[set_of + numbers[state]] + 0
            if first_of_set[part] < 0:
                first_of_set[part] = state
            parts[state] = part
    for state in range(len(values)):
        if values[state] < ANCHOR:
            part = parts[anchors[state]] + 0
            slot = _link_slot(state, part, values, parts, slots)
            if slots[slot] < 0:
                slots[slot] = state
            parts[state] = part
            numbers[state] = slots[slot]
        elif values[state] == ANCHOR:
            numbers[state] = first_of_set[parts[state]]


@kernel
def _merge(
    final: Ints,
    row_begins: Ints,
    rows: Ints,
    rule_starts: Ints,
    num_merged: int,
    num_classes: int,
    num_letters: int,
    max_transitions: int,
    new_final: Ints,
    new_sources: Ints,
    new_rows: Ints,
) -> tuple[int, int]:
    """Merges equal states among the first `num_merged` ones. Returns how many states, and rows, there are then."""
    num_states = len(final)
    values = np.empty(num_merged, np.int32)
    anchors = np.empty(num_merged, np.int32)
    num_anchors = group_states(final, row_begins, rows, num_classes, num_letters, values, anchors)
    # By anchor its number among them; then by state the first one with the same future; then its new number.
    numbers = np.empty(num_states, np.int32)
    states = np.zeros(HEADER + NUM_TABLES * (num_anchors + 1), np.int32)
    _partition_anchors(values, anchors, num_anchors, numbers, states)
    if num_anchors > 0:
        steps = np.empty(4 * row_begins[num_merged], np.int32)
        num_steps = _anchor_steps(values, anchors, row_begins, rows, num_letters, numbers, steps)
        _merge_anchors(steps, num_steps, num_letters, states, max_transitions)
    num_links = 0
    for state in range(num_merged):
        num_links += values[state] < ANCHOR
    _first_equal(values, anchors, numbers, states, num_links, np.empty(num_merged, np.int32))
    num_new = 0
    num_new_rows = 0
    for state in range(num_states):
        if state < num_merged and numbers[state] < state:
            numbers[state] = numbers[numbers[state]]
            continue
        numbers[state] = num_new
        new_final[num_new] = final[state]
        for row in range(row_begins[state], row_begins[state + 1]):
            new_sources[num_new_rows] = num_new
            new_rows[3 * num_new_rows] = rows[3 * row]
            new_rows[3 * num_new_rows + 1] = rows[3 * row + 1]
            new_rows[3 * num_new_rows + 2] = rows[3 * row + 2]
            num_new_rows += 1
        num_new += 1
    for row in range(num_new_rows):
        new_rows[3 * row + 2] = numbers[new_rows[3 * row + 2]]
    for rule in range(len(rule_starts)):
        rule_starts[rule] = numbers[rule_starts[rule]]
    return num_new, num_new_rows


@dataclass(frozen=True, slots=True)
class Quotient:
    """States, equal ones merged.

    rule_starts: start state by rule. final: 1 by state for final ones. sources,
    rows: by row the state that it leaves and, [rows, 3], low, high (letters), target, in the order of states. State 0
    stays alone, state 1 is the one that is final and nothing else; nondeterministic states stay as they were.
    """

    rule_starts: Ints
    final: Ints
    sources: Ints
    rows: Ints


def merge_equal(subsets: Subsets, num_classes: int, num_letters: int) -> Quotient:
    """Merges deterministic states with equal futures; anchors where they have up to MAX_MERGED_STEPS steps.

    Letters below num_classes are byte classes, and come first among the rows of a state, in ascending order. Every
    state but 0 must lead to a final one.
    """
    rows = subsets.rows
    rule_starts = subsets.rule_starts.copy()
    final, sources, new_rows = np.empty_like(subsets.final), np.empty(len(rows), np.int32), np.empty_like(rows)
    num_states, num_rows = _merge(
        subsets.final,
        subsets.row_begins,
        rows.ravel(),
        rule_starts,
        subsets.first_nondeterministic,
        num_classes,
        num_letters,
        MAX_MERGED_STEPS,
        final,
        sources,
        new_rows.ravel(),
    )
    return Quotient(rule_starts, final[:num_states], sources[:num_rows], new_rows[:num_rows])
