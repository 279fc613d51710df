"""Hopcroft's partition refinement in the form of Valmari.

A. Valmari, "Fast brief practical DFA minimization", Information Processing Letters 112 (2012): one partition of the
states and one of the transitions refine each other; O(m log m) for m transitions.
"""

from __future__ import annotations

from infernix.matching.flattening import Ints
from infernix.matching.jit import inner

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
NUM_TABLES = 7


def partition_size(num_elements: int) -> int:
    return HEADER + NUM_TABLES * (num_elements + 1)


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
def refine(
    num_letters: int,
    letter_ends: Ints,
    sources: Ints,
    target_begins: Ints,
    incoming: Ints,
    states: Ints,
    transitions: Ints,
) -> None:
    """Refines `states`, of which no set has a state with letters that another one of it has not, to the fewest sets
    with equal futures.

    Transitions are numbered letter by letter, those of a letter ending at an entry of letter_ends (no letter without
    any); sources has the source by transition, incoming the transitions by target, from target_begins[target] on.
    """
    num_transitions = len(sources)
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
    state_begins = HEADER + BEGIN * states[0]
    state_ends = HEADER + END * states[0]
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
