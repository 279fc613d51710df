"""Making the frames of a closed step permanent: frames that mean the same become the same number.

Frames of one step may refer to each other. Each strongly connected component is interned as a *unit*, parents before
children (Tarjan's algorithm, iterative). A frame without a cycle is known by its sorted pairs. A cyclic unit is known
by its members' pairs with references inside the unit written as positions. Pairs that others cover are left out first
(see `subsumption`), so that left recursion does not make new frames for ever.
"""

from __future__ import annotations

from infernix.matching.arena import (
    CAPACITY,
    COUNT,
    FINAL_STATE,
    FRAME_SLOTS,
    FRAME_WIDTH,
    FRAMES,
    FULL,
    LINK_WIDTH,
    LINKS,
    LOOPS,
    MAX_TOKEN_BYTES,
    NUM_STATES,
    PAIRS,
    PROVISIONAL,
    PROVISIONAL_WIDTH,
    SORTED,
    STACK,
    UNBOUNDED,
    UNKNOWN,
    Arena,
    Control,
)
from infernix.matching.closure import mix
from infernix.matching.jit import inner
from infernix.matching.sorted_rows import drop_dominated_counts, hash_rows, insert_slot, same_rows, sort_rows
from infernix.matching.subsumption import LOCAL, drop_covered


@inner
def _canonical_pairs(A: Arena, C: Control, provisional: int, begin: int) -> int:
    """Writes the frame's pairs to SORTED from row `begin`, parents settled; returns their number, or -1 on FULL."""
    row = begin
    link = int(A[C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional + 1])
    while link >= 0:
        if row >= C[CAPACITY + SORTED]:
            C[FULL] = SORTED + 1
            return -1
        source = C[LINKS] + LINK_WIDTH * link
        parent = int(A[source + 1])
        if parent < 0:
            member = C[PROVISIONAL] + PROVISIONAL_WIDTH * (-parent - 1)
            parent = int(A[member + 3])
            if parent < 0:
                parent = LOCAL + A[member + 6]
        target = C[SORTED] + 3 * row
        A[target] = A[source]
        A[target + 1] = parent
        A[target + 2] = A[source + 2]
        row += 1
        link = int(A[source + 3])
    num_rows = sort_rows(A, C, begin, row - begin)
    return drop_dominated_counts(A, C, begin, num_rows)


@inner
def append_frame(A: Arena, C: Control, begin: int, num_rows: int, unit_begin: int, unit_size: int) -> None:
    """Stores rows of SORTED as the next frame; capacity was checked, LOCAL references become frame numbers."""
    frame = C[COUNT + FRAMES]
    first_pair = C[COUNT + PAIRS]
    for i in range(num_rows):
        source = C[SORTED] + 3 * (begin + i)
        target = C[PAIRS] + 3 * (first_pair + i)
        parent = int(A[source + 1])
        A[target] = A[source]
        A[target + 1] = unit_begin + parent - LOCAL if parent >= LOCAL else parent
        A[target + 2] = A[source + 2]
    C[COUNT + PAIRS] = first_pair + num_rows
    row = C[FRAMES] + FRAME_WIDTH * frame
    hash_value = hash_rows(A, 3, C[PAIRS] + 3 * first_pair, num_rows)
    A[row] = first_pair
    A[row + 1] = num_rows
    A[row + 2] = unit_begin
    A[row + 3] = unit_size
    A[row + 4] = hash_value
    A[row + 5] = 0
    A[row + 6] = 0
    A[row + 7] = UNKNOWN
    C[COUNT + FRAMES] = frame + 1
    insert_slot(A, C, FRAME_SLOTS, hash_value, 2 * frame + 1)


@inner
def _has_room(C: Control, num_frames: int, num_pairs: int) -> bool:
    if C[COUNT + FRAMES] + num_frames > C[CAPACITY + FRAMES]:
        C[FULL] = FRAMES + 1
        return False
    if C[COUNT + PAIRS] + num_pairs > C[CAPACITY + PAIRS]:
        C[FULL] = PAIRS + 1
        return False
    return True


@inner
def _find_or_append(A: Arena, C: Control, num_rows: int) -> int:
    """The acyclic frame whose pairs are the first rows of SORTED; meaningless on FULL."""
    rows = C[SORTED]
    if num_rows == 1 and A[rows] == FINAL_STATE:
        # Returning to a state that only returns is returning to where the parent returns.
        return int(A[rows + 1])
    hash_value = hash_rows(A, 3, rows, num_rows)
    last_slot = C[CAPACITY + FRAME_SLOTS] - 1
    slot = hash_value & last_slot
    while A[C[FRAME_SLOTS] + slot] != 0:
        entry = int(A[C[FRAME_SLOTS] + slot]) - 1
        if entry % 2 == 0:
            frame = entry // 2
            row = C[FRAMES] + FRAME_WIDTH * frame
            if (
                A[row + 4] == hash_value
                and A[row + 1] == num_rows
                and same_rows(A, C[PAIRS] + 3 * A[row], rows, num_rows)
            ):
                return frame
        slot = (slot + 1) & last_slot
    frame = C[COUNT + FRAMES]
    if _has_room(C, 1, num_rows):
        append_frame(A, C, 0, num_rows, frame, 1)
    return int(frame)


@inner
def _intern_acyclic(A: Arena, C: Control, provisional: int) -> None:
    num_rows = _canonical_pairs(A, C, provisional, 0)
    if num_rows < 0:
        return
    frame = _find_or_append(A, C, drop_covered(A, C, 0, num_rows, 0))
    if C[FULL] == 0:
        _settle_clamped(A, C, frame)
        A[C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional + 3] = frame


@inner
def _clamped_count(A: Arena, C: Control, loop: int, count: int) -> int:
    """The count that stands for all those which no single token can tell apart.

    One token returns from a body at most MAX_TOKEN_BYTES times, so only bounds nearer than that matter.
    """
    minimum = int(A[C[LOOPS] + 4 * loop])
    maximum = int(A[C[LOOPS] + 4 * loop + 1])
    reach = C[MAX_TOKEN_BYTES]
    if count + reach < minimum:
        return int(minimum - reach - 1)
    if count + 1 >= minimum and maximum != UNBOUNDED and count + reach < maximum:
        return int(maximum - reach - 1)
    return count


@inner
def _settle_clamped(A: Arena, C: Control, frame: int) -> None:
    """Finds the frame's clamped form: the same with counts and parents clamped. Its parents' are settled already."""
    row = C[FRAMES] + FRAME_WIDTH * frame
    if A[row + 7] != UNKNOWN:
        return
    num_rows = int(A[row + 1])
    if num_rows > C[CAPACITY + SORTED]:
        C[FULL] = SORTED + 1
        return
    changed = False
    for i in range(num_rows):
        pair = C[PAIRS] + 3 * (A[row] + i)
        target = C[SORTED] + 3 * i
        return_state = int(A[pair])
        parent = int(A[C[FRAMES] + FRAME_WIDTH * A[pair + 1] + 7])
        count = int(A[pair + 2])
        if return_state >= C[NUM_STATES]:
            count = _clamped_count(A, C, return_state - C[NUM_STATES], count)
        changed = changed or parent != A[pair + 1] or count != A[pair + 2]
        A[target] = return_state
        A[target + 1] = parent
        A[target + 2] = count
    clamped = frame
    if changed:
        num_rows = drop_dominated_counts(A, C, 0, sort_rows(A, C, 0, num_rows))
        clamped = _find_or_append(A, C, num_rows)
        if C[FULL] != 0:
            return
        A[C[FRAMES] + FRAME_WIDTH * clamped + 7] = clamped
    A[row + 7] = clamped


@inner
def _unit_equals(A: Arena, C: Control, first: int, size: int, unit_begin: int) -> bool:
    """Whether a stored unit has the canonical form of the new one."""
    if A[C[FRAMES] + FRAME_WIDTH * unit_begin + 3] != size:
        return False
    for k in range(size):
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (first + k) + 2]
        frame = C[FRAMES] + FRAME_WIDTH * (unit_begin + k)
        if A[frame + 1] != A[member + 2]:
            return False
        for i in range(A[member + 2]):
            row = C[SORTED] + 3 * (A[member + 1] + i)
            pair = C[PAIRS] + 3 * (A[frame] + i)
            parent = int(A[row + 1])
            if parent >= LOCAL:
                parent += unit_begin - LOCAL
            if A[row] != A[pair] or parent != A[pair + 1] or A[row + 2] != A[pair + 2]:
                return False
    return True


@inner
def _intern_cyclic(A: Arena, C: Control, first: int, size: int) -> None:
    """Interns the component whose members stand on the second stack from `first` on."""
    # Members in the order of their rules: one step has one frame a rule, so this order is canonical.
    for i in range(1, size):
        j = i
        while j > 0:
            left = C[STACK] + 3 * (first + j - 1) + 2
            right = C[STACK] + 3 * (first + j) + 2
            if A[C[PROVISIONAL] + PROVISIONAL_WIDTH * A[left]] <= A[C[PROVISIONAL] + PROVISIONAL_WIDTH * A[right]]:
                break
            held = A[left]
            A[left] = A[right]
            A[right] = held
            j -= 1
    for k in range(size):
        A[C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (first + k) + 2] + 6] = k
    num_rows = 0
    for k in range(size):
        provisional = int(A[C[STACK] + 3 * (first + k) + 2])
        num_member_rows = _canonical_pairs(A, C, provisional, num_rows)
        if num_member_rows < 0:
            return
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional
        A[member + 1] = num_rows
        A[member + 2] = num_member_rows
        num_rows += num_member_rows
    hash_value = mix(5, size)
    is_cyclic = size > 1
    for k in range(size):
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (first + k) + 2]
        A[member + 2] = drop_covered(A, C, int(A[member + 1]), int(A[member + 2]), first)
        rows = C[SORTED] + 3 * A[member + 1]
        hash_value = hash_rows(A, hash_value, rows, int(A[member + 2]))
        for i in range(A[member + 2]):
            is_cyclic = is_cyclic or A[rows + 3 * i + 1] >= LOCAL
    if not is_cyclic:
        # What made it cyclic was covered: left recursion that adds nothing.
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * first + 2]
        frame = _find_or_append(A, C, int(A[member + 2]))
        if C[FULL] == 0:
            _settle_clamped(A, C, frame)
            A[member + 3] = frame
        return
    last_slot = C[CAPACITY + FRAME_SLOTS] - 1
    slot = hash_value & last_slot
    unit_begin = C[COUNT + FRAMES]
    found = False
    while A[C[FRAME_SLOTS] + slot] != 0 and not found:
        entry = int(A[C[FRAME_SLOTS] + slot]) - 1
        if entry % 2 == 1:
            known = entry // 2
            if A[C[FRAMES] + FRAME_WIDTH * known + 5] == hash_value and _unit_equals(A, C, first, size, known):
                unit_begin = known
                found = True
        slot = (slot + 1) & last_slot
    if not found:
        if not _has_room(C, size, num_rows):
            return
        for k in range(size):
            member = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (first + k) + 2]
            append_frame(A, C, int(A[member + 1]), int(A[member + 2]), unit_begin, size)
            # Counts inside a cycle are left as they are: its masks are right, only not shared.
            A[C[FRAMES] + FRAME_WIDTH * (unit_begin + k) + 7] = unit_begin + k
        A[C[FRAMES] + FRAME_WIDTH * unit_begin + 5] = hash_value
        insert_slot(A, C, FRAME_SLOTS, hash_value, 2 * unit_begin + 2)
    for k in range(size):
        A[C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (first + k) + 2] + 3] = unit_begin + k


@inner
def _refers_to_itself(A: Arena, C: Control, provisional: int) -> bool:
    link = int(A[C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional + 1])
    while link >= 0:
        if A[C[LINKS] + LINK_WIDTH * link + 1] == -(provisional + 1):
            return True
        link = int(A[C[LINKS] + LINK_WIDTH * link + 3])
    return False


@inner
def intern_frames_from(A: Arena, C: Control, root: int) -> None:
    """Interns the provisional frame `root` and all provisional frames it can return to."""
    if A[C[PROVISIONAL] + PROVISIONAL_WIDTH * root + 4] != 0:
        return
    stack = C[STACK]
    # Two stacks in one table: columns 0 and 1 hold the search path, column 2 the members of open components. Both are
    # empty between searches, so visit numbers may begin anew.
    if 2 * C[COUNT + PROVISIONAL] + 2 > C[CAPACITY + STACK]:
        C[FULL] = STACK + 1
        return
    path_length = 1
    num_open = 0
    num_visited = 1
    A[stack] = root
    A[stack + 1] = A[C[PROVISIONAL] + PROVISIONAL_WIDTH * root + 1]
    A[stack + 2] = root
    num_open = 1
    A[C[PROVISIONAL] + PROVISIONAL_WIDTH * root + 4] = 1
    A[C[PROVISIONAL] + PROVISIONAL_WIDTH * root + 5] = 1
    while path_length > 0:
        top = stack + 3 * (path_length - 1)
        provisional = int(A[top])
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * provisional
        link = int(A[top + 1])
        if link >= 0:
            A[top + 1] = A[C[LINKS] + LINK_WIDTH * link + 3]
            parent = int(A[C[LINKS] + LINK_WIDTH * link + 1])
            if parent >= 0:
                continue
            other = -parent - 1
            other_row = C[PROVISIONAL] + PROVISIONAL_WIDTH * other
            if A[other_row + 4] == 0:
                num_visited += 1
                A[other_row + 4] = num_visited
                A[other_row + 5] = num_visited
                A[stack + 3 * path_length] = other
                A[stack + 3 * path_length + 1] = A[other_row + 1]
                path_length += 1
                A[stack + 3 * num_open + 2] = other
                num_open += 1
            elif A[other_row + 3] < 0 and A[other_row + 4] < A[member + 5]:
                A[member + 5] = A[other_row + 4]
            continue
        path_length -= 1
        if path_length > 0:
            caller = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[stack + 3 * (path_length - 1)]
            if A[member + 5] < A[caller + 5]:
                A[caller + 5] = A[member + 5]
        if A[member + 5] != A[member + 4]:
            continue
        first = num_open - 1
        while A[stack + 3 * first + 2] != provisional:
            first -= 1
        if num_open - first > 1 or _refers_to_itself(A, C, provisional):
            _intern_cyclic(A, C, first, num_open - first)
        else:
            _intern_acyclic(A, C, provisional)
        if C[FULL] != 0:
            return
        num_open = first
