"""Runs: counted repetitions of a set of characters that are written out, a state for each count.

White space between the tokens of JSON is one: up to 32 characters, 33 states. From each state of a run every character
of its set leads to the next one, all else leads where it led before, and behind the last one the characters lead
nowhere. So a token that begins with some of them is legal where the rest of it is legal without them, as long as the
run has room for them; `row_filling` walks the vocabulary once for all of the run.
"""

from __future__ import annotations

import numpy as np

from infernix.matching import arena
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner

# Only runs that this byte goes on in are looked for: nearly half of a vocabulary begins with it.
_PROBE = ord(" ")
_NOT_SEEN = -1
_IN_NO_RUN = -2
_IS_END = -3


@inner
def _next_in_run(
    delta: Ints, num_classes: int, probe: int, flags: Ints, call_begins: Ints, token_begins: Ints, state: int
) -> int:
    """The state that the probe leads to, if it differs from `state` only in where the same bytes lead; or -1.

    These bytes all lead to one state from there, too, or nowhere.
    """
    begin = state * num_classes
    target = int(delta[begin + probe])
    # The last state of a run may have no edges at all; that alone is no difference.
    if target < 0 or target == state or (flags[state] ^ flags[target]) & ~arena.KEPT != 0:
        return -1
    if call_begins[state] != call_begins[state + 1] or call_begins[target] != call_begins[target + 1]:
        return -1
    if token_begins[state] != token_begins[state + 1] or token_begins[target] != token_begins[target + 1]:
        return -1
    following = int(delta[target * num_classes + probe])
    if following == target or following < arena.NO_TARGET:
        return -1
    for byte_class in range(num_classes):
        before = int(delta[begin + byte_class])
        after = int(delta[target * num_classes + byte_class])
        if before == target:
            if after != following:
                return -1
        elif before != after or (following != arena.NO_TARGET and after == following):
            return -1
    return target


@inner
def find_runs(
    class_of: Ints,
    num_classes: int,
    delta: Ints,
    flags: Ints,
    call_begins: Ints,
    token_begins: Ints,
    atom_of_ascii: Nodes,
    state_loops: Ints,
    found: Nodes,
    num_found: int,
) -> int:
    """Writes the column RUN_LEFT of state_loops, all zeros, for the states of runs: characters left, one at least.

    Adds to `found`, which holds num_found pairs, for each of these states its entry in the column RUN_SET and its set
    of atoms as bits; returns how many pairs there are then. Sets consist of whole ASCII atoms. The states of a run end
    alike, and neither call nor have token edges.
    """
    num_states = len(flags)
    probe = class_of[_PROBE] + 0
    # By state which is the last one of its run that has a character left, and how many are left to itself.
    last_states = np.full(num_states, _NOT_SEEN, np.int32)
    num_left = np.zeros(num_states, np.int32)
    path = np.empty(num_states, np.int32)
    for state in range(num_states):
        if delta[state * num_classes + probe] == arena.NO_TARGET:
            last_states[state] = _IS_END
    for first in range(num_states):
        state = first
        length = 0
        while state >= 0 and last_states[state] == _NOT_SEEN:
            # Until more is known. What comes back to itself is no run.
            last_states[state] = _IN_NO_RUN
            path[length] = state
            length += 1
            state = _next_in_run(delta, num_classes, probe, flags, call_begins, token_begins, state)
        if state < 0 or last_states[state] == _IN_NO_RUN:
            continue
        for i in range(length - 1, -1, -1):
            before = path[i] + 0
            last_states[before] = before if last_states[state] == _IS_END else last_states[state]
            num_left[before] = num_left[state] + 1
            state = before
    # States of one run mostly stand together.
    last = -1
    atoms = 0
    for state in range(num_states):
        if num_left[state] == 0:
            continue
        if last_states[state] != last:
            last = last_states[state] + 0
            atoms = _whole_atoms(class_of, num_classes, delta, probe, last, atom_of_ascii)
        if atoms != 0:
            row = arena.STATE_LOOPS_WIDTH * state
            state_loops[row + arena.RUN_LEFT] = num_left[state]
            found[2 * num_found] = row + arena.RUN_SET
            found[2 * num_found + 1] = atoms
            num_found += 1
    return num_found


@inner
def _whole_atoms(class_of: Ints, num_classes: int, delta: Ints, probe: int, state: int, atom_of_ascii: Nodes) -> int:
    """The atoms made up of the bytes that lead where the probe does, as bits; 0 where bytes beyond ASCII or parts of
    atoms are among them."""
    row = state * num_classes
    target = delta[row + probe]
    atoms = 0
    others = 0
    for byte in range(256):
        goes_on = delta[row + class_of[byte]] == target
        if byte >= 128:
            if goes_on:
                return 0
        elif goes_on:
            atoms |= 1 << atom_of_ascii[byte]
        else:
            others |= 1 << atom_of_ascii[byte]
    return 0 if atoms & others != 0 else atoms
