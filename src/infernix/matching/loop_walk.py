"""Where a loop is all that goes on: configurations in which the characters of a set move one item, round its loop.

What such characters lead to is the same for all of them, and behind them a configuration of the same kind: it has the
loop's item alone, and what that returns to. So a token's beginning out of such characters matters by its length at
most, and not even that where the loop is not counted, or where its bounds are out of a token's reach.
"""

from __future__ import annotations

from infernix.matching.arena import (
    BODY_IS_EVEN,
    CONFIGURATION_WIDTH,
    CONFIGURATIONS,
    DELTA,
    FRAME_WIDTH,
    FRAMES,
    ITEMS,
    LOOP_STARTS,
    LOOPS,
    MAX_TOKEN_BYTES,
    NO_TARGET,
    NUM_CLASSES,
    NUM_STATES,
    OWN_IS_EVEN,
    PAIRS,
    RULES,
    STATE_LOOPS,
    UNBOUNDED,
    Arena,
    Control,
)
from infernix.matching.jit import inner

NOTHING_MOVES = -1
OTHERS_MOVE = -2


@inner
def loop_start(A: Arena, C: Control, loop_set: int) -> int:
    """An ASCII byte of the set, or NO_BYTE."""
    return int(A[C[LOOP_STARTS] + loop_set * (1 + C[NUM_CLASSES])])


@inner
def moving_item(A: Arena, C: Control, configuration: int, loop_set: int) -> int:
    """Arena offset of the only item that a character of the set moves, where that goes round on the set evenly.

    NOTHING_MOVES where the characters lead nowhere, OTHERS_MOVE where they lead elsewhere, too.
    """
    starts = C[LOOP_STARTS] + loop_set * (1 + C[NUM_CLASSES]) + 1
    row = C[CONFIGURATIONS] + CONFIGURATION_WIDTH * configuration
    found = NOTHING_MOVES
    for item_row in range(A[row], A[row] + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        targets = C[DELTA] + A[item] * C[NUM_CLASSES]
        moves = False
        for byte_class in range(C[NUM_CLASSES]):
            moves = moves or (A[starts + byte_class] != 0 and A[targets + byte_class] != NO_TARGET)
        if not moves:
            continue
        loops = C[STATE_LOOPS] + 3 * A[item]
        own = A[loops] == loop_set and A[loops + 2] & OWN_IS_EVEN != 0
        body = A[loops + 1] == loop_set and A[loops + 2] & BODY_IS_EVEN != 0
        if found != NOTHING_MOVES or not (own or body):
            return OTHERS_MOVE
        found = item
    return int(found)


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
