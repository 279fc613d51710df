"""Automata as arrays, kept for the next grammar or too large for that."""

from __future__ import annotations

from itertools import chain

import pytest

from infernix.grammar import ir
from infernix.matching import flattening
from infernix.matching.flattening import flatten


def chain_of(length: int) -> ir.Automaton:
    edges = tuple((state, 97 + state % 3, 100, state + 1) for state in range(length))
    return ir.Automaton(length + 1, edges, frozenset({length // 2, length}))


@pytest.mark.parametrize("max_kept_edges", [1024, 0])
def test_automata_stand_one_behind_the_other(monkeypatch: pytest.MonkeyPatch, max_kept_edges: int) -> None:
    monkeypatch.setattr(flattening, "_MAX_KEPT_EDGES", max_kept_edges)
    automata = [chain_of(3), chain_of(2000), chain_of(5)]
    for chosen in (automata, automata[::-1], automata[:1]):
        flat = flatten(ir.Grammar.of(ir.sequence(*chosen, ir.text("a"))))
        firsts = [sum(part.num_states for part in chosen[:index]) for index in range(len(chosen))]
        edges = [
            (source + first, low, high, target + first)
            for first, part in zip(firsts, chosen, strict=True)
            for source, low, high, target in part.edges
        ]
        assert flat.automaton_edges.tolist() == [*chain.from_iterable(edges)]
        accepting = {first + state for first, part in zip(firsts, chosen, strict=True) for state in part.accepting}
        assert {state for state, final in enumerate(flat.automaton_final.tolist()) if final} == accepting
        assert len(flat.automaton_final) == sum(part.num_states for part in chosen)
