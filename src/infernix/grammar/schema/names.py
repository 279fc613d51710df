"""Member names other than the declared ones, as an automaton."""

from __future__ import annotations

from collections.abc import Iterable

from infernix.errors import ConstraintTooLarge
from infernix.grammar.ir import SURROGATES, Automaton
from infernix.grammar.json_values import CANONICAL_ESCAPES, canonical_string
from infernix.grammar.unicode import ByteRanges, complement_ranges, utf8_sequences

MAX_NAME_STATES = 65536

_INSIDE, _END = 0, 1


def _string_automaton() -> list[dict[tuple[int, int], int]]:
    """Edges of a canonical JSON string after its opening quote: state 0 between characters, state 1 at the end."""
    states: list[dict[tuple[int, int], int]] = [{(0x22, 0x22): _END}, {}]

    def add(sequence: ByteRanges) -> None:
        # Two sequences share their equal beginnings; where they differ, their byte ranges are disjoint.
        state = _INSIDE
        for byte_range in sequence[:-1]:
            if byte_range not in states[state]:
                states.append({})
                states[state][byte_range] = len(states) - 1
            state = states[state][byte_range]
        states[state][sequence[-1]] = _INSIDE

    escaped = sorted(ord(character) for character in CANONICAL_ESCAPES)
    for sequence in utf8_sequences(complement_ranges([*((code, code) for code in escaped), SURROGATES])):
        add(sequence)
    for spelling in CANONICAL_ESCAPES.values():
        add(tuple((byte, byte) for byte in spelling.encode()))
    return states


_STRING = _string_automaton()


def names_except(declared: Iterable[str]) -> Automaton:
    """All JSON strings in canonical escapes but those whose value is in `declared`, from behind their opening quote.

    One spelling per name makes "another name" a matter of bytes. The automaton is the trie of the declared names
    beside the automaton of all strings; a byte that leaves the trie leads to the latter for good. ConstraintTooLarge
    beyond MAX_NAME_STATES.
    """
    states = [_INSIDE]  # of the string automaton, by trie node
    children: list[dict[int, int]] = [{}]
    ends: set[int] = set()
    for name in declared:
        node = 0
        for byte in canonical_string(name)[1:-1]:
            if byte not in children[node]:
                edges_here = _STRING[states[node]].items()
                children[node][byte] = len(states)
                states.append(next(target for (low, high), target in edges_here if low <= byte <= high))
                children.append({})
                if len(states) > MAX_NAME_STATES:
                    raise ConstraintTooLarge(
                        f"the declared names of one object need more than MAX_NAME_STATES = {MAX_NAME_STATES} states"
                    )
            node = children[node][byte]
        ends.add(node)

    # Numbering: the trie, then the automaton of all strings.
    first_string_state = len(states)
    edges: list[tuple[int, int, int, int]] = []
    for source, (node_children, state) in enumerate(zip(children, states, strict=True)):
        edges.extend((source, byte, byte, child) for byte, child in sorted(node_children.items()))
        taken = sorted([*node_children, *([ord('"')] if source in ends else [])])
        for (low, high), target in _STRING[state].items():
            for byte in (*taken, high + 1):
                if low <= byte <= high + 1:
                    if low < byte:
                        edges.append((source, low, byte - 1, first_string_state + target))
                    low = byte + 1
    for state, string_edges in enumerate(_STRING):
        source = first_string_state + state
        edges.extend((source, low, high, first_string_state + target) for (low, high), target in string_edges.items())
    return Automaton(first_string_state + len(_STRING), tuple(edges), frozenset({first_string_state + _END}))
