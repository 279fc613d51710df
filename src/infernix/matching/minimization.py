"""States with equal futures become one: Hopcroft's partition refinement in the form of Valmari.

A. Valmari, "Fast brief practical DFA minimization", Information Processing Letters 112 (2012): one partition of the
states and one of the transitions refine each other; O(m log m) for m transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infernix.matching.determinize import Subsets
from infernix.matching.jit import inner, kernel
from infernix.matching.unrolling import Ints

# Steps by single letters, of all deterministic states: with more of them, no states are merged. That costs memory only.
MAX_MERGED_STEPS = 1 << 18

# A refinable partition is one array: its width (elements + 1), the number of sets, the number of sets with marked
# elements, and then tables of that width: the elements, set by set; where each element stands; the set of each element;
# and by set where it begins and ends, how many of its elements are marked (they come first), and a list of the sets
# with marked elements.
_ELEMENTS = 0
_PLACE = 1
_SET_OF = 2
_BEGIN = 3
_END = 4
_NUM_MARKED = 5
_MARKED_SETS = 6
_HEADER = 3


@inner
def _new_partition(num_elements: int) -> Ints:
    """All elements in one set, 0."""
    width = num_elements + 1
    partition = np.zeros(_HEADER + 7 * width, np.int32)
    partition[0] = width
    partition[1] = 1
    for element in range(num_elements):
        partition[_HEADER + element] = element
        partition[_HEADER + _PLACE * width + element] = element
    partition[_HEADER + _END * width] = num_elements
    return partition


@inner
def _mark(partition: Ints, element: int) -> None:
    """Marks an element, once."""
    width = partition[0] + 0
    part = partition[_HEADER + _SET_OF * width + element] + 0
    place = partition[_HEADER + _PLACE * width + element] + 0
    marked = _HEADER + _NUM_MARKED * width + part
    first_unmarked = partition[_HEADER + _BEGIN * width + part] + partition[marked] + 0
    if place < first_unmarked:
        return
    other = partition[_HEADER + first_unmarked]
    partition[_HEADER + place] = other
    partition[_HEADER + _PLACE * width + other] = place
    partition[_HEADER + first_unmarked] = element
    partition[_HEADER + _PLACE * width + element] = first_unmarked
    if partition[marked] == 0:
        partition[_HEADER + _MARKED_SETS * width + partition[2]] = part
        partition[2] += 1
    partition[marked] += 1


@inner
def _split(partition: Ints) -> None:
    """Parts marked from unmarked elements in every set, and unmarks all. The smaller half becomes a new set."""
    width = partition[0] + 0
    begins = _HEADER + _BEGIN * width
    ends = _HEADER + _END * width
    for index in range(partition[2]):
        part = partition[_HEADER + _MARKED_SETS * width + index] + 0
        begin = partition[begins + part]
        end = partition[ends + part]
        middle = begin + partition[_HEADER + _NUM_MARKED * width + part]
        partition[_HEADER + _NUM_MARKED * width + part] = 0
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
            partition[_HEADER + _SET_OF * width + partition[_HEADER + place]] = new
    partition[2] = 0


@kernel
def _refine(final: Ints, letter_ends: Ints, sources: Ints, target_begins: Ints, incoming: Ints) -> Ints:
    """The set of each state in the coarsest partition into deterministic states with equal futures.

    Transitions are numbered letter by letter, those of a letter ending at an entry of letter_ends (no letter without
    any); sources has the source by transition, incoming the transitions by target, from target_begins[target] on.
    """
    num_states = len(final)
    num_transitions = len(sources)
    states = _new_partition(num_states)
    for state in range(num_states):
        if final[state] != 0:
            _mark(states, state)
    _split(states)
    transitions = _new_partition(num_transitions)
    begins = _HEADER + _BEGIN * (num_transitions + 1)
    ends = _HEADER + _END * (num_transitions + 1)
    begin = 0
    for part in range(len(letter_ends)):
        transitions[begins + part] = begin
        for transition in range(begin, letter_ends[part]):
            transitions[_HEADER + _SET_OF * (num_transitions + 1) + transition] = part
        begin = letter_ends[part] + 0
        transitions[ends + part] = begin
    transitions[1] = len(letter_ends)

    # The first set of states need not split anything: what leads there is what does not lead to the others.
    state_begins = _HEADER + _BEGIN * (num_states + 1)
    state_ends = _HEADER + _END * (num_states + 1)
    next_states = 1
    next_transitions = 0
    while next_transitions < transitions[1]:
        for place in range(transitions[begins + next_transitions], transitions[ends + next_transitions]):
            _mark(states, sources[transitions[_HEADER + place]] + 0)
        _split(states)
        next_transitions += 1
        while next_states < states[1]:
            for place in range(states[state_begins + next_states], states[state_ends + next_states]):
                state = states[_HEADER + place]
                for index in range(target_begins[state], target_begins[state + 1]):
                    _mark(transitions, incoming[index] + 0)
            _split(transitions)
            next_states += 1
    first = _HEADER + _SET_OF * (num_states + 1)
    return states[first : first + num_states]


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
    final = subsets.final
    num_states = len(final)
    rows = subsets.rows
    sources = np.repeat(np.arange(num_states, dtype=np.int32), np.diff(subsets.row_begins))
    num_deterministic = subsets.first_nondeterministic
    num_rows = int(subsets.row_begins[num_deterministic])
    num_steps = int((rows[:num_rows, 1] - rows[:num_rows, 0] + 1).sum())
    # States that are not merged are sets of their own.
    set_of = np.arange(num_states, 2 * num_states, dtype=np.int32)
    if num_steps <= MAX_MERGED_STEPS:
        set_of[:num_deterministic] = _equal_sets(
            final[:num_deterministic], *_steps(sources[:num_rows], rows[:num_rows], num_letters)
        )
    live = np.arange(1, num_states)
    # Of several values for one index the last one stays: here the first state of each set.
    first_of_set = np.zeros(2 * num_states, np.int32)
    first_of_set[set_of[live[::-1]]] = live[::-1]
    first_of = first_of_set[set_of[live]]
    firsts = live[first_of == live]
    number_of = np.full(num_states, -1, np.int32)
    number_of[0] = 0
    number_of[firsts] = np.arange(1, 1 + len(firsts))
    number_of[live] = number_of[first_of]
    is_kept = np.zeros(num_states, np.bool_)
    is_kept[firsts] = True
    of_kept = is_kept[sources]
    rows = rows[of_kept]
    rows[:, 2] = number_of[rows[:, 2]]
    return Quotient(
        number_of[subsets.rule_starts],
        np.concatenate([final[:1], final[firsts]]),
        number_of[sources[of_kept]],
        rows,
    )


def _steps(sources: Ints, rows: Ints, num_letters: int) -> tuple[Ints, Ints, Ints]:
    """Letter, source and target of every step, in the order of letters."""
    row_of, letters = spread(rows)
    # Sorting small integers takes linear time.
    order = np.argsort(letters.astype(np.int16) if num_letters < 1 << 15 else letters, kind="stable")
    row_of = row_of[order]
    return letters[order], sources[row_of], rows[row_of, 2]


def _equal_sets(final: Ints, letters: Ints, sources: Ints, targets: Ints) -> Ints:
    counts = np.bincount(letters)
    return _refine(
        final,
        np.cumsum(counts[counts > 0], dtype=np.int32),
        sources,
        _begins(targets, len(final)),
        np.argsort(targets, kind="stable").astype(np.int32),
    )


def spread(rows: Ints) -> tuple[Ints, Ints]:
    """Row and letter of every letter of every row, in the order of rows."""
    lows = rows[:, 0]
    lengths = rows[:, 1] - lows + 1
    row_of = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
    offsets = np.arange(len(row_of), dtype=np.int32) - (np.cumsum(lengths, dtype=np.int32) - lengths)[row_of]
    return row_of, lows[row_of] + offsets


def _begins(values: Ints, num_values: int) -> Ints:
    """int32 [num_values + 1]: where each value begins when `values` are sorted."""
    begins = np.zeros(num_values + 1, np.int32)
    np.cumsum(np.bincount(values, minlength=num_values), out=begins[1:])
    return begins
