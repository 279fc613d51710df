"""States of large automata that no token can tell apart.

An automaton that counts, such as a pattern beside a length, has a state for every count, and each has a configuration
of its own. One token sees no further than its own length: two states from which the same bytes lead on, and the same
beginnings may end, for so many bytes have the same masks. One of them stands for all where masks are worked out
(`interning.clamp`), as one count stands for all counts that are far from their bounds.

This is Moore's partition refinement, one round for each byte of the longest token. As in Hopcroft's algorithm only the
smaller parts of a set that fell apart are looked at in the next round.
"""

from __future__ import annotations

import numpy as np

from infernix.matching import arena
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner, kernel
from infernix.matching.minimization import (
    BEGIN,
    ELEMENTS,
    END,
    HEADER,
    begin_partition,
    mark,
    partition_size,
    split,
)
from infernix.matching.network import Network


def stand_ins(network: Network, max_token_bytes: int) -> Ints:
    """By state one that stands for it, and for itself, in tokens of up to max_token_bytes bytes."""
    found = np.arange(network.num_states, dtype=np.int32)
    if not network.automaton_starts:
        return found
    places = np.full(network.num_states, -1, np.int32)
    delta = network.tables[arena.DELTA]
    num_labels = np.diff(network.tables[arena.CALL_BEGIN]) + np.diff(network.tables[arena.TOKEN_BEGIN])
    states = np.empty(network.num_states, np.int32)
    for start in network.automaton_starts:
        num_states, num_steps = _reachable(delta, network.num_classes, num_labels, start, places, states)
        # Fewer states are told apart by fewer bytes, being different.
        if num_steps > 0 and num_states > max_token_bytes:
            _find_stand_ins(
                delta,
                network.num_classes,
                network.tables[arena.FLAGS],
                max_token_bytes,
                places,
                states[:num_states],
                np.zeros(num_states + 2, np.int32),
                np.empty(2 * num_steps, np.int32),
                np.zeros(partition_size(num_states), np.int32),
                np.empty(2 * num_states, np.int32),
                np.zeros(network.num_classes + 1, np.int32),
                np.empty(num_steps, np.int32),
                found,
            )
        places[states[:num_states]] = -1
    return found


@kernel
def _reachable(
    delta: Ints, num_classes: int, num_labels: Ints, start: int, places: Ints, states: Ints
) -> tuple[int, int]:
    """Lists the states that bytes lead to from `start`, and notes their places on that list; `places` is all -1.

    Returns how many are listed and how many steps they have: -1 where one has other labels than bytes, or several
    targets for a byte.
    """
    states[0] = start
    places[start] = 0
    num_states = 1
    num_steps = 0
    done = 0
    while done < num_states:
        state = states[done] + 0
        done += 1
        if num_labels[state] != 0:
            return num_states, -1
        for byte_class in range(num_classes):
            target = delta[state * num_classes + byte_class] + 0
            if target == arena.NO_TARGET:
                continue
            if target < 0:
                return num_states, -1
            num_steps += 1
            if places[target] < 0:
                places[target] = num_states
                states[num_states] = target
                num_states += 1
    return num_states, num_steps


@inner
def _split_by(
    begins: Ints, incoming: Ints, members: Ints, begin: int, end: int, letters: Ints, sources: Ints, partition: Ints
) -> None:
    """Parts the states by whether a letter leads into members[begin:end], letter by letter. letters is all zeros."""
    for place in range(begin, end):
        for step in range(begins[members[place]], begins[members[place] + 1]):
            letters[incoming[2 * step] + 1] += 1
    num_letters = len(letters) - 1
    for letter in range(num_letters):
        letters[letter + 1] += letters[letter]
    for place in range(begin, end):
        for step in range(begins[members[place]], begins[members[place] + 1]):
            letter = incoming[2 * step]
            sources[letters[letter]] = incoming[2 * step + 1]
            letters[letter] += 1
    # Where a letter's sources begin has become where they end.
    place = 0
    for letter in range(num_letters):
        if place < letters[letter]:
            while place < letters[letter]:
                mark(partition, sources[place] + 0)
                place += 1
            split(partition)
    letters[:] = 0


@kernel
def _find_stand_ins(
    delta: Ints,
    num_classes: int,
    flags: Ints,
    num_rounds: int,
    places: Ints,
    states: Ints,
    begins: Ints,
    incoming: Ints,
    partition: Ints,
    members: Ints,
    letters: Ints,
    sources: Ints,
    found: Ints,
) -> None:
    """Writes to `found` the first state of each set of `states` that num_rounds bytes cannot tell apart.

    begins, letters and partition are all zeros; incoming has room for letter and source of every step, members for the
    states of the sets that a round looks at and where those end.
    """
    num_states = len(states)
    for state in range(num_states):
        for byte_class in range(num_classes):
            target = delta[states[state] * num_classes + byte_class]
            if target >= 0:
                begins[places[target] + 2] += 1
    for state in range(num_states):
        begins[state + 2] += begins[state + 1]
    # begins[t + 1] is where the next step into t belongs.
    for state in range(num_states):
        for byte_class in range(num_classes):
            target = delta[states[state] * num_classes + byte_class]
            if target >= 0:
                step = begins[places[target] + 1]
                begins[places[target] + 1] = step + 1
                incoming[2 * step] = byte_class
                incoming[2 * step + 1] = state

    begin_partition(partition, num_states)
    for state in range(num_states):
        if flags[states[state]] & arena.FINAL:
            mark(partition, state)
    split(partition)
    width = partition[0] + 0
    first_set = 0
    for _ in range(num_rounds):
        num_sets = partition[1] + 0
        if first_set == num_sets:
            break
        # The sets as they are now: what happens to them in this round counts in the next one.
        num_members = 0
        for part in range(first_set, num_sets):
            for place in range(partition[HEADER + BEGIN * width + part], partition[HEADER + END * width + part]):
                members[num_members] = partition[HEADER + ELEMENTS * width + place]
                num_members += 1
            members[num_states + part - first_set] = num_members
        begin = 0
        for part in range(num_sets - first_set):
            end = members[num_states + part] + 0
            _split_by(begins, incoming, members, begin, end, letters, sources, partition)
            begin = end
        first_set = num_sets
    for part in range(partition[1]):
        begin = partition[HEADER + BEGIN * width + part] + 0
        end = partition[HEADER + END * width + part] + 0
        first = num_states
        for place in range(begin, end):
            first = min(first, partition[HEADER + ELEMENTS * width + place])
        for place in range(begin, end):
            found[states[partition[HEADER + ELEMENTS * width + place]]] = states[first]
