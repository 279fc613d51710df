"""Rows of three integers in canonical order: pairs of frames, and items of configurations.

They are put together, sorted and compared in the table SORTED before anything is stored.
"""

from __future__ import annotations

from infernix.matching.arena import (
    CAPACITY,
    LOOPS,
    NUM_STATES,
    SORTED,
    UNBOUNDED,
    Arena,
    Control,
)
from infernix.matching.closure import mix
from infernix.matching.jit import inner


@inner
def _row_less(A: Arena, left: int, right: int) -> bool:
    for column in range(3):
        if A[left + column] != A[right + column]:
            return bool(A[left + column] < A[right + column])
    return False


@inner
def sort_rows(A: Arena, C: Control, begin: int, num_rows: int) -> int:
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
def drop_dominated_counts(A: Arena, C: Control, begin: int, num_rows: int) -> int:
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
def hash_rows(A: Arena, seed: int, begin: int, num_rows: int) -> int:
    h = mix(seed, num_rows)
    for offset in range(begin, begin + 3 * num_rows):
        h = mix(h, A[offset])
    return h


@inner
def insert_slot(A: Arena, C: Control, table: int, hash_value: int, entry: int) -> None:
    last_slot = C[CAPACITY + table] - 1
    slot = hash_value & last_slot
    while A[C[table] + slot] != 0:
        slot = (slot + 1) & last_slot
    A[C[table] + slot] = entry


@inner
def same_rows(A: Arena, left: int, right: int, num_rows: int) -> bool:
    for offset in range(3 * num_rows):  # noqa: SIM110  (a kernel has no generators)
        if A[left + offset] != A[right + offset]:
            return False
    return True
