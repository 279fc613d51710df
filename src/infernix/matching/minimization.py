"""States with equal futures become one: Hopcroft's partition refinement in the form of Valmari.

A. Valmari, "Fast brief practical DFA minimization", Information Processing Letters 112 (2012): one partition of the
states and one of the transitions refine each other; O(m log m) for m transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infernix.matching.determinize import Subsets
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner, kernel

# Steps by single letters, of all deterministic states: with more of them, no states are merged. That costs memory only.
MAX_MERGED_STEPS = 1 << 18

# A refinable partition is one array: its width (elements + 1), the number of sets, the number of sets with marked
# elements, and then tables of that width: the elements, set by set; where each element stands; the set of each element;
# and by set where it begins and ends, how many of its elements are marked (they come first), and a list of the sets
# with marked elements.
ELEMENTS = 0
PLACE = 1
SET_OF = 2
BEGIN = 3
END = 4
_NUM_MARKED = 5
_MARKED_SETS = 6
HEADER = 3


def partition_size(num_elements: int) -> int:
    return HEADER + 7 * (num_elements + 1)


@inner
def begin_partition(partition: Ints, num_elements: int) -> None:
    """All elements in one set, 0; `partition` is all zeros."""
    width = num_elements + 1
    partition[0] = width
    partition[1] = 1
    for element in range(num_elements):
        partition[HEADER + element] = element
        partition[HEADER + PLACE * width + element] = element
    partition[HEADER + END * width] = num_elements


@inner
def mark(partition: Ints, element: int) -> None:
    """Marks an element, once."""
    width = partition[0] + 0
    part = partition[HEADER + SET_OF * width + element] + 0
    place = partition[HEADER + PLACE * width + element] + 0
    marked = HEADER + _NUM_MARKED * width + part
    first_unmarked = partition[HEADER + BEGIN * width + part] + partition[marked] + 0
    if place < first_unmarked:
        return
    other = partition[HEADER + first_unmarked]
    partition[HEADER + place] = other
    partition[HEADER + PLACE * width + other] = place
    partition[HEADER + first_unmarked] = element
    partition[HEADER + PLACE * width + element] = first_unmarked
    if partition[marked] == 0:
        partition[HEADER + _MARKED_SETS * width + partition[2]] = part
        partition[2] += 1
    partition[marked] += 1


@inner
def split(partition: Ints) -> None:
    """Parts marked from unmarked elements in every set, and unmarks all. The smaller half becomes a new set."""
    width = partition[0] + 0
    begins = HEADER + BEGIN * width
    ends = HEADER + END * width
    for index in range(partition[2]):
        part = partition[HEADER + _MARKED_SETS * width + index] + 0
        begin = partition[begins + part]
        end = partition[ends + part]
        middle = begin + partition[HEADER + _NUM_MARKED * width + part]
        partition[HEADER + _NUM_MARKED * width + part] = 0
        if middle == end:
            continue
        new = partition[1] + 0
        partition[1] = new + 1
        if middle - begin <= end - middle:
            partition[begins + new] = begin
            partition[ends + new] = middle
            partition[begins + part] = middle
        else:
            partition[begins + new] = middle
            partition[ends + new] = end
            partition[ends + part] = middle
        for place in range(partition[begins + new], partition[ends + new]):
            partition[HEADER + SET_OF * width + partition[HEADER + place]] = new
    partition[2] = 0


@inner
def _refine(
    num_states: int,
    final: Ints,
    num_letters: int,
    letter_ends: Ints,
    sources: Ints,
    target_begins: Ints,
    incoming: Ints,
    states: Ints,
    transitions: Ints,
) -> None:
    """Makes `states` the partition of the deterministic states into the fewest sets with equal futures.

    Transitions are numbered letter by letter, those of a letter ending at an entry of letter_ends (no letter without
    any); sources has the source by transition, incoming the transitions by target, from target_begins[target] on.
    """
    num_transitions = len(sources)
    begin_partition(states, num_states)
    for state in range(num_states):
        if final[state] != 0:
            mark(states, state)
    split(states)
    begin_partition(transitions, num_transitions)
    begins = HEADER + BEGIN * (num_transitions + 1)
    ends = HEADER + END * (num_transitions + 1)
    begin = 0
    for part in range(num_letters):
        transitions[begins + part] = begin
        for transition in range(begin, letter_ends[part]):
            transitions[HEADER + SET_OF * (num_transitions + 1) + transition] = part
        begin = letter_ends[part] + 0
        transitions[ends + part] = begin
    transitions[1] = num_letters

    # The first set of states need not split anything: what leads there is what does not lead to the others.
    state_begins = HEADER + BEGIN * (num_states + 1)
    state_ends = HEADER + END * (num_states + 1)
    next_states = 1
    next_transitions = 0
    while next_transitions < transitions[1]:
        for place in range(transitions[begins + next_transitions], transitions[ends + next_transitions]):
            mark(states, sources[transitions[HEADER + place]] + 0)
        split(states)
        next_transitions += 1
        while next_states < states[1]:
            for place in range(states[state_begins + next_states], states[state_ends + next_states]):
                state = states[HEADER + place]
                for index in range(target_begins[state], target_begins[state + 1]):
                    mark(transitions, incoming[index] + 0)
            split(transitions)
            next_states += 1


@inner
def _find_equal_states(
    num_states: int,
    final: Ints,
    row_begins: Ints,
    rows: Ints,
    num_letters: int,
    letter_ends: Ints,
    target_begins: Ints,
    sources: Ints,
    incoming: Ints,
    states: Ints,
    transitions: Ints,
) -> None:
    """Makes `states` the partition of the first states into sets with equal futures. letter_ends and target_begins are
    all zeros; sources and incoming have an entry for every letter of the states' rows.
    """
    num_rows = row_begins[num_states]
    for row in range(num_rows):
        for letter in range(rows[3 * row], rows[3 * row + 1] + 1):
            letter_ends[letter + 1] += 1
            target_begins[rows[3 * row + 2] + 2] += 1
    for letter in range(num_letters):
        letter_ends[letter + 1] += letter_ends[letter]
    for state in range(num_states):
        target_begins[state + 2] += target_begins[state + 1]
    # letter_ends[l] and target_begins[t + 1] are where the next transition of a letter, or into a target, belongs.
    for state in range(num_states):
        for row in range(row_begins[state], row_begins[state + 1]):
            target = rows[3 * row + 2]
            for letter in range(rows[3 * row], rows[3 * row + 1] + 1):
                transition = letter_ends[letter]
                letter_ends[letter] += 1
                sources[transition] = state
                incoming[target_begins[target + 1]] = transition
                target_begins[target + 1] += 1
    num_used = 0
    end = 0
    for letter in range(num_letters):
        if letter_ends[letter] > end:
            end = letter_ends[letter] + 0
            letter_ends[num_used] = end
            num_used += 1
    _refine(num_states, final, num_used, letter_ends, sources, target_begins, incoming, states, transitions)


@kernel
def _merge(
    final: Ints,
    row_begins: Ints,
    rows: Ints,
    rule_starts: Ints,
    num_merged: int,
    num_letters: int,
    letter_ends: Ints,
    target_begins: Ints,
    transition_sources: Ints,
    incoming: Ints,
    states: Ints,
    transitions: Ints,
    numbers: Ints,
    number_of_set: Ints,
    new_final: Ints,
    new_sources: Ints,
    new_rows: Ints,
) -> tuple[int, int]:
    """Merges equal states among the first `num_merged` ones. Returns how many states, and rows, there are then."""
    num_states = len(final)
    _find_equal_states(
        num_merged,
        final,
        row_begins,
        rows,
        num_letters,
        letter_ends,
        target_begins,
        transition_sources,
        incoming,
        states,
        transitions,
    )
    set_of = HEADER + SET_OF * (num_merged + 1)
    num_new = 0
    for state in range(num_states):
        part = -1
        if state < num_merged:
            part = states[set_of + state] + 0
            if number_of_set[part] >= 0:
                numbers[state] = -1 - number_of_set[part]
                continue
            number_of_set[part] = num_new
        numbers[state] = num_new
        new_final[num_new] = final[state]
        num_new += 1
    num_new_rows = 0
    for state in range(num_states):
        if numbers[state] < 0:
            continue
        for row in range(row_begins[state], row_begins[state + 1]):
            target = numbers[rows[3 * row + 2]]
            new_sources[num_new_rows] = numbers[state]
            new_rows[3 * num_new_rows] = rows[3 * row]
            new_rows[3 * num_new_rows + 1] = rows[3 * row + 1]
            new_rows[3 * num_new_rows + 2] = target if target >= 0 else -1 - target
            num_new_rows += 1
    for rule in range(len(rule_starts)):
        number = numbers[rule_starts[rule]]
        rule_starts[rule] = number if number >= 0 else -1 - number
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


def merge_equal(subsets: Subsets, num_letters: int) -> Quotient:
    """Merges deterministic states with equal futures, where they have up to MAX_MERGED_STEPS steps together.

    Every state but 0 must lead to a final one.
    """
    rows = subsets.rows
    num_merged = subsets.first_nondeterministic
    num_rows = int(subsets.row_begins[num_merged])
    num_steps = num_rows + int((rows[:num_rows, 1] - rows[:num_rows, 0]).sum())
    if num_steps > MAX_MERGED_STEPS:
        num_merged = num_steps = 0
    rule_starts = subsets.rule_starts.copy()
    final, sources, new_rows = np.empty_like(subsets.final), np.empty(len(rows), np.int32), np.empty_like(rows)
    num_states, num_rows = _merge(
        subsets.final,
        subsets.row_begins,
        rows.ravel(),
        rule_starts,
        num_merged,
        num_letters,
        np.zeros(num_letters + 1, np.int32),
        np.zeros(num_merged + 2, np.int32),
        np.empty(num_steps, np.int32),
        np.empty(num_steps, np.int32),
        np.zeros(partition_size(num_merged), np.int32),
        np.zeros(partition_size(num_steps), np.int32),
        np.empty(len(final), np.int32),
        np.full(num_merged, -1, np.int32),
        final,
        sources,
        new_rows.ravel(),
    )
    return Quotient(rule_starts, final[:num_states], sources[:num_rows], new_rows[:num_rows])
