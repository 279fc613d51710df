"""Kinds of mask rows: what the row of a configuration depends on, and so how it can be worked out."""

from __future__ import annotations

from infernix.matching.arena import (
    CLASS_OF,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DEAD,
    NEXT,
    NO_BYTE,
    NUM_CLASSES,
    OWN_SET,
    STATE_LOOPS,
    STATE_LOOPS_WIDTH,
    STOPPED,
    STRETCH,
    Arena,
    Control,
)
from infernix.matching.atoms import ATOM_OF_ASCII, NUM_ASCII_ATOMS
from infernix.matching.interning import clamp
from infernix.matching.jit import inner
from infernix.matching.loop_walk import exact_stretch, is_far_from_bounds, loop_start, moving_item
from infernix.matching.stretches import LONG_STRETCH
from infernix.matching.vocabulary_walk import atoms_of_set

SOMETHING_ELSE = 0
COUNTED_LOOP = 1
ENDLESS_LOOP = 2
EXACT_STRETCH = 3
# Ways alone are of these kinds.
RUN = 4
LOOP_ENTERED = 5
# A run that leaves room for fewer characters shows too little of itself.
MIN_RUN_LEFT = 3
SPACE_BYTE = 32
SPACE_ATOM = 1 << int(ATOM_OF_ASCII[SPACE_BYTE])
# What is tried to find out whether a configuration can enter a loop: rare beginnings of keywords.
PROBES = b"zqZ"
_FIRST_PROBE, _SECOND_PROBE, _THIRD_PROBE = PROBES
# Bits that say which of them can follow, from the lowest on; and whether a space can.
SPACE_FOLLOWS = 8


@inner
def _can_begin(A: Arena, C: Control, configuration: int, byte: int) -> bool:
    """False only where nothing follows, as far as that is known without a step."""
    return bool(A[C[NEXT] + configuration * C[NUM_CLASSES] + A[C[CLASS_OF] + byte]] != DEAD)


@inner
def describe(A: Arena, C: Control, configuration: int) -> tuple[int, int, int, int, int, int, int, int, int]:
    """What the mask row of a configuration depends on, and the shortest way to it.

    The configuration with the same mask that stands for all that differ in far away bounds only, or STOPPED; whether
    the text may end; the atoms that it goes round on or has a stretch of, as bits; for how many characters;
    SOMETHING_ELSE, COUNTED_LOOP, ENDLESS_LOOP or EXACT_STRETCH; the atoms of a run that it is in, as bits, and how many
    characters that has left; which of PROBES and a space may follow; the number of the first set of atoms.
    """
    clamped = clamp(A, C, configuration)
    if clamped == STOPPED:
        return STOPPED, 0, 0, 0, 0, 0, 0, 0, 0
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * clamped
    loop_set, num_left = int(A[row + 4]), int(A[row + 5])
    kind = SOMETHING_ELSE
    if loop_set != 0 and loop_start(A, C, loop_set) != NO_BYTE:
        item = moving_item(A, C, clamped, loop_set)
        if item >= 0:
            is_own = A[C[STATE_LOOPS] + STATE_LOOPS_WIDTH * A[item] + OWN_SET] == loop_set
            kind = ENDLESS_LOOP if is_own or is_far_from_bounds(A, C, item) else COUNTED_LOOP
    stretch_set, stretch_left = int(A[row + STRETCH]), int(A[row + STRETCH + 1])
    # Without a stretch there is the run in its place.
    if kind == SOMETHING_ELSE and stretch_set != A[row + 7]:
        exact_set, exact_left = exact_stretch(A, C, clamped)
        if exact_set != 0:
            kind, loop_set, num_left = EXACT_STRETCH, exact_set, exact_left
        elif stretch_left >= LONG_STRETCH and (stretch_set > loop_set or num_left < LONG_STRETCH):
            loop_set, num_left = stretch_set, stretch_left
    follow = 0
    if _can_begin(A, C, clamped, _FIRST_PROBE):
        follow |= 1
    if _can_begin(A, C, clamped, _SECOND_PROBE):
        follow |= 2
    if _can_begin(A, C, clamped, _THIRD_PROBE):
        follow |= 4
    if _can_begin(A, C, clamped, SPACE_BYTE):
        follow |= SPACE_FOLLOWS
    return (
        clamped,
        int(A[row + 2]),
        atoms_of_set(A, C, loop_set),
        num_left,
        kind,
        atoms_of_set(A, C, int(A[row + 7])),
        int(A[row + 8]),
        follow,
        loop_set,
    )


@inner
def is_spaced(A: Arena, C: Control, configuration: int, kind: int) -> bool:
    """Whether spaces only go on with a loop or a run, so that behind one nothing can begin that cannot here."""
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    if A[row + 8] > 0:
        return True
    return kind == ENDLESS_LOOP and atoms_of_set(A, C, int(A[row + 4])) & SPACE_ATOM != 0


def can_be_entered(atoms: int) -> bool:
    """Whether a set makes up words, so that it may be entered behind a space as well: ASCII without a space."""
    return atoms != 0 and atoms >> NUM_ASCII_ATOMS == 0 and atoms & SPACE_ATOM == 0


can_be_entered_in_kernel = inner(can_be_entered)
