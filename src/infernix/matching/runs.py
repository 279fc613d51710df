"""Runs: counted repetitions of a set of characters that are written out, a state for each count.

White space between the tokens of JSON is one: up to 32 characters, 33 states. From each state of a run every character
of its set leads to the next one, all else leads where it led before, and behind the last one the characters lead
nowhere. So a token that begins with some of them is legal where the rest of it is legal without them, as long as the
run has room for them; `row_filling` walks the vocabulary once for all of the run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching import arena
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner, kernel
from infernix.matching.network import Network

# Only runs that this byte goes on in are looked for: nearly half of a vocabulary begins with it.
_PROBE = ord(" ")
_NOT_SEEN = -1
_IN_NO_RUN = -2
_IS_END = -3


def find_runs(network: Network) -> list[tuple[int, NDArray[np.int64], NDArray[np.int32]]]:
    """For each run its atoms, as bits, its states, and how many characters each of them has left: at least one.

    Sets consist of whole ASCII atoms. The states of a run end alike, and neither call nor have token edges.
    """
    tables = network.tables
    class_of = tables[arena.CLASS_OF]
    probe = int(class_of[_PROBE])
    last_states = np.full(network.num_states, _NOT_SEEN, np.int32)
    num_left = np.zeros(network.num_states, np.int32)
    _measure_runs(
        tables[arena.DELTA],
        network.num_classes,
        probe,
        tables[arena.FLAGS],
        tables[arena.CALL_BEGIN],
        tables[arena.TOKEN_BEGIN],
        last_states,
        num_left,
        np.empty(network.num_states, np.int32),
    )
    states = np.flatnonzero(num_left)
    found = []
    for last in dict.fromkeys(last_states[states].tolist()):
        of_run = states[last_states[states] == last]
        targets = tables[arena.DELTA][last * network.num_classes : (last + 1) * network.num_classes]
        atoms = _whole_atoms((targets == targets[probe])[class_of])
        if atoms:
            found.append((atoms, of_run, num_left[of_run]))
    return found


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


@kernel
def _measure_runs(
    delta: Ints,
    num_classes: int,
    probe: int,
    flags: Ints,
    call_begins: Ints,
    token_begins: Ints,
    last_states: Ints,
    num_left: Ints,
    path: Ints,
) -> None:
    """Writes by state which is the last one of its run that has a character left, and how many are left to itself.

    last_states: all _NOT_SEEN, num_left: all 0, which is what states in no run keep. path has room for all states.
    """
    for state in range(len(last_states)):
        if delta[state * num_classes + probe] == arena.NO_TARGET:
            last_states[state] = _IS_END
    for first in range(len(last_states)):
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
            before = path[i]
            last_states[before] = before if last_states[state] == _IS_END else last_states[state]
            num_left[before] = num_left[state] + 1
            state = before


def _whole_atoms(goes_on: NDArray[np.bool_]) -> int:
    """The atoms that make up a set of bytes, as bits; 0 where bytes beyond ASCII or parts of atoms are among it."""
    if goes_on[128:].any():
        return 0
    atoms = 0
    for atom in np.unique(ATOM_OF_ASCII[goes_on[:128]]).tolist():
        if not goes_on[:128][atom == ATOM_OF_ASCII].all():
            return 0
        atoms |= 1 << atom
    return atoms
