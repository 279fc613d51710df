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
    NO_BYTE,
    NOT_STARTED,
    NUM_CLASSES,
    ROOT_FRAME,
    ROOT_RULE,
    RULES,
    STATE_LOOPS,
    STOPPED,
    TOKEN_BEGIN,
    TOKEN_EDGES,
    UNKNOWN,
    Arena,
    Control,
)
from infernix.matching.closure import add_byte_targets, add_item, begin_step, close_step
from infernix.matching.forest import (
    ATOMS_BELOW,
    FIRST_CHILD,
    FIRST_TOKEN,
    LAST_CHILD,
    LAST_TOKEN,
    MAX_CHARACTERS_BELOW,
    NEXT_TOKEN,
)
from infernix.matching.interning import clamp, intern_step
from infernix.matching.jit import inner, kernel
from infernix.matching.loop_walk import (
    NOTHING_MOVES,
    OTHERS_MOVE,
    is_far_from_bounds,
    is_next_iteration,
    loop_start,
    moving_item,
)

DONE = 0
# How a mask row can be worked out.
SOMETHING_ELSE = 0
COUNTED_LOOP = 1
ENDLESS_LOOP = 2


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
def describe_row(A: Arena, C: Control, configuration: int) -> tuple[int, int, int, int, int]:
    """What the mask row of a configuration depends on, and the shortest way to it.

    The configuration with the same mask that stands for all that differ in far away bounds only, or STOPPED; whether
    the text may end; the atoms that it goes round on, as bits; for how many characters it can; and SOMETHING_ELSE,
    COUNTED_LOOP or ENDLESS_LOOP.
    """
    clamped = clamp(A, C, configuration)
    if clamped == STOPPED:
        return STOPPED, 0, 0, 0, 0
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * clamped
    loop_set = int(A[row + 4])
    kind = SOMETHING_ELSE
    if loop_set != 0 and loop_start(A, C, loop_set) != NO_BYTE:
        item = moving_item(A, C, clamped, loop_set)
        if item >= 0:
            is_endless = A[C[STATE_LOOPS] + 3 * A[item]] == loop_set or is_far_from_bounds(A, C, item)
            kind = ENDLESS_LOOP if is_endless else COUNTED_LOOP
    return clamped, int(A[row + 2]), _loop_atoms(A, C, clamped), int(A[row + 5]), kind


@kernel
def fill_text_bits(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    root_begins: NDArray[np.int64],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    kind: int,
    max_characters: int,
    base: NDArray[np.uint32],
    row: NDArray[np.uint32],
) -> int:
    """Writes to `row` the bits of `base` and of every token of a forest that can follow `configuration`.

    kind: SOMETHING_ELSE where the groups are just parts of the vocabulary. Otherwise the forest is one of suffixes.
    COUNTED_LOOP: group g follows g characters of the configuration's loop, and the tokens of `base` are those that the
    count leaves room for, out of all up to `max_characters` long. ENDLESS_LOOP: group 0 follows none, group 1 any other
    number. Returns DONE, or OTHERS_MOVE where it does matter which characters of the loop they are, or where something
    else takes more of them than the loop: `row` is wrong then. Returns STOPPED where it cannot go on.
    """
    num_groups = len(root_begins) - 1
    # Not as a slice: memset and memcpy may write past the caches, where the bits are wanted next.
    for word in range(len(row)):
        row[word] = base[word]
    loop_set = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 4])
    num_left = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 5])
    byte = loop_start(A, C, loop_set)
    last_position = num_groups - 1
    if kind == COUNTED_LOOP:
        last_position = max(last_position, min(num_left, max_characters))
    current = configuration
    before = NOTHING_MOVES
    for position in range(last_position + 1):
        if position < num_groups:
            first_root = int(root_begins[position])
            last_root = int(root_begins[num_groups if kind == SOMETHING_ELSE else position + 1])
            if _walk(A, C, node_bytes, nodes, token_ids, path, current, first_root, last_root, row) == STOPPED:
                return STOPPED
        if kind == SOMETHING_ELSE:
            return DONE
        item = moving_item(A, C, current, loop_set)
        is_repeated = kind == ENDLESS_LOOP and position == 1
        if is_repeated:
            # One configuration has stood for all that come after it: rightly, if they differ in a far away count only.
            if item < 0:
                return OTHERS_MOVE
            if is_next_iteration(A, C, before, item):
                return DONE
        elif item == NOTHING_MOVES:
            return DONE
        elif item == OTHERS_MOVE or (kind == COUNTED_LOOP and position == num_left and num_left < max_characters):
            return OTHERS_MOVE
        elif position == last_position:
            return DONE
        before = item
        following = _step(A, C, current, byte)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
        if is_repeated:
            return DONE if following == current else OTHERS_MOVE
        current = following
    return DONE


@inner
def _walk(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    first_root: int,
    last_root: int,
    row: NDArray[np.uint32],
) -> int:
    """Sets the bits of the tokens below some roots; DONE or STOPPED.

    Goes down where a byte can follow. A subtree made, behind its node, of atoms that the configuration there goes
    round on is taken whole. path[d] holds the configuration after d bytes and the nodes still to be looked at there.
    """
    class_of = C[CLASS_OF]
    depth = 0
    current = configuration
    cells = C[NEXT] + current * C[NUM_CLASSES]
    node = first_root
    last = last_root
    while True:
        if node == last:
            if depth == 0:
                return DONE
            depth -= 1
            current = int(path[depth, 0])
            node = int(path[depth, 1])
            last = int(path[depth, 2])
            cells = C[NEXT] + current * C[NUM_CLASSES]
            continue
        byte = int(node_bytes[node])
        following = int(A[cells + A[class_of + byte]])
        if following == DEAD:
            node += 1
            continue
        if following == UNKNOWN:
            following = _step(A, C, current, byte)
            if following == DEAD:
                if C[FULL] != 0 or C[LIMIT] != 0:
                    return STOPPED
                node += 1
                continue
        last_token = int(nodes[node, NEXT_TOKEN])
        first_token = int(nodes[node, FIRST_TOKEN])
        first_child = int(nodes[node, FIRST_CHILD])
        last_child = int(nodes[node, LAST_CHILD])
        goes_down = False
        if first_child != last_child:
            low, high = int(nodes[node, ATOMS_BELOW]), int(nodes[node, ATOMS_BELOW + 1])
            atoms_below = (low & 0xFFFFFFFF) | (high << 32)
            num_left = A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * following + 5]
            if nodes[node, MAX_CHARACTERS_BELOW] <= num_left and atoms_below & ~_loop_atoms(A, C, following) == 0:
                last_token = int(nodes[node, LAST_TOKEN])
            else:
                goes_down = True
        for entry in range(first_token, last_token):
            token = token_ids[entry]
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        node += 1
        if goes_down:
            if node != last:
                path[depth, 0] = current
                path[depth, 1] = node
                path[depth, 2] = last
                depth += 1
            current = following
            cells = C[NEXT] + current * C[NUM_CLASSES]
            node = first_child
            last = last_child


@kernel
def collect_token_sets(A: Arena, C: Control, configuration: int, marked: NDArray[np.uint8]) -> None:
    """Marks the token sets that token edges of `configuration` carry; marked: [num_sets]."""
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row]
    for item_row in range(first_item, first_item + A[row + 1]):
        state = A[C[ITEMS] + 2 * item_row]
        for edge_row in range(A[C[TOKEN_BEGIN] + state], A[C[TOKEN_BEGIN] + state + 1]):
            marked[A[C[TOKEN_EDGES] + 2 * edge_row]] = 1
