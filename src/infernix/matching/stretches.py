"""Stretches: how long a text of some characters can follow a state, whichever of them it is made of.

An automaton that counts, such as a pattern beside a length, goes round on nothing near its bounds: each character leads
to a state of its own. Still most of its states take every text of up to so many characters of a set. A *stretch* is
such a set and such a length. From a state on, the stretch of a set is as long as the shortest way, over characters of
the set, to a state from which one of them leads nowhere; if there is no such state, it has no end. What follows is
found by bytes alone: calls and callers can only add to it.

A stretch is *exact* where it has an end and no longer text of its set can follow. Then the length of a token of such
characters says whether it is legal, and only the others have to be walked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.matching import arena
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.character_steps import ENCODING_WIDTH, IS_UNSURE, find_character_steps, is_open_end
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner, kernel

# Bytes that are looked at before the search is given up: masks only take longer without it.
MAX_LOOKED_AT = 1 << 26
# Fewer states behind each other have few mask rows, which do not repay the search. Neither do states that letters,
# digits or a space do not lead on from: most tokens have a character there that leads nowhere.
MIN_STATES = 4
_COMMON = b" 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_COMMON_ATOMS = int(np.bitwise_or.reduce(np.int64(1) << ATOM_OF_ASCII[list(_COMMON)]))
_LETTER, _RARE_LETTER, _SPACE, _DIGIT = b"tz 0"
# So many sets are measured: those of the most states.
MAX_SETS = 4
# Few tokens are longer, so no more characters count where two stretches are compared.
LONG_STRETCH = 8


@dataclass(frozen=True, slots=True)
class Stretches:
    """By state: sets, int64, the atoms of its stretch, as bits, or 0; left, int32, how many characters that has.

    NO_LIMIT stands for a stretch without end. exact_sets and exact_left: the same for its exact stretch, which has one.
    """

    sets: NDArray[np.int64]
    left: NDArray[np.int32]
    exact_sets: NDArray[np.int64]
    exact_left: NDArray[np.int32]

    def pairs(self) -> list[tuple[int, int]]:
        """The sets of stretches that states have, each with that of an exact one beside it, or 0."""
        return sorted(set(zip(self.sets.tolist(), self.exact_sets.tolist(), strict=True)) - {(0, 0)})


def find_stretches(
    tables: dict[int, Ints],
    num_classes: int,
    delta: Ints,
    stand_ins: Ints,
    encodings: Ints,
    range_classes: Ints,
    loops: Nodes,
) -> Stretches | None:
    """None where no state has a stretch that is not that of a loop. `leaves_loop` and `have_chain`: whether to ask.

    tables: those of a network. delta: DELTA with `stand_ins` of the targets: what has another stand-in than itself gets
    its stretches, which are rightly those of texts of a token's length. loops: for each loop its place in STATE_LOOPS
    and its atoms, as bits. encodings, range_classes: those of the module `loops`.
    """
    num_states = len(tables[arena.FLAGS])
    network = (
        delta,
        num_classes,
        tables[arena.CLASS_OF],
        tables[arena.FLAGS],
        tables[arena.CALL_BEGIN],
        ATOM_OF_ASCII,
        encodings,
        range_classes,
    )
    open_atoms, begins, staying, even = np.zeros((4, num_states + 1), np.int64)
    num_going_on, targets, step_atoms = find_character_steps(
        *network, stand_ins, loops, MAX_LOOKED_AT, open_atoms[:-1], begins, staying, even
    )
    if num_going_on <= 0:
        return None
    goes_on = np.flatnonzero(staying)
    candidates = np.concatenate([staying[goes_on], even[goes_on]])
    sets, counts = np.unique(candidates[candidates != 0], return_counts=True)
    chosen = sets[np.argsort(-counts, kind="stable")[:MAX_SETS]].tolist()
    sets_found, left_found = np.zeros((2, num_states), np.int64), np.zeros((2, num_states), np.int32)
    found = Stretches(sets_found[0], left_found[0], sets_found[1], left_found[1])
    best_worth = np.zeros(num_states, np.int64)
    # The larger ones last, so that they take the place of others.
    for atoms in sorted(chosen, key=int.bit_count):
        best = (found.sets, found.left, found.exact_sets, found.exact_left)
        _measure(*network, open_atoms, begins, targets, step_atoms, atoms, atoms.bit_count(), best_worth, *best)
    # Few tokens are made of a small set: the long stretch of a large one is worth more.
    is_small = 2 * np.bitwise_count(found.exact_sets) < np.bitwise_count(found.sets)
    found.exact_sets[is_small & (found.left >= LONG_STRETCH)] = 0
    found.exact_left[found.exact_sets == 0] = 0
    return Stretches(
        found.sets[stand_ins], found.left[stand_ins], found.exact_sets[stand_ins], found.exact_left[stand_ins]
    )


@inner
def leaves_loop(class_of: Ints, num_classes: int, delta: Ints, atom_of_ascii: Nodes, state: int, atoms: int) -> bool:
    """Whether letters, digits and a space lead on from a state, but not all of them back to it as `atoms` do.

    The others lead to states that nearly everything leads on from.
    """
    if atoms & _COMMON_ATOMS == _COMMON_ATOMS:
        return False
    for byte in range(_SPACE, _RARE_LETTER + 1):
        if (_COMMON_ATOMS & ~atoms) >> atom_of_ascii[byte] & 1:
            target = delta[state * num_classes + class_of[byte]] + 0
            if target < 0:
                return False
            for probe in (_RARE_LETTER, _SPACE, _DIGIT, _LETTER):
                if delta[target * num_classes + class_of[probe]] < 0:
                    return False
    return True


@inner
def have_chain(class_of: Ints, num_classes: int, delta: Ints) -> bool:
    """Whether letters lead through MIN_STATES states, one behind the other, that nearly everything leads on from.

    To ask this, and `leaves_loop`, takes a small part of the time of the search; most networks have no such states.
    """
    letter, rare_letter = class_of[_LETTER] + 0, class_of[_RARE_LETTER] + 0
    space, digit = class_of[_SPACE] + 0, class_of[_DIGIT] + 0
    for first in range(len(delta) // num_classes):
        # Most states are told apart by this alone.
        if delta[first * num_classes + rare_letter] < 0:
            continue
        state = first
        length = 0
        while length < MIN_STATES:
            row = state * num_classes
            following = int(delta[row + letter])
            if following < 0 or following == state:
                break
            if delta[row + space] < 0 or delta[row + digit] < 0 or delta[row + rare_letter] < 0:
                break
            state = following
            length += 1
        if length == MIN_STATES:
            return True
    return False


@kernel
def _measure(
    delta: Ints,
    num_classes: int,
    class_of: Ints,
    flags: Ints,
    call_begins: Ints,
    atom_of_ascii: Nodes,
    encodings: Ints,
    range_classes: Ints,
    open_atoms: Nodes,
    begins: Nodes,
    targets: Ints,
    step_atoms: Nodes,
    atoms: int,
    num_atoms: int,
    best_worth: Nodes,
    best_sets: Nodes,
    best_left: Ints,
    exact_sets: Nodes,
    exact_left: Ints,
) -> None:
    """Writes the set and how many characters of it are left to those states for which it is better than what is there.

    What is there are sets that are not larger. num_atoms: how many the set has. best_worth: by state, how many atoms
    what is there has, times its characters, up to LONG_STRETCH.
    """
    num_states = len(best_left)
    left = np.zeros(num_states, np.int32)
    is_exact = np.zeros(num_states, np.uint8)
    begins_character = np.zeros(num_classes, np.uint8)
    for byte in range(128):
        if atoms >> atom_of_ascii[byte] & 1:
            begins_character[class_of[byte]] = 1
    for encoding in range(0, len(encodings), ENCODING_WIDTH):
        if atoms >> int(encodings[encoding]) & 1:
            begin = encodings[encoding + 2] * (num_classes + 1)
            for entry in range(begin + 1, begin + 1 + range_classes[begin]):
                begins_character[range_classes[entry]] = 1
    # By state, those that such characters lead there from: source_begins[t + 1] is where the next one of t belongs.
    source_begins = np.zeros(num_states + 2, np.int64)
    for state in range(num_states):
        if atoms & ~open_atoms[state] == 0:
            left[state] = arena.NO_LIMIT
            for step in range(begins[state], begins[state + 1]):
                if step_atoms[step] & atoms != 0:
                    source_begins[targets[step] + 2] += 1
    for state in range(num_states):
        source_begins[state + 2] += source_begins[state + 1]
    sources = np.empty(source_begins[num_states + 1], np.int32)
    for state in range(num_states):
        if left[state] != 0:
            for step in range(begins[state], begins[state + 1]):
                if step_atoms[step] & atoms != 0:
                    place = source_begins[targets[step] + 1]
                    sources[place] = state
                    source_begins[targets[step] + 1] = place + 1
    # From the states that have none left, level by level backwards.
    queue = np.empty(num_states, np.int32)
    num_queued = 0
    for state in range(num_states):
        if left[state] == 0 and source_begins[state] != source_begins[state + 1]:
            queue[num_queued] = state
            num_queued += 1
            is_exact[state] = 1
            for byte_class in range(num_classes):
                if begins_character[byte_class] != 0 and delta[state * num_classes + byte_class] != arena.NO_TARGET:
                    is_exact[state] = 0
    done = 0
    while done < num_queued:
        state = queue[done] + 0
        done += 1
        for place in range(source_begins[state], source_begins[state + 1]):
            source = sources[place] + 0
            if left[source] == arena.NO_LIMIT:
                left[source] = left[state] + 1
                is_exact[source] = 1
                queue[num_queued] = source
                num_queued += 1
        if left[state] == 0:
            continue
        # Those that are nearer to the end have their final figures by now.
        for step in range(begins[state], begins[state + 1]):
            if step_atoms[step] & atoms != 0:
                target = targets[step] + 0
                if (
                    step_atoms[step] & IS_UNSURE != 0
                    or left[target] != left[state] - 1
                    or is_exact[target] == 0
                    or is_open_end(flags, call_begins, target)
                ):
                    is_exact[state] = 0
    for state in range(num_states):
        if left[state] > 0:
            worth = num_atoms * min(left[state], LONG_STRETCH)
            if worth >= best_worth[state]:
                best_worth[state] = worth
                best_sets[state] = atoms
                best_left[state] = left[state]
            if is_exact[state] != 0:
                exact_sets[state] = atoms
                exact_left[state] = left[state]
