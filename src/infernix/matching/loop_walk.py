"""Where a loop is all that goes on: configurations in which the characters of a set move one item, round its loop.

What such characters lead to is the same for all of them, and behind them a configuration of the same kind: it has the
loop's item alone, and what that returns to. So a token's beginning out of such characters matters by its length at
most, and not even that where the loop is not counted, or where its bounds are out of a token's reach.
"""

from __future__ import annotations

from infernix.matching.arena import (
    BODY_IS_EVEN,
    BODY_SET,
    CAPACITY,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DELTA,
    EVENNESS,
    EXACT_LEFT,
    EXACT_SET,
    FRAME_WIDTH,
    FRAMES,
    ITEMS,
    LOOP_SETS,
    LOOP_STARTS,
    LOOPS,
    MAX_TOKEN_BYTES,
    MOVED_BY,
    NO_TARGET,
    NUM_CLASSES,
    NUM_STATES,
    OWN_IS_EVEN,
    OWN_SET,
    PAIRS,
    RULES,
    RUN_SET,
    STAND_INS,
    STATE_LOOPS,
    STATE_LOOPS_WIDTH,
    UNBOUNDED,
    Arena,
    Control,
)
from infernix.matching.jit import inner

NOTHING_MOVES = -1
OTHERS_MOVE = -2
_NUM_REMEMBERED_SETS = 31


@inner
def loop_start(A: Arena, C: Control, loop_set: int) -> int:
    """An ASCII byte of the set, or NO_BYTE."""
    return int(A[C[LOOP_STARTS] + loop_set * (1 + C[NUM_CLASSES])])


@inner
def _finds_step(A: Arena, C: Control, state: int, loop_set: int) -> bool:
    """Whether a character of the set can begin with a byte that leads somewhere."""
    starts = C[LOOP_STARTS] + loop_set * (1 + C[NUM_CLASSES]) + 1
    targets = C[DELTA] + state * C[NUM_CLASSES]
    for byte_class in range(C[NUM_CLASSES]):
        if A[starts + byte_class] != 0 and A[targets + byte_class] != NO_TARGET:
            return True
    return False


@inner
def _is_moved(A: Arena, C: Control, state: int, loop_set: int) -> bool:
    """The same, remembered for the first sets."""
    cell = C[STATE_LOOPS] + STATE_LOOPS_WIDTH * state + MOVED_BY
    if loop_set >= _NUM_REMEMBERED_SETS:
        return _finds_step(A, C, state, loop_set)
    if A[cell] == 0:
        bits = 1
        for number in range(1, min(C[CAPACITY + LOOP_SETS], _NUM_REMEMBERED_SETS)):
            if _finds_step(A, C, state, number):
                bits |= 1 << number
        A[cell] = bits
    return bool((A[cell] >> loop_set) & 1 != 0)


@inner
def moving_item(A: Arena, C: Control, configuration: int, loop_set: int) -> int:
    """Arena offset of the only item that a character of the set moves, where that goes round on the set evenly.

    Of several that it leads back to themselves, the first. NOTHING_MOVES where the characters lead nowhere, OTHERS_MOVE
    where they lead elsewhere, too.
    """
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    found = NOTHING_MOVES
    found_own = False
    for item_row in range(A[row], A[row] + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        if not _is_moved(A, C, int(A[item]), loop_set):
            continue
        loops = C[STATE_LOOPS] + STATE_LOOPS_WIDTH * A[item]
        own = A[loops + OWN_SET] == loop_set and A[loops + EVENNESS] & OWN_IS_EVEN != 0
        body = A[loops + BODY_SET] == loop_set and A[loops + EVENNESS] & BODY_IS_EVEN != 0
        if found != NOTHING_MOVES:
            if own and found_own:
                continue
            return OTHERS_MOVE
        if not (own or body or A[loops + RUN_SET] == loop_set):
            return OTHERS_MOVE
        found = item
        found_own = own
    return int(found)


@inner
def exact_stretch(A: Arena, C: Control, configuration: int) -> tuple[int, int]:
    """The set of an exact stretch that all of the configuration's items have that its characters move, and its length.

    Zeros where there is none.
    """
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    exact_set = 0
    left = 0
    for item_row in range(A[row], A[row] + A[row + 1]):
        loops = C[STATE_LOOPS] + STATE_LOOPS_WIDTH * A[C[ITEMS] + 2 * item_row]
        if A[loops + EXACT_SET] > exact_set:
            exact_set = int(A[loops + EXACT_SET])
            left = int(A[loops + EXACT_LEFT])
    if exact_set == 0:
        return 0, 0
    for item_row in range(A[row], A[row] + A[row + 1]):
        state = int(A[C[ITEMS] + 2 * item_row])
        loops = C[STATE_LOOPS] + STATE_LOOPS_WIDTH * state
        if A[loops + EXACT_SET] == exact_set:
            if A[loops + EXACT_LEFT] != left:
                return 0, 0
        elif _is_moved(A, C, state, exact_set):
            return 0, 0
    return exact_set, left


@inner
def are_same_to_tokens(A: Arena, C: Control, left: int, right: int) -> bool:
    """Whether two configurations differ, item by item, in nothing that a token could tell apart."""
    left_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * left
    right_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * right
    if A[left_row + 1] != A[right_row + 1]:
        return False
    for i in range(A[left_row + 1]):
        item = C[ITEMS] + 2 * (A[left_row] + i)
        other = C[ITEMS] + 2 * (A[right_row] + i)
        if A[C[STAND_INS] + A[item]] != A[C[STAND_INS] + A[other]]:
            return False
        if A[C[FRAMES] + FRAME_WIDTH * A[item + 1] + 7] != A[C[FRAMES] + FRAME_WIDTH * A[other + 1] + 7]:
            return False
    return True


@inner
def _counting_pair(A: Arena, C: Control, item: int) -> int:
    """Arena offset of the pair that counts the loop whose body the item is at the beginning of, or -1.

    -1 also where the frame has other pairs.
    """
    frame = C[FRAMES] + FRAME_WIDTH * A[item + 1]
    pair = C[PAIRS] + 3 * A[frame]
    if A[frame + 1] != 1 or A[pair] < C[NUM_STATES]:
        return -1
    loop = C[LOOPS] + 4 * (A[pair] - C[NUM_STATES])
    return int(pair) if A[C[RULES] + 2 * A[loop + 2]] == A[item] else -1


@inner
def is_far_from_bounds(A: Arena, C: Control, item: int) -> bool:
    """Whether no token's characters can carry the item's loop past a bound, the current iteration left aside."""
    pair = _counting_pair(A, C, item)
    if pair < 0:
        return False
    loop = C[LOOPS] + 4 * (A[pair] - C[NUM_STATES])
    minimum = A[loop]
    maximum = A[loop + 1]
    count = A[pair + 2]
    if maximum == UNBOUNDED and count >= minimum - 1:
        return True
    if count + C[MAX_TOKEN_BYTES] < minimum:
        return True
    return bool(count >= minimum and maximum - count > C[MAX_TOKEN_BYTES])


@inner
def is_past_minimum(A: Arena, C: Control, item: int) -> bool:
    """Whether the loop may be left as often as it likes, the current iteration left aside."""
    pair = _counting_pair(A, C, item)
    return bool(pair >= 0 and A[pair + 2] >= A[C[LOOPS] + 4 * (A[pair] - C[NUM_STATES])])


@inner
def is_next_iteration(A: Arena, C: Control, item: int, following: int) -> bool:
    """Whether two items are at the beginning of one loop's body, the second one iteration later."""
    pair = _counting_pair(A, C, item)
    later = _counting_pair(A, C, following)
    return bool(
        pair >= 0
        and later >= 0
        and A[item] == A[following]
        and A[pair] == A[later]
        and A[pair + 1] == A[later + 1]
        and A[pair + 2] + 1 == A[later + 2]
    )


@inner
def differ_in_far_count(A: Arena, C: Control, left: int, right: int, reach: int) -> bool:
    """Whether two configurations differ in nothing but the count of one loop that both go round on.

    Both are past its minimum, and further from its maximum than `reach` characters lead.
    """
    left_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * left
    right_row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * right
    loop_set = int(A[left_row + 4])
    num_items = int(A[left_row + 1])
    if loop_set == 0 or A[right_row + 4] != loop_set or A[right_row + 1] != num_items:
        return False
    if A[right_row + 2] != A[left_row + 2]:
        return False
    item = moving_item(A, C, left, loop_set)
    if item < 0 or moving_item(A, C, right, loop_set) - 2 * A[right_row] != item - 2 * A[left_row]:
        return False
    for i in range(num_items):
        here = C[ITEMS] + 2 * (A[left_row] + i)
        there = C[ITEMS] + 2 * (A[right_row] + i)
        if A[here] != A[there]:
            return False
        if here != item:
            if A[here + 1] != A[there + 1]:
                return False
            continue
        pair = _counting_pair(A, C, here)
        other = _counting_pair(A, C, there)
        if pair < 0 or other < 0 or A[pair] != A[other] or A[pair + 1] != A[other + 1]:
            return False
        loop = C[LOOPS] + 4 * (A[pair] - C[NUM_STATES])
        most = max(A[pair + 2], A[other + 2])
        if min(A[pair + 2], A[other + 2]) < A[loop] or A[loop + 1] == UNBOUNDED or A[loop + 1] - most <= reach:
            return False
    return True
