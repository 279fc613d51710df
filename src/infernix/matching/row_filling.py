"""The kernels behind mask rows: what the row of a configuration depends on, and the walk over the vocabulary.

A walk goes through parts of a forest. Each part has a *position*: how many characters of the configuration's loop or
run come before what is written there. So one walk from the configuration behind those characters answers for all tokens
that begin with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import (
    CLASS_OF,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DEAD,
    FULL,
    LIMIT,
    NEXT,
    NO_BYTE,
    NUM_CLASSES,
    OWN_SET,
    RUN_SET,
    STATE_LOOPS,
    STATE_LOOPS_WIDTH,
    STOPPED,
    Arena,
    Control,
)
from infernix.matching.forest import FIRST_TOKEN, NEXT_TOKEN
from infernix.matching.interning import clamp
from infernix.matching.jit import inner, kernel
from infernix.matching.loop_walk import (
    NOTHING_MOVES,
    OTHERS_MOVE,
    are_same_to_tokens,
    is_far_from_bounds,
    is_next_iteration,
    is_past_minimum,
    loop_start,
    moving_item,
)
from infernix.matching.row_buffer import add_base, begin_row
from infernix.matching.stepping import step
from infernix.matching.vocabulary_walk import DONE, atoms_of_set, set_bits, walk, walk_beside

# How a mask row can be worked out.
SOMETHING_ELSE = 0
COUNTED_LOOP = 1
ENDLESS_LOOP = 2
RUN = 3
LOOP_ENTERED = 4
# What a part of a forest is where a loop is entered: where its tokens are read from, and in which forest.
FROM_HERE = 0
SUFFIXES_FROM_HERE = 1
BEHIND_LOOP = 2  # what is left behind characters of the loop
ENTERS_LOOP = 3  # tokens that begin with such a character
SPACE = 4  # a space alone
BEHIND_SPACE = 5
BEHIND_SPACED_LOOP = 6
ENTERS_SPACED_LOOP = 7
# A run that leaves room for fewer characters shows too little of itself.
MIN_RUN_LEFT = 3
SPACE_BYTE = 32
# What is tried to find out whether a configuration can enter a loop: rare beginnings of keywords.
PROBES = b"zqZ"
_FIRST_PROBE, _SECOND_PROBE, _THIRD_PROBE = PROBES
# Bits that say which of them can follow, from the lowest on; and whether a space can.
SPACE_FOLLOWS = 8


@inner
def _can_begin(A: Arena, C: Control, configuration: int, byte: int) -> bool:
    """False only where nothing follows, as far as that is known without a step."""
    return bool(A[C[NEXT] + configuration * C[NUM_CLASSES] + A[C[CLASS_OF] + byte]] != DEAD)


@kernel
def describe_row(A: Arena, C: Control, configuration: int) -> tuple[int, int, int, int, int, int, int, int]:
    """What the mask row of a configuration depends on, and the shortest way to it.

    The configuration with the same mask that stands for all that differ in far away bounds only, or STOPPED; whether
    the text may end; the atoms that it goes round on, as bits; for how many characters it can; SOMETHING_ELSE,
    COUNTED_LOOP or ENDLESS_LOOP; the atoms of a run that it is in, as bits, and how many characters that has left;
    which of PROBES and a space may follow.
    """
    clamped = clamp(A, C, configuration)
    if clamped == STOPPED:
        return STOPPED, 0, 0, 0, 0, 0, 0, 0
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * clamped
    loop_set = int(A[row + 4])
    kind = SOMETHING_ELSE
    if loop_set != 0 and loop_start(A, C, loop_set) != NO_BYTE:
        item = moving_item(A, C, clamped, loop_set)
        if item >= 0:
            is_own = A[C[STATE_LOOPS] + STATE_LOOPS_WIDTH * A[item] + OWN_SET] == loop_set
            kind = ENDLESS_LOOP if is_own or is_far_from_bounds(A, C, item) else COUNTED_LOOP
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
        int(A[row + 5]),
        kind,
        atoms_of_set(A, C, int(A[row + 7])),
        int(A[row + 8]),
        follow,
    )


@kernel
def fill_text_bits(
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
    kind: int,
    max_characters: int,
    reach: int,
    loop: int,
    spaced_loop: int,
    base: NDArray[np.uint32],
    base_places: NDArray[np.int64],
    spaced_base: NDArray[np.uint32],
    row: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """Writes to `row` the bits of both bases and of every token in parts of two forests that can follow.

    Returns DONE, or STOPPED where it cannot go on, or OTHERS_MOVE where `row` is wrong because the configuration is not
    of the kind. parts: [num_parts, 3], first node, node after the last one, and the position; see the two functions.
    loop, spaced_loop: for LOOP_ENTERED only, and spaced_base (empty otherwise). row, places: those of a RowBuffer.
    base: a whole row; or words by `base_places`, if there are any; or nothing.
    """
    begin_row(base, base_places, row, places)
    add_base(spaced_base, row, places)
    if kind != LOOP_ENTERED:
        return _fill_by_position(
            A, C, node_bytes, nodes, token_ids, parts, path, configuration, kind, max_characters, reach, row, places
        )
    if (loop != DEAD and not _stays(A, C, loop)) or (spaced_loop != DEAD and not _stays(A, C, spaced_loop)):
        return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else OTHERS_MOVE
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
            set_bits(token_ids, int(nodes[first, FIRST_TOKEN]), int(nodes[first, NEXT_TOKEN]), row, places)
        elif what in (SUFFIXES_FROM_HERE, BEHIND_LOOP, BEHIND_SPACED_LOOP):
            walk(A, C, suffix_bytes, suffix_nodes, suffix_ids, path, current, first, last, row, places)
        elif reference == DEAD:
            walk(A, C, node_bytes, nodes, token_ids, path, current, first, last, row, places)
        else:
            walk_beside(A, C, node_bytes, nodes, token_ids, path, current, reference, first, last, row, places)
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


@inner
def _fill_by_position(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    token_ids: NDArray[np.int32],
    parts: NDArray[np.int64],
    path: NDArray[np.int32],
    configuration: int,
    kind: int,
    max_characters: int,
    reach: int,
    row: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """The parts are in ascending order of positions: how many characters of the loop or run come before.

    By kind, SOMETHING_ELSE has position 0 alone. COUNTED_LOOP: the tokens of the base are those made of the loop's
    characters that the count leaves room for, out of all up to `max_characters` long; the other tokens have up to
    `reach` bytes. ENDLESS_LOOP: those of the base
    are all, and position 1 may stand for any that is not 0. RUN: those that the run leaves room for.
    OTHERS_MOVE where it does matter which characters of the loop or run they are, or where something else takes more of
    them.
    """
    configuration_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    loop_set = int(A[configuration_row + (7 if kind == RUN else 4)])
    num_left = int(A[configuration_row + (8 if kind == RUN else 5)])
    byte = loop_start(A, C, loop_set)
    num_parts = len(parts)
    last_position = 0
    if kind == COUNTED_LOOP:
        last_position = min(num_left, max_characters)
        if num_parts > 0:
            last_position = max(last_position, int(parts[num_parts - 1, 2]))
    elif kind == ENDLESS_LOOP:
        last_position = 1
    elif kind == RUN:
        last_position = MIN_RUN_LEFT - 1
        if num_left < MIN_RUN_LEFT:
            return OTHERS_MOVE
    part = 0
    current = configuration
    before = NOTHING_MOVES
    # Where no other token gets as far as the bound, one configuration stands for all behind the first character.
    is_far = False
    if kind == COUNTED_LOOP and num_left > reach:
        first_item = moving_item(A, C, current, loop_set)
        is_far = first_item >= 0 and is_past_minimum(A, C, first_item)
        if is_far:
            last_position = 2
    for position in range(last_position + 1):
        item = NOTHING_MOVES
        if kind != SOMETHING_ELSE:
            item = moving_item(A, C, current, loop_set)
            if item == OTHERS_MOVE and kind != COUNTED_LOOP:
                return OTHERS_MOVE
        if kind == RUN:
            # Three times the run alone, under one caller: what stands beside it cannot change any more.
            if item < 0 or A[C[STATE_LOOPS] + STATE_LOOPS_WIDTH * A[item] + RUN_SET] != loop_set:
                return OTHERS_MOVE
            if position > 0 and A[item + 1] != A[before + 1]:
                return OTHERS_MOVE
        elif kind == ENDLESS_LOOP and position == 1 and not _goes_on_alike(A, C, before, item, current, byte):
            # One configuration stands for all that come after it: rightly, if no token tells them apart.
            return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else OTHERS_MOVE
        elif is_far and position > 0 and (item < 0 or not is_next_iteration(A, C, before, item)):
            # Twice one iteration more and nothing else: what leaves the loop takes no such characters.
            return OTHERS_MOVE
        takes_rest = position > 0 if is_far else position == last_position and kind != COUNTED_LOOP
        while part < num_parts and (parts[part, 2] <= position or (takes_rest and parts[part, 2] <= num_left)):
            first, last = int(parts[part, 0]), int(parts[part, 1])
            if walk(A, C, node_bytes, nodes, token_ids, path, current, first, last, row, places) == STOPPED:
                return STOPPED
            part += 1
        if kind == COUNTED_LOOP and not is_far:
            if item == NOTHING_MOVES:
                return DONE
            if item == OTHERS_MOVE or (position == num_left and num_left < max_characters):
                return OTHERS_MOVE
        if position == last_position:
            return DONE
        before = item
        current = step(A, C, current, byte)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
    return DONE


@inner
def _goes_on_alike(A: Arena, C: Control, before: int, item: int, current: int, byte: int) -> bool:
    """Whether more characters of an endless loop change nothing; False as well where it cannot go on.

    before, item: what moved one character ago, and what does so now.
    """
    if item < 0:
        return False
    if is_next_iteration(A, C, before, item):
        return True
    following = step(A, C, current, byte)
    if C[FULL] != 0 or C[LIMIT] != 0:
        return False
    return following == current or are_same_to_tokens(A, C, current, following)
