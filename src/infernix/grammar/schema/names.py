"""Member names other than the declared ones, as an automaton."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from infernix.errors import ConstraintTooLarge
from infernix.grammar.automata import determinize
from infernix.grammar.byte_automata import json_string
from infernix.grammar.ir import Automaton
from infernix.grammar.json_values import canonical_string
from infernix.grammar.schema.patterns import ANYTHING

MAX_NAME_STATES = 65536

_QUOTE = ord('"')


@lru_cache(maxsize=1)
def _all_names() -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], int]:
    """All strings in canonical escapes, from behind the opening quote: (low byte, high byte, target) by state, and the
    final state. State 0 lies between characters."""
    automaton = json_string(determinize(ANYTHING), opening_quote=False)
    (end,) = automaton.accepting
    edges: list[list[tuple[int, int, int]]] = [[] for _ in range(automaton.num_states)]
    for source, low, high, target in automaton.edges:
        edges[source].append((low, high, target))
    return tuple(tuple(sorted(of_state)) for of_state in edges), end


def names_except(declared: Iterable[str]) -> Automaton:
    """All JSON strings in canonical escapes but those whose value is in `declared`, from behind their opening quote.

    One spelling per name makes "another name" a matter of bytes. The automaton is the trie of the declared names
    beside the automaton of all strings; a byte that leaves the trie leads to the latter for good. ConstraintTooLarge
    beyond MAX_NAME_STATES.
    """
    all_names, end = _all_names()
    states = [0]  # of the automaton of all strings, by trie node
    children: list[dict[int, int]] = [{}]
    ends: set[int] = set()
    for name in declared:
        node = 0
        for byte in canonical_string(name)[1:-1]:
            child = children[node].get(byte)
            if child is None:
                child = children[node][byte] = len(states)
                states.append(next(target for low, high, target in all_names[states[node]] if low <= byte <= high))
                children.append({})
                if len(states) > MAX_NAME_STATES:
                    raise ConstraintTooLarge(
                        f"the declared names of one object need more than MAX_NAME_STATES = {MAX_NAME_STATES} states"
                    )
            node = child
        ends.add(node)

    # Numbering: the trie, then the automaton of all strings.
    first_string_state = len(states)
    edges: list[tuple[int, int, int, int]] = []
    for source, (node_children, state) in enumerate(zip(children, states, strict=True)):
        edges.extend((source, byte, byte, child) for byte, child in sorted(node_children.items()))
        taken = sorted([*node_children, *([_QUOTE] if source in ends else [])])
        for low, high, target in all_names[state]:
            for byte in (*taken, high + 1):
                if low <= byte <= high + 1:
                    if low < byte:
                        edges.append((source, low, byte - 1, first_string_state + target))
                    low = byte + 1
    for state, string_edges in enumerate(all_names):
        source = first_string_state + state
        edges.extend((source, low, high, first_string_state + target) for low, high, target in string_edges)
    return Automaton(first_string_state + len(all_names), tuple(edges), frozenset({first_string_state + end}))
