"""The walk behind most mask rows.

It goes through parts of a forest. Each part has a *position*: how many characters of the configuration's loop or run
come before what is written there. So one walk from the configuration behind those characters answers for all tokens
that begin with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import (
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    FULL,
    LIMIT,
    RUN_SET,
    STATE_LOOPS,
    STATE_LOOPS_WIDTH,
    STOPPED,
    Arena,
    Control,
)
from infernix.matching.jit import inner
from infernix.matching.loop_walk import (
    NOTHING_MOVES,
    OTHERS_MOVE,
    are_same_to_tokens,
    is_next_iteration,
    is_past_minimum,
    loop_start,
    moving_item,
)
from infernix.matching.row_kinds import COUNTED_LOOP, ENDLESS_LOOP, MIN_RUN_LEFT, RUN, SOMETHING_ELSE
from infernix.matching.stepping import step
from infernix.matching.vocabulary_walk import DONE, walk


@inner
def fill_by_position(
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
    to_set: NDArray[np.uint32],
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
            if walk(A, C, node_bytes, nodes, token_ids, path, current, first, last, to_set, places) == STOPPED:
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
