"""Making a closed step permanent: configurations that mean the same become the same number."""

from __future__ import annotations

from infernix.matching.arena import (
    ACCEPT_STATE,
    BODY_SET,
    CAPACITY,
    CONFIGURATION_SLOTS,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    COUNT,
    DEAD,
    DELTA,
    FLAGS,
    FRAME_SLOTS,
    FRAME_WIDTH,
    FRAMES,
    FULL,
    HAS_ROW,
    ITEMS,
    KEPT,
    LIMIT,
    LOOPS,
    MAY_END,
    NEXT,
    NO_LIMIT,
    NO_TARGET,
    NUM_CLASSES,
    NUM_STATES,
    OWN_SET,
    PAIRS,
    PROVISIONAL,
    PROVISIONAL_WIDTH,
    ROOT_FRAME,
    RULES,
    RUN_LEFT,
    RUN_SET,
    SOMEWHERE,
    SORTED,
    STAND_INS,
    STATE_LOOPS,
    STATE_LOOPS_WIDTH,
    STOPPED,
    STRETCH,
    STRETCH_LEFT,
    STRETCH_SET,
    UNBOUNDED,
    UNKNOWN,
    WORK,
    Arena,
    Control,
)
from infernix.matching.frames import append_frame, intern_frames_from
from infernix.matching.jit import inner, kernel
from infernix.matching.sorted_rows import hash_rows, insert_slot, sort_rows
from infernix.matching.stretches import LONG_STRETCH
from infernix.matching.subsumption import drop_covered

# Of a configuration with more items, every byte is worked out for itself.
MAX_EXAMINED_ITEMS = 32


@inner
def intern_step(A: Arena, C: Control) -> int:
    """The configuration of the closed step; meaningless if FULL or LIMIT is set afterwards."""
    if C[FULL] != 0 or C[LIMIT] != 0:
        return DEAD
    for row in range(C[COUNT + WORK]):
        item = C[WORK] + 2 * row
        if A[C[FLAGS] + A[item]] & KEPT and A[item + 1] < 0:
            intern_frames_from(A, C, -int(A[item + 1]) - 1)
            if C[FULL] != 0:
                return DEAD
    num_items = 0
    for row in range(C[COUNT + WORK]):
        item = C[WORK] + 2 * row
        if A[C[FLAGS] + A[item]] & KEPT:
            if num_items >= C[CAPACITY + SORTED]:
                C[FULL] = SORTED + 1
                return DEAD
            frame = int(A[item + 1])
            target = C[SORTED] + 3 * num_items
            A[target] = A[item]
            A[target + 1] = frame if frame >= 0 else A[C[PROVISIONAL] + PROVISIONAL_WIDTH * (-frame - 1) + 3]
            A[target + 2] = 0
            num_items += 1
    return intern_items(A, C, num_items)


@inner
def intern_items(A: Arena, C: Control, num_items: int) -> int:
    """The configuration of items that stand in SORTED, in any order; meaningless if FULL or LIMIT is set afterwards."""
    if num_items == 0 and C[MAY_END] == 0:
        return DEAD
    num_items = sort_rows(A, C, 0, num_items)
    return _intern_configuration(A, C, drop_covered(A, C, 0, num_items, 0))


@inner
def _intern_configuration(A: Arena, C: Control, num_items: int) -> int:
    rows = C[SORTED]
    hash_value = hash_rows(A, 7 + C[MAY_END], rows, num_items)
    last_slot = C[CAPACITY + CONFIGURATION_SLOTS] - 1
    slot = hash_value & last_slot
    while A[C[CONFIGURATION_SLOTS] + slot] != 0:
        configuration = int(A[C[CONFIGURATION_SLOTS] + slot]) - 1
        row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
        if A[row + 3] == hash_value and A[row + 1] == num_items and A[row + 2] == C[MAY_END]:
            first_item = C[ITEMS] + 2 * A[row]
            same = True
            for i in range(num_items):
                if A[first_item + 2 * i] != A[rows + 3 * i] or A[first_item + 2 * i + 1] != A[rows + 3 * i + 1]:
                    same = False
                    break
            if same:
                return configuration
        slot = (slot + 1) & last_slot
    configuration = C[COUNT + CONFIGURATIONS]
    first_row = C[COUNT + ITEMS]
    if configuration >= C[CAPACITY + CONFIGURATIONS]:
        C[FULL] = CONFIGURATIONS + 1
        return DEAD
    if first_row + num_items > C[CAPACITY + ITEMS]:
        C[FULL] = ITEMS + 1
        return DEAD
    for i in range(num_items):
        A[C[ITEMS] + 2 * (first_row + i)] = A[rows + 3 * i]
        A[C[ITEMS] + 2 * (first_row + i) + 1] = A[rows + 3 * i + 1]
    C[COUNT + ITEMS] = first_row + num_items
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    A[row] = first_row
    A[row + 1] = num_items
    A[row + 2] = C[MAY_END]
    A[row + 3] = hash_value
    A[row + 6] = UNKNOWN
    A[row + HAS_ROW] = 0
    _set_loop(A, C, configuration)
    _set_dead_classes(A, C, configuration)
    C[COUNT + CONFIGURATIONS] = configuration + 1
    insert_slot(A, C, CONFIGURATION_SLOTS, hash_value, configuration + 1)
    return int(configuration)


@inner
def _set_loop(A: Arena, C: Control, configuration: int) -> None:
    """Notes the largest set of atoms that some item goes round on, and for how many characters it can; runs as well.

    Also the best stretch of an item, or the run where there is none.
    """
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    best_set = 0
    best_left = 0
    run_set = 0
    run_left = 0
    stretch_set = 0
    stretch_left = 0
    for item_row in range(A[row], A[row] + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        state = A[item]
        loops = C[STATE_LOOPS] + STATE_LOOPS_WIDTH * state
        if A[loops + RUN_LEFT] > 0 and A[loops + RUN_SET] >= run_set:
            run_left = max(run_left if A[loops + RUN_SET] == run_set else 0, int(A[loops + RUN_LEFT]))
            run_set = int(A[loops + RUN_SET])
        left = int(A[loops + STRETCH_LEFT])
        length, best_length = min(left, LONG_STRETCH), min(stretch_left, LONG_STRETCH)
        if length > best_length or (length == best_length and A[loops + STRETCH_SET] > stretch_set):
            stretch_set = int(A[loops + STRETCH_SET])
            stretch_left = left
        own = int(A[loops + OWN_SET])
        if own > best_set or (own == best_set and own != 0):
            best_set = own
            best_left = NO_LIMIT
        body = int(A[loops + BODY_SET])
        if body == 0 or body < best_set:
            continue
        frame = C[FRAMES] + FRAME_WIDTH * A[item + 1]
        for pair_row in range(A[frame], A[frame] + A[frame + 1]):
            pair = C[PAIRS] + 3 * pair_row
            if A[pair] < C[NUM_STATES]:
                continue
            loop = C[LOOPS] + 4 * (A[pair] - C[NUM_STATES])
            if A[C[RULES] + 2 * A[loop + 2]] != state:
                continue
            left = NO_LIMIT
            if A[loop + 1] != UNBOUNDED:
                left = int(A[loop + 1] - A[pair + 2])
            if body > best_set or left > best_left:
                best_set = body
                best_left = left
    A[row + 4] = best_set
    A[row + 5] = best_left
    A[row + 7] = run_set
    A[row + 8] = run_left
    A[row + STRETCH] = stretch_set if stretch_set != 0 else run_set
    A[row + STRETCH + 1] = stretch_left if stretch_set != 0 else run_left


@inner
def _set_dead_classes(A: Arena, C: Control, configuration: int) -> None:
    """Notes which bytes lead nowhere: most do, and a walk over the vocabulary asks about nearly all of them."""
    # Read once: as far as the compiler knows, each write could change them.
    num_classes = C[NUM_CLASSES] + 0
    cells = C[NEXT] + configuration * num_classes
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row] + 0
    num_items = A[row + 1] + 0
    if num_items == 0 or num_items > MAX_EXAMINED_ITEMS:
        for byte_class in range(num_classes):
            A[cells + byte_class] = DEAD if num_items == 0 else UNKNOWN
        return
    # All states of a network lead to the end of their rule, so a step that some item has is never a dead end.
    # Slices, because an index that cannot be negative lets these loops become vector code. SOMEWHERE has all bits.
    found = A[cells : cells + num_classes]
    for item_row in range(first_item, first_item + num_items):
        begin = C[DELTA] + A[C[ITEMS] + 2 * item_row] * num_classes
        targets = A[begin : begin + num_classes]
        if item_row == first_item:
            for byte_class in range(num_classes):
                found[byte_class] = DEAD if targets[byte_class] == NO_TARGET else SOMEWHERE
        else:
            for byte_class in range(num_classes):
                found[byte_class] |= DEAD if targets[byte_class] == NO_TARGET else SOMEWHERE


@inner
def clamp(A: Arena, C: Control, configuration: int) -> int:
    """The configuration with the same mask that stands for all that differ only in what is far away, or STOPPED.

    That is counts far from their bounds, and states that no token tells apart.
    """
    known = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 6])
    if known != UNKNOWN:
        return known
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    num_items = int(A[row + 1])
    if num_items > C[CAPACITY + SORTED]:
        C[FULL] = SORTED + 1
        return STOPPED
    changed = False
    for i in range(num_items):
        item = C[ITEMS] + 2 * (A[row] + i)
        target = C[SORTED] + 3 * i
        A[target] = A[C[STAND_INS] + A[item]]
        A[target + 1] = A[C[FRAMES] + FRAME_WIDTH * A[item + 1] + 7]
        A[target + 2] = 0
        changed = changed or A[target] != A[item] or A[target + 1] != A[item + 1]
    clamped = configuration
    if changed:
        C[MAY_END] = A[row + 2]
        clamped = _intern_configuration(A, C, sort_rows(A, C, 0, num_items))
        if C[FULL] != 0:
            return STOPPED
        A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * clamped + 6] = clamped
    A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 6] = clamped
    return clamped


@kernel
def initialize(A: Arena, C: Control) -> None:
    """Makes the dead configuration and the root frame."""
    C[COUNT + CONFIGURATIONS] = 1
    for byte_class in range(C[NUM_CLASSES]):
        A[C[NEXT] + byte_class] = DEAD
    A[C[SORTED]] = ACCEPT_STATE
    A[C[SORTED] + 1] = ROOT_FRAME
    A[C[SORTED] + 2] = 0
    append_frame(A, C, 0, 1, 0, 1)
    A[C[FRAMES] + 7] = ROOT_FRAME


@kernel
def rebuild_slots(A: Arena, C: Control) -> None:
    """Fills both hash tables again from what is stored."""
    for table in (CONFIGURATION_SLOTS, FRAME_SLOTS):
        for slot in range(C[CAPACITY + table]):
            A[C[table] + slot] = 0
    for configuration in range(1, C[COUNT + CONFIGURATIONS]):
        hash_value = int(A[C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration + 3])
        insert_slot(A, C, CONFIGURATION_SLOTS, hash_value, configuration + 1)
    for frame in range(C[COUNT + FRAMES]):
        row = C[FRAMES] + FRAME_WIDTH * frame
        insert_slot(A, C, FRAME_SLOTS, int(A[row + 4]), 2 * frame + 1)
        if A[row + 5] != 0:
            insert_slot(A, C, FRAME_SLOTS, int(A[row + 5]), 2 * frame + 2)
