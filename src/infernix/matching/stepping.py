"""The automaton at run time: where bytes and tokens lead from configurations.

`next` of a configuration and a byte class is worked out when it is first needed. A kernel that cannot go on returns
STOPPED, with control[FULL] or control[LIMIT] saying why: the caller grows the tables and calls again, or reports the
bound.
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
    ITEMS,
    LIMIT,
    MAY_END,
    NEXT,
    NOT_STARTED,
    NUM_CLASSES,
    ROOT_FRAME,
    ROOT_RULE,
    RULES,
    STOPPED,
    TOKEN_BEGIN,
    TOKEN_EDGES,
    Arena,
    Control,
)
from infernix.matching.closure import add_byte_targets, add_item, begin_step, close_step, list_plain_targets
from infernix.matching.interning import intern_items, intern_step
from infernix.matching.jit import inner, kernel


@inner
def step(A: Arena, C: Control, configuration: int, byte: int) -> int:
    """Where one byte leads; meaningless if FULL or LIMIT is set afterwards."""
    byte_class = int(A[C[CLASS_OF] + byte])
    cell = configuration * C[NUM_CLASSES] + byte_class
    known = int(A[C[NEXT] + cell])
    if known >= 0:
        return known
    num_items = list_plain_targets(A, C, configuration, byte_class)
    if num_items >= 0:
        C[MAY_END] = 0
        result = intern_items(A, C, num_items)
    else:
        begin_step(A, C)
        row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
        first_item = A[row]
        for item in range(first_item, first_item + A[row + 1]):
            add_byte_targets(A, C, C[ITEMS] + 2 * item, byte_class)
        close_step(A, C)
        result = intern_step(A, C)
    if C[FULL] != 0 or C[LIMIT] != 0:
        return DEAD
    A[C[NEXT] + cell] = result
    return result


@inner
def _finish_step(A: Arena, C: Control, may_end: int) -> int:
    """Closes and interns a step whose first items are listed; `may_end` is carried in from elsewhere."""
    close_step(A, C)
    if may_end != 0:
        C[MAY_END] = 1
    result = intern_step(A, C)
    return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else result


@kernel
def advance(
    A: Arena,
    C: Control,
    configuration: int,
    data: NDArray[np.uint8],
    begin: int,
    end: int,
    token: int,
    membership: NDArray[np.uint8],
) -> int:
    """The configuration after data[begin:end] or, where token edges name it, after `token`; DEAD, or STOPPED.

    NOT_STARTED leads to the configuration before the first byte. membership[set, token] says which token sets hold
    which token, and has no rows where there are no token edges; a token that is no text has no bytes. All of this is
    one kernel because each kernel compiles the whole machinery of a step anew.
    """
    if configuration == NOT_STARTED:
        begin_step(A, C)
        add_item(A, C, int(A[C[RULES] + 2 * C[ROOT_RULE]]), ROOT_FRAME)
        return _finish_step(A, C, 0)
    after_bytes = configuration if begin < end or len(membership) == 0 else DEAD
    for position in range(begin, end):
        after_bytes = step(A, C, after_bytes, int(data[position]))
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
        if after_bytes == DEAD:
            break
    if len(membership) == 0:
        return after_bytes
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row]
    begin_step(A, C)
    found = False
    for item_row in range(first_item, first_item + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        state = A[item]
        for edge_row in range(A[C[TOKEN_BEGIN] + state], A[C[TOKEN_BEGIN] + state + 1]):
            edge = C[TOKEN_EDGES] + 2 * edge_row
            if membership[A[edge], token] != 0:
                add_item(A, C, int(A[edge + 1]), int(A[item + 1]))
                found = True
    if not found:
        return after_bytes
    after_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * after_bytes
    first_item = A[after_row]
    for item_row in range(first_item, first_item + A[after_row + 1]):
        item = C[ITEMS] + 2 * item_row
        add_item(A, C, int(A[item]), int(A[item + 1]))
    return _finish_step(A, C, int(A[after_row + 2]))


@kernel
def collect_token_sets(A: Arena, C: Control, configuration: int, marked: NDArray[np.uint8]) -> None:
    """Marks the token sets that token edges of `configuration` carry; marked: [num_sets]."""
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row]
    for item_row in range(first_item, first_item + A[row + 1]):
        state = A[C[ITEMS] + 2 * item_row]
        for edge_row in range(A[C[TOKEN_BEGIN] + state], A[C[TOKEN_BEGIN] + state + 1]):
            marked[A[C[TOKEN_EDGES] + 2 * edge_row]] = 1
