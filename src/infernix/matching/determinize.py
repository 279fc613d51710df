"""Subset construction: from the rules' nondeterministic automata to states of which each letter leads to one state.

Byte classes, called rules, loops and token sets are all letters. Where the subsets of a rule grow out of proportion
the rule keeps its nondeterministic form without empty edges: its states stand for single states of the automaton, and
a letter may lead to several of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.matching.arena import FINAL_STATE
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner, kernel
from infernix.matching.rule_nfa import RuleNfa

# A rule may take this many NFA states, summed over its subsets, for each of its own states, and this many more.
MAX_SUBSET_GROWTH = 30
MAX_SUBSET_BASE = 4000
# Rows and states, of all rules, before equal states are merged; also members of the subsets of one rule.
MAX_ROWS = 1 << 22

_HASH_MASK = (1 << 30) - 1


@dataclass(frozen=True, slots=True)
class Subsets:
    """The states of all rules. State 0 has no rows; state 1 is final and has none.

    rule_starts: start state by rule. final: 1 by state for final ones. row_begins: the first row by state, one entry
    more than states. rows: [rows, 3], low, high (letters), target; rows of the same letters stand next to each other,
    and only states from first_nondeterministic on have such.
    """

    rule_starts: Ints
    final: Ints
    row_begins: Ints
    rows: Ints
    first_nondeterministic: int


def determinize(nfa: RuleNfa) -> Subsets:
    """Raises ConstraintTooLarge past MAX_ROWS."""
    rules, num_letters = nfa.rules.ravel(), nfa.num_letters
    fixed = 5 * len(nfa.is_final) + 4 * (num_letters + 1) + len(rules) // 2
    capacity = 1 << max(10, (len(nfa.rows) * 5 // 4).bit_length())
    while True:
        work: NDArray[np.int32] = np.zeros(fixed + 13 * capacity, np.int32)
        num_states, num_rows, first_nondeterministic = _determinize(
            nfa.begins, nfa.rows.ravel(), nfa.is_final, rules, nfa.num_classes, num_letters, work, capacity
        )
        if num_states:
            break
        if capacity >= MAX_ROWS:
            raise ConstraintTooLarge(f"the constraint takes more than {MAX_ROWS} steps (MAX_ROWS)")
        capacity = min(4 * capacity, MAX_ROWS)
    tables = work[fixed:]
    return Subsets(
        work[fixed - len(rules) // 2 : fixed],
        tables[:num_states],
        tables[capacity : capacity + num_states + 1],
        tables[5 * capacity : 5 * capacity + 3 * num_rows].reshape(-1, 3),
        first_nondeterministic,
    )


@inner
def mixed(value: int) -> int:
    """A 30-bit hash; never overflows 64 bits."""
    h = ((int(value) + 0x9E3779) * 1000003) & 0x7FFFFFFFFFFF
    h = ((h ^ (h >> 15)) & 0xFFFFFFF) * 69069
    return (h ^ (h >> 13)) & _HASH_MASK


@inner
def _close(
    begins: Ints, edges: Ints, is_final: Ints, work: Ints, links: int, link: int, is_single: bool, stamp: int
) -> tuple[int, int, int, bool]:
    """Finds the states with edges of their own, or final, that empty edges reach from one root or from a list of them.

    Returns how many they are, the subset's hash (negative where none of them has edges), how many roots are new, and
    whether a final state is among them.
    """
    num_nfa_states = len(is_final)
    stack = num_nfa_states
    found = 2 * num_nfa_states
    is_known_root = 4 * num_nfa_states
    count = 0
    key = 0
    num_new_roots = 0
    has_final = False
    has_edges = False
    following = link
    while following > 0:
        root = work[links + 2 * following - 2]
        following = work[links + 2 * following - 1]
        if is_single:
            following = 0
        num_new_roots += 1 - work[is_known_root + root]
        work[is_known_root + root] = 1
        depth = 0
        if work[root] != stamp:
            work[root] = stamp
            work[stack] = root
            depth = 1
        while depth > 0:
            depth -= 1
            state = work[stack + depth]
            if begins[2 * state + 1] < begins[2 * state + 2]:
                has_edges = True
            if is_final[state] != 0:
                has_final = True
            if begins[2 * state + 1] < begins[2 * state + 2] or is_final[state] != 0:
                work[found + count] = state
                count += 1
                key = (key + mixed(state)) & _HASH_MASK
            for edge in range(begins[2 * state], begins[2 * state + 1]):
                target = edges[3 * edge + 2]
                if work[target] != stamp:
                    work[target] = stamp
                    work[stack + depth] = target
                    depth += 1
    if has_final and not has_edges:
        key = -1
    return count, key, num_new_roots, has_final


@inner
def _has_one_edge(begins: Ints, work: Ints, members: int, first_member: int, end_member: int) -> bool:
    """Whether a state is a single NFA state with a single edge, as inside a literal."""
    member = work[members + first_member]
    return bool(end_member == first_member + 1 and begins[2 * member + 1] + 1 == begins[2 * member + 2])


@inner
def _find_segments(
    begins: Ints,
    edges: Ints,
    work: Ints,
    first_member: int,
    end_member: int,
    segment_low: int,
    num_segment_entries: int,
    num_classes: int,
    step: int,
    links: int,
    capacity: int,
) -> tuple[int, int, int]:
    """Parts the letters of a state into segments, and lists for each segment the targets of the edges over it.

    Returns the number of segments of byte classes, the last class of the last of them, and the number of all segments;
    it is negative where there are too many links.
    """
    segment_head = segment_low + num_segment_entries
    segment_of = segment_head + num_segment_entries
    cut = segment_of + num_segment_entries
    num_segments = 0
    num_links = 0
    num_byte_segments = 0
    first_class = num_classes
    last_class = -1
    # First where segments begin, then which edges lead over each.
    for fill in range(2):
        for place in range(first_member, end_member):
            member = work[place]
            for edge in range(begins[2 * member + 1], begins[2 * member + 2]):
                low = edges[3 * edge]
                high = edges[3 * edge + 1]
                if fill == 0:
                    if low < num_classes:
                        work[cut + low] = step
                        work[cut + high + 1] = step
                        first_class = min(first_class, low)
                        last_class = max(last_class, high)
                    continue
                if low >= num_classes and work[cut + low] != step:
                    work[cut + low] = step
                    work[segment_low + num_segments] = low
                    work[segment_head + num_segments] = 0
                    work[segment_of + low] = num_segments
                    num_segments += 1
                for segment in range(work[segment_of + low], work[segment_of + high] + 1):
                    if num_links == capacity:
                        return 0, 0, -1
                    work[links + 2 * num_links] = edges[3 * edge + 2]
                    work[links + 2 * num_links + 1] = work[segment_head + segment]
                    num_links += 1
                    work[segment_head + segment] = num_links
        if fill == 0:
            for letter in range(first_class, last_class + 1):
                if work[cut + letter] == step:
                    work[segment_low + num_segments] = letter
                    work[segment_head + num_segments] = 0
                    num_segments += 1
                work[segment_of + letter] = num_segments - 1
            num_byte_segments = num_segments
            # The cut after the last class is the first label's place.
            work[cut + num_classes] = 0
    return num_byte_segments, last_class, num_segments


@inner
def _slot_of(
    key: int,
    count: int,
    stamp: int,
    work: Ints,
    slots: int,
    hashes: int,
    member_begins: int,
    members: int,
    first_state: int,
    num_states: int,
    capacity: int,
) -> int:
    """The slot with the state for the subset of what the last closure has seen, or the free one where it belongs.

    Entries of other rules, and of a rule that was given up, are leftovers.
    """
    slot = key & (2 * capacity - 1)
    while work[slots + slot] != 0:
        state = work[slots + slot]
        if first_state <= state < num_states and work[hashes + state] == key:
            place = work[member_begins + state]
            end = work[member_begins + state + 1]
            if end - place == count:
                while place < end and work[work[members + place]] == stamp:
                    place += 1
                if place == end:
                    break
        slot = (slot + 1) & (2 * capacity - 1)
    return slot


@kernel
def _determinize(
    begins: Ints,
    edges: Ints,
    is_final: Ints,
    rules: Ints,
    num_classes: int,
    num_letters: int,
    work: Ints,
    capacity: int,
) -> tuple[int, int, int]:
    """The numbers of states and rows, and the first nondeterministic state; zeros where `capacity` is too small.

    work, all zeros, is used for: five entries by NFA state (stamp of the closure that saw it, stack, states found, the
    subset's state for the closure of this one, whether it has been met); four by letter and one more (segments of a
    state: letters that the same edges lead over); the start by rule; `capacity` times final, first row, first member,
    hash, last row into the state, three entries of a row, a member, two of a link, two slots.
    """
    num_nfa_states = len(is_final)
    found = 2 * num_nfa_states
    state_of_root = 3 * num_nfa_states
    is_known_root = 4 * num_nfa_states
    segment_low = 5 * num_nfa_states
    segment_head = segment_low + num_letters + 1
    segment_of = segment_head + num_letters + 1
    cut = segment_of + num_letters + 1
    rule_starts = cut + num_letters + 1
    final = rule_starts + len(rules) // 2
    row_begins = final + capacity
    member_begins = row_begins + capacity
    hashes = member_begins + capacity
    row_of_target = hashes + capacity
    rows = row_of_target + capacity
    members = rows + 3 * capacity
    links = members + capacity
    slots = links + 2 * capacity

    work[final + FINAL_STATE] = 1
    num_states = FINAL_STATE + 1
    num_rows = 0
    num_made = num_states
    first_nondeterministic = 0
    stamp = 0
    step = 0
    for attempt in range(2):
        merge = attempt == 0
        if not merge:
            first_nondeterministic = num_states
        for rule in range(len(rules) // 2):
            if work[rule_starts + rule] != 0:
                continue
            first_state = num_states
            first_row = num_rows
            size = 0
            num_roots = 0
            work[member_begins + num_states] = 0
            # One step before the first state: its only letter leads to the start.
            state = first_state - 1
            while state < num_states:
                step += 1
                num_segments = 1
                num_byte_segments = 0
                last_class = -1
                if state < first_state:
                    work[segment_head] = 1
                    work[links] = rules[2 * rule]
                    work[links + 1] = 0
                elif _has_one_edge(begins, work, members, work[member_begins + state], work[member_begins + state + 1]):
                    edge = 3 * begins[2 * work[members + work[member_begins + state]] + 1]
                    work[segment_low] = edges[edge]
                    last_class = edges[edge + 1] + 0
                    num_byte_segments = int(last_class < num_classes)
                    work[segment_head] = 1
                    work[links] = edges[edge + 2]
                    work[links + 1] = 0
                else:
                    num_byte_segments, last_class, num_segments = _find_segments(
                        begins,
                        edges,
                        work,
                        members + work[member_begins + state],
                        members + work[member_begins + state + 1],
                        segment_low,
                        num_letters + 1,
                        num_classes,
                        step,
                        links,
                        capacity,
                    )
                    if num_segments < 0:
                        return 0, 0, 0
                for segment in range(num_segments):
                    low = work[segment_low + segment]
                    high = low
                    if segment < num_byte_segments - 1:
                        high = work[segment_low + segment + 1] - 1
                    elif segment < num_byte_segments:
                        high = last_class
                    first_segment_row = num_rows
                    # Adding 0 makes 64 bits of 32, so that the functions called are compiled once.
                    link = work[segment_head + segment] + 0
                    while link > 0:
                        root = work[links + 2 * link - 2]
                        is_single = not merge or work[links + 2 * link - 1] == 0
                        target = 0
                        if is_single:
                            target = work[state_of_root + root]
                        if target != 0:
                            link = work[links + 2 * link - 1]
                        else:
                            stamp += 1
                            slot = 0
                            # Most subsets are one state by itself: no calls for these.
                            is_alone = is_single and begins[2 * root] == begins[2 * root + 1] < begins[2 * root + 2]
                            if is_alone:
                                work[root] = stamp
                                work[found] = root
                                count = 1
                                num_new_roots = 1 - int(work[is_known_root + root])
                                work[is_known_root + root] = 1
                                has_final = is_final[root] != 0
                                key = mixed(root) & _HASH_MASK
                                slot = key & (2 * capacity - 1)
                                while work[slots + slot] != 0:
                                    other = work[slots + slot]
                                    if first_state <= other < num_states and work[hashes + other] == key:
                                        place = work[member_begins + other]
                                        if (
                                            work[member_begins + other + 1] == place + 1
                                            and work[members + place] == root
                                        ):
                                            break
                                    slot = (slot + 1) & (2 * capacity - 1)
                            else:
                                count, key, num_new_roots, has_final = _close(
                                    begins, edges, is_final, work, links, link, is_single, stamp
                                )
                            num_roots += num_new_roots
                            link = 0 if merge else work[links + 2 * link - 1]
                            if key >= 0:
                                if not is_alone:
                                    slot = _slot_of(
                                        key,
                                        count,
                                        stamp,
                                        work,
                                        slots,
                                        hashes,
                                        member_begins,
                                        members,
                                        first_state,
                                        num_states,
                                        capacity,
                                    )
                                target = work[slots + slot]
                            if key < 0:
                                target = FINAL_STATE
                            elif target == 0:
                                if num_made + 2 > capacity or size + count > capacity:
                                    return 0, 0, 0
                                target = num_states
                                num_states += 1
                                num_made += 1
                                work[slots + slot] = target
                                work[hashes + target] = key
                                work[final + target] = int(has_final)
                                for place in range(count):
                                    work[members + size + place] = work[found + place]
                                size += count
                                work[member_begins + num_states] = size
                            if is_single:
                                work[state_of_root + root] = target
                        if state < first_state:
                            work[rule_starts + rule] = target
                            continue
                        row = work[row_of_target + target]
                        if first_segment_row <= row < num_rows and work[rows + 3 * row + 2] == target:
                            continue
                        row = num_rows - 1
                        if (
                            merge
                            and segment < num_byte_segments
                            and row >= work[row_begins + state]
                            and work[rows + 3 * row + 1] == low - 1
                            and work[rows + 3 * row + 2] == target
                        ):
                            work[rows + 3 * row + 1] = high
                            continue
                        if num_rows == capacity:
                            return 0, 0, 0
                        work[rows + 3 * num_rows] = low
                        work[rows + 3 * num_rows + 1] = high
                        work[rows + 3 * num_rows + 2] = target
                        work[row_of_target + target] = num_rows
                        num_rows += 1
                state += 1
                work[row_begins + state] = num_rows
                if merge and size > MAX_SUBSET_BASE + MAX_SUBSET_GROWTH * num_roots:
                    num_states = first_state
                    num_rows = first_row
                    work[rule_starts + rule] = 0
                    for root in range(rules[2 * rule], rules[2 * rule + 1]):
                        work[state_of_root + root] = 0
                    break
    return num_states, num_rows, first_nondeterministic
