"""Merged states as the flat tables that the kernels of the runtime read."""

from __future__ import annotations

import numpy as np

from infernix.matching import arena
from infernix.matching.determinize import mixed
from infernix.matching.flattening import Ints, Nodes
from infernix.matching.jit import inner, kernel
from infernix.matching.minimization import Quotient
from infernix.matching.rule_nfa import RuleNfa


def network_tables(quotient: Quotient, nfa: RuleNfa) -> dict[int, Ints]:
    """CLASS_OF, DELTA, FLAGS and the tables of calls, token edges and loops.

    No two rows of a state have byte classes in common. Classes that no state tells apart become one.
    """
    num_states, num_classes, num_rows = len(quotient.final), nfa.num_classes, len(quotient.rows)
    class_of = nfa.class_of.copy()
    delta = np.full(num_states * num_classes, arena.NO_TARGET, np.int32)
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
        np.full(len(nfa.loops) + num_rows, -1, np.int32),
        np.zeros(2 * num_classes, np.int64),
        counts,
    )
    num_distinct, num_calls, num_token_edges, num_loops = counts.tolist()
    # Copies, so that the room for what might have been is not kept.
    return {
        arena.CLASS_OF: class_of,
        arena.DELTA: delta if num_distinct == num_classes else delta[: num_states * num_distinct].copy(),
        arena.FLAGS: flags,
        arena.CALL_BEGIN: call_begins,
        arena.CALLS: calls[: 3 * num_calls].copy(),
        arena.TOKEN_BEGIN: token_begins,
        arena.TOKEN_EDGES: token_edges[: 2 * num_token_edges].copy(),
        arena.LOOPS: loops[: 4 * num_loops].copy(),
    }


@inner
def _merge_classes(num_states: int, num_classes: int, class_of: Ints, delta: Ints, work: Nodes) -> int:
    """Leaves one of several classes with the same targets, in place; returns how many are left.

    work: the hash of the targets by class; and room for a number by class.
    """
    num_distinct = 0
    for byte_class in range(num_classes):
        other = 0
        while other < num_distinct:
            if work[other] == work[byte_class]:
                state = 0
                while (
                    state < num_states and delta[state * num_classes + other] == delta[state * num_classes + byte_class]
                ):
                    state += 1
                if state == num_states:
                    break
            other += 1
        work[num_classes + byte_class] = other
        if other == num_distinct:
            num_distinct += 1
            if other != byte_class:
                work[other] = work[byte_class]
                for state in range(num_states):
                    delta[state * num_classes + other] = delta[state * num_classes + byte_class]
    if num_distinct < num_classes:
        for byte in range(256):
            class_of[byte] = work[num_classes + class_of[byte]]
        for state in range(num_states):
            for byte_class in range(num_distinct):
                delta[state * num_distinct + byte_class] = delta[state * num_classes + byte_class]
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
    loop_numbers: Ints,
    work: Nodes,
    counts: Nodes,
) -> None:
    """Writes the tables, and to `counts` their rows: classes, calls, token edges, loops.

    loop_numbers, all -1: by counted loop the row that was made last for it; then by row of loop_rows the one before.
    """
    num_states = len(final)
    num_loops = len(loops) // 3
    for state in range(num_states):
        if final[state] != 0:
            flags[state] = arena.FINAL
    for row in range(len(sources)):
        state = sources[row] + 0
        low = rows[3 * row]
        target = rows[3 * row + 2] + 0
        if low < num_classes:
            flags[state] |= arena.KEPT
            value = mixed(mixed(state) + target)
            for byte_class in range(low, rows[3 * row + 1] + 1):
                delta[state * num_classes + byte_class] = target
                work[byte_class] += value
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
    counts[0] = _merge_classes(num_states, num_classes, class_of, delta, work)
