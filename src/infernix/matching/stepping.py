"""The automaton at run time: bytes, tokens and mask rows from configurations.

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
    LOOP_SETS,
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
    UNKNOWN,
    Arena,
    Control,
)
from infernix.matching.closure import add_byte_targets, add_item, begin_step, close_step
from infernix.matching.interning import intern_step
from infernix.matching.jit import inner, kernel
from infernix.matching.trie import BYTE, FIRST_CHILD, FIRST_TOKEN, LAST_TOKEN, MAX_CHARACTERS_BELOW, NEXT_TOKEN


@inner
def _step(A: Arena, C: Control, configuration: int, byte: int) -> int:
    byte_class = int(A[C[CLASS_OF] + byte])
    cell = configuration * C[NUM_CLASSES] + byte_class
    known = int(A[C[NEXT] + cell])
    if known != UNKNOWN:
        return known
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
        after_bytes = _step(A, C, after_bytes, int(data[position]))
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


@inner
def _loop_atoms(A: Arena, C: Control, configuration: int) -> int:
    """The atoms that `configuration` goes round on, as bits."""
    words = C[LOOP_SETS] + 2 * A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 4]
    return (int(A[words]) & 0xFFFFFFFF) | (int(A[words + 1]) << 32)


@kernel
def loop_of(A: Arena, C: Control, configuration: int) -> tuple[int, int]:
    """The atoms that `configuration` goes round on, as bits, and for how many characters it can."""
    return _loop_atoms(A, C, configuration), int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 5])


@kernel
def fill_text_bits(
    A: Arena,
    C: Control,
    nodes: NDArray[np.int32],
    num_roots: int,
    atoms_below: NDArray[np.int64],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    row: NDArray[np.uint32],
) -> int:
    """Sets in `row` the bit of every token of a trie whose bytes can follow `configuration`.

    Goes down where a byte can follow. A subtree made, behind its node, of atoms that the configuration there goes
    round on is taken whole. path[d] holds the configuration after d bytes and the nodes still to be looked at there;
    it has one row more than the trie is deep. Returns STOPPED where it cannot go on.
    """
    depth = 0
    path[0, 0] = configuration
    path[0, 1] = 0
    path[0, 2] = num_roots
    while depth >= 0:
        node = path[depth, 1]
        if node == path[depth, 2]:
            depth -= 1
            continue
        path[depth, 1] = node + 1
        following = _step(A, C, int(path[depth, 0]), int(nodes[node, BYTE]))
        if following == DEAD:
            if C[FULL] != 0 or C[LIMIT] != 0:
                return STOPPED
            continue
        first_child = nodes[node, FIRST_CHILD]
        last_child = nodes[node + 1, FIRST_CHILD]
        last_token = nodes[node, NEXT_TOKEN]
        if first_child != last_child:
            num_left = A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * following + 5]
            fits = nodes[node, MAX_CHARACTERS_BELOW] <= num_left
            if fits and atoms_below[node] & ~_loop_atoms(A, C, following) == 0:
                last_token = nodes[node, LAST_TOKEN]
            else:
                depth += 1
                path[depth, 0] = following
                path[depth, 1] = first_child
                path[depth, 2] = last_child
        for entry in range(nodes[node, FIRST_TOKEN], last_token):
            token = token_ids[entry]
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    return DEAD


@kernel
def collect_token_sets(A: Arena, C: Control, configuration: int, marked: NDArray[np.uint8]) -> None:
    """Marks the token sets that token edges of `configuration` carry; marked: [num_sets]."""
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row]
    for item_row in range(first_item, first_item + A[row + 1]):
        state = A[C[ITEMS] + 2 * item_row]
        for edge_row in range(A[C[TOKEN_BEGIN] + state], A[C[TOKEN_BEGIN] + state + 1]):
            marked[A[C[TOKEN_EDGES] + 2 * edge_row]] = 1
