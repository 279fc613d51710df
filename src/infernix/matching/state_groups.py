"""What can be said of states with equal futures before any refinement: in one pass, by the steps of each.

States that no cycle follows are known by their steps once the states behind them are (D. Revuz, "Minimisation of
acyclic deterministic automata in linear time", Theoretical Computer Science 92 (1992), with hashing in place of
sorting). In networks of long literals that is most of them. Of the others, a *link* has one letter and one step and
may not end: it is known by the letters up to the next state that is no link, its *anchor*, and by that one's future. So
only anchors are left, and of these only such can be equal that have the same letters, links and acyclic states behind
them: they are a group.
"""

from __future__ import annotations

import numpy as np

from infernix.matching.determinize import mixed
from infernix.matching.flattening import Ints
from infernix.matching.jit import inner

# Instead of a state that stands for an equal one; the value of a link is LINK minus the one that stands for it among
# the links with the same letters.
ANCHOR = -1
LINK = -2
_UNSEEN = -(1 << 30)
_ON_PATH = _UNSEEN - 1
_CYCLIC = _UNSEEN - 2


@inner
def group_states(
    final: Ints, row_begins: Ints, rows: Ints, num_classes: int, num_letters: int, values: Ints, anchors: Ints
) -> int:
    """Writes by state what stands for it: the first one found with the same future, ANCHOR, or LINK and less.

    anchors: by link the anchor behind it, by anchor the one that its group is named after. Returns the number of
    anchors. Takes a time linear in rows. Every state but 0 must lead to a final one: links are no cycle then.
    """
    num_states = len(values)
    order = np.empty(num_states, np.int32)
    _order_states(final, row_begins, rows, values, anchors, order)
    # The steps of all states that stand for others, and by state where its own begin and end. Neighbouring byte classes
    # with the same target are one step, which the rows of two states with equal futures need not be.
    steps = np.empty(3 * (row_begins[num_states] + 1), np.int32)
    step_begins = np.empty(2 * num_states, np.int32)
    keys = np.empty(num_states, np.int32)
    num_slots = 4
    while num_slots < 2 * num_states:
        num_slots *= 2
    slots = np.full(num_slots, -1, np.int32)
    by_letter = np.full(2 * num_letters, -1, np.int32)
    begin = 0
    num_anchors = 0
    # All of it in one loop: a call for each state would take longer than what it does.
    for place in range(num_states):
        state = order[place] + 0
        end = begin
        for row in range(row_begins[state], row_begins[state + 1]):
            low = rows[3 * row] + 0
            high = rows[3 * row + 1] + 0
            value = values[rows[3 * row + 2]] + 0
            if high < num_classes and end > begin and steps[3 * end - 2] == low - 1 and steps[3 * end - 1] == value:
                steps[3 * end - 2] = high
            else:
                steps[3 * end] = low
                steps[3 * end + 1] = high
                steps[3 * end + 2] = value
                end += 1
        key = int(final[state])
        for step in range(begin, end):
            key += mixed(mixed(512 * int(steps[3 * step]) + steps[3 * step + 1]) + steps[3 * step + 2])
        key = mixed(key)
        slot = key & (num_slots - 1)
        first = slots[slot] + 0
        while first >= 0:
            if (
                keys[first] == key
                and final[first] == final[state]
                and _is_equal(
                    steps, step_begins[2 * first], step_begins[2 * first + 1], begin, end, num_classes, by_letter, state
                )
            ):
                break
            slot = (slot + 1) & (num_slots - 1)
            first = slots[slot] + 0
        if first < 0:
            first = state
            slots[slot] = state
            keys[state] = key
            step_begins[2 * state] = begin
            step_begins[2 * state + 1] = end
            begin = end
        if values[state] == ANCHOR:
            anchors[state] = first
            num_anchors += 1
        else:
            values[state] = first if values[state] >= 0 else LINK - first
    return num_anchors


@inner
def _order_states(final: Ints, row_begins: Ints, rows: Ints, values: Ints, anchors: Ints, order: Ints) -> None:
    """Orders the states: acyclic ones, links, anchors; of the first two, targets come before what leads to them.

    values: a state, LINK or ANCHOR, for the three kinds. anchors: written for links.
    """
    num_states = len(values)
    path = np.empty(num_states + 1, np.int32)
    next_row = np.empty(num_states + 1, np.int32)
    num_ordered = 0
    for state in range(num_states):
        values[state] = _UNSEEN
    for start in range(num_states):
        depth = 0
        if values[start] == _UNSEEN:
            values[start] = _ON_PATH
            path[0] = start
            next_row[0] = row_begins[start]
            depth = 1
        while depth > 0:
            state = path[depth - 1] + 0
            row = next_row[depth - 1] + 0
            if row < row_begins[state + 1]:
                next_row[depth - 1] = row + 1
                target = rows[3 * row + 2] + 0
                if values[target] == _UNSEEN:
                    values[target] = _ON_PATH
                    path[depth] = target
                    next_row[depth] = row_begins[target]
                    depth += 1
                continue
            depth -= 1
            # What is on the path leads here and can be reached from here: it is on a cycle.
            row = row_begins[state] + 0
            while row < row_begins[state + 1] and values[rows[3 * row + 2]] >= 0:
                row += 1
            if row == row_begins[state + 1]:
                values[state] = start
                order[num_ordered] = state
                num_ordered += 1
            else:
                values[state] = _CYCLIC
    for start in range(num_states):
        depth = 0
        state = start
        while values[state] == _CYCLIC:
            row = row_begins[state] + 0
            if final[state] != 0 or row + 1 < row_begins[state + 1] or rows[3 * row] < rows[3 * row + 1]:
                values[state] = ANCHOR
            else:
                path[depth] = state
                depth += 1
                state = rows[3 * row + 2] + 0
        anchor = state
        if values[state] == LINK:
            anchor = anchors[state] + 0
        while depth > 0:
            depth -= 1
            state = path[depth] + 0
            values[state] = LINK
            anchors[state] = anchor
            order[num_ordered] = state
            num_ordered += 1
    for state in range(num_states):
        if values[state] == ANCHOR:
            order[num_ordered] = state
            num_ordered += 1


@inner
def _is_equal(
    steps: Ints, begin: int, end: int, other: int, other_end: int, num_classes: int, by_letter: Ints, stamp: int
) -> bool:
    """Whether the steps from `begin` to `end` are those from `other` to other_end; labels may come in another order.

    by_letter: the target of the other step over a letter, and `stamp` where there is one; nobody else writes `stamp`.
    """
    if end - begin != other_end - other:
        return False
    step = begin
    while step < end and steps[3 * step] < num_classes:
        place = other + step - begin
        for part in range(3):
            if steps[3 * step + part] != steps[3 * place + part]:
                return False
        step += 1
    for place in range(other + step - begin, other_end):
        letter = steps[3 * place] + 0
        by_letter[2 * letter] = steps[3 * place + 2]
        by_letter[2 * letter + 1] = stamp
    for place in range(step, end):
        letter = steps[3 * place] + 0
        if by_letter[2 * letter + 1] != stamp or by_letter[2 * letter] != steps[3 * place + 2]:
            return False
    return True
