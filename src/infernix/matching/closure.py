"""One step of the automaton: from items before a byte or a token to everything that may come next.

An item is (state, frame): a place in a rule, and who called the rule. A frame is a set of pairs (return state, parent
frame, count). A step collects the items that the byte leads to and closes them: a call opens a *provisional* frame
for the callee, one per rule and step, so that all callers at one position share it as in an Earley chart; a final
state returns through the pairs of its frame. What the step created is made permanent in `interning`.

References to frames are frame numbers; a provisional frame p is written -(p + 1).
"""

from __future__ import annotations

from infernix.matching.arena import (
    ACCEPT,
    CALL_BEGIN,
    CALLS,
    CAPACITY,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    COUNT,
    DELTA,
    FINAL,
    FINAL_STATE,
    FLAGS,
    FRAME_WIDTH,
    FRAMES,
    FULL,
    INHERITS,
    ITEMS,
    KEPT,
    LIMIT,
    LIMIT_ITEMS,
    LIMIT_PAIRS,
    LINK_SLOTS,
    LINK_WIDTH,
    LINKS,
    LOOPS,
    MAX_STEP_ITEMS,
    MAX_STEP_PAIRS,
    MAY_END,
    NO_FRAME,
    NO_LOOP,
    NO_TARGET,
    NUM_CLASSES,
    NUM_STATES,
    PAIRS,
    PROVISIONAL,
    PROVISIONAL_OF_RULE,
    PROVISIONAL_WIDTH,
    RULES,
    SORTED,
    STAMP,
    TARGETS,
    UNBOUNDED,
    WORK,
    WORK_SLOTS,
    Arena,
    Control,
)
from infernix.matching.jit import inner

# A tail call copies the pairs of its caller; a caller with more of them is linked to instead, so that a frame's size
# stays bounded by what one step adds.
MAX_COPIED_PAIRS = 16

_HASH_A = 1000003
_HASH_B = 69069
_HASH_MASK = (1 << 31) - 1


@inner
def mix(seed: int, value: int) -> int:
    """A 31-bit hash of `seed` and `value`; never overflows 64 bits."""
    h = ((int(seed) ^ (int(value) & _HASH_MASK)) * _HASH_A + _HASH_B) & 0x7FFFFFFFFFFF
    return (h ^ (h >> 16)) & _HASH_MASK


@inner
def begin_step(A: Arena, C: Control) -> None:
    """Forgets the previous step's scratch."""
    if C[STAMP] >= _HASH_MASK - 1:
        for table, width in ((WORK_SLOTS, 3), (LINK_SLOTS, 2), (PROVISIONAL_OF_RULE, 2)):
            for row in range(C[CAPACITY + table]):
                A[C[table] + row * width] = 0
        for row in range(C[COUNT + FRAMES]):
            A[C[FRAMES] + FRAME_WIDTH * row + 6] = 0
        C[STAMP] = 0
    C[STAMP] += 1
    C[COUNT + WORK] = 0
    C[COUNT + PROVISIONAL] = 0
    C[COUNT + LINKS] = 0
    C[COUNT + INHERITS] = 0
    C[MAY_END] = 0


@inner
def add_item(A: Arena, C: Control, state: int, frame: int) -> None:
    """Puts (state, frame) on this step's list, once."""
    slots = C[WORK_SLOTS]
    last_slot = C[CAPACITY + WORK_SLOTS] - 1
    slot = mix(mix(17, state), frame) & last_slot
    while A[slots + 3 * slot] == C[STAMP]:
        if A[slots + 3 * slot + 1] == state and A[slots + 3 * slot + 2] == frame:
            return
        slot = (slot + 1) & last_slot
    row = C[COUNT + WORK]
    if row >= MAX_STEP_ITEMS:
        C[LIMIT] = LIMIT_ITEMS
        return
    if row >= C[CAPACITY + WORK]:
        C[FULL] = WORK + 1
        return
    A[slots + 3 * slot] = C[STAMP]
    A[slots + 3 * slot + 1] = state
    A[slots + 3 * slot + 2] = frame
    A[C[WORK] + 2 * row] = state
    A[C[WORK] + 2 * row + 1] = frame
    C[COUNT + WORK] = row + 1


@inner
def _provisional_frame(A: Arena, C: Control, rule: int) -> int:
    """This step's frame of `rule`; opening it puts the rule's start on the list."""
    of_rule = C[PROVISIONAL_OF_RULE] + 2 * rule
    if A[of_rule] == C[STAMP]:
        return int(A[of_rule + 1])
    provisional = C[COUNT + PROVISIONAL]
    if provisional >= C[CAPACITY + PROVISIONAL]:
        C[FULL] = PROVISIONAL + 1
        return 0
    C[COUNT + PROVISIONAL] = provisional + 1
    A[of_rule] = C[STAMP]
    A[of_rule + 1] = provisional
    row = C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional
    A[row] = rule
    A[row + 1] = -1
    A[row + 2] = 0
    A[row + 3] = NO_FRAME
    A[row + 4] = 0
    A[row + 6] = -1
    add_item(A, C, int(A[C[RULES] + 2 * rule]), -(provisional + 1))
    return int(provisional)


@inner
def add_pair(A: Arena, C: Control, provisional: int, return_state: int, parent: int, count: int) -> bool:
    """Adds a pair to a provisional frame, once; says whether it is new."""
    slots = C[LINK_SLOTS]
    links = C[LINKS]
    last_slot = C[CAPACITY + LINK_SLOTS] - 1
    slot = mix(mix(mix(provisional, return_state), parent), count) & last_slot
    while A[slots + 2 * slot] == C[STAMP]:
        link = links + LINK_WIDTH * A[slots + 2 * slot + 1]
        if A[link] == return_state and A[link + 1] == parent and A[link + 2] == count and A[link + 4] == provisional:
            return False
        slot = (slot + 1) & last_slot
    row = C[COUNT + LINKS]
    if row >= MAX_STEP_PAIRS:
        C[LIMIT] = LIMIT_PAIRS
        return False
    if row >= C[CAPACITY + LINKS]:
        C[FULL] = LINKS + 1
        return False
    A[slots + 2 * slot] = C[STAMP]
    A[slots + 2 * slot + 1] = row
    owner = C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional
    link = links + LINK_WIDTH * row
    A[link] = return_state
    A[link + 1] = parent
    A[link + 2] = count
    A[link + 3] = A[owner + 1]
    A[link + 4] = provisional
    A[owner + 1] = row
    A[owner + 2] += 1
    C[COUNT + LINKS] = row + 1
    return True


@inner
def _inherit(A: Arena, C: Control, heir: int, frame: int) -> None:
    """A tail call: `heir` returns wherever `frame` returns."""
    if frame >= 0:
        begin = A[C[FRAMES] + FRAME_WIDTH * frame]
        num_pairs = A[C[FRAMES] + FRAME_WIDTH * frame + 1]
        if num_pairs > MAX_COPIED_PAIRS:
            add_pair(A, C, heir, FINAL_STATE, frame, 0)
            return
        for row in range(begin, begin + num_pairs):
            pair = C[PAIRS] + 3 * row
            add_pair(A, C, heir, int(A[pair]), int(A[pair + 1]), int(A[pair + 2]))
        return
    ancestor = -frame - 1
    if ancestor == heir:
        return
    inherits = C[INHERITS]
    num_inherits = C[COUNT + INHERITS]
    if num_inherits >= C[CAPACITY + INHERITS]:
        C[FULL] = INHERITS + 1
        return
    A[inherits + 2 * num_inherits] = heir
    A[inherits + 2 * num_inherits + 1] = ancestor
    C[COUNT + INHERITS] = num_inherits + 1


@inner
def _saturated(minimum: int, maximum: int, count: int) -> int:
    """Without a maximum, only the iterations still owed matter."""
    if maximum == UNBOUNDED and count > minimum - 1:
        return max(minimum - 1, 0)
    return count


@inner
def _return_to(A: Arena, C: Control, return_state: int, parent: int, count: int) -> None:
    """Goes on after a callee: at the return state, or with the next iteration of a loop."""
    if return_state < C[NUM_STATES]:
        add_item(A, C, return_state, parent)
        return
    loop = C[LOOPS] + 4 * (return_state - C[NUM_STATES])
    minimum = int(A[loop])
    maximum = int(A[loop + 1])
    num_done = count + 1
    if num_done >= minimum:
        add_item(A, C, int(A[loop + 3]), parent)
    if maximum == UNBOUNDED or num_done < maximum:
        provisional = _provisional_frame(A, C, int(A[loop + 2]))
        add_pair(A, C, provisional, return_state, parent, _saturated(minimum, maximum, num_done))


@inner
def _call(A: Arena, C: Control, call: int, frame: int) -> None:
    """Follows one call edge of an item with `frame`."""
    rule = int(A[call])
    return_state = int(A[call + 1])
    loop = int(A[call + 2])
    provisional = _provisional_frame(A, C, rule)
    if loop != NO_LOOP:
        add_pair(A, C, provisional, C[NUM_STATES] + loop, frame, 0)
        if A[C[LOOPS] + 4 * loop] == 0:
            add_item(A, C, return_state, frame)
        return
    if return_state == FINAL_STATE:
        _inherit(A, C, provisional, frame)
    else:
        add_pair(A, C, provisional, return_state, frame, 0)
    if A[C[RULES] + 2 * rule + 1] != 0:
        # A nullable callee ends at once. Its own final state, met with a provisional frame, is passed over below, so
        # hidden left recursion needs no fixpoint.
        add_item(A, C, return_state, frame)


@inner
def close_step(A: Arena, C: Control) -> None:
    """Completes the list of items and the pairs of the provisional frames; stops early on FULL or LIMIT."""
    done = 0
    while done < C[COUNT + WORK] and C[FULL] == 0 and C[LIMIT] == 0:
        state = int(A[C[WORK] + 2 * done])
        frame = int(A[C[WORK] + 2 * done + 1])
        done += 1
        flags = A[C[FLAGS] + state]
        if flags & ACCEPT:
            C[MAY_END] = 1
            continue
        if flags & FINAL and frame >= 0:
            row = C[FRAMES] + FRAME_WIDTH * frame
            if A[row + 6] != C[STAMP]:
                A[row + 6] = C[STAMP]
                for pair_row in range(A[row], A[row] + A[row + 1]):
                    pair = C[PAIRS] + 3 * pair_row
                    _return_to(A, C, int(A[pair]), int(A[pair + 1]), int(A[pair + 2]))
        for call_row in range(A[C[CALL_BEGIN] + state], A[C[CALL_BEGIN] + state + 1]):
            _call(A, C, C[CALLS] + 3 * call_row, frame)
    _settle_inheritance(A, C)


@inner
def _settle_inheritance(A: Arena, C: Control) -> None:
    """Passes pairs along chains of tail calls within the step until nothing is new."""
    changed = True
    while changed and C[FULL] == 0 and C[LIMIT] == 0:
        changed = False
        for row in range(C[COUNT + INHERITS]):
            heir = int(A[C[INHERITS] + 2 * row])
            ancestor = int(A[C[INHERITS] + 2 * row + 1])
            link = int(A[C[PROVISIONAL] + PROVISIONAL_WIDTH * ancestor + 1])
            while link >= 0 and C[FULL] == 0 and C[LIMIT] == 0:
                base = C[LINKS] + LINK_WIDTH * link
                if add_pair(A, C, heir, int(A[base]), int(A[base + 1]), int(A[base + 2])):
                    changed = True
                link = int(A[C[LINKS] + LINK_WIDTH * link + 3])


@inner
def add_byte_targets(A: Arena, C: Control, item: int, byte_class: int) -> None:
    """Adds where a byte of `byte_class` leads from the item at arena offset `item`."""
    state = A[item]
    frame = int(A[item + 1])
    target = int(A[C[DELTA] + state * C[NUM_CLASSES] + byte_class])
    if target == NO_TARGET:
        return
    if target >= 0:
        add_item(A, C, target, frame)
        return
    begin = C[TARGETS] - target - 2
    for offset in range(1, A[begin] + 1):
        add_item(A, C, int(A[begin + offset]), frame)


@inner
def list_plain_targets(A: Arena, C: Control, configuration: int, byte_class: int) -> int:
    """Lists in SORTED where a byte of `byte_class` leads, if that needs no closing, and says how many items that are.

    That is so where no state that it leads to ends or calls anything, as inside a literal or a string; -1 otherwise.
    SORTED has the room: the items of the configuration itself stood there once.
    """
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    first_item = A[row] + 0
    num_listed = 0
    for item_row in range(first_item, first_item + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        target = A[C[DELTA] + A[item] * C[NUM_CLASSES] + byte_class] + 0
        if target == NO_TARGET:
            continue
        calls = C[CALL_BEGIN] + target
        if target < 0 or A[C[FLAGS] + target] != KEPT or A[calls] != A[calls + 1]:
            return -1
        listed = C[SORTED] + 3 * num_listed
        A[listed] = target
        A[listed + 1] = A[item + 1]
        A[listed + 2] = 0
        num_listed += 1
    return num_listed
