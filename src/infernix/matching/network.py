"""A grammar as flat tables: the recursive byte network that the kernels run on.

States are shared by all rules. State 0 accepts, state 1 is final and nothing else. A step on a byte class leads to one
state, to a list of states, or nowhere; call edges name a rule (or a counted loop's body) and where to go on after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge, EmptyLanguage
from infernix.grammar import ir
from infernix.matching import arena
from infernix.matching.analysis import analyze
from infernix.matching.determinize import determinize
from infernix.matching.flattening import ROOT_BLOCK, FlatGrammar, flatten
from infernix.matching.network_tables import network_tables
from infernix.matching.quotient import Quotient, merge_equal
from infernix.matching.rule_nfa import ROOT_RULE, RuleNfa, build_nfa

MAX_STATES = 1 << 21
MAX_STEP_TABLE_ENTRIES = 1 << 26
# Automata of fewer states have few masks in any case.
MIN_AUTOMATON_STATES = 256


@dataclass(frozen=True, slots=True)
class Network:
    """Flat tables by table number of `arena`, and what the kernels do not need.

    token_sets[s] is the token terminal that token edges call set s. automaton_starts: where the rules of automata with
    MIN_AUTOMATON_STATES states or more begin.
    """

    tables: dict[int, NDArray[np.int32]]
    num_states: int
    num_classes: int
    root_rule: int
    token_sets: tuple[ir.TokenSet, ...]
    automaton_starts: tuple[int, ...]


def build_network(grammar: ir.Grammar) -> Network:
    """Raises EmptyLanguage where the root cannot produce anything, ConstraintTooLarge past one of the bounds.

    These are MAX_STATES and MAX_STEP_TABLE_ENTRIES here, MAX_NFA_EDGES in `rule_nfa`, MAX_ROWS in `determinize`.
    """
    flat = flatten(grammar)
    facts = analyze(flat)
    if not facts.productive_blocks[ROOT_BLOCK]:
        raise EmptyLanguage("the language is empty: no text belongs to this constraint")
    nfa = build_nfa(flat, facts)
    if len(nfa.is_final) > MAX_STATES:
        raise ConstraintTooLarge(f"the constraint takes {len(nfa.is_final)} states, the bound is {MAX_STATES}")
    subsets = determinize(nfa)
    quotient = merge_equal(subsets, nfa.num_classes, nfa.num_letters)
    num_states = len(quotient.final)
    if num_states * nfa.num_classes > MAX_STEP_TABLE_ENTRIES:
        raise ConstraintTooLarge(
            f"the constraint's step table would have {num_states} x {nfa.num_classes} entries, the bound is "
            f"{MAX_STEP_TABLE_ENTRIES}"
        )
    lists: list[int] = []
    if subsets.first_nondeterministic < len(subsets.final):
        quotient, lists = _with_lists(quotient, nfa.num_classes)
    rules = np.empty(2 * len(quotient.rule_starts), np.int32)
    rules[0::2] = quotient.rule_starts
    rules[1::2] = facts.nullable_blocks[nfa.block_of_rule]
    tables = {
        **network_tables(quotient, nfa),
        arena.TARGETS: np.array(lists, np.int32),
        arena.RULES: rules,
    }
    return Network(
        tables,
        num_states,
        num_classes=len(tables[arena.DELTA]) // num_states,
        root_rule=ROOT_RULE,
        token_sets=flat.token_sets,
        automaton_starts=_starts_of_large_automata(flat, nfa, quotient),
    )


def _starts_of_large_automata(flat: FlatGrammar, nfa: RuleNfa, quotient: Quotient) -> tuple[int, ...]:
    """Where the rules begin that are automata of MIN_AUTOMATON_STATES states or more."""
    if len(flat.automaton_final) < MIN_AUTOMATON_STATES:
        return ()
    sizes = np.append(np.diff(flat.automata[0::2]), 0)  # the last one is for blocks that are expressions
    is_large = sizes[flat.automaton_of[nfa.block_of_rule]] >= MIN_AUTOMATON_STATES
    return tuple(quotient.rule_starts[is_large].tolist())


def _with_lists(quotient: Quotient, num_classes: int) -> tuple[Quotient, list[int]]:
    """Rows with the same source and byte classes become one, whose target refers to a list of their targets.

    Such rows stand next to each other. The lists are written one after the other, each with its length first.
    """
    sources, rows = quotient.sources, quotient.rows
    lows = rows[:, 0]
    begins_group = np.ones(len(rows) + 1, np.bool_)
    begins_group[1:-1] = (sources[1:] != sources[:-1]) | (lows[1:] != lows[:-1]) | (lows[1:] >= num_classes)
    begins = np.flatnonzero(begins_group)
    targets = rows[:, 2]
    joined = rows[begins[:-1]]
    lists: list[int] = []
    references: dict[tuple[int, ...], int] = {}
    for group in np.flatnonzero(np.diff(begins) > 1).tolist():
        members = tuple(sorted(targets[begins[group] : begins[group + 1]].tolist()))
        if members not in references:
            references[members] = -2 - len(lists)
            lists += [len(members), *members]
        joined[group, 2] = references[members]
    return Quotient(quotient.rule_starts, quotient.final, sources[begins[:-1]], joined), lists
