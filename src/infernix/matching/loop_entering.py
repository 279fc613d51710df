"""Rows of configurations that enter a loop, mostly: see `entries`.

Where a name may begin, nearly every letter leads to the same place. Rare beginnings of keywords are tried to find it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import (
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DEAD,
    FULL,
    LIMIT,
    NO_BYTE,
    STOPPED,
    Arena,
    Control,
)
from infernix.matching.forest import FIRST_TOKEN, NEXT_TOKEN
from infernix.matching.jit import inner
from infernix.matching.loop_walk import OTHERS_MOVE, are_same_to_tokens, loop_start, moving_item
from infernix.matching.row_buffer import SET, set_bits
from infernix.matching.row_kinds import (
    ENDLESS_LOOP,
    PROBES,
    SPACE_BYTE,
    SPACE_FOLLOWS,
    can_be_entered_in_kernel,
    describe,
)
from infernix.matching.stepping import step
from infernix.matching.vocabulary_walk import DONE, atoms_of_set, walk, walk_beside

# What a part of a forest is where a loop is entered: where its tokens are read from, and in which forest.
FROM_HERE = 0
SUFFIXES_FROM_HERE = 1
BEHIND_LOOP = 2  # what is left behind characters of the loop
ENTERS_LOOP = 3  # tokens that begin with such a character
SPACE = 4  # a space alone
BEHIND_SPACE = 5
BEHIND_SPACED_LOOP = 6
ENTERS_SPACED_LOOP = 7
_FIRST_PROBE, _SECOND_PROBE, _THIRD_PROBE = PROBES


@inner
def find_entered_loops(A: Arena, C: Control, configuration: int, follow: int, has_words: bool) -> tuple[int, int, int]:
    """The endless loops that characters lead into directly and behind a space, or DEAD; and the set of both, or 0.

    follow: what can follow the configuration, as `describe` says. has_words: whether there are loops on words at all.
    Meaningless if FULL or LIMIT is set afterwards.
    """
    loop, loop_set, probe = _find_loop(A, C, configuration, follow)
    spaced_loop = DEAD
    if (
        has_words
        and follow & SPACE_FOLLOWS != 0
        and (loop == DEAD or can_be_entered_in_kernel(atoms_of_set(A, C, loop_set)))
    ):
        behind_space = step(A, C, configuration, SPACE_BYTE)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return DEAD, DEAD, 0
        probes = probe
        if probe == 0:
            description = describe(A, C, behind_space)
            if description[0] == STOPPED:
                return DEAD, DEAD, 0
            probes = description[7]
        spaced_loop, spaced_set, _ = _find_loop(A, C, behind_space, probes)
        if loop == DEAD:
            loop_set = spaced_set if can_be_entered_in_kernel(atoms_of_set(A, C, spaced_set)) else 0
        elif spaced_set != loop_set:
            spaced_loop = DEAD
    return loop, spaced_loop, loop_set


@inner
def _find_loop(A: Arena, C: Control, configuration: int, probes: int) -> tuple[int, int, int]:
    """An endless loop that characters lead into, the set that it is on, and the probe that found it, as a bit.

    probes: bit by bit, which of PROBES to try; the first that can follow counts. DEAD and zeros where there is no such
    loop.
    """
    for number in range(3):
        if (probes >> number) & 1 == 0:
            continue
        byte = _FIRST_PROBE
        if number == 1:
            byte = _SECOND_PROBE
        elif number == 2:
            byte = _THIRD_PROBE
        loop = configuration
        for _ in range(2):
            loop = step(A, C, loop, byte)
            if C[FULL] != 0 or C[LIMIT] != 0:
                return DEAD, 0, 0
        if loop != DEAD:
            description = describe(A, C, loop)
            if description[0] != STOPPED and description[4] == ENDLESS_LOOP:
                row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * description[0]
                return loop, int(A[row + 4]), 1 << number
            return DEAD, 0, 0
    return DEAD, 0, 0


@inner
def fill_entered(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    token_ids: NDArray[np.int32],
    suffix_bytes: NDArray[np.uint8],
    suffix_nodes: NDArray[np.int32],
    suffix_ids: NDArray[np.int32],
    parts: NDArray[np.int64],
    path: NDArray[np.int32],
    configuration: int,
    loop: int,
    spaced_loop: int,
    words: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """A part's position says what it is. The base has what the loops take, as far as they are not DEAD."""
    if (loop != DEAD and not _stays(A, C, loop)) or (spaced_loop != DEAD and not _stays(A, C, spaced_loop)):
        return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else OTHERS_MOVE
    to_set, set_places = words[SET], places[SET]
    behind_space = step(A, C, configuration, SPACE_BYTE)
    for part in range(len(parts)):
        what = int(parts[part, 2])
        current = configuration
        reference = DEAD
        if what == BEHIND_LOOP:
            current = loop
        elif what == ENTERS_LOOP:
            reference = loop
        elif what in (SPACE, BEHIND_SPACE):
            current = behind_space
        elif what == BEHIND_SPACED_LOOP:
            current = spaced_loop
        elif what == ENTERS_SPACED_LOOP:
            current = behind_space
            reference = spaced_loop
        if current == DEAD:
            continue
        first, last = int(parts[part, 0]), int(parts[part, 1])
        if what == SPACE:
            set_bits(token_ids, int(nodes[first, FIRST_TOKEN]), int(nodes[first, NEXT_TOKEN]), to_set, set_places)
        elif what in (SUFFIXES_FROM_HERE, BEHIND_LOOP, BEHIND_SPACED_LOOP):
            walk(A, C, suffix_bytes, suffix_nodes, suffix_ids, path, current, first, last, to_set, set_places)
        elif reference == DEAD:
            walk(A, C, node_bytes, nodes, token_ids, path, current, first, last, to_set, set_places)
        else:
            walk_beside(A, C, node_bytes, nodes, token_ids, path, current, reference, first, last, words, places)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
    return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else DONE


@inner
def _stays(A: Arena, C: Control, loop: int) -> bool:
    """Whether characters of the loop that a configuration goes round on lead to the same, as far as any token sees."""
    loop_set = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * loop + 4])
    byte = loop_start(A, C, loop_set)
    if byte == NO_BYTE or moving_item(A, C, loop, loop_set) < 0:
        return False
    following = step(A, C, loop, byte)
    return C[FULL] == 0 and C[LIMIT] == 0 and (following == loop or are_same_to_tokens(A, C, loop, following))
