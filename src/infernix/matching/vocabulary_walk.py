"""Walking the tokens of a forest with configurations."""

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
    LOOP_SETS,
    NEXT,
    NUM_CLASSES,
    SOMEWHERE,
    STOPPED,
    STRETCH,
    Arena,
    Control,
)
from infernix.matching.forest import (
    ATOMS_BELOW,
    FIRST_CHILD,
    FIRST_TOKEN,
    LAST_CHILD,
    LAST_TOKEN,
    MAX_CHARACTERS_BELOW,
    NEXT_TOKEN,
)
from infernix.matching.jit import inner
from infernix.matching.loop_walk import are_same_to_tokens
from infernix.matching.row_buffer import MAX_LISTED_ENTRIES, SET, clear_bits, forget_words, note_word, set_bits
from infernix.matching.stepping import step

DONE = 0


@inner
def atoms_of_set(A: Arena, C: Control, loop_set: int) -> int:
    """The atoms of a set, as bits."""
    words = C[LOOP_SETS] + 2 * loop_set
    return (int(A[words]) & 0xFFFFFFFF) | (int(A[words + 1]) << 32)


@inner
def _peek(A: Arena, C: Control, configuration: int, byte: int) -> int:
    """Where a byte leads; SOMEWHERE where nobody has asked where."""
    known = int(A[C[NEXT] + configuration * C[NUM_CLASSES] + A[C[CLASS_OF] + byte]])
    if known >= SOMEWHERE:
        return known
    return step(A, C, configuration, byte)


@inner
def _takes_all(A: Arena, C: Control, configuration: int, atoms: int, num_characters: int) -> bool:
    """Whether every text of up to `num_characters` characters of some atoms can follow."""
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    if num_characters <= A[row + 5] and atoms & ~atoms_of_set(A, C, int(A[row + 4])) == 0:
        return True
    return bool(num_characters <= A[row + STRETCH + 1] and atoms & ~atoms_of_set(A, C, int(A[row + STRETCH])) == 0)


@inner
def walk(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    first_root: int,
    last_root: int,
    to_set: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """Sets the bits of the tokens below some nodes; DONE or STOPPED. to_set, places: [SET] of a RowBuffer.

    Goes down where a byte can follow; where nothing is below, it does not matter what that leads to. A subtree made,
    behind its node, of atoms that the configuration there goes round on, or has a stretch of, is taken whole. path[d]
    holds the configuration after d bytes and the nodes still to be looked at there.
    """
    class_of = C[CLASS_OF]
    depth = 0
    current = configuration
    cells = C[NEXT] + current * C[NUM_CLASSES]
    node = first_root
    last = last_root
    is_listed = places[0] < len(places)
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
        if following < 0 and (following != SOMEWHERE or nodes[node, FIRST_CHILD] != nodes[node, LAST_CHILD]):
            following = step(A, C, current, byte)
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
            num_characters = int(nodes[node, MAX_CHARACTERS_BELOW])
            there = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * following
            goes_down = num_characters > A[there + 5] or atoms_below & ~atoms_of_set(A, C, int(A[there + 4])) != 0
            if goes_down and num_characters <= A[there + STRETCH + 1]:
                goes_down = atoms_below & ~atoms_of_set(A, C, int(A[there + STRETCH])) != 0
            if not goes_down:
                last_token = int(nodes[node, LAST_TOKEN])
        # What `set_bits` does, which would be called once a node.
        if is_listed and last_token - first_token <= MAX_LISTED_ENTRIES:
            for entry in range(first_token, last_token):
                token = token_ids[entry]
                if to_set[token >> 5] == 0:
                    note_word(places, int(token >> 5))
                to_set[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            is_listed = places[0] < len(places)
        else:
            if is_listed:
                forget_words(places)
                is_listed = False
            for entry in range(first_token, last_token):
                token = token_ids[entry]
                to_set[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
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


@inner
def walk_beside(
    A: Arena,
    C: Control,
    node_bytes: NDArray[np.uint8],
    nodes: NDArray[np.int32],
    token_ids: NDArray[np.int32],
    path: NDArray[np.int32],
    configuration: int,
    reference: int,
    first_root: int,
    last_root: int,
    words: NDArray[np.uint32],
    places: NDArray[np.int64],
) -> int:
    """Corrects bits of the tokens below some nodes from those of `reference` to those of `configuration`.

    DONE or STOPPED. Goes down only where the two do not lead to the same. words, places: those of a RowBuffer. path[d]
    is as in `walk`, the reference's configuration in its last column.
    """
    to_set, set_places = words[SET], places[SET]
    depth = 0
    current, beside = configuration, reference
    node = first_root
    last = last_root
    while True:
        if node == last:
            if depth == 0:
                return DONE
            depth -= 1
            current, beside = int(path[depth, 0]), int(path[depth, 3])
            node, last = int(path[depth, 1]), int(path[depth, 2])
            continue
        byte = int(node_bytes[node])
        here = node
        node += 1
        if nodes[here, FIRST_CHILD] == nodes[here, LAST_CHILD]:
            following, other = _peek(A, C, current, byte), _peek(A, C, beside, byte)
            if following != DEAD and other != DEAD:
                continue
        else:
            following, other = step(A, C, current, byte), step(A, C, beside, byte)
        if C[FULL] != 0 or C[LIMIT] != 0:
            return STOPPED
        if following == other or (following != DEAD and other != DEAD and are_same_to_tokens(A, C, following, other)):
            continue
        first_token, last_token = int(nodes[here, FIRST_TOKEN]), int(nodes[here, LAST_TOKEN])
        if following == DEAD:
            clear_bits(token_ids, first_token, last_token, words, places)
            continue
        first_child, last_child = int(nodes[here, FIRST_CHILD]), int(nodes[here, LAST_CHILD])
        if first_child != last_child:
            low, high = int(nodes[here, ATOMS_BELOW]), int(nodes[here, ATOMS_BELOW + 1])
            atoms_below = (low & 0xFFFFFFFF) | (high << 32)
            num_characters = int(nodes[here, MAX_CHARACTERS_BELOW])
            if not _takes_all(A, C, following, atoms_below, num_characters):
                set_bits(token_ids, first_token, int(nodes[here, NEXT_TOKEN]), to_set, set_places)
                if node != last:
                    path[depth, 0] = current
                    path[depth, 1] = node
                    path[depth, 2] = last
                    path[depth, 3] = beside
                    depth += 1
                current, beside = following, other
                node, last = first_child, last_child
                continue
            if _takes_all(A, C, other, atoms_below, num_characters):
                # The reference has set them all, too.
                continue
        set_bits(token_ids, first_token, last_token, to_set, set_places)
