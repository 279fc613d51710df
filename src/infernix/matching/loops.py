"""Which states go round on whole sets of characters, so that masks can take tokens by the subtree.

Two kinds of state do: one that every character of some atoms leads back to itself, and the first state of a counted
loop's body that every such character carries through the whole body, so that one character is one iteration. All of
this is about the states alone; what a configuration with such a state does beside is seen in `loop_walk`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.grammar.unicode import utf8_sequences
from infernix.matching import arena
from infernix.matching.atoms import ATOM_OF_ASCII, ATOM_RANGES, NUM_ASCII_ATOMS
from infernix.matching.network import Network

# ASCII bytes atom by atom, and where each atom's begin.
_BYTES_BY_ATOM = np.argsort(ATOM_OF_ASCII, kind="stable")
_FIRST_BYTES = np.searchsorted(ATOM_OF_ASCII[_BYTES_BY_ATOM], np.arange(NUM_ASCII_ATOMS))

# The encodings of each atom beyond ASCII, as numbers of byte ranges.
_ENCODINGS_BEYOND_ASCII = tuple(tuple(utf8_sequences(ranges)) for ranges in ATOM_RANGES[NUM_ASCII_ATOMS:])
_BYTE_RANGES = sorted({part for encodings in _ENCODINGS_BEYOND_ASCII for encoding in encodings for part in encoding})
_RANGE_NUMBERS = tuple(
    tuple(tuple(map(_BYTE_RANGES.index, encoding)) for encoding in encodings) for encodings in _ENCODINGS_BEYOND_ASCII
)


def loop_tables(network: Network) -> dict[int, NDArray[np.int32]]:
    """The tables STATE_LOOPS, LOOP_SETS and LOOP_STARTS; set 0 is empty, and a set with more atoms has a higher number.

    A set is *even* where each of its characters leads to the same state, and nowhere else on the way.
    """
    steps = _Steps(network)
    own_loops = steps.loops_back(steps.states_with_self_loop())
    rules = network.tables[arena.RULES].reshape(-1, 2)
    bodies = {int(rules[rule, 0]) for rule in network.tables[arena.LOOPS].reshape(-1, 4)[:, 2]}
    body_loops = steps.loops_into_final_states(sorted(bodies))
    every_loop = [*own_loops.values(), *body_loops.values()]
    distinct = sorted({0, *(atoms for atoms, _ in every_loop)}, key=lambda atoms: (atoms.bit_count(), atoms))
    numbers = {atoms: number for number, atoms in enumerate(distinct)}
    state_loops = np.zeros((network.num_states, 3), np.int32)
    for column, even, loops in ((0, arena.OWN_IS_EVEN, own_loops), (1, arena.BODY_IS_EVEN, body_loops)):
        for state, (atoms, is_even) in loops.items():
            state_loops[state, column] = numbers[atoms]
            state_loops[state, 2] |= even if is_even else 0
    words = np.array(distinct, np.uint64)
    return {
        arena.STATE_LOOPS: state_loops.ravel(),
        arena.LOOP_SETS: words.view(np.int32).copy(),
        arena.LOOP_STARTS: np.concatenate([steps.starts(atoms) for atoms in distinct]),
    }


class _Steps:
    """Single-target steps of a network."""

    def __init__(self, network: Network) -> None:
        self._class_of = network.tables[arena.CLASS_OF]
        self._num_classes = network.num_classes
        self._delta = network.tables[arena.DELTA].reshape(network.num_states, network.num_classes)
        self._is_final = network.tables[arena.FLAGS] & arena.FINAL != 0
        self._call_begins = network.tables[arena.CALL_BEGIN]
        # By atom beyond ASCII its encodings as tuples of sets of byte classes; many are the same to the network.
        class_of = self._class_of.tolist()
        classes = [frozenset(class_of[low : high + 1]) for low, high in _BYTE_RANGES]
        self._encodings = [
            {tuple([classes[number] for number in encoding]) for encoding in encodings} for encodings in _RANGE_NUMBERS
        ]
        self._leads = frozenset().union(*[encoding[0] for encodings in self._encodings for encoding in encodings])
        self._steps: dict[int, list[int]] = {}
        self._targets: dict[tuple[int, frozenset[int]], frozenset[int]] = {}

    def states_with_self_loop(self) -> list[int]:
        """States from which some byte leads, or may begin a character that leads, back to themselves."""
        own = np.arange(len(self._delta), dtype=np.int32)
        direct = (self._delta == own[:, None]).any(axis=1)
        lead = self._delta[:, self._class_of[0xE4]]
        # A three-byte character comes back on its third byte.
        beyond = np.zeros(len(self._delta), np.bool_)
        candidates = np.flatnonzero(lead >= 0)
        second = self._delta[lead[candidates], self._class_of[0x80]]
        third = np.where(second >= 0, self._delta[second, self._class_of[0x80]], arena.NO_TARGET)
        beyond[candidates] = third == candidates
        return [int(state) for state in np.flatnonzero(direct | beyond)]

    def loops_back(self, states: list[int]) -> dict[int, tuple[int, bool]]:
        """By state the set of atoms, as bits, all of whose characters lead back to it; and whether it is even."""
        leads = self._delta[states][:, self._class_of[:128]]
        found = _sets_of_ascii_atoms(leads == np.array(states, np.int32)[:, None])
        loops = {}
        for state, atoms in zip(states, found, strict=True):
            beyond, is_plain, _ = self._atoms_beyond_ascii(state, {state})
            loops[state] = (atoms | beyond, is_plain)
        return loops

    def loops_into_final_states(self, states: list[int]) -> dict[int, tuple[int, bool]]:
        """By state the set of atoms, as bits, all of whose characters lead into final states; whether it is even."""
        leads = self._delta[states][:, self._class_of[:128]]
        found = _sets_of_ascii_atoms((leads >= 0) & self._is_final[leads])
        final = set(np.flatnonzero(self._is_final).tolist())
        loops = {}
        for state, atoms, targets in zip(states, found, leads, strict=True):
            beyond, is_plain, reached = self._atoms_beyond_ascii(state, final)
            reached |= set(targets[(atoms >> ATOM_OF_ASCII) & 1 != 0].tolist())
            loops[state] = (atoms | beyond, is_plain and len(reached) == 1)
        return loops

    def _atoms_beyond_ascii(self, state: int, targets: set[int]) -> tuple[int, bool, set[int]]:
        """The atoms whose characters all lead into targets; whether nothing ends or calls inside them; the targets."""
        atoms, is_plain = 0, True
        reached: set[int] = set()
        steps = self._steps_of(state)
        if all(steps[byte_class] < 0 for byte_class in self._leads):
            return atoms, is_plain, reached
        for atom, encodings in enumerate(self._encodings, NUM_ASCII_ATOMS):
            ends: set[int] = set()
            inside: set[int] = set()
            if all(self._follow(state, encoding, ends, inside) for encoding in encodings) and ends <= targets:
                atoms |= 1 << atom
                reached |= ends
                is_plain &= not any(map(self._ends_or_calls, inside))
        return atoms, is_plain, reached

    def _follow(self, state: int, encoding: tuple[frozenset[int], ...], ends: set[int], inside: set[int]) -> bool:
        """Adds where an encoding leads to `ends`, the states before that to `inside`; False where it leads nowhere."""
        states = frozenset((state,))
        for position, classes in enumerate(encoding):
            if position:
                inside |= states
            if len(states) == 1:
                (one,) = states
                states = self._after(one, classes)
            else:
                states = frozenset().union(*[self._after(s, classes) for s in states])
            if min(states) < 0:
                return False
        ends |= states
        return True

    def _steps_of(self, state: int) -> list[int]:
        """Where each byte class leads."""
        found = self._steps.get(state)
        if found is None:
            found = self._steps[state] = self._delta[state].tolist()
        return found

    def _after(self, state: int, classes: frozenset[int]) -> frozenset[int]:
        """Where the bytes of these classes lead, NO_TARGET and references to lists among it."""
        key = state, classes
        found = self._targets.get(key)
        if found is None:
            steps = self._steps_of(state)
            found = self._targets[key] = frozenset([steps[byte_class] for byte_class in classes])
        return found

    def _ends_or_calls(self, state: int) -> bool:
        return bool(self._is_final[state] or self._call_begins[state] != self._call_begins[state + 1])

    def starts(self, atoms: int) -> NDArray[np.int32]:
        """The set's part of LOOP_STARTS."""
        part = np.zeros(1 + self._num_classes, np.int32)
        ascii_bytes = np.flatnonzero((atoms >> ATOM_OF_ASCII) & 1)
        part[0] = ascii_bytes[0] if len(ascii_bytes) else arena.NO_BYTE
        part[1 + self._class_of[ascii_bytes]] = 1
        leads: set[int] = set()
        for atom, encodings in enumerate(self._encodings, NUM_ASCII_ATOMS):
            if atoms >> atom & 1:
                leads.update(*[encoding[0] for encoding in encodings])
        part[[1 + byte_class for byte_class in leads]] = 1
        return part


def _sets_of_ascii_atoms(leads: NDArray[np.bool_]) -> list[int]:
    """leads: bool [num_states, 128], by first byte; the atoms within ASCII of which every byte leads, as bits."""
    of_atom = np.logical_and.reduceat(leads[:, _BYTES_BY_ATOM], _FIRST_BYTES, axis=1)
    sets: list[int] = (of_atom @ (np.int64(1) << np.arange(NUM_ASCII_ATOMS))).tolist()
    return sets
