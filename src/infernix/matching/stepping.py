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
    CONFIGURATIONS,
    DEAD,
    FULL,
    ITEMS,
    LIMIT,
    LOOP_SETS,
    MAY_END,
    NEXT,
    NUM_CLASSES,
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
from infernix.matching.trie import BELOW, BYTE, COVER, DEPTH, END, FIRST_TOKEN, MAX_CHARACTERS_BELOW


@inner
def _step(A: Arena, C: Control, configuration: int, byte: int) -> int:
    byte_class = int(A[C[CLASS_OF] + byte])
    cell = configuration * C[NUM_CLASSES] + byte_class
    known = int(A[C[NEXT] + cell])
    if known != UNKNOWN:
        return known
    begin_step(A, C)
    row = C[CONFIGURATIONS] + 7 * configuration
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
def _walk(A: Arena, C: Control, configuration: int, data: NDArray[np.uint8], begin: int, end: int) -> int:
    for position in range(begin, end):
        configuration = _step(A, C, configuration, int(data[position]))
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
        if configuration == DEAD:
            return DEAD
    return configuration


@kernel
def step_bytes(A: Arena, C: Control, configuration: int, data: NDArray[np.uint8], begin: int, end: int) -> int:
    """The configuration after data[begin:end], DEAD where it leaves the language."""
    return _walk(A, C, configuration, data, begin, end)


@kernel
def step_token(
    A: Arena,
    C: Control,
    configuration: int,
    data: NDArray[np.uint8],
    begin: int,
    end: int,
    token: int,
    membership: NDArray[np.uint8],
) -> int:
    """The configuration after `token` where token edges may be followed beside its bytes, data[begin:end].

    membership[set, token] says which token sets hold which token; a token that is no text has no bytes.
    """
    after_bytes = DEAD
    if begin < end:
        after_bytes = _walk(A, C, configuration, data, begin, end)
        if after_bytes == STOPPED:
            return STOPPED
    row = C[CONFIGURATIONS] + 7 * configuration
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
    after_row = C[CONFIGURATIONS] + 7 * after_bytes
    first_item = A[after_row]
    for item_row in range(first_item, first_item + A[after_row + 1]):
        item = C[ITEMS] + 2 * item_row
        add_item(A, C, int(A[item]), int(A[item + 1]))
    may_end = A[after_row + 2]
    close_step(A, C)
    if may_end != 0:
        C[MAY_END] = 1
    result = intern_step(A, C)
    return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else result


@inner
def _loop_atoms(A: Arena, C: Control, configuration: int) -> int:
    """The atoms that `configuration` goes round on, as bits."""
    words = C[LOOP_SETS] + 2 * A[C[CONFIGURATIONS] + 7 * configuration + 4]
    return (int(A[words]) & 0xFFFFFFFF) | (int(A[words + 1]) << 32)


@kernel
def loop_of(A: Arena, C: Control, configuration: int) -> tuple[int, int]:
    """The atoms that `configuration` goes round on, as bits, and for how many characters it can."""
    return _loop_atoms(A, C, configuration), int(A[C[CONFIGURATIONS] + 7 * configuration + 5])


@kernel
def fill_text_bits(
    A: Arena,
    C: Control,
    nodes: NDArray[np.int32],
    atoms: NDArray[np.int64],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    known_atoms: int,
    row: NDArray[np.uint32],
) -> int:
    """Sets in `row` the bit of every text token whose bytes can follow `configuration`.

    Walks the trie in preorder and leaves each subtree whose first byte cannot follow; path[d] is the configuration
    after d bytes. A subtree made of `known_atoms` alone was set by the caller; one made, behind its node, of atoms
    that the configuration there goes round on is taken whole. `path` has one entry more than the trie is deep.
    """
    path[0] = configuration
    node = 0
    num_nodes = len(nodes) - 1
    while node < num_nodes:
        if atoms[node, COVER] & ~known_atoms == 0:
            node = nodes[node, END]
            continue
        depth = nodes[node, DEPTH]
        following = _step(A, C, int(path[depth - 1]), int(nodes[node, BYTE]))
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
        if following == DEAD:
            node = nodes[node, END]
            continue
        path[depth] = following
        after = node + 1
        if after != nodes[node, END]:
            num_left = A[C[CONFIGURATIONS] + 7 * following + 5]
            fits = nodes[node, MAX_CHARACTERS_BELOW] <= num_left
            if fits and atoms[node, BELOW] & ~_loop_atoms(A, C, following) == 0:
                after = int(nodes[node, END])
        for entry in range(nodes[node, FIRST_TOKEN], nodes[after, FIRST_TOKEN]):
            token = token_ids[entry]
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        node = after
    return DEAD


@kernel
def collect_token_sets(A: Arena, C: Control, configuration: int, marked: NDArray[np.uint8]) -> None:
    """Marks the token sets that token edges of `configuration` carry; marked: [num_sets]."""
    row = C[CONFIGURATIONS] + 7 * configuration
    first_item = A[row]
    for item_row in range(first_item, first_item + A[row + 1]):
        state = A[C[ITEMS] + 2 * item_row]
        for edge_row in range(A[C[TOKEN_BEGIN] + state], A[C[TOKEN_BEGIN] + state + 1]):
            marked[A[C[TOKEN_EDGES] + 2 * edge_row]] = 1
