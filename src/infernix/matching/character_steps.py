"""Where whole characters lead from the states of a network: its bytes, taken together by characters.

A state is *open* to an atom where each of its characters leads to a single state. Only open atoms have steps here, and
only states that a letter leads on from have any: tokens are made of little else, so for others nothing is to be gained.
"""

from __future__ import annotations

import numpy as np

from infernix.matching.arena import FINAL, STATE_LOOPS_WIDTH
from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner, kernel

# The letter, and its atom, which such states are open to.
_PROBE = ord("t")
_PROBE_ATOM = 1 << int(ATOM_OF_ASCII[_PROBE])
_ASCII_ATOMS = (1 << NUM_ASCII_ATOMS) - 1
# Beside the atoms of a step: inside one of its characters a text may leave the rule or enter another one.
IS_UNSURE = 1 << 62
# Columns of a row of encodings: the atom, the number of bytes, and for each byte the number of a range of bytes.
ENCODING_WIDTH = 6


@inner
def is_open_end(flags: Ints, call_begins: Ints, state: int) -> bool:
    """Whether a text may leave the rule from the state, or enter another one."""
    return bool(flags[state] & FINAL != 0 or call_begins[state] != call_begins[state + 1])


@inner
def _follow(
    delta: Ints,
    num_classes: int,
    flags: Ints,
    call_begins: Ints,
    encodings: Ints,
    range_classes: Ints,
    room: Ints,
    stamps: Nodes,
    stamp: int,
    state: int,
    encoding: int,
) -> tuple[int, int, bool, int, int]:
    """Where the characters of one row of `encodings` lead: first place in `room` and number of the states.

    No states where one of the characters leads nowhere, or to several. Beside it whether a state on the way is an open
    end, the last stamp that was used, and how many bytes were looked at.
    """
    first = 0
    count = 1
    room[0] = state
    is_unsure = False
    num_looked_at = 0
    for position in range(encodings[encoding + 1]):
        stamp += 1
        base = len(room) // 2 - first
        num_following = 0
        begin = encodings[encoding + 2 + position] * (num_classes + 1)
        for place in range(first, first + count):
            if position > 0 and is_open_end(flags, call_begins, room[place]):
                is_unsure = True
            row = room[place] * num_classes
            for entry in range(begin + 1, begin + 1 + range_classes[begin]):
                num_looked_at += 1
                target = delta[row + range_classes[entry]] + 0
                if target < 0:
                    return 0, 0, is_unsure, stamp, num_looked_at
                if stamps[target] != stamp:
                    stamps[target] = stamp
                    room[base + num_following] = target
                    num_following += 1
        first = base
        count = num_following
    return first, count, is_unsure, stamp, num_looked_at


@inner
def _place_of(target: int, places: Ints, ends: Ints, atoms_of_ends: Nodes, num_ends: int) -> int:
    """Where a target stands among the first num_ends of `ends`; behind them, with no atoms, where it is new."""
    place = places[target] + 0
    if place < 0 or place >= num_ends or ends[place] != target:
        place = num_ends
        places[target] = place
        ends[place] = target
        atoms_of_ends[place] = 0
    return int(place)


@kernel
def find_character_steps(
    delta: Ints,
    num_classes: int,
    class_of: Ints,
    flags: Ints,
    call_begins: Ints,
    atom_of_ascii: Nodes,
    encodings: Ints,
    range_classes: Ints,
    stand_ins: Ints,
    loops: Nodes,
    max_looked_at: int,
    open_atoms: Nodes,
    begins: Nodes,
    staying: Nodes,
    even: Nodes,
) -> tuple[int, Ints, Nodes]:
    """The targets and the atoms of all steps; those of a state stand from begins[state] on, each target once.

    States with another stand-in than themselves have none.

    Writes by state, all given as zeros: the atoms that it is open to; `begins`, with one entry more; in `staying` those
    of the atoms that lead to states with steps of their own, which leaves out what ends a string; in `even` those that
    lead where the letter leads, and nowhere else, which leaves out what a pattern asks for. `staying` is 0 where that
    is what the state goes round on; loops: for each loop its place in STATE_LOOPS and its atoms.

    The first figure counts the states whose `staying` is not 0; -1 where the search was given up, after a look at
    max_looked_at bytes.
    """
    num_states = len(open_atoms)
    probe = class_of[_PROBE] + 0
    atoms_of_class = np.zeros(num_classes, np.int64)
    for byte in range(128):
        atoms_of_class[class_of[byte]] |= 1 << atom_of_ascii[byte]
    # States on the way through a character, twice, and marks that say which were met.
    room = np.empty(2 * num_states, np.int32)
    stamps = np.zeros(num_states, np.int64)
    # The targets of the state that is looked at, where each of them stands on that list, and their atoms.
    ends = np.empty(num_states, np.int32)
    places = np.empty(num_states, np.int32)
    atoms_of_ends = np.empty(num_states, np.int64)
    targets = np.empty(64, np.int32)
    step_atoms = np.empty(64, np.int64)
    num_steps = 0
    num_looked_at = 0
    stamp = 0
    for state in range(num_states):
        begins[state] = num_steps
        row = state * num_classes
        if delta[row + probe] < 0 or stand_ins[state] != state:
            continue
        atoms = _ASCII_ATOMS
        for byte_class in range(num_classes):
            if delta[row + byte_class] < 0:
                atoms &= ~atoms_of_class[byte_class]
        num_looked_at += num_classes
        if atoms & _PROBE_ATOM == 0:
            continue
        num_ends = 0
        for byte_class in range(num_classes):
            if atoms_of_class[byte_class] & atoms != 0:
                place = _place_of(delta[row + byte_class], places, ends, atoms_of_ends, num_ends)
                num_ends = max(num_ends, place + 1)
                atoms_of_ends[place] |= atoms_of_class[byte_class] & atoms
        encoding = 0
        while encoding < len(encodings):
            atom = int(encodings[encoding])
            atoms |= 1 << atom
            while encoding < len(encodings) and encodings[encoding] == atom:
                if atoms >> atom & 1:
                    first, count, is_unsure, stamp, more_looked_at = _follow(
                        delta,
                        num_classes,
                        flags,
                        call_begins,
                        encodings,
                        range_classes,
                        room,
                        stamps,
                        stamp,
                        state,
                        encoding,
                    )
                    num_looked_at += more_looked_at
                    if count == 0:
                        atoms &= ~(1 << atom)
                    for found in range(first, first + count):
                        place = _place_of(room[found], places, ends, atoms_of_ends, num_ends)
                        num_ends = max(num_ends, place + 1)
                        atoms_of_ends[place] |= 1 << atom | (IS_UNSURE if is_unsure else 0)
                encoding += ENCODING_WIDTH
        if num_looked_at > max_looked_at:
            return -1, targets, step_atoms
        open_atoms[state] = atoms
        while num_steps + num_ends > len(targets):
            targets = np.append(targets, targets)
            step_atoms = np.append(step_atoms, step_atoms)
        for place in range(num_ends):
            if atoms_of_ends[place] & atoms != 0:
                targets[num_steps] = ends[place]
                step_atoms[num_steps] = atoms_of_ends[place] & (atoms | IS_UNSURE)
                num_steps += 1
    begins[num_states] = num_steps
    num_going_on = 0
    for state in range(num_states):
        if open_atoms[state] == 0:
            continue
        probe_target = delta[state * num_classes + probe] + 0
        stays = open_atoms[state] + 0
        leads_alike = stays
        for step in range(begins[state], begins[state + 1]):
            if open_atoms[targets[step]] == 0:
                stays &= ~step_atoms[step]
            if targets[step] != probe_target:
                leads_alike &= ~step_atoms[step]
        if stays & _PROBE_ATOM != 0:
            staying[state] = stays
            even[state] = stays & leads_alike
            num_going_on += 1
    for loop in range(len(loops) // 2):
        state = loops[2 * loop] // STATE_LOOPS_WIDTH
        if staying[state] != 0 and staying[state] == loops[2 * loop + 1]:
            staying[state] = 0
            num_going_on -= 1
    return num_going_on, targets, step_atoms
