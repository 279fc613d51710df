"""Leaving out what another caller covers: simulation between frames.

A frame g is covered by a frame h where h can return wherever g can, and go on covering it there: for every pair
(return state, parent, count) of g, h has one with the same return state and count whose parent covers g's parent. Then
all texts that may follow under g may follow under h, and of two pairs or items that differ only in their frame the
covered one adds nothing. Without this, ambiguous recursion piles up callers without end although the language does
not need them. The relation is the greatest one of its kind (coinductive), so frames may refer to each other.
"""

from __future__ import annotations

from infernix.matching.arena import (
    CAPACITY,
    COVERINGS,
    FRAME_WIDTH,
    FRAMES,
    PAIRS,
    PROVISIONAL,
    PROVISIONAL_WIDTH,
    RELATION,
    SORTED,
    STACK,
    Arena,
    Control,
)
from infernix.matching.closure import mix
from infernix.matching.jit import inner

# In a unit's canonical form its own members are parents LOCAL + position: they sort behind all other frames, as their
# numbers will once the unit is stored.
LOCAL = 1 << 30
# Beyond these figures nothing is left out, which costs time and memory but is right.
MAX_COMPARISONS = 192
MAX_GROUP = 12
MAX_ROWS_COMPARED = 64


@inner
def _rows_of(A: Arena, C: Control, frame: int, unit: int) -> tuple[int, int]:
    """Arena offset and number of a frame's pairs; `unit` is the first stack row of the members of LOCAL frames."""
    if frame >= LOCAL:
        member = C[PROVISIONAL] + PROVISIONAL_WIDTH * A[C[STACK] + 3 * (unit + frame - LOCAL) + 2]
        return int(C[SORTED] + 3 * A[member + 1]), int(A[member + 2])
    row = C[FRAMES] + FRAME_WIDTH * frame
    return int(C[PAIRS] + 3 * A[row]), int(A[row + 1])


@inner
def _remembered(A: Arena, C: Control, left: int, right: int) -> int:
    """1: known to be covered, 0: known not to be, -1: not known."""
    if left >= LOCAL or right >= LOCAL:
        return -1
    slot = C[COVERINGS] + 3 * (mix(mix(11, left), right) & (C[CAPACITY + COVERINGS] - 1))
    if A[slot] == left + 1 and A[slot + 1] == right:
        return int(A[slot + 2])
    return -1


@inner
def _remember(A: Arena, C: Control, left: int, right: int, covered: int) -> None:
    if left < LOCAL and right < LOCAL:
        slot = C[COVERINGS] + 3 * (mix(mix(11, left), right) & (C[CAPACITY + COVERINGS] - 1))
        A[slot] = left + 1
        A[slot + 1] = right
        A[slot + 2] = covered


@inner
def _question(A: Arena, C: Control, num_questions: int, left: int, right: int) -> int:
    """Position of a question on the list of open ones, or -1."""
    for i in range(num_questions):
        if A[C[RELATION] + 3 * i] == left and A[C[RELATION] + 3 * i + 1] == right:
            return i
    return -1


@inner
def is_covered(A: Arena, C: Control, left: int, right: int, unit: int) -> bool:
    """Whether frame `right` covers frame `left`; False also where finding out would take too long."""
    if left == right:
        return True
    known = _remembered(A, C, left, right)
    if known >= 0:
        return known == 1
    # All questions that the first one leads to, each taken for true until it is refuted.
    base = C[RELATION]
    A[base] = left
    A[base + 1] = right
    A[base + 2] = 1
    num_questions = 1
    done = 0
    while done < num_questions:
        first_left, num_left = _rows_of(A, C, int(A[base + 3 * done]), unit)
        first_right, num_right = _rows_of(A, C, int(A[base + 3 * done + 1]), unit)
        if num_left > MAX_ROWS_COMPARED or num_right > MAX_ROWS_COMPARED:
            return False
        for i in range(num_left):
            row = first_left + 3 * i
            found = False
            for j in range(num_right):
                other = first_right + 3 * j
                if A[row] != A[other] or A[row + 2] != A[other + 2]:
                    continue
                found = True
                parent = int(A[row + 1])
                other_parent = int(A[other + 1])
                if parent == other_parent or _remembered(A, C, parent, other_parent) >= 0:
                    continue
                if _question(A, C, num_questions, parent, other_parent) < 0:
                    if num_questions == MAX_COMPARISONS:
                        return False
                    A[base + 3 * num_questions] = parent
                    A[base + 3 * num_questions + 1] = other_parent
                    A[base + 3 * num_questions + 2] = 1
                    num_questions += 1
            if not found:
                A[base + 3 * done + 2] = 0
                if done == 0:
                    _remember(A, C, left, right, 0)
                    return False
                break
        done += 1
    changed = True
    while changed:
        changed = False
        for question in range(num_questions):
            if A[base + 3 * question + 2] != 0 and not _holds(A, C, question, num_questions, unit):
                A[base + 3 * question + 2] = 0
                changed = True
    for question in range(num_questions):
        row = base + 3 * question
        _remember(A, C, int(A[row]), int(A[row + 1]), int(A[row + 2]))
    return bool(A[base + 2] != 0)


@inner
def _holds(A: Arena, C: Control, question: int, num_questions: int, unit: int) -> bool:
    """Whether every pair on the left has its cover on the right, as far as the open questions go."""
    first_left, num_left = _rows_of(A, C, int(A[C[RELATION] + 3 * question]), unit)
    first_right, num_right = _rows_of(A, C, int(A[C[RELATION] + 3 * question + 1]), unit)
    for i in range(num_left):
        row = first_left + 3 * i
        found = False
        for j in range(num_right):
            other = first_right + 3 * j
            if A[row] != A[other] or A[row + 2] != A[other + 2]:
                continue
            parent = int(A[row + 1])
            other_parent = int(A[other + 1])
            if parent == other_parent:
                found = True
                break
            open_question = _question(A, C, num_questions, parent, other_parent)
            if open_question >= 0:
                found = A[C[RELATION] + 3 * open_question + 2] != 0
            else:
                found = _remembered(A, C, parent, other_parent) == 1
            if found:
                break
        if not found:
            return False
    return True


@inner
def drop_covered(A: Arena, C: Control, begin: int, num_rows: int, unit: int) -> int:
    """Leaves out rows of SORTED whose second column another row's covers, all else being equal; how many are left.

    Rows are sorted. Later rows go first, so that of two equal frames the older one stays.
    """
    base = C[SORTED] + 3 * begin
    first = 0
    dropped = False
    while first < num_rows:
        last = first + 1
        while last < num_rows and A[base + 3 * last] == A[base + 3 * first]:
            last += 1
        if 1 < last - first <= MAX_GROUP:
            for i in range(last - 1, first - 1, -1):
                for j in range(first, last):
                    row = base + 3 * i
                    other = base + 3 * j
                    if i == j or A[other] < 0 or A[row + 2] != A[other + 2]:
                        continue
                    if is_covered(A, C, int(A[row + 1]), int(A[other + 1]), unit):
                        A[row] = -1 - A[row]
                        dropped = True
                        break
        first = last
    if not dropped:
        return num_rows
    num_kept = 0
    for i in range(num_rows):
        if A[base + 3 * i] >= 0:
            for column in range(3):
                A[base + 3 * num_kept + column] = A[base + 3 * i + column]
            num_kept += 1
    return num_kept
