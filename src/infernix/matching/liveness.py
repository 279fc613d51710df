"""From which states of automata an accepting one can be reached."""

from __future__ import annotations

import numpy as np

from infernix.matching.flattening import FlatGrammar, Ints
from infernix.matching.jit import kernel


def live_states(flat: FlatGrammar) -> Ints:
    """int32, 1 by state of all automata of a grammar where an accepting state can be reached."""
    is_live = flat.automaton_final.copy()
    if len(is_live):
        _find_live(flat.automaton_edges, is_live)
    return is_live


@kernel
def _find_live(edges: Ints, is_live: Ints) -> None:
    """Extends is_live, given for final states, to all that lead there. edges: as in FlatGrammar."""
    begins = np.zeros(len(is_live) + 2, np.int32)
    for edge in range(len(edges) // 4):
        begins[edges[4 * edge + 3] + 2] += 1
    for state in range(len(is_live)):
        begins[state + 2] += begins[state + 1]
    # begins[t + 1] is where the source of the next edge into t belongs.
    sources = np.empty(len(edges) // 4, np.int32)
    for edge in range(len(edges) // 4):
        target = edges[4 * edge + 3]
        sources[begins[target + 1]] = edges[4 * edge]
        begins[target + 1] += 1
    stack = np.empty(len(is_live), np.int32)
    depth = 0
    for state in range(len(is_live)):
        if is_live[state] != 0:
            stack[depth] = state
            depth += 1
    while depth > 0:
        depth -= 1
        state = stack[depth]
        for place in range(begins[state], begins[state + 1]):
            source = sources[place]
            if is_live[source] == 0:
                is_live[source] = 1
                stack[depth] = source
                depth += 1
