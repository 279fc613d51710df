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
from infernix.matching.determinize import State, StateGraph, determinize
from infernix.matching.rule_nfa import Loop, NfaBuilder

MAX_STATES = 1 << 21


@dataclass(frozen=True, slots=True)
class Network:
    """Flat tables by table number of `arena`, and what the kernels do not need.

    token_sets[s] is the token terminal that token edges call set s.
    """

    tables: dict[int, NDArray[np.int32]]
    num_states: int
    num_classes: int
    root_rule: int
    token_sets: tuple[ir.TokenSet, ...]


def build_network(grammar: ir.Grammar) -> Network:
    """Raises EmptyLanguage where the root cannot produce anything, ConstraintTooLarge past MAX_STATES."""
    facts = analyze(grammar)
    if not facts.productive[id(grammar.rules[grammar.root].body)]:
        raise EmptyLanguage("the language is empty: no text belongs to this constraint")
    builder = NfaBuilder(grammar, facts)
    if builder.nfa.num_states > MAX_STATES:
        raise ConstraintTooLarge(f"the constraint takes {builder.nfa.num_states} states, the bound is {MAX_STATES}")
    graph = determinize(builder)
    order = _numbering(graph)
    tables = {
        **_step_tables(graph, order),
        **_edge_tables(graph, order, builder.loops),
        arena.RULES: np.array(
            [
                value
                for start, nullable in zip(graph.rule_starts, builder.nullable_rules, strict=True)
                for value in (order[start], int(nullable))
            ],
            np.int32,
        ),
    }
    return Network(
        tables,
        num_states=len(tables[arena.FLAGS]),
        num_classes=int(tables[arena.CLASS_OF].max()) + 1,
        root_rule=builder.root_rule,
        token_sets=tuple(builder.token_sets),
    )


def _is_only_final(state: State) -> bool:
    return state.is_final and not (state.steps or state.calls or state.loops or state.tokens)


def _numbering(graph: StateGraph) -> list[int]:
    """New numbers: the accept state first, then the state that is only final (there is one at most)."""
    order = [0] * len(graph.states)
    following = 2
    for number, state in enumerate(graph.states):
        if _is_only_final(state):
            order[number] = arena.FINAL_STATE
        else:
            order[number] = following
            following += 1
    return order


def _step_tables(graph: StateGraph, order: list[int]) -> dict[int, NDArray[np.int32]]:
    num_states = max(max(order) + 1, 2)
    delta = np.full((num_states, len(graph.class_begins)), arena.NO_TARGET, np.int32)
    flags = np.zeros(num_states, np.int32)
    flags[arena.ACCEPT_STATE] = arena.ACCEPT
    lists: list[int] = []
    list_references: dict[tuple[int, ...], int] = {}
    for number, state in zip(order, graph.states, strict=True):
        flags[number] = arena.FINAL * state.is_final | arena.KEPT * bool(state.steps or state.tokens)
        for low, high, targets in state.steps:
            if len(targets) == 1:
                delta[number, low : high + 1] = order[targets[0]]
                continue
            if targets not in list_references:
                list_references[targets] = -2 - len(lists)
                lists += [len(targets), *(order[target] for target in targets)]
            delta[number, low : high + 1] = list_references[targets]
    columns, class_of_column = np.unique(delta, axis=1, return_inverse=True)
    class_of = np.zeros(256, np.int32)
    for begin, byte_class in zip(graph.class_begins, class_of_column.ravel(), strict=True):
        class_of[begin:] = byte_class
    return {
        arena.CLASS_OF: class_of,
        arena.DELTA: np.ascontiguousarray(columns).ravel(),
        arena.TARGETS: np.array(lists, np.int32),
        arena.FLAGS: flags,
    }


def _edge_tables(graph: StateGraph, order: list[int], loops: list[Loop]) -> dict[int, NDArray[np.int32]]:
    num_states = max(max(order) + 1, 2)
    calls: list[list[int]] = [[] for _ in range(num_states)]
    tokens: list[list[int]] = [[] for _ in range(num_states)]
    loop_numbers: dict[tuple[int, int], int] = {}
    loop_rows: list[int] = []
    for number, state in zip(order, graph.states, strict=True):
        for rule, targets in state.calls:
            for target in targets:
                calls[number] += [rule, order[target], arena.NO_LOOP]
        for label, targets in state.loops:
            loop = loops[label]
            maximum = arena.UNBOUNDED if loop.maximum is None else loop.maximum
            for target in targets:
                # The runtime finds a loop's continuation by its number alone.
                key = (label, order[target])
                if key not in loop_numbers:
                    loop_numbers[key] = len(loop_numbers)
                    loop_rows += [loop.minimum, maximum, loop.rule, order[target]]
                calls[number] += [loop.rule, order[target], loop_numbers[key]]
        for label, targets in state.tokens:
            for target in targets:
                tokens[number] += [label, order[target]]
    return {
        arena.CALL_BEGIN: _row_begins(calls, 3),
        arena.CALLS: np.array([value for row in calls for value in row], np.int32),
        arena.TOKEN_BEGIN: _row_begins(tokens, 2),
        arena.TOKEN_EDGES: np.array([value for row in tokens for value in row], np.int32),
        arena.LOOPS: np.array(loop_rows, np.int32),
    }


def _row_begins(rows: list[list[int]], width: int) -> NDArray[np.int32]:
    begins = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) // width for row in rows], out=begins[1:])
    return begins
