"""Which states go round on whole sets of characters, so that masks can take tokens by the subtree.

Two kinds of state do: one that every character of some atoms leads back to itself, and the first state of a counted
loop's body that every such character carries through the whole body, so that one character is one iteration. A third
kind goes round a known number of times (`runs`), and others take long texts without going round (`stretches`). All of
this is about the states alone; what a configuration with such a state does beside is seen in `loop_walk`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.grammar.unicode import utf8_sequences
from infernix.matching import arena
from infernix.matching.atoms import ATOM_OF_ASCII, ATOM_RANGES, NUM_ASCII_ATOMS
from infernix.matching.character_steps import ENCODING_WIDTH
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner, kernel
from infernix.matching.network import Network
from infernix.matching.runs import find_runs
from infernix.matching.stretches import find_stretches, have_chain, leaves_loop

# Columns of STATE_LOOPS.
_OWN = arena.OWN_SET
_BODY = arena.BODY_SET
_WIDTH = arena.STATE_LOOPS_WIDTH
_ALL_ASCII_ATOMS = (1 << NUM_ASCII_ATOMS) - 1

# The encodings of the atoms beyond ASCII: atom, number of bytes, and each byte as the number of a range; ranges as
# their lowest and highest byte.
_ENCODINGS_BEYOND_ASCII = [
    (atom, encoding)
    for atom, ranges in enumerate(ATOM_RANGES[NUM_ASCII_ATOMS:], NUM_ASCII_ATOMS)
    for encoding in utf8_sequences(ranges)
]
_BYTE_RANGES = sorted({part for _, encoding in _ENCODINGS_BEYOND_ASCII for part in encoding})
_ENCODINGS = np.array(
    [
        (atom, len(encoding), *map(_BYTE_RANGES.index, encoding), *[0] * (ENCODING_WIDTH - 2 - len(encoding)))
        for atom, encoding in _ENCODINGS_BEYOND_ASCII
    ],
    np.int32,
).ravel()
_RANGES = np.array(_BYTE_RANGES, np.int32).ravel()


def loop_tables(network: Network, stand_ins: Ints) -> tuple[dict[int, NDArray[np.int32]], list[tuple[int, int]]]:
    """The tables STATE_LOOPS, LOOP_SETS and LOOP_STARTS; set 0 is empty, and a set with more atoms has a higher number.

    stand_ins: by state one that no token tells apart from it. Where characters lead from a state to one that the same
    stands for, it goes round on them as far as any token can see: each character of a token leaves as many bytes fewer
    to tell states apart by as the rest of the token has. A set is *even* where each of its characters leads to the
    same state, and nowhere else on the way.

    Beside the tables, as bits, the sets of stretches that states have, each with that of an exact one beside it, or 0.
    """
    tables = network.tables
    class_of, num_classes = tables[arena.CLASS_OF], network.num_classes
    delta = own_delta = tables[arena.DELTA]
    have_stand_ins = bool(network.automaton_starts) and bool((stand_ins != np.arange(network.num_states)).any())
    if have_stand_ins:
        own_delta = np.where(delta >= 0, stand_ins[np.maximum(delta, 0)], delta)
    range_classes = np.empty(len(_BYTE_RANGES) * (num_classes + 1), np.int32)
    state_loops = np.zeros(_WIDTH * network.num_states, np.int32)
    found = np.empty(6 * network.num_states, np.int64)
    num_found, may_have_any = _find_loops(
        class_of,
        num_classes,
        delta,
        own_delta,
        stand_ins,
        tables[arena.FLAGS],
        tables[arena.CALL_BEGIN],
        tables[arena.TOKEN_BEGIN],
        tables[arena.LOOPS],
        tables[arena.RULES],
        _RANGES,
        _ENCODINGS,
        ATOM_OF_ASCII,
        range_classes,
        state_loops,
        found,
    )
    places, sets = found[: 2 * num_found : 2], found[1 : 2 * num_found : 2].tolist()
    stretch_sets: list[tuple[int, int]] = []
    stretches = None
    if may_have_any:
        stretches = find_stretches(
            tables, num_classes, own_delta, stand_ins, _ENCODINGS, range_classes, found[: 2 * num_found]
        )
    known = {0, *sets}
    if stretches is not None:
        known.update(np.unique([stretches.sets, stretches.exact_sets]).tolist())
    distinct = sorted(known, key=lambda atoms: (atoms.bit_count(), atoms))
    numbers = {atoms: number for number, atoms in enumerate(distinct)}
    state_loops[places] = [numbers[atoms] for atoms in sets]
    if have_stand_ins:
        by_state = state_loops.reshape(-1, _WIDTH)
        by_state[:, _OWN] = by_state[stand_ins, _OWN]
        own_is_even = by_state[stand_ins, arena.EVENNESS] & arena.OWN_IS_EVEN
        by_state[:, arena.EVENNESS] = by_state[:, arena.EVENNESS] & arena.BODY_IS_EVEN | own_is_even
    if stretches is not None:
        stretch_sets = stretches.pairs()
        by_state = state_loops.reshape(-1, _WIDTH)
        for column, sets_of_states, num_left in (
            (arena.STRETCH_SET, stretches.sets, stretches.left),
            (arena.EXACT_SET, stretches.exact_sets, stretches.exact_left),
        ):
            found_sets, places = np.unique(sets_of_states, return_inverse=True)
            by_state[:, column] = np.array([numbers[atoms] for atoms in found_sets.tolist()])[places]
            by_state[:, column + 1] = num_left
    words = np.array(distinct, np.int64)
    starts = np.zeros(len(words) * (num_classes + 1), np.int32)
    _write_starts(words, class_of, num_classes, _ENCODINGS, ATOM_OF_ASCII, range_classes, starts)
    return {
        arena.STATE_LOOPS: state_loops,
        arena.LOOP_SETS: words.view(np.int32),
        arena.LOOP_STARTS: starts,
    }, stretch_sets


@kernel
def _find_loops(
    class_of: Ints,
    num_classes: int,
    delta: Ints,
    own_delta: Ints,
    stand_ins: Ints,
    flags: Ints,
    call_begins: Ints,
    token_begins: Ints,
    loops: Ints,
    rules: Ints,
    ranges: Ints,
    encodings: Ints,
    atom_of_ascii: Nodes,
    range_classes: Ints,
    state_loops: Ints,
    found: Nodes,
) -> tuple[int, bool]:
    """Writes to `found` for each loop, and for each state of a run, its entry of state_loops and its set of atoms as
    bits; returns their number, and whether there may be stretches.

    own_delta: `delta` with the stand-ins of the targets; only states that stand for themselves have loops of their own
    here. state_loops, all zeros: only the columns EVENNESS and RUN_LEFT are written. range_classes: the classes of the
    bytes of each range, how many they are first.
    """
    num_states = len(flags)
    stamps = np.full(max(num_states, num_classes), -1, np.int32)
    stamp = 0
    for number in range(len(ranges) // 2):
        begin = number * (num_classes + 1)
        count = 0
        for byte in range(ranges[2 * number], ranges[2 * number + 1] + 1):
            byte_class = class_of[byte] + 0
            if stamps[byte_class] != number:
                stamps[byte_class] = number
                count += 1
                range_classes[begin + count] = byte_class
        range_classes[begin] = count
    for entry in range(len(stamps)):
        stamps[entry] = -1
    is_body = np.zeros(num_states, np.uint8)
    for loop in range(len(loops) // 4):
        is_body[rules[2 * loops[4 * loop + 2]]] = 1
    # States on the way through an encoding, twice; those inside and those at the end of the encodings of one atom.
    room = np.empty(2 * num_states, np.int32)
    num_found = 0
    may_have_stretches = False
    for state in range(num_states):
        for kind in range(2):
            steps = own_delta if kind == _OWN else delta
            if kind == _BODY:
                goes_round = is_body[state] != 0
            else:
                goes_round = stand_ins[state] == state and _comes_back(class_of, num_classes, steps, state)
            if goes_round:
                atoms, is_even, stamp = _set_of(
                    class_of,
                    num_classes,
                    steps,
                    flags,
                    call_begins,
                    encodings,
                    atom_of_ascii,
                    range_classes,
                    room,
                    stamps,
                    state,
                    kind,
                    stamp,
                )
                if is_even:
                    state_loops[_WIDTH * state + arena.EVENNESS] |= (
                        arena.OWN_IS_EVEN if kind == _OWN else arena.BODY_IS_EVEN
                    )
                if kind == _OWN and not may_have_stretches:
                    may_have_stretches = leaves_loop(class_of, num_classes, delta, atom_of_ascii, state, atoms)
                found[2 * num_found] = _WIDTH * state + kind
                found[2 * num_found + 1] = atoms
                num_found += 1
    num_found = find_runs(
        class_of, num_classes, delta, flags, call_begins, token_begins, atom_of_ascii, state_loops, found, num_found
    )
    return num_found, may_have_stretches or have_chain(class_of, num_classes, own_delta)


@inner
def _comes_back(class_of: Ints, num_classes: int, delta: Ints, state: int) -> bool:
    """Whether some byte leads, or a character of three bytes may lead, back to the state."""
    row = state * num_classes
    for byte_class in range(num_classes):
        if delta[row + byte_class] == state:
            return True
    following = delta[row + class_of[0xE4]]
    for _ in range(2):
        if following < 0:
            return False
        following = delta[following * num_classes + class_of[0x80]]
    return bool(following == state)


@inner
def _set_of(
    class_of: Ints,
    num_classes: int,
    delta: Ints,
    flags: Ints,
    call_begins: Ints,
    encodings: Ints,
    atom_of_ascii: Nodes,
    range_classes: Ints,
    room: Ints,
    stamps: Ints,
    state: int,
    kind: int,
    stamp: int,
) -> tuple[int, bool, int]:
    """The atoms all of whose characters lead from the state back to it, or into final states; whether that is even.

    Even: to one state, and no state on the way ends or calls anything. `stamp` is the last one in `stamps`, which goes
    on from there.
    """
    atoms = _ALL_ASCII_ATOMS
    for byte in range(128):
        target = delta[state * num_classes + class_of[byte]]
        if target < 0 or (target != state if kind == _OWN else flags[target] & arena.FINAL == 0):
            atoms &= ~(1 << atom_of_ascii[byte])
    is_even = True
    only_target = -1
    for byte in range(128):
        if atoms >> atom_of_ascii[byte] & 1:
            target = delta[state * num_classes + class_of[byte]] + 0
            is_even = is_even and (only_target < 0 or only_target == target)
            only_target = target
    encoding = 0
    while encoding < len(encodings):
        atom = int(encodings[encoding])
        leads = True
        is_plain = True
        last_target = only_target
        while encoding < len(encodings) and encodings[encoding] == atom:
            first = 0
            count = 1
            room[0] = state
            for position in range(encodings[encoding + 1] if leads else 0):
                stamp += 1
                base = len(room) // 2 - first
                num_following = 0
                begin = encodings[encoding + 2 + position] * (num_classes + 1)
                for place in range(first, first + count):
                    source = room[place] + 0
                    if position > 0 and (
                        flags[source] & arena.FINAL != 0 or call_begins[source] != call_begins[source + 1]
                    ):
                        is_plain = False
                    for entry in range(begin + 1, begin + 1 + range_classes[begin]):
                        target = delta[source * num_classes + range_classes[entry]] + 0
                        if target < 0:
                            leads = False
                        elif stamps[target] != stamp:
                            stamps[target] = stamp
                            room[base + num_following] = target
                            num_following += 1
                    if not leads:
                        break
                if not leads:
                    break
                first = base
                count = num_following
            for place in range(first, first + count if leads else first):
                target = room[place] + 0
                if target != state if kind == _OWN else flags[target] & arena.FINAL == 0:
                    leads = False
                is_plain = is_plain and (last_target < 0 or last_target == target)
                last_target = target
            encoding += ENCODING_WIDTH
        if leads:
            atoms |= 1 << atom
            is_even = is_even and is_plain
            only_target = last_target
    # Without a character there is nowhere that a body's leads to.
    return atoms, is_even and (kind == _OWN or only_target >= 0), stamp


@kernel
def _write_starts(
    sets: Nodes,
    class_of: Ints,
    num_classes: int,
    encodings: Ints,
    atom_of_ascii: Nodes,
    range_classes: Ints,
    starts: Ints,
) -> None:
    """Writes LOOP_STARTS, given as zeros."""
    for number in range(len(sets)):
        part = number * (num_classes + 1)
        starts[part] = arena.NO_BYTE
        for byte in range(127, -1, -1):
            if sets[number] >> atom_of_ascii[byte] & 1:
                starts[part] = byte
                starts[part + 1 + class_of[byte]] = 1
        for encoding in range(0, len(encodings), ENCODING_WIDTH):
            if sets[number] >> encodings[encoding] & 1:
                begin = encodings[encoding + 2] * (num_classes + 1)
                for entry in range(begin + 1, begin + 1 + range_classes[begin]):
                    starts[part + 1 + range_classes[entry]] = 1
