"""Which states go round on whole sets of characters, so that masks can take tokens by the subtree.

Two kinds of state do: one that every character of some atoms leads back to itself, and the first state of a counted
loop's body that every such character carries through the whole body, so that one character is one iteration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.grammar.unicode import utf8_sequences
from infernix.matching import arena
from infernix.matching.atoms import ATOM_RANGES
from infernix.matching.network import Network

_ENCODINGS = tuple(tuple(utf8_sequences(ranges)) for ranges in ATOM_RANGES)


def loop_tables(network: Network) -> dict[int, NDArray[np.int32]]:
    """The tables STATE_LOOPS and LOOP_SETS; set 0 is empty, and a set with more atoms has a higher number."""
    steps = _Steps(network)
    own_sets = dict.fromkeys(steps.states_with_self_loop(), 0)
    for state in own_sets:
        own_sets[state] = steps.atoms_leading(state, {state})
    rules = network.tables[arena.RULES].reshape(-1, 2)
    bodies = {int(rules[rule, 0]) for rule in network.tables[arena.LOOPS].reshape(-1, 4)[:, 2]}
    finals = {int(state) for state in np.flatnonzero(network.tables[arena.FLAGS] & arena.FINAL)}
    body_sets = {state: steps.atoms_leading(state, finals) for state in bodies}
    distinct = sorted({0, *own_sets.values(), *body_sets.values()}, key=lambda atoms: (atoms.bit_count(), atoms))
    numbers = {atoms: number for number, atoms in enumerate(distinct)}
    state_loops = np.zeros((network.num_states, 2), np.int32)
    for column, sets in enumerate((own_sets, body_sets)):
        for state, atoms in sets.items():
            state_loops[state, column] = numbers[atoms]
    words = np.array(distinct, np.uint64)
    return {
        arena.STATE_LOOPS: state_loops.ravel(),
        arena.LOOP_SETS: words.view(np.int32).copy(),
    }


class _Steps:
    """Single-target steps of a network."""

    def __init__(self, network: Network) -> None:
        self._class_of = network.tables[arena.CLASS_OF]
        self._delta = network.tables[arena.DELTA].reshape(network.num_states, network.num_classes)

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

    def atoms_leading(self, state: int, targets: set[int]) -> int:
        """The set of atoms, as bits, all of whose characters lead from `state` into `targets`."""
        atoms = 0
        for atom, encodings in enumerate(_ENCODINGS):
            if all(self._encoding_leads(state, encoding, targets) for encoding in encodings):
                atoms |= 1 << atom
        return atoms

    def _encoding_leads(self, state: int, encoding: tuple[tuple[int, int], ...], targets: set[int]) -> bool:
        states = {state}
        for low, high in encoding:
            classes = set(self._class_of[low : high + 1].tolist())
            states = {int(self._delta[s, byte_class]) for s in states for byte_class in classes}
            if min(states) < 0:
                return False
        return states <= targets
