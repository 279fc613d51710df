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
from infernix.matching.minimization import Quotient, merge_equal, spread
from infernix.matching.rule_nfa import LABEL_CALL, LABEL_LOOP, LABEL_TOKENS, Loop, NfaBuilder
from infernix.matching.unrolling import Ints, unroll

MAX_STATES = 1 << 21
MAX_STEP_TABLE_ENTRIES = 1 << 26


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
    """Raises EmptyLanguage where the root cannot produce anything, ConstraintTooLarge past one of the bounds.

    These are MAX_STATES and MAX_STEP_TABLE_ENTRIES here, MAX_NFA_EDGES in `rule_nfa`, MAX_ROWS in `determinize`.
    """
    facts = analyze(grammar)
    if id(grammar.rules[grammar.root].body) not in facts.productive:
        raise EmptyLanguage("the language is empty: no text belongs to this constraint")
    builder = NfaBuilder(grammar, facts)
    if builder.num_states > MAX_STATES:
        raise ConstraintTooLarge(f"the constraint takes {builder.num_states} states, the bound is {MAX_STATES}")
    edges = unroll(builder)
    num_letters = edges.num_classes + len(builder.labels)
    rules = np.array([builder.rule_begins, builder.rule_ends], np.int32).T.copy()
    quotient = merge_equal(determinize(edges, builder.final_states(), rules, num_letters), num_letters)
    is_byte = quotient.rows[:, 0] < edges.num_classes
    tables = {
        **_step_tables(quotient, is_byte, edges.class_of, edges.num_classes),
        **_edge_tables(quotient, ~is_byte, edges.num_classes, builder.labels, builder.loops),
        arena.RULES: np.stack([quotient.rule_starts, np.array(builder.nullable_rules, np.int32)], axis=1).ravel(),
    }
    flags = quotient.final * np.int32(arena.FINAL)
    flags[quotient.sources[is_byte]] |= arena.KEPT
    flags[tables[arena.TOKEN_BEGIN][:-1] < tables[arena.TOKEN_BEGIN][1:]] |= arena.KEPT
    flags[arena.ACCEPT_STATE] = arena.ACCEPT
    tables[arena.FLAGS] = flags
    return Network(
        tables,
        num_states=len(flags),
        num_classes=len(tables[arena.DELTA]) // len(flags),
        root_rule=builder.root_rule,
        token_sets=tuple(builder.token_sets),
    )


def _step_tables(
    quotient: Quotient, is_byte: NDArray[np.bool_], class_of: Ints, num_classes: int
) -> dict[int, NDArray[np.int32]]:
    num_states = len(quotient.final)
    if num_states * num_classes > MAX_STEP_TABLE_ENTRIES:
        raise ConstraintTooLarge(
            f"the constraint's step table would have {num_states} x {num_classes} entries, the bound is "
            f"{MAX_STEP_TABLE_ENTRIES}"
        )
    sources, rows, lists = _joined(quotient.sources[is_byte], quotient.rows[is_byte])
    row_of, classes = spread(rows)
    # By class first: classes that no state tells apart have equal lines.
    delta = np.full((num_classes, num_states), arena.NO_TARGET, np.int32)
    delta[classes, sources[row_of]] = rows[row_of, 2]
    numbers: dict[bytes, int] = {}
    number_of = np.array([numbers.setdefault(line.tobytes(), len(numbers)) for line in delta], np.int32)
    firsts = np.unique(number_of, return_index=True)[1]
    return {
        arena.CLASS_OF: number_of[class_of],
        arena.DELTA: np.ascontiguousarray(delta[firsts].T).ravel(),
        arena.TARGETS: np.array(lists, np.int32),
    }


def _joined(sources: Ints, rows: Ints) -> tuple[Ints, Ints, list[int]]:
    """Rows with the same source and letters become one, whose target refers to a list of their targets.

    Such rows stand next to each other. The lists are written one after the other, each with its length first.
    """
    begins_group = np.ones(len(rows) + 1, np.bool_)
    begins_group[1:-1] = (sources[1:] != sources[:-1]) | (rows[1:, 0] != rows[:-1, 0])
    if begins_group.all():
        return sources, rows, []
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
    return sources[begins[:-1]], joined, lists


def _edge_tables(
    quotient: Quotient,
    is_label: NDArray[np.bool_],
    num_classes: int,
    labels: list[tuple[int, int]],
    loops: list[Loop],
) -> dict[int, NDArray[np.int32]]:
    num_states = len(quotient.final)
    sources = quotient.sources[is_label]
    targets = quotient.rows[is_label, 2]
    kinds, numbers = np.array(labels or [(LABEL_CALL, 0)], np.int32)[quotient.rows[is_label, 0] - num_classes].T
    is_token = kinds == LABEL_TOKENS
    calls = np.stack([numbers, targets, np.full(len(sources), arena.NO_LOOP, np.int32)], axis=1)
    loop_numbers: dict[tuple[int, int], int] = {}
    loop_rows: list[int] = []
    for edge in np.flatnonzero(kinds == LABEL_LOOP).tolist():
        # The runtime finds a loop's continuation by its number alone.
        number, target = int(numbers[edge]), int(targets[edge])
        loop = loops[number]
        if (number, target) not in loop_numbers:
            loop_numbers[number, target] = len(loop_numbers)
            maximum = arena.UNBOUNDED if loop.maximum is None else loop.maximum
            loop_rows += [loop.minimum, maximum, loop.rule, target]
        calls[edge, 0] = loop.rule
        calls[edge, 2] = loop_numbers[number, target]
    states = np.arange(num_states + 1)
    return {
        arena.CALL_BEGIN: np.searchsorted(sources[~is_token], states).astype(np.int32),
        arena.CALLS: calls[~is_token].ravel(),
        arena.TOKEN_BEGIN: np.searchsorted(sources[is_token], states).astype(np.int32),
        arena.TOKEN_EDGES: np.stack([numbers[is_token], targets[is_token]], axis=1).ravel(),
        arena.LOOPS: np.array(loop_rows, np.int32),
    }
