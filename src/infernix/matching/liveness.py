"""Which states of an automaton lead to a final one."""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from infernix.grammar import ir
from infernix.matching.jit import kernel

Ints = NDArray[np.int32]


def live_edges(automaton: ir.Automaton) -> tuple[Ints, bool]:
    """int32 [edges, 4]: the edges (source, low, high, target) from whose targets an accepting state can be reached.

    And whether one can be reached from the start.
    """
    edges: Ints = np.fromiter(chain.from_iterable(automaton.edges), np.int32, 4 * len(automaton.edges)).reshape(-1, 4)
    is_live = np.zeros(automaton.num_states, np.int32)
    is_live[np.fromiter(automaton.accepting, np.int64, len(automaton.accepting))] = 1
    begins = np.zeros(automaton.num_states + 1, np.int32)
    np.cumsum(np.bincount(edges[:, 3], minlength=automaton.num_states), out=begins[1:])
    _find_live(begins, edges[np.argsort(edges[:, 3], kind="stable"), 0], is_live)
    return edges[is_live[edges[:, 3]] != 0], bool(is_live[0])


@kernel
def _find_live(target_begins: Ints, sources: Ints, is_live: Ints) -> None:
    """Extends is_live, given for final states, to all that lead there. sources: by edge, in the order of targets."""
    stack = np.empty(len(is_live), np.int32)
    depth = 0
    for state in range(len(is_live)):
        if is_live[state] != 0:
            stack[depth] = state
            depth += 1
    while depth > 0:
        depth -= 1
        state = stack[depth]
        for place in range(target_begins[state], target_begins[state + 1]):
            source = sources[place]
            if is_live[source] == 0:
                is_live[source] = 1
                stack[depth] = source
                depth += 1
