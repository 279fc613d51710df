"""Making a closed step permanent: frames and configurations that mean the same become the same number.

Frames of one step may refer to each other. Each strongly connected component is interned as a *unit*, parents before
children (Tarjan's algorithm, iterative). A frame without a cycle is known by its sorted pairs. A cyclic unit is known
by its members' pairs with references inside the unit written as positions. Pairs and items that others cover are left
out first (see `subsumption`), so that left recursion does not make new frames for ever.
"""

from __future__ import annotations

from infernix.matching.arena import (
    ACCEPT_STATE,
    CAPACITY,
    CONFIGURATION_SLOTS,
    CONFIGURATIONS,
    COUNT,
    DEAD,
    FINAL_STATE,
    FLAGS,
    FRAME_SLOTS,
    FRAMES,
    FULL,
    ITEMS,
    KEPT,
    LIMIT,
    LINKS,
    LOOPS,
    MAX_TOKEN_BYTES,
    MAY_END,
    NEXT,
    NO_LIMIT,
    NUM_CLASSES,
    NUM_STATES,
    PAIRS,
    PROVISIONAL,
    ROOT_FRAME,
    RULES,
    SORTED,
    STACK,
    STATE_LOOPS,
    STOPPED,
    UNBOUNDED,
    UNKNOWN,
    WORK,
    Arena,
    Control,
)
from infernix.matching.closure import add_item, begin_step, close_step, mix
from infernix.matching.jit import inner, kernel
from infernix.matching.subsumption import LOCAL, drop_covered

@inner
def _row_less(A: Arena, left: int, right: int) -> bool:
    for column in range(3):
        if A[left + column] != A[right + column]:
            return bool(A[left + column] < A[right + column])
    return False


@inner
def _sort_rows(A: Arena, C: Control, begin: int, num_rows: int) -> int:
    """Sorts rows of SORTED in place (Shell sort), drops doubles, returns how many are left."""
    base = C[SORTED] + 3 * begin
    gap = 1
    while gap < num_rows // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, num_rows):
            j = i
            while j >= gap and _row_less(A, base + 3 * j, base + 3 * (j - gap)):
                for column in range(3):
                    low = base + 3 * (j - gap) + column
                    high = base + 3 * j + column
                    held = A[low]
                    A[low] = A[high]
                    A[high] = held
                j -= gap
        gap //= 3
    num_kept = 0
    for i in range(num_rows):
        if num_kept == 0 or _row_less(A, base + 3 * (num_kept - 1), base + 3 * i):
            for column in range(3):
                A[base + 3 * num_kept + column] = A[base + 3 * i + column]
            num_kept += 1
    return num_kept


@inner
def _drop_dominated_counts(A: Arena, C: Control, begin: int, num_rows: int) -> int:
    """Of several counts of one loop under one parent, keeps those that the future can tell apart.

    With nothing owed any more the lowest count can do all that a higher one can; without a maximum the highest one
    can. Rows are sorted, so the counts of one (loop, parent) are neighbours in ascending order.
    """
    base = C[SORTED] + 3 * begin
    num_kept = 0
    for i in range(num_rows):
        row = base + 3 * i
        if A[row] >= C[NUM_STATES] and num_kept > 0:
            last = base + 3 * (num_kept - 1)
            if A[last] == A[row] and A[last + 1] == A[row + 1]:
                loop = C[LOOPS] + 4 * (A[row] - C[NUM_STATES])
                if A[loop + 1] == UNBOUNDED:
                    A[last + 2] = A[row + 2]
                    continue
                if A[last + 2] + 1 >= A[loop]:
                    continue
        for column in range(3):
            A[base + 3 * num_kept + column] = A[row + column]
        num_kept += 1
    return num_kept


@inner
def _hash_rows(A: Arena, seed: int, begin: int, num_rows: int) -> int:
    h = mix(seed, num_rows)
    for offset in range(begin, begin + 3 * num_rows):
        h = mix(h, A[offset])
    return h


@inner
def _insert_slot(A: Arena, C: Control, table: int, hash_value: int, entry: int) -> None:
    last_slot = C[CAPACITY + table] - 1
    slot = hash_value & last_slot
    while A[C[table] + slot] != 0:
        slot = (slot + 1) & last_slot
    A[C[table] + slot] = entry


@inner
def _canonical_pairs(A: Arena, C: Control, provisional: int, begin: int) -> int:
    """Writes the frame's pairs to SORTED from row `begin`, parents settled; returns their number, or -1 on FULL."""
    row = begin
    link = int(A[C[PROVISIONAL] + 7 * provisional + 1])
    while link >= 0:
        if row >= C[CAPACITY + SORTED]:
            C[FULL] = SORTED + 1
            return -1
        source = C[LINKS] + 5 * link
        parent = int(A[source + 1])
        if parent < 0:
            member = C[PROVISIONAL] + 7 * (-parent - 1)
            parent = int(A[member + 3])
            if parent < 0:
                parent = LOCAL + A[member + 6]
        target = C[SORTED] + 3 * row
        A[target] = A[source]
        A[target + 1] = parent
        A[target + 2] = A[source + 2]
        row += 1
        link = int(A[source + 3])
    num_rows = _sort_rows(A, C, begin, row - begin)
    return _drop_dominated_counts(A, C, begin, num_rows)


@inner
def _same_rows(A: Arena, left: int, right: int, num_rows: int) -> bool:
    for offset in range(3 * num_rows):  # noqa: SIM110  (a kernel has no generators)
        if A[left + offset] != A[right + offset]:
            return False
    return True


@inner
def _append_frame(A: Arena, C: Control, begin: int, num_rows: int, unit_begin: int, unit_size: int) -> None:
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
    row = C[FRAMES] + 8 * frame
    hash_value = _hash_rows(A, 3, C[PAIRS] + 3 * first_pair, num_rows)
    A[row] = first_pair
    A[row + 1] = num_rows
    A[row + 2] = unit_begin
    A[row + 3] = unit_size
    A[row + 4] = hash_value
    A[row + 5] = 0
    A[row + 6] = 0
    A[row + 7] = UNKNOWN
    C[COUNT + FRAMES] = frame + 1
    _insert_slot(A, C, FRAME_SLOTS, hash_value, 2 * frame + 1)


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
    hash_value = _hash_rows(A, 3, rows, num_rows)
    last_slot = C[CAPACITY + FRAME_SLOTS] - 1
    slot = hash_value & last_slot
    while A[C[FRAME_SLOTS] + slot] != 0:
        entry = int(A[C[FRAME_SLOTS] + slot]) - 1
        if entry % 2 == 0:
            frame = entry // 2
            row = C[FRAMES] + 8 * frame
            if (
                A[row + 4] == hash_value
                and A[row + 1] == num_rows
                and _same_rows(A, C[PAIRS] + 3 * A[row], rows, num_rows)
            ):
                return frame
        slot = (slot + 1) & last_slot
    frame = C[COUNT + FRAMES]
    if _has_room(C, 1, num_rows):
        _append_frame(A, C, 0, num_rows, frame, 1)
    return int(frame)


@inner
def _intern_acyclic(A: Arena, C: Control, provisional: int) -> None:
    num_rows = _canonical_pairs(A, C, provisional, 0)
    if num_rows < 0:
        return
    frame = _find_or_append(A, C, drop_covered(A, C, 0, num_rows, 0))
    if C[FULL] == 0:
        _settle_clamped(A, C, frame)
        A[C[PROVISIONAL] + 7 * provisional + 3] = frame


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
    row = C[FRAMES] + 8 * frame
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
        parent = int(A[C[FRAMES] + 8 * A[pair + 1] + 7])
        count = int(A[pair + 2])
        if return_state >= C[NUM_STATES]:
            count = _clamped_count(A, C, return_state - C[NUM_STATES], count)
        changed = changed or parent != A[pair + 1] or count != A[pair + 2]
        A[target] = return_state
        A[target + 1] = parent
        A[target + 2] = count
    clamped = frame
    if changed:
        num_rows = _drop_dominated_counts(A, C, 0, _sort_rows(A, C, 0, num_rows))
        clamped = _find_or_append(A, C, num_rows)
        if C[FULL] != 0:
            return
        A[C[FRAMES] + 8 * clamped + 7] = clamped
    A[row + 7] = clamped


@inner
def _unit_equals(A: Arena, C: Control, first: int, size: int, unit_begin: int) -> bool:
    """Whether a stored unit has the canonical form of the new one."""
    if A[C[FRAMES] + 8 * unit_begin + 3] != size:
        return False
    for k in range(size):
        member = C[PROVISIONAL] + 7 * A[C[STACK] + 3 * (first + k) + 2]
        frame = C[FRAMES] + 8 * (unit_begin + k)
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
            if A[C[PROVISIONAL] + 7 * A[left]] <= A[C[PROVISIONAL] + 7 * A[right]]:
                break
            held = A[left]
            A[left] = A[right]
            A[right] = held
            j -= 1
    for k in range(size):
        A[C[PROVISIONAL] + 7 * A[C[STACK] + 3 * (first + k) + 2] + 6] = k
    num_rows = 0
    for k in range(size):
        provisional = int(A[C[STACK] + 3 * (first + k) + 2])
        num_member_rows = _canonical_pairs(A, C, provisional, num_rows)
        if num_member_rows < 0:
            return
        member = C[PROVISIONAL] + 7 * provisional
        A[member + 1] = num_rows
        A[member + 2] = num_member_rows
        num_rows += num_member_rows
    hash_value = mix(5, size)
    is_cyclic = size > 1
    for k in range(size):
        member = C[PROVISIONAL] + 7 * A[C[STACK] + 3 * (first + k) + 2]
        A[member + 2] = drop_covered(A, C, int(A[member + 1]), int(A[member + 2]), first)
        rows = C[SORTED] + 3 * A[member + 1]
        hash_value = _hash_rows(A, hash_value, rows, int(A[member + 2]))
        for i in range(A[member + 2]):
            is_cyclic = is_cyclic or A[rows + 3 * i + 1] >= LOCAL
    if not is_cyclic:
        # What made it cyclic was covered: left recursion that adds nothing.
        member = C[PROVISIONAL] + 7 * A[C[STACK] + 3 * first + 2]
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
            if A[C[FRAMES] + 8 * known + 5] == hash_value and _unit_equals(A, C, first, size, known):
                unit_begin = known
                found = True
        slot = (slot + 1) & last_slot
    if not found:
        if not _has_room(C, size, num_rows):
            return
        for k in range(size):
            member = C[PROVISIONAL] + 7 * A[C[STACK] + 3 * (first + k) + 2]
            _append_frame(A, C, int(A[member + 1]), int(A[member + 2]), unit_begin, size)
            # Counts inside a cycle are left as they are: its masks are right, only not shared.
            A[C[FRAMES] + 8 * (unit_begin + k) + 7] = unit_begin + k
        A[C[FRAMES] + 8 * unit_begin + 5] = hash_value
        _insert_slot(A, C, FRAME_SLOTS, hash_value, 2 * unit_begin + 2)
    for k in range(size):
        A[C[PROVISIONAL] + 7 * A[C[STACK] + 3 * (first + k) + 2] + 3] = unit_begin + k


@inner
def _refers_to_itself(A: Arena, C: Control, provisional: int) -> bool:
    link = int(A[C[PROVISIONAL] + 7 * provisional + 1])
    while link >= 0:
        if A[C[LINKS] + 5 * link + 1] == -(provisional + 1):
            return True
        link = int(A[C[LINKS] + 5 * link + 3])
    return False


@inner
def _intern_frames_from(A: Arena, C: Control, root: int) -> None:
    """Interns the provisional frame `root` and all provisional frames it can return to."""
    if A[C[PROVISIONAL] + 7 * root + 4] != 0:
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
    A[stack + 1] = A[C[PROVISIONAL] + 7 * root + 1]
    A[stack + 2] = root
    num_open = 1
    A[C[PROVISIONAL] + 7 * root + 4] = 1
    A[C[PROVISIONAL] + 7 * root + 5] = 1
    while path_length > 0:
        top = stack + 3 * (path_length - 1)
        provisional = int(A[top])
        member = C[PROVISIONAL] + 7 * provisional
        link = int(A[top + 1])
        if link >= 0:
            A[top + 1] = A[C[LINKS] + 5 * link + 3]
            parent = int(A[C[LINKS] + 5 * link + 1])
            if parent >= 0:
                continue
            other = -parent - 1
            other_row = C[PROVISIONAL] + 7 * other
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
            caller = C[PROVISIONAL] + 7 * A[stack + 3 * (path_length - 1)]
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


@inner
def intern_step(A: Arena, C: Control) -> int:
    """The configuration of the closed step; meaningless if FULL or LIMIT is set afterwards."""
    if C[FULL] != 0 or C[LIMIT] != 0:
        return DEAD
    for row in range(C[COUNT + WORK]):
        item = C[WORK] + 2 * row
        if A[C[FLAGS] + A[item]] & KEPT and A[item + 1] < 0:
            _intern_frames_from(A, C, -int(A[item + 1]) - 1)
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
            A[target + 1] = frame if frame >= 0 else A[C[PROVISIONAL] + 7 * (-frame - 1) + 3]
            A[target + 2] = 0
            num_items += 1
    if num_items == 0 and C[MAY_END] == 0:
        return DEAD
    num_items = _sort_rows(A, C, 0, num_items)
    return _intern_configuration(A, C, drop_covered(A, C, 0, num_items, 0))


@inner
def _intern_configuration(A: Arena, C: Control, num_items: int) -> int:
    rows = C[SORTED]
    hash_value = _hash_rows(A, 7 + C[MAY_END], rows, num_items)
    last_slot = C[CAPACITY + CONFIGURATION_SLOTS] - 1
    slot = hash_value & last_slot
    while A[C[CONFIGURATION_SLOTS] + slot] != 0:
        configuration = int(A[C[CONFIGURATION_SLOTS] + slot]) - 1
        row = C[CONFIGURATIONS] + 7 * configuration
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
    row = C[CONFIGURATIONS] + 7 * configuration
    A[row] = first_row
    A[row + 1] = num_items
    A[row + 2] = C[MAY_END]
    A[row + 3] = hash_value
    A[row + 6] = UNKNOWN
    _set_loop(A, C, configuration)
    C[COUNT + CONFIGURATIONS] = configuration + 1
    _insert_slot(A, C, CONFIGURATION_SLOTS, hash_value, configuration + 1)
    return int(configuration)


@inner
def _set_loop(A: Arena, C: Control, configuration: int) -> None:
    """Notes the largest set of atoms that some item goes round on, and for how many characters it can."""
    row = C[CONFIGURATIONS] + 7 * configuration
    best_set = 0
    best_left = 0
    for item_row in range(A[row], A[row] + A[row + 1]):
        item = C[ITEMS] + 2 * item_row
        state = A[item]
        own = int(A[C[STATE_LOOPS] + 2 * state])
        if own > best_set or (own == best_set and own != 0):
            best_set = own
            best_left = NO_LIMIT
        body = int(A[C[STATE_LOOPS] + 2 * state + 1])
        if body == 0 or body < best_set:
            continue
        frame = C[FRAMES] + 8 * A[item + 1]
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


@kernel
def clamped_configuration(A: Arena, C: Control, configuration: int) -> int:
    """The configuration with the same mask that stands for all that differ in far away bounds only, or STOPPED."""
    known = int(A[C[CONFIGURATIONS] + 7 * configuration + 6])
    if known != UNKNOWN:
        return known
    row = C[CONFIGURATIONS] + 7 * configuration
    num_items = int(A[row + 1])
    if num_items > C[CAPACITY + SORTED]:
        C[FULL] = SORTED + 1
        return STOPPED
    changed = False
    for i in range(num_items):
        item = C[ITEMS] + 2 * (A[row] + i)
        target = C[SORTED] + 3 * i
        A[target] = A[item]
        A[target + 1] = A[C[FRAMES] + 8 * A[item + 1] + 7]
        A[target + 2] = 0
        changed = changed or A[target + 1] != A[item + 1]
    clamped = configuration
    if changed:
        C[MAY_END] = A[row + 2]
        clamped = _intern_configuration(A, C, _sort_rows(A, C, 0, num_items))
        if C[FULL] != 0:
            return STOPPED
        A[C[CONFIGURATIONS] + 7 * clamped + 6] = clamped
    A[C[CONFIGURATIONS] + 7 * configuration + 6] = clamped
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
    _append_frame(A, C, 0, 1, 0, 1)
    A[C[FRAMES] + 7] = ROOT_FRAME


@kernel
def start_configuration(A: Arena, C: Control, root_rule: int) -> int:
    """The configuration before the first byte, or STOPPED."""
    begin_step(A, C)
    add_item(A, C, int(A[C[RULES] + 2 * root_rule]), ROOT_FRAME)
    close_step(A, C)
    result = intern_step(A, C)
    return STOPPED if C[FULL] != 0 or C[LIMIT] != 0 else result


@kernel
def rebuild_slots(A: Arena, C: Control) -> None:
    """Fills both hash tables again from what is stored."""
    for table in (CONFIGURATION_SLOTS, FRAME_SLOTS):
        for slot in range(C[CAPACITY + table]):
            A[C[table] + slot] = 0
    for configuration in range(1, C[COUNT + CONFIGURATIONS]):
        hash_value = int(A[C[CONFIGURATIONS] + 7 * configuration + 3])
        _insert_slot(A, C, CONFIGURATION_SLOTS, hash_value, configuration + 1)
    for frame in range(C[COUNT + FRAMES]):
        row = C[FRAMES] + 8 * frame
        _insert_slot(A, C, FRAME_SLOTS, int(A[row + 4]), 2 * frame + 1)
        if A[row + 5] != 0:
            _insert_slot(A, C, FRAME_SLOTS, int(A[row + 5]), 2 * frame + 2)
