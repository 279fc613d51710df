"""Facts about flat grammars against the plain analysis of the expressions themselves."""

from __future__ import annotations

from random import Random

import pytest

from infernix.grammar import ir
from infernix.grammar.unicode import character_class
from infernix.matching.analysis import MAX_EXPANDED_EDGES, MAX_INLINED_EDGES, Facts, analyze
from infernix.matching.flattening import FlatGrammar, flatten
from infernix.matching.rule_nfa import build_nfa
from support import plain_analysis
from support.random_grammars import FAMILIES, random_grammar

A, B = ir.text("a"), ir.text("b")


def facts_of(grammar: ir.Grammar) -> tuple[FlatGrammar, Facts]:
    flat = flatten(grammar)
    return flat, analyze(flat)


@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_random_grammars(family: str) -> None:
    for seed in range(100):
        grammar = random_grammar(Random(f"facts {family} {seed}"), family, (3, 4, 5) if seed % 2 else (), (1,))
        flat, facts = facts_of(grammar)
        plain = plain_analysis.analyze(grammar)
        keys = [id(body) for body in flat.blocks]
        assert [key in plain.productive for key in keys] == facts.productive_blocks.astype(bool).tolist()
        nullable = [key in plain.nullable for key in keys]
        assert nullable == facts.nullable_blocks.astype(bool).tolist()
        if facts.productive_blocks[0]:
            nfa = build_nfa(flat, facts)
            assert len(nfa.rows) <= facts.max_edges


def inlined_rules(make: dict[str, ir.Expression], names: list[str]) -> list[str]:
    """The names of the rules that are copied; a rule refers to another by its place in `names`."""
    grammar = ir.Grammar(tuple(ir.Rule(name, make[name]) for name in names))
    flat, facts = facts_of(grammar)
    names_of = {id(rule.body): rule.name for rule in grammar.rules}
    return sorted(names_of[id(body)] for body, copied in zip(flat.blocks, facts.is_inlined, strict=True) if copied)


def test_rules_are_copied_unless_they_recurse_or_are_large() -> None:
    root, loop, between, other, leaf, large = (ir.RuleReference(index) for index in range(6))
    rules: dict[str, ir.Expression] = {
        # Leads to recursion without being part of it: its size decides.
        "root": ir.choice(loop, leaf, large),
        "loop": ir.sequence(A, ir.optional(loop), ir.optional(between)),
        # Between two recursions.
        "between": ir.sequence(B, other),
        "other": ir.choice(ir.sequence(A, ir.Repeat(ir.sequence(other, leaf), 2, 3)), A),
        "leaf": ir.text("x" * MAX_INLINED_EDGES),
        "large": ir.text("x" * (MAX_INLINED_EDGES + 1)),
    }
    names = list(rules)
    assert inlined_rules(rules, names) == ["leaf"]
    assert inlined_rules({**rules, "root": ir.choice(loop, large)}, names) == ["leaf", "root"]
    assert inlined_rules({**rules, "loop": ir.sequence(A, between)}, names) == ["between", "leaf", "loop"]
    assert inlined_rules({**rules, "other": ir.sequence(root, root)}, names) == ["leaf"]


@pytest.mark.parametrize(
    ("body", "maximum", "copies"),
    [
        (A, MAX_EXPANDED_EDGES, MAX_EXPANDED_EDGES),
        (A, MAX_EXPANDED_EDGES + 1, 0),
        (ir.EMPTY, MAX_EXPANDED_EDGES, MAX_EXPANDED_EDGES),
        (ir.text("ab"), MAX_EXPANDED_EDGES // 2 + 1, 0),
        (character_class([(0xC0, 0xFF)]), MAX_EXPANDED_EDGES // 2, MAX_EXPANDED_EDGES // 2),
    ],
)
def test_large_repetitions_keep_a_counter(body: ir.Expression, maximum: int, copies: int) -> None:
    _, facts = facts_of(ir.Grammar.of(ir.Repeat(body, 0, maximum)))
    assert facts.copies.tolist() == [copies]


def test_only_live_parts_of_automata() -> None:
    dead = ir.Automaton(2, ((0, 97, 97, 1),), frozenset())
    word = ir.Automaton(3, ((0, 97, 97, 1), (0, 98, 98, 2)), frozenset({1}))
    empty = ir.Automaton(1, (), frozenset({0}))
    flat, facts = facts_of(ir.Grammar.of(ir.choice(dead, word, ir.sequence(empty, empty))))
    assert flat.blocks[1:] == [dead, word, empty]
    assert facts.productive_blocks.tolist() == [1, 0, 1, 1]
    assert facts.nullable_blocks.tolist() == [1, 0, 0, 1]
    assert facts.is_live.tolist() == [0, 0, 1, 1, 0, 1]


def test_a_shared_body_is_one_block() -> None:
    body = ir.sequence(A, ir.optional(B))
    flat, facts = facts_of(ir.Grammar.of(ir.sequence(ir.Repeat(body, 2, 500), ir.Repeat(body, 0, 900), A)))
    assert flat.blocks[1:] == [body]
    assert build_nfa(flat, facts).block_of_rule.tolist() == [0, 1]
