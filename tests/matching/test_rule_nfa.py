"""Nondeterministic automata of rules: what is written once."""

from __future__ import annotations

from random import Random

from infernix.grammar import ir
from infernix.matching.analysis import analyze
from infernix.matching.flattening import flatten
from infernix.matching.rule_nfa import build_nfa


def num_states(body: ir.Expression) -> int:
    flat = flatten(ir.Grammar.of(body))
    return len(build_nfa(flat, analyze(flat)).is_final)


def num_prefixes(words: list[bytes]) -> int:
    """Proper beginnings, the empty one left out."""
    return len({word[:length] for word in words for length in range(1, len(word))})


def test_sorted_literals_are_a_prefix_tree() -> None:
    source = Random(5)
    words = sorted({bytes(source.choices(b"abc", k=source.randrange(8))) for _ in range(300)})
    # Two states belong to no rule, two are the rule's own.
    assert num_states(ir.choice(*map(ir.Literal, words))) == 4 + num_prefixes(words)


def test_a_literal_shares_with_the_one_before_it_only() -> None:
    words = [b"abcd", b"xy", b"abce"]
    assert num_states(ir.choice(*map(ir.Literal, words))) == 4 + 3 + 1 + 3


def test_literals_share_before_whatever_follows_them() -> None:
    words = [b"north", b"northern", b"not", b"", b"nothing"]
    options = [ir.sequence(ir.Literal(word), ir.Repeat(ir.ByteRange(48, 57), 1, 3)) for word in words]
    apart = sum(num_states(option) - 4 for option in options)
    shared = sum(len(word) - 1 for word in words if word) - num_prefixes(words)
    # Between two literals stand the digits of the first, but these are no literals.
    assert num_states(ir.choice(*options)) == 4 + apart - shared


def test_copies_do_not_share() -> None:
    word = ir.Literal(b"abc")
    assert num_states(ir.Sequence((word, word))) == 4 + 2 + 1 + 2
    assert num_states(ir.Repeat(word, 3, 3)) == 4 + 3 * 2 + 2
