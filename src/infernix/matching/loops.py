"""Which states go round on whole sets of characters, so that masks can take tokens by the subtree.

Two kinds of state do: one that every character of some atoms leads back to itself, and the first state of a counted
loop's body that every such character carries through the whole body, so that one character is one iteration.
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

_ENCODINGS = tuple(tuple(utf8_sequences(ranges)) for ranges in ATOM_RANGES)


def loop_tables(network: Network) -> dict[int, NDArray[np.int32]]:
    """The tables STATE_LOOPS and LOOP_SETS; set 0 is empty, and a set with more atoms has a higher number."""
    steps = _Steps(network)
    own_sets = steps.atoms_leading_back(steps.states_with_self_loop())
    rules = network.tables[arena.RULES].reshape(-1, 2)
    bodies = {int(rules[rule, 0]) for rule in network.tables[arena.LOOPS].reshape(-1, 4)[:, 2]}
    body_sets = steps.atoms_leading_into(sorted(bodies), network.tables[arena.FLAGS] & arena.FINAL != 0)
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

    def atoms_leading_back(self, states: list[int]) -> dict[int, int]:
        """By state the set of atoms, as bits, all of whose characters lead back to it."""
        leads = self._delta[states][:, self._class_of[:128]]
        found = _sets_of_ascii_atoms(leads == np.array(states, np.int32)[:, None])
        return {
            state: atoms | self._atoms_beyond_ascii(state, {state}) for state, atoms in zip(states, found, strict=True)
        }

    def atoms_leading_into(self, states: list[int], is_target: NDArray[np.bool_]) -> dict[int, int]:
        """By state the set of atoms, as bits, all of whose characters lead into target states."""
        leads = self._delta[states][:, self._class_of[:128]]
        found = _sets_of_ascii_atoms((leads >= 0) & is_target[leads])
        targets = set(np.flatnonzero(is_target).tolist())
        return {
            state: atoms | self._atoms_beyond_ascii(state, targets) for state, atoms in zip(states, found, strict=True)
        }

    def _atoms_beyond_ascii(self, state: int, targets: set[int]) -> int:
        atoms = 0
        for atom in range(NUM_ASCII_ATOMS, len(ATOM_RANGES)):
            first_byte = _ENCODINGS[atom][0][0][0]
            if self._delta[state, self._class_of[first_byte]] >= 0 and all(
                self._encoding_leads(state, encoding, targets) for encoding in _ENCODINGS[atom]
            ):
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


def _sets_of_ascii_atoms(leads: NDArray[np.bool_]) -> list[int]:
    """leads: bool [num_states, 128], by first byte; the atoms within ASCII of which every byte leads, as bits."""
    of_atom = np.logical_and.reduceat(leads[:, _BYTES_BY_ATOM], _FIRST_BYTES, axis=1)
    sets: list[int] = (of_atom @ (np.int64(1) << np.arange(NUM_ASCII_ATOMS))).tolist()
    return sets
