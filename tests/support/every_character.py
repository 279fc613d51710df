"""Where every single character leads in a network, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from infernix.grammar.ir import MAX_CODE_POINT, SURROGATES
from infernix.matching import arena
from infernix.matching.atoms import ATOM_RANGES, NON_ASCII_ATOM
from infernix.matching.network import Network

ALL_ATOMS = (1 << NON_ASCII_ATOM + 1) - 1


@cache
def characters() -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """All characters by the length of their encoding: bytes [n, length], and atoms [n]."""
    atom_of = np.zeros(MAX_CODE_POINT + 1, np.int64)
    for number, ranges in enumerate(ATOM_RANGES):
        for low, high in ranges:
            atom_of[low : high + 1] = number
    blocks = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, MAX_CODE_POINT))
    found = []
    for low, high in blocks:
        assert not low <= SURROGATES[0] <= high
        text = "".join(map(chr, range(low, high + 1))).encode()
        found.append((np.frombuffer(text, np.uint8).reshape(high + 1 - low, -1), atom_of[low : high + 1]))
    return found


class EveryCharacter:
    """Where each single character leads, taken together where a network cannot tell characters apart."""

    def __init__(self, network: Network) -> None:
        class_of = network.tables[arena.CLASS_OF].astype(np.int64)
        self._delta = network.tables[arena.DELTA].reshape(network.num_states, network.num_classes)
        self._groups = []
        for data, atom_of in characters():
            classes = class_of[data]
            key = atom_of
            for column in range(data.shape[1]):
                key = key * network.num_classes + classes[:, column]
            _, first = np.unique(key, return_index=True)
            self._groups.append((classes[first], atom_of[first]))

    def atoms_that_lead(self, state: int, targets: NDArray[np.bool_]) -> int:
        """The atoms all of whose characters lead to one state, which is one of `targets`: bool [num_states]."""
        atoms = ALL_ATOMS
        for classes, atom_of in self._groups:
            places = np.full(len(classes), state)
            for column in range(classes.shape[1]):
                places = np.where(places >= 0, self._delta[places, classes[:, column]], -1)
            for number in np.unique(atom_of[~((places >= 0) & targets[places])]).tolist():
                atoms &= ~(1 << number)
        return atoms

    def paths(self, state: int, atoms: int) -> Iterator[list[int]]:
        """The states on the way through each character of `atoms`, the last one where it leads, or a negative one.

        Characters that the network cannot tell apart come once.
        """
        for classes, atom_of in self._groups:
            for encoding in classes[atoms >> atom_of & 1 != 0].tolist():
                path = [state]
                for byte_class in encoding:
                    path.append(int(self._delta[path[-1], byte_class]))
                    if path[-1] < 0:
                        break
                yield path[1:]
