"""From which states of automata an accepting one can be reached."""

from __future__ import annotations

import numpy as np

from infernix.matching.flattening import FlatGrammar, Ints
from infernix.matching.jit import kernel


def live_states(flat: FlatGrammar) -> Ints:
    """int32, 1 by state of all automata of a grammar where an accepting state can be reached."""
    is_live = flat.automaton_final.copy()
    if len(is_live):
        targets = flat.automaton_edges[3::4]
        begins = np.zeros(len(is_live) + 1, np.int32)
        np.cumsum(np.bincount(targets, minlength=len(is_live)), out=begins[1:])
        _find_live(begins, flat.automaton_edges[4 * np.argsort(targets, kind="stable")], is_live)
    return is_live


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
