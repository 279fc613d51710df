"""Merged states as the flat tables that the kernels of the runtime read."""

from __future__ import annotations

import numpy as np

from infernix.matching import arena
from infernix.matching.determinize import mixed
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner, kernel
from infernix.matching.quotient import Quotient
from infernix.matching.rule_nfa import RuleNfa

# A step table of more entries than this stays in the block of memory that has room for classes which turned out to be
# equal: nothing was written there, and copying would take longer.
_MAX_COPIED_ENTRIES = 1 << 18


def network_tables(quotient: Quotient, nfa: RuleNfa) -> dict[int, Ints]:
    """CLASS_OF, DELTA, FLAGS and the tables of calls, token edges and loops.

    No two rows of a state have byte classes in common. Classes that no state tells apart become one.
    """
    num_states, num_classes, num_rows = len(quotient.final), nfa.num_classes, len(quotient.rows)
    class_of = nfa.class_of.copy()
    delta = np.empty(num_states * num_classes, np.int32)
    flags = np.zeros(num_states, np.int32)
    call_begins, token_begins = np.zeros(num_states + 1, np.int32), np.zeros(num_states + 1, np.int32)
    calls, token_edges, loops = (np.empty(width * num_rows, np.int32) for width in (3, 2, 4))
    counts = np.zeros(4, np.int64)
    _write_tables(
        quotient.final,
        quotient.sources,
        quotient.rows.ravel(),
        num_classes,
        nfa.first_loop,
        nfa.first_tokens,
        nfa.loops.ravel(),
        class_of,
        delta,
        flags,
        call_begins,
        calls,
        token_begins,
        token_edges,
        loops,
        counts,
    )
    num_distinct, num_calls, num_token_edges, num_loops = counts.tolist()
    delta = delta[: num_states * num_distinct]
    # Copies, so that the room for what might have been is not kept.
    return {
        arena.CLASS_OF: class_of,
        arena.DELTA: delta.copy() if len(delta) <= _MAX_COPIED_ENTRIES else delta,
        arena.FLAGS: flags,
        arena.CALL_BEGIN: call_begins,
        arena.CALLS: calls[: 3 * num_calls].copy(),
        arena.TOKEN_BEGIN: token_begins,
        arena.TOKEN_EDGES: token_edges[: 2 * num_token_edges].copy(),
        arena.LOOPS: loops[: 4 * num_loops].copy(),
    }


@inner
def _merge_classes(sources: Ints, rows: Ints, num_classes: int, work: Nodes) -> int:
    """Numbers the byte classes, those with the same steps alike, and returns how many are left.

    work, all zeros: the numbers; the hash of a class's steps; where they begin, one entry more than classes.
    """
    hashes = num_classes
    begins = 2 * num_classes
    for row in range(len(sources)):
        if rows[3 * row] < num_classes:
            value = mixed(mixed(sources[row] + 0) + rows[3 * row + 2])
            for byte_class in range(rows[3 * row], rows[3 * row + 1] + 1):
                work[hashes + byte_class] += value
                work[begins + byte_class + 1] += 1
    for byte_class in range(num_classes):
        work[begins + byte_class + 1] += work[begins + byte_class]
    # Source and target of every step.
    steps = np.empty(2 * work[begins + num_classes], np.int32)
    # While they are written, a class's entry says where its next step belongs: behind all of them in the end.
    for row in range(len(sources)):
        if rows[3 * row] < num_classes:
            for byte_class in range(rows[3 * row], rows[3 * row + 1] + 1):
                step = work[begins + byte_class]
                steps[2 * step] = sources[row]
                steps[2 * step + 1] = rows[3 * row + 2]
                work[begins + byte_class] = step + 1
    num_distinct = 0
    begin = 0
    for byte_class in range(num_classes):
        end = work[begins + byte_class] + 0
        number = num_distinct
        other_begin = 0
        for other in range(byte_class):
            other_end = work[begins + other] + 0
            if work[hashes + other] == work[hashes + byte_class] and other_end - other_begin == end - begin:
                place = 0
                while place < 2 * (end - begin) and steps[2 * other_begin + place] == steps[2 * begin + place]:
                    place += 1
                if place == 2 * (end - begin):
                    number = work[other] + 0
                    break
            other_begin = other_end
        work[byte_class] = number
        if number == num_distinct:
            num_distinct += 1
        begin = end
    return num_distinct


@kernel
def _write_tables(
    final: Ints,
    sources: Ints,
    rows: Ints,
    num_classes: int,
    first_loop: int,
    first_tokens: int,
    loops: Ints,
    class_of: Ints,
    delta: Ints,
    flags: Ints,
    call_begins: Ints,
    calls: Ints,
    token_begins: Ints,
    token_edges: Ints,
    loop_rows: Ints,
    counts: Nodes,
) -> None:
    """Writes the tables, and to `counts` their rows: classes, calls, token edges, loops."""
    num_states = len(final)
    num_loops = len(loops) // 3
    # By counted loop the row that was made last for it; then by row of loop_rows the one before.
    loop_numbers = np.full(num_loops + len(sources) if num_loops > 0 else 0, -1, np.int32)
    work = np.zeros(3 * num_classes + 1, np.int64)
    num_distinct = _merge_classes(sources, rows, num_classes, work)
    counts[0] = num_distinct
    for byte in range(256):
        class_of[byte] = work[class_of[byte]]
    for entry in range(num_states * num_distinct):
        delta[entry] = arena.NO_TARGET
    for state in range(num_states):
        if final[state] != 0:
            flags[state] = arena.FINAL
    for row in range(len(sources)):
        state = sources[row] + 0
        low = rows[3 * row]
        target = rows[3 * row + 2] + 0
        if low < num_classes:
            flags[state] |= arena.KEPT
            for byte_class in range(low, rows[3 * row + 1] + 1):
                delta[state * num_distinct + work[byte_class]] = target
        elif low >= first_tokens:
            flags[state] |= arena.KEPT
            token_begins[state + 1] += 1
            token_edges[2 * counts[2]] = low - first_tokens
            token_edges[2 * counts[2] + 1] = target
            counts[2] += 1
        else:
            call_begins[state + 1] += 1
            rule = low - num_classes
            number = arena.NO_LOOP
            if low >= first_loop:
                # The runtime finds a loop's continuation by its number alone.
                loop = low - first_loop
                rule = loops[3 * loop + 2] + 0
                number = loop_numbers[loop] + 0
                while number >= 0 and loop_rows[4 * number + 3] != target:
                    number = loop_numbers[num_loops + number] + 0
                if number < 0:
                    number = int(counts[3])
                    loop_rows[4 * number] = loops[3 * loop]
                    loop_rows[4 * number + 1] = loops[3 * loop + 1]
                    loop_rows[4 * number + 2] = rule
                    loop_rows[4 * number + 3] = target
                    loop_numbers[num_loops + number] = loop_numbers[loop]
                    loop_numbers[loop] = number
                    counts[3] += 1
            calls[3 * counts[1]] = rule
            calls[3 * counts[1] + 1] = target
            calls[3 * counts[1] + 2] = number
            counts[1] += 1
    flags[arena.ACCEPT_STATE] = arena.ACCEPT
    for state in range(num_states):
        call_begins[state + 1] += call_begins[state]
        token_begins[state + 1] += token_begins[state]
