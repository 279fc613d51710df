"""Moving a configuration from an old table into a fresh one, with nothing but what it can still reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from infernix.matching.arena import (
    CAPACITY,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    COUNT,
    FRAME_WIDTH,
    FRAMES,
    FULL,
    ITEMS,
    LIMIT,
    MAY_END,
    NO_FRAME,
    PAIRS,
    PROVISIONAL,
    PROVISIONAL_WIDTH,
    ROOT_FRAME,
    STOPPED,
    Arena,
    Control,
)
from infernix.matching.closure import add_item, add_pair, begin_step
from infernix.matching.interning import intern_step
from infernix.matching.jit import inner, kernel


@inner
def _provisional_of(A: Arena, C: Control, frame: int, places: NDArray[np.int32], order: NDArray[np.int32]) -> int:
    """The reference in the new step that stands for an old frame; a new one queues the frame in `order`."""
    if frame == ROOT_FRAME:
        return ROOT_FRAME
    if places[frame] < 0:
        provisional = C[COUNT + PROVISIONAL]
        if provisional >= C[CAPACITY + PROVISIONAL]:
            C[FULL] = PROVISIONAL + 1
            return ROOT_FRAME
        C[COUNT + PROVISIONAL] = provisional + 1
        places[frame] = provisional
        order[provisional] = frame
    return -(int(places[frame]) + 1)


@kernel
def transplant(
    A: Arena,
    C: Control,
    old_arena: Arena,
    old_control: Control,
    configuration: int,
    places: NDArray[np.int32],
    order: NDArray[np.int32],
) -> int:
    """The configuration of the new table (A, C) that equals `configuration` of the old one.

    The live frames become provisional frames of one step, which is then interned like any other; the order of a
    cyclic unit's members is handed on in place of their rules. places and order: int32 [number of old frames].
    Returns STOPPED where it cannot go on.
    """
    begin_step(A, C)
    for i in range(len(places)):
        places[i] = -1
    row = old_control[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    for item_row in range(old_arena[row], old_arena[row] + old_arena[row + 1]):
        item = old_control[ITEMS] + 2 * item_row
        reference = _provisional_of(A, C, int(old_arena[item + 1]), places, order)
        add_item(A, C, int(old_arena[item]), reference)
    done = 0
    while done < C[COUNT + PROVISIONAL] and C[FULL] == 0 and C[LIMIT] == 0:
        frame_row = old_control[FRAMES] + FRAME_WIDTH * order[done]
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * done
        A[member] = order[done] - old_arena[frame_row + 2]
        A[member + 1] = -1
        A[member + 2] = 0
        A[member + 3] = NO_FRAME
        A[member + 4] = 0
        A[member + 6] = -1
        for pair_row in range(old_arena[frame_row], old_arena[frame_row] + old_arena[frame_row + 1]):
            pair = old_control[PAIRS] + 3 * pair_row
            reference = _provisional_of(A, C, int(old_arena[pair + 1]), places, order)
            add_pair(A, C, done, int(old_arena[pair]), reference, int(old_arena[pair + 2]))
        done += 1
    C[MAY_END] = old_arena[row + 2]
    result = intern_step(A, C)
    return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else result
