"""The smallest automaton of a language."""

from __future__ import annotations

from infernix.grammar.automata import NO_STATE, Dfa


def minimized(dfa: Dfa) -> Dfa:
    """An equal automaton in which no two states accept the same continuations; `dfa` is trimmed.

    J. Hopcroft, "An n log n algorithm for minimizing states in a finite automaton" (1971): blocks of states are split
    until all of a block lead into the same block. A block that was split and has been used as a splitter before needs
    only its smaller half used again.
    """
    sources: list[list[tuple[int, int]]] = [[] for _ in dfa.rows]
    for state, row in enumerate(dfa.rows):
        for letter, target in enumerate(row):
            if target != NO_STATE:
                sources[target].append((letter, state))
    by_acceptance: dict[bool, set[int]] = {}
    for state, accepts in enumerate(dfa.accepting):
        by_acceptance.setdefault(accepts, set()).add(state)
    blocks = list(by_acceptance.values())
    block_of = [0] * len(dfa.rows)
    for number, block in enumerate(blocks):
        for state in block:
            block_of[state] = number
    splitters = list(range(len(blocks)))
    while splitters:
        by_letter: dict[int, list[int]] = {}
        for target in blocks[splitters.pop()]:
            for letter, state in sources[target]:
                by_letter.setdefault(letter, []).append(state)
        for states in by_letter.values():
            met: dict[int, set[int]] = {}
            for state in states:
                met.setdefault(block_of[state], set()).add(state)
            for number, part in met.items():
                block = blocks[number]
                if len(part) == len(block):
                    continue
                block -= part
                if len(block) < len(part):
                    blocks[number], part = part, block
                for state in part:
                    block_of[state] = len(blocks)
                splitters.append(len(blocks))
                blocks.append(part)
    if len(blocks) == len(dfa.rows):
        return dfa
    # The start keeps number 0, and the others the order of their first states.
    firsts: dict[int, int] = {}
    for state, number in enumerate(block_of):
        firsts.setdefault(number, state)
    renumbered = {number: index for index, number in enumerate(firsts)}
    return Dfa(
        dfa.alphabet,
        tuple(
            tuple([NO_STATE if target == NO_STATE else renumbered[block_of[target]] for target in dfa.rows[state]])
            for state in firsts.values()
        ),
        tuple(dfa.accepting[state] for state in firsts.values()),
    )
