"""Sets of atoms that states go round on, against every single character."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.errors import ConstraintError
from infernix.grammar import ir
from infernix.grammar.build import build_grammar
from infernix.grammar.ir import SURROGATES
from infernix.grammar.unicode import character_class
from infernix.matching import DEAD, CompiledGrammar, arena
from infernix.matching.atoms import ATOM_OF_ASCII, NON_ASCII_ATOM, NUM_ASCII_ATOMS
from infernix.matching.loops import loop_tables
from infernix.matching.masks import VocabularyIndex
from infernix.matching.network import Network, build_network
from infernix.options import OutputConstraint
from support.every_character import ALL_ATOMS, EveryCharacter
from support.random_grammars import FAMILIES, random_grammar
from support.vocabularies import byte_vocabulary

ASCII_ATOMS = (1 << NUM_ASCII_ATOMS) - 1


def atom(character: str) -> int:
    """The atom of an ASCII character, as a set."""
    return 1 << int(ATOM_OF_ASCII[ord(character)])


def loops_of(network: Network) -> list[tuple[int, int]]:
    """Own set and body set by state, as bits."""
    tables, _ = loop_tables(network, np.arange(network.num_states, dtype=np.int32))
    sets = tables[arena.LOOP_SETS].view(np.uint64)
    assert sets[0] == 0
    counts = [int(atoms).bit_count() for atoms in sets]
    assert counts == sorted(counts)
    assert len(set(sets.tolist())) == len(sets)
    loops = tables[arena.STATE_LOOPS].reshape(-1, arena.STATE_LOOPS_WIDTH)
    return [(int(sets[own]), int(sets[body])) for own, body, *_ in loops]


def body_states(network: Network) -> set[int]:
    rules = network.tables[arena.RULES].reshape(-1, 2)
    return {int(rules[rule, 0]) for rule in network.tables[arena.LOOPS].reshape(-1, 4)[:, 2]}


def check(grammar: ir.Grammar) -> list[tuple[int, int]]:
    network = build_network(grammar)
    loops = loops_of(network)
    final = (network.tables[arena.FLAGS] & arena.FINAL) != 0
    bodies = body_states(network)
    every_character = EveryCharacter(network)
    for state, (own, body) in enumerate(loops):
        expected = every_character.atoms_that_lead(state, np.arange(network.num_states) == state)
        if expected & (ASCII_ATOMS | 1 << NON_ASCII_ATOM):
            assert own == expected
        else:
            assert own in (0, expected)  # white space beyond ASCII alone is not looked for
        assert body == (every_character.atoms_that_lead(state, final) if state in bodies else 0)
    return loops


SAMPLES = {
    "string": build_grammar(OutputConstraint.json_schema({"type": "string"})),
    "bounded_string": build_grammar(OutputConstraint.json_schema({"type": "string", "maxLength": 300})),
    "json": build_grammar(OutputConstraint.json_object()),
    "words": build_grammar(OutputConstraint.regex(r"\w+( \w+)*")),
    "not_quote": build_grammar(OutputConstraint.regex(r'"[^"\\\n]{0,90}"')),
    "white_space": build_grammar(OutputConstraint.regex(r"a\s*b")),
    "dot": build_grammar(OutputConstraint.regex(r"x.*")),
    "gbnf": build_grammar(OutputConstraint.grammar('root ::= ([a-z0-9_] | "é")* "=" [^;]{3,200} ";"')),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_grammars(name: str) -> None:
    loops = check(SAMPLES[name])
    assert any(own or body for own, body in loops)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_grammars(family: str) -> None:
    for seed in range(3):
        try:
            check(random_grammar(Random(seed), family))
        except ConstraintError:
            continue


def one_loop(body: ir.Expression) -> int:
    """What the state goes round on that `body*` and an end make."""
    grammar = ir.Grammar.of(ir.sequence(ir.Repeat(body, 0, None), ir.text("\x01")))
    return max((own for own, _ in loops_of(build_network(grammar))), key=int.bit_count)


def negated(*excluded: tuple[int, int]) -> ir.Expression:
    return character_class(excluded, negated=True)


class TestSets:
    def test_everything_but_a_quote_and_controls(self) -> None:
        assert one_loop(negated((0, 31), (34, 34), (92, 92))) == (
            ALL_ATOMS & ~(atom('"') | atom("\\") | atom("\n") | atom("\t") | atom("\r") | atom("\x00"))
        )

    def test_part_of_an_atom_is_none_of_it(self) -> None:
        assert one_loop(character_class([(ord("a"), ord("f"))])) == atom("a")
        assert one_loop(character_class([(ord("a"), ord("e"))])) == 0
        assert one_loop(character_class([(ord("0"), ord("9"))])) == atom("0") | atom("9")
        assert one_loop(character_class([(ord("1"), ord("8"))])) == 0
        assert one_loop(negated((1, 1), (0x4E00, 0x4E00))) & 1 << NON_ASCII_ATOM == 0
        assert one_loop(negated((1, 1), (0x10FFFF, 0x10FFFF))) & 1 << NON_ASCII_ATOM == 0

    def test_surrogates_are_nobodys(self) -> None:
        assert one_loop(negated((1, 1), SURROGATES)) & 1 << NON_ASCII_ATOM

    def test_a_longer_body_is_no_loop_on_single_characters(self) -> None:
        assert one_loop(ir.text("ab")) == 0
        assert one_loop(ir.choice(ir.text("-"), ir.text("ab"))) == atom("-")

    def test_the_body_of_a_counted_loop(self) -> None:
        grammar = ir.Grammar.of(ir.sequence(ir.Repeat(negated((34, 34)), 0, 200), ir.text('"')))
        network = build_network(grammar)
        (body,) = (body for _, body in loops_of(network) if body)
        assert body == ALL_ATOMS & ~atom('"')


@pytest.mark.parametrize("name", SAMPLES)
def test_rows_by_whole_subtrees_are_rows_token_by_token(name: str) -> None:
    """Along random texts, with tokens that end inside characters and such as no text holds."""
    rng = Random(name)
    merged: list[bytes | str] = ["é", "在", "\u2028", "\xa0", " \n", '"}', '":', "aé", "在a", "\\n", "ab0_", "  "]
    merged += [b"\xe2\x80", b"a\xe5\x9c", b"\xc3(", b"\xa8x", b"ab\x80", b"z\xf4\x90", b"\xed\xa0\x80", b"ab\xf0\x9f"]
    merged += ["".join(rng.choices("abz09_ é在-=;", k=rng.randint(2, 8))) for _ in range(60)]
    vocabulary = byte_vocabulary(merged)
    epoch = CompiledGrammar(SAMPLES[name], VocabularyIndex(vocabulary)).epoch
    eos = vocabulary.num_tokens - 1
    for _ in range(4):
        configuration = epoch.table.start
        for _ in range(40):
            words = epoch.row(configuration).words()
            assert words is not None
            legal = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
            expected = [token for token in range(eos) if epoch.step(configuration, token) != DEAD]
            assert legal == expected + [eos] * epoch.may_end(configuration)
            if not expected:
                break
            configuration = epoch.step(configuration, rng.choice(expected))
