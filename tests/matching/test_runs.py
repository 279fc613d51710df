"""Counted repetitions that are written out, against the definition followed state by state."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.errors import ConstraintError
from infernix.grammar import ir
from infernix.grammar.json_values import MAX_WHITESPACE_RUN, json_object_grammar
from infernix.grammar.unicode import character_class
from infernix.matching import arena
from infernix.matching.atoms import ATOM_OF_ASCII
from infernix.matching.loops import loop_tables
from infernix.matching.network import Network, build_network
from support.random_grammars import FAMILIES, random_grammar

SPACES = character_class([(0x20, 0x20), (0x0A, 0x0A)])


def atoms_of(characters: str) -> int:
    return sum({1 << int(ATOM_OF_ASCII[ord(character)]) for character in characters})


def runs_by_state(network: Network) -> dict[int, tuple[int, int]]:
    """By state the atoms and the characters left."""
    tables, _ = loop_tables(network, np.arange(network.num_states, dtype=np.int32))
    sets = tables[arena.LOOP_SETS].view(np.int64).tolist()
    loops = tables[arena.STATE_LOOPS].reshape(-1, arena.STATE_LOOPS_WIDTH)
    runs = loops[:, [arena.RUN_SET, arena.RUN_LEFT]].tolist()
    assert all((number > 0) == (left > 0) for number, left in runs)
    return {state: (sets[number], left) for state, (number, left) in enumerate(runs) if left > 0}


def plain_runs(network: Network) -> dict[int, tuple[int, int]]:
    """The same from the definition: a run of n goes on to one of n - 1 that differs in nothing else."""
    tables = network.tables
    class_of = tables[arena.CLASS_OF].tolist()
    delta = tables[arena.DELTA].reshape(network.num_states, network.num_classes).tolist()
    calls, edges = tables[arena.CALL_BEGIN].tolist(), tables[arena.TOKEN_BEGIN].tolist()
    ends = (tables[arena.FLAGS] & (arena.FINAL | arena.ACCEPT)).tolist()
    num_labels = [calls[s + 1] - calls[s] + edges[s + 1] - edges[s] for s in range(network.num_states)]
    found: dict[int, tuple[int, int]] = {}
    while True:
        new = {}
        for state, row in enumerate(delta):
            target = row[class_of[0x20]]
            if state in found or target < 0 or num_labels[state] or num_labels[target] or ends[state] != ends[target]:
                continue
            members = [byte for byte in range(256) if row[class_of[byte]] == target]
            others = [byte for byte in range(256) if byte not in members]
            if members[-1] >= 0x80 or any(row[class_of[b]] != delta[target][class_of[b]] for b in others):
                continue
            atoms = atoms_of("".join(map(chr, members)))
            if any(atoms >> int(ATOM_OF_ASCII[byte]) & 1 for byte in others if byte < 0x80):
                continue
            if {delta[target][class_of[byte]] for byte in members} == {arena.NO_TARGET}:
                new[state] = (atoms, 1)
            elif target in found and found[target][0] == atoms:
                new[state] = (atoms, found[target][1] + 1)
        if not new:
            return found
        found |= new


def of(*parts: ir.Expression) -> Network:
    return build_network(ir.Grammar.of(ir.sequence(*parts)))


SAMPLES = {
    "json": build_network(json_object_grammar()),
    "spaces": of(ir.text("a"), ir.Repeat(SPACES, 0, 9), ir.text("b")),
    "at the end": of(ir.text("a"), ir.Repeat(SPACES, 0, 9)),
    "with a minimum": of(ir.text("a"), ir.Repeat(SPACES, 2, 9), ir.text("b")),
    "two behind each other": of(ir.Repeat(SPACES, 0, 4), ir.text("x"), ir.Repeat(SPACES, 0, 6)),
    "of two sets": build_network(
        ir.Grammar.of(
            ir.choice(
                ir.sequence(ir.text("a"), ir.Repeat(SPACES, 0, 5), ir.text("x")),
                ir.sequence(ir.text("b"), ir.Repeat(character_class([(0x20, 0x20)]), 0, 5), ir.text("x")),
            )
        )
    ),
    "with a part of an atom": of(ir.Repeat(character_class([(0x20, 0x20), (0x61, 0x63)]), 0, 5), ir.text("x")),
    "beyond ASCII": of(ir.Repeat(character_class([(0x20, 0x20), (0xA0, 0xA0)]), 0, 5), ir.text("x")),
    "with bytes beyond ASCII": of(
        ir.Repeat(ir.choice(ir.ByteRange(0x20, 0x20), ir.ByteRange(0x80, 0x8F)), 0, 5), ir.text("x")
    ),
    "without an end": of(ir.Repeat(SPACES, 3, None), ir.text("x")),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_have_the_runs_of_the_definition(name: str) -> None:
    network = SAMPLES[name]
    assert runs_by_state(network) == plain_runs(network)


def test_what_is_found_in_the_samples() -> None:
    longest = {
        name: max((left for _, left in runs_by_state(network).values()), default=0) for name, network in SAMPLES.items()
    }
    assert longest == {
        "json": MAX_WHITESPACE_RUN,
        "spaces": 9,
        "at the end": 9,
        "with a minimum": 7,
        "two behind each other": 6,
        "of two sets": 5,
        "with a part of an atom": 0,
        "beyond ASCII": 0,
        "with bytes beyond ASCII": 0,
        "without an end": 0,
    }
    sets = {atoms for atoms, _ in runs_by_state(SAMPLES["of two sets"]).values()}
    assert sets == {atoms_of(" \n"), atoms_of(" ")}
    assert {atoms for atoms, _ in runs_by_state(SAMPLES["json"]).values()} == {atoms_of(" \t\n\r")}


@pytest.mark.parametrize("family", FAMILIES)
def test_random_grammars(family: str) -> None:
    for seed in range(12):
        try:
            network = build_network(random_grammar(Random(seed), family))
        except ConstraintError:
            continue
        assert runs_by_state(network) == plain_runs(network)


def test_random_repetitions_of_spaces() -> None:
    rng = Random(7)
    num_found = 0
    for _ in range(40):
        sets = [SPACES, character_class([(0x20, 0x20)]), character_class([(0x20, 0x20), (0x61, 0x61)])]
        parts: list[ir.Expression] = []
        for _ in range(rng.randint(1, 4)):
            minimum = rng.choice((0, 0, 1, 3))
            parts.append(ir.Repeat(rng.choice(sets), minimum, minimum + rng.randint(0, 6)))
            parts.append(ir.text(rng.choice(("", "a", "b", " "))))
        network = of(*parts)
        found = runs_by_state(network)
        assert found == plain_runs(network)
        num_found += len(found)
    assert num_found > 50
