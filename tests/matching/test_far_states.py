"""States of automata that no token tells apart: against the plain definition, and in masks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from infernix.grammar import ir
from infernix.matching import CompiledGrammar, Vocabulary, arena, slices
from infernix.matching import network as network_module
from infernix.matching.far_states import stand_ins
from infernix.matching.masks import VocabularyIndex
from infernix.matching.network import Network, build_network
from infernix.matching.vocabulary import TokenClass
from support.recognizer import Recognizer
from support.vocabularies import text_vocabulary

Edge = tuple[int, int, int, int]


@pytest.fixture(autouse=True)
def _small_automata_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MIN_AUTOMATON_STATES", 1)


def counting(rng: Random, length: int, num_modes: int, *, letters: str = "ab") -> ir.Automaton:
    """Texts of a random automaton of `num_modes` states, cut off at `length` letters and unrolled letter by letter."""
    follows = {(mode, letter): rng.randrange(num_modes) for mode in range(num_modes) for letter in letters}
    for key in rng.sample(sorted(follows), len(follows) // 4):
        del follows[key]
    accepting = set(rng.sample(range(num_modes), rng.randint(1, num_modes)))
    numbers = {(0, 0): 0}
    edges: list[Edge] = []
    pending = [(0, 0)]
    for place in pending:
        count, mode = place
        for letter in letters:
            target = (count + 1, follows.get((mode, letter), -1))
            if target[1] < 0 or count == length:
                continue
            if target not in numbers:
                numbers[target] = len(numbers)
                pending.append(target)
            edges.append((numbers[place], ord(letter), ord(letter), numbers[target]))
    final = frozenset(number for (count, mode), number in numbers.items() if mode in accepting or count == length)
    return ir.Automaton(len(numbers), tuple(edges), final)


def told_apart(network: Network, num_bytes: int) -> list[int]:
    """By state the number of the set of those that so many bytes do not tell apart: the definition, round by round."""
    delta = network.tables[arena.DELTA].reshape(network.num_states, network.num_classes).tolist()
    sets = [int(flags & arena.FINAL != 0) for flags in network.tables[arena.FLAGS].tolist()]
    for _ in range(num_bytes):
        keys = [(own, tuple(sets[t] if t >= 0 else -1 for t in row)) for own, row in zip(sets, delta, strict=True)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        sets = [numbers[key] for key in keys]
    return sets


def reached(network: Network) -> set[int]:
    delta = network.tables[arena.DELTA].reshape(network.num_states, network.num_classes).tolist()
    found = set(network.automaton_starts)
    pending = list(found)
    for state in pending:
        for target in delta[state]:
            if target >= 0 and target not in found:
                found.add(target)
                pending.append(target)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_states_stand_for_each_other_by_the_definition(seed: int) -> None:
    rng = Random(seed)
    network = build_network(ir.Grammar.of(counting(rng, rng.randint(5, 60), rng.randint(1, 5), letters="abc")))
    states = reached(network)
    for num_bytes in (1, 2, 3, 7, 20):
        found = stand_ins(network, num_bytes).tolist()
        sets = told_apart(network, num_bytes)
        if len(states) <= num_bytes:
            assert found == [*range(network.num_states)]
            continue
        for state in range(network.num_states):
            assert sets[found[state]] == sets[state]
            assert state in states or found[state] == state
        # As few as possible, and each stands for itself.
        assert len({found[state] for state in states}) == len({sets[state] for state in states})
        assert all(found[other] == other for other in found)


def test_only_large_automata_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MIN_AUTOMATON_STATES", 50)
    small, large = (counting(Random(1), length, 1) for length in (30, 90))
    network = build_network(ir.Grammar.of(ir.sequence(ir.text("<"), small, ir.text(">"), large)))
    (start,) = network.automaton_starts
    assert start != int(network.tables[arena.RULES][0])
    moved = np.flatnonzero(stand_ins(network, 4) != np.arange(network.num_states))
    assert 60 < len(moved) < 90


WORDS = ("aa", "ab", "ba", "aab", "abb", "a>", "b>", "aa>", "<a", ">", "<", "a", "b")
VOCABULARY = text_vocabulary(WORDS)


def legal_tokens(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("min_share", [0, 1 / 4])
@pytest.mark.parametrize("seed", range(12))
def test_masks_near_the_end_and_far_from_it(seed: int, min_share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton, two side by side, and one that is called again and again, on texts that run up to the bound."""
    monkeypatch.setattr(slices, "MIN_SHARE", min_share)
    monkeypatch.setattr(slices, "MIN_ENTRY_SHARE", 0)
    monkeypatch.setattr(slices, "ENTRY_REQUESTS", 1)
    rng = Random(seed)
    one, other = (counting(rng, rng.randint(8, 25), rng.randint(1, 4)) for _ in range(2))
    builder = ir.GrammarBuilder()
    root = builder.declare("root")
    body = [
        ir.sequence(ir.text("<"), one, ir.text(">")),
        ir.sequence(ir.choice(one, other), ir.text(">")),
        ir.sequence(ir.text("<"), ir.choice(one, other, root), ir.text(">")),
        ir.Repeat(ir.sequence(one, ir.text(">")), 0, 200),
    ][seed % 4]
    builder.define(root, body)
    grammar = builder.build(root)
    recognizer = Recognizer(grammar)
    matcher = CompiledGrammar(grammar, VocabularyIndex(VOCABULARY)).new_matcher()
    row = np.zeros(VOCABULARY.num_mask_words, np.int32)
    state = recognizer.start()
    for _ in range(60):
        matcher.fill(row)
        expected = recognizer.legal_tokens(state, VOCABULARY)
        assert legal_tokens(row) == expected
        texts = [token for token in expected if VOCABULARY.classes[token] == TokenClass.TEXT]
        if not texts:
            break
        # What ends the automaton is put off.
        inside = [token for token in texts if b">" not in VOCABULARY.token_bytes[token]]
        token = rng.choice(inside or texts)
        assert matcher.accept(token)
        following = recognizer.accept(state, token, VOCABULARY)
        assert following is not None
        state = following


def test_rows_do_not_grow_with_the_length() -> None:
    def num_rows(length: int) -> int:
        compiled = CompiledGrammar(ir.Grammar.of(counting(Random(3), length, 3)), VocabularyIndex(VOCABULARY))
        matcher = compiled.new_matcher()
        row = np.zeros(VOCABULARY.num_mask_words, np.int32)
        made = compiled.index.rows.clock
        while matcher.fill(row):
            token = min(legal_tokens(row), key=lambda token: len(VOCABULARY.token_bytes[token]) or 99)
            if not matcher.accept(token) or VOCABULARY.classes[token] != TokenClass.TEXT:
                break
        return compiled.index.rows.clock - made

    assert num_rows(400) == num_rows(100) < 30


def test_the_vocabulary_may_be_empty_of_texts() -> None:
    grammar = ir.Grammar.of(counting(Random(1), 40, 1))
    matcher = CompiledGrammar(grammar, VocabularyIndex(Vocabulary([b""], [TokenClass.EOS]))).new_matcher()
    row = np.zeros(1, np.int32)
    assert matcher.fill(row) == matcher.may_end
