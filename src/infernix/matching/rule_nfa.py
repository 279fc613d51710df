"""Rules as nondeterministic automata over byte classes, rule calls, counted loops and token sets.

Thompson's construction between two given states, driven by an explicit stack. Sub-expressions that cannot produce
anything are left out, so a path that exists can be completed. Of literals that follow each other as alternatives, equal
beginnings are written once: of sorted ones, this makes the prefix tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.matching.analysis import Facts
from infernix.matching.flattening import (
    BYTES,
    CALL,
    CHOICE,
    CLASS,
    EXPRESSION,
    KIND_BITS,
    LITERAL,
    OPTIONAL,
    REPEAT,
    ROOT_BLOCK,
    SEQUENCE,
    STAR,
    TOKENS,
    UNBOUNDED,
    FlatGrammar,
    Ints,
    Nodes,
)
from infernix.matching.jit import inner, kernel

MAX_NFA_EDGES = 1 << 22

ROOT_RULE = 0

# Letters of edges: bytes, labels after them, and of an edge that reads nothing:
NOTHING = -1
FIRST_LABEL = 256

Bytes: TypeAlias = NDArray[np.uint8]

_KIND = (1 << KIND_BITS) - 1

# How an entry of the stack goes on after each child.
_ALTERNATIVE = 0
_IN_SEQUENCE = 1
_COPY = 2
_OPTIONAL_COPY = 3


@dataclass(frozen=True, slots=True)
class RuleNfa:
    """The automata of the root rule, number 0, and of every rule that it comes to need.

    rules: int32 [rules, 2], a rule's first state, where it starts, and the end of its states. block_of_rule: int32, the
    block that a rule derives. is_final: int32, 1 by state where a rule ends. The first two states belong to none.

    rows: int32 [edges, 3], low, high, target, over letters: byte classes; after them calls by rule, from first_loop on
    counted loops, and from first_tokens on token sets. State s's edges that read
    nothing lie between begins[2 * s] and begins[2 * s + 1], its others go on to begins[2 * s + 2]. class_of: int32,
    byte class by byte; neighbouring bytes that no edge tells apart share one. loops: int32 [loops, 3], minimum, maximum
    or UNBOUNDED, rule, or -1 where no edge leads over the loop.
    """

    rules: Ints
    block_of_rule: Ints
    is_final: Ints
    begins: Ints
    rows: Ints
    class_of: Ints
    num_classes: int
    loops: Ints
    first_loop: int
    num_letters: int

    @property
    def first_tokens(self) -> int:
        """The letter of token set 0."""
        return self.first_loop + len(self.loops)


def build_nfa(flat: FlatGrammar, facts: Facts) -> RuleNfa:
    """Raises ConstraintTooLarge past MAX_NFA_EDGES."""
    num_blocks = len(flat.automaton_of)
    max_edges = facts.max_edges
    if max_edges > MAX_NFA_EDGES:
        raise ConstraintTooLarge(f"the constraint takes more than {MAX_NFA_EDGES} edges (MAX_NFA_EDGES)")
    max_states = 2 + max_edges + 2 * num_blocks + len(flat.automaton_final)
    loop_of, loops = _loops(flat, facts)
    rules = np.empty(2 * num_blocks, np.int32)
    block_of_rule = np.empty(num_blocks, np.int32)
    rule_of_block = np.full(num_blocks, -1, np.int32)
    edges = np.empty(4 * max_edges, np.int32)
    is_final = np.zeros(max_states, np.int32)
    counts = np.zeros(3, np.int64)
    _write_edges(
        flat.nodes,
        flat.block_begins,
        facts.ends,
        facts.productive,
        facts.productive_blocks,
        facts.is_inlined,
        facts.copies,
        flat.literals,
        flat.literal_begins,
        flat.repeats.ravel(),
        loop_of,
        flat.classes,
        flat.class_begins,
        flat.class_sizes,
        flat.automaton_of,
        flat.automata,
        flat.automaton_edges,
        flat.automaton_final,
        facts.is_live,
        np.empty(5 * (2 * (len(flat.nodes) + num_blocks) + 4), np.int32),
        rule_of_block,
        block_of_rule,
        rules,
        edges,
        is_final,
        counts,
    )
    num_rules, num_states, num_edges = counts.tolist()
    begins = np.zeros(2 * num_states + 2, np.int32)
    rows = np.empty(3 * num_edges, np.int32)
    class_of = np.zeros(257, np.int32)
    num_classes = _group_edges(edges, num_edges, num_states, begins, rows, class_of)
    loops[:, 2] = rule_of_block[loops[:, 2]]
    return RuleNfa(
        rules[: 2 * num_rules].reshape(-1, 2),
        block_of_rule[:num_rules],
        is_final[:num_states],
        begins[:-1],
        rows.reshape(-1, 3),
        class_of[:256],
        num_classes,
        loops,
        first_loop=num_classes + num_blocks,
        num_letters=num_classes + num_blocks + len(loops) + len(flat.token_sets),
    )


def _loops(flat: FlatGrammar, facts: Facts) -> tuple[Ints, Ints]:
    """The loop of each repetition, and int32 [loops, 3], minimum, maximum, block.

    A body that derives the empty string can fill any minimum, so repetitions that differ only there are one loop.
    """
    loops = flat.repeats.copy()
    loop_of = np.arange(len(loops), dtype=np.int32)
    can_vanish = facts.nullable_blocks[loops[:, 2]]
    if np.count_nonzero(can_vanish):
        loops[can_vanish != 0, 0] = 0
        numbers: dict[tuple[int, ...], int] = {}
        for repeat, key in enumerate(map(tuple, loops.tolist())):
            loop_of[repeat] = numbers.setdefault(key, repeat)
    return loop_of, loops


@inner
def _add_edge(edges: Ints, counts: Nodes, source: int, low: int, high: int, target: int) -> None:
    place = 4 * counts[2]
    edges[place] = source
    edges[place + 1] = low
    edges[place + 2] = high
    edges[place + 3] = target
    counts[2] += 1


@inner
def _new_state(counts: Nodes) -> int:
    counts[1] += 1
    return int(counts[1]) - 1


@inner
def _rule_of(block: int, rule_of_block: Ints, block_of_rule: Ints, counts: Nodes) -> int:
    """The number of the rule for a block, which is written later if it is new."""
    if rule_of_block[block] < 0:
        rule_of_block[block] = counts[0]
        block_of_rule[counts[0]] = block
        counts[0] += 1
    return int(rule_of_block[block])


@inner
def _push(stack: Ints, depth: int, node: int, num_left: int, source: int, target: int, manner: int) -> int:
    stack[5 * depth] = node
    stack[5 * depth + 1] = num_left
    stack[5 * depth + 2] = source
    stack[5 * depth + 3] = target
    stack[5 * depth + 4] = manner
    return depth + 1


@kernel
def _write_edges(
    nodes: Nodes,
    block_begins: Ints,
    ends: Ints,
    productive: Ints,
    productive_blocks: Ints,
    is_inlined: Ints,
    copies: Ints,
    literals: Bytes,
    literal_begins: Ints,
    repeats: Ints,
    loop_of: Ints,
    classes: Ints,
    class_begins: Ints,
    class_sizes: Ints,
    automaton_of: Ints,
    automata: Ints,
    automaton_edges: Ints,
    automaton_final: Ints,
    is_live: Ints,
    stack: Ints,
    rule_of_block: Ints,
    block_of_rule: Ints,
    rules: Ints,
    edges: Ints,
    is_final: Ints,
    counts: Nodes,
) -> None:
    """Writes the edges of all rules: source, low, high, target, over bytes and labels; and counts rules, states, edges.

    An entry of the stack is a node (-1 - block for an automaton), how many times or children are left, source, target,
    and how to go on after each.
    """
    first_loop = FIRST_LABEL + len(automaton_of)
    first_tokens = first_loop + len(loop_of)
    counts[1] = 2
    # The states behind each byte of a literal but its last: those of the literal before, which begins at path_literal.
    path = np.full(len(literals) + 1, -1, np.int32)
    path_literal = 0
    path_length = 0
    _rule_of(ROOT_BLOCK, rule_of_block, block_of_rule, counts)
    rule = 0
    while rule < counts[0]:
        block = block_of_rule[rule] + 0
        begin = int(counts[1])
        rules[2 * rule] = begin
        depth = 0
        automaton = automaton_of[block]
        if automaton != EXPRESSION:
            first_state = automata[2 * automaton] + 0
            for state in range(first_state, automata[2 * automaton + 2]):
                is_final[begin + state - first_state] = automaton_final[state]
            for edge in range(automata[2 * automaton + 1], automata[2 * automaton + 3]):
                if is_live[automaton_edges[4 * edge + 3]] != 0:
                    _add_edge(
                        edges,
                        counts,
                        begin + automaton_edges[4 * edge] - first_state,
                        automaton_edges[4 * edge + 1],
                        automaton_edges[4 * edge + 2],
                        begin + automaton_edges[4 * edge + 3] - first_state,
                    )
            counts[1] += automata[2 * automaton + 2] - first_state
        else:
            counts[1] += 2
            is_final[begin + 1] = 1
            depth = _push(stack, 0, block_begins[block], 1, begin, begin + 1, _ALTERNATIVE)
        while depth > 0:
            top = 5 * (depth - 1)
            node = stack[top] + 0
            num_left = stack[top + 1] + 0
            source = stack[top + 2] + 0
            target = stack[top + 3] + 0
            manner = stack[top + 4]
            if manner == _OPTIONAL_COPY:
                _add_edge(edges, counts, source, NOTHING, NOTHING, target)
            if num_left == 1:
                depth -= 1
            else:
                stack[top + 1] = num_left - 1
                if manner <= _IN_SEQUENCE:
                    stack[top] = ends[node]
                if manner != _ALTERNATIVE:
                    target = _new_state(counts)
                    stack[top + 2] = target
            if node >= 0 and productive[node] == 0:
                continue
            kind = CALL if node < 0 else nodes[node] & _KIND
            operand = -1 - node if node < 0 else nodes[node] >> KIND_BITS
            # What most kinds come down to: one edge from `source` to `target`, or children between them.
            has_edge = True
            low = NOTHING
            high = NOTHING
            child = node + 1
            num_children = 0
            child_target = target
            manner = _ALTERNATIVE
            if kind == LITERAL:
                first = literal_begins[operand] + 0
                last = literal_begins[operand + 1] - 1
                # Beginnings that it shares with the literal before it, from the same state, are there already.
                shared = 0
                if source == path[0]:
                    most = min(last - first, path_length)
                    while shared < most and literals[first + shared] == literals[path_literal + shared]:
                        shared += 1
                if first <= last:
                    path[0] = source
                    path_literal = first
                    path_length = last - first
                    source = path[shared] + 0
                    for place in range(first + shared, last):
                        following = _new_state(counts)
                        _add_edge(edges, counts, source, literals[place], literals[place], following)
                        source = following
                        path[place - first + 1] = source
                    low = literals[last] + 0
                    high = low
            elif kind == CALL and is_inlined[operand] != 0:
                has_edge = False
                child = block_begins[operand] + 0
                num_children = 1
            elif kind == CALL:
                low = FIRST_LABEL + _rule_of(operand, rule_of_block, block_of_rule, counts)
                high = low
            elif SEQUENCE <= kind <= CHOICE:
                # An empty choice is not productive.
                has_edge = operand == 0
                num_children = operand
                manner = _IN_SEQUENCE if kind == SEQUENCE else _ALTERNATIVE
            elif kind == OPTIONAL:
                num_children = 1
            elif kind == CLASS:
                has_edge = False
                base = counts[1] - 2
                counts[1] += class_sizes[2 * operand + 1] - 2
                for edge in range(class_begins[operand], class_begins[operand + 1]):
                    begin_state = classes[4 * edge] + 0
                    end_state = classes[4 * edge + 3] + 0
                    _add_edge(
                        edges,
                        counts,
                        source if begin_state == 0 else base + begin_state,
                        classes[4 * edge + 1],
                        classes[4 * edge + 2],
                        target if end_state == 1 else base + end_state,
                    )
            elif kind == BYTES:
                low = operand >> 8
                high = operand & 255
            elif kind == TOKENS:
                low = first_tokens + operand
                high = low
            else:
                # The child, once and again, or as often as `minimum` and `maximum` say.
                num_children = 1
                minimum = 1
                maximum = UNBOUNDED
                if kind == REPEAT:
                    minimum = repeats[3 * operand] + 0
                    maximum = repeats[3 * operand + 1] + 0
                    block = repeats[3 * operand + 2] + 0
                    child = -1 - block if automaton_of[block] != EXPRESSION else block_begins[block] + 0
                    if productive_blocks[block] == 0:
                        num_children = 0
                    elif copies[operand] == 0:
                        num_children = 0
                        _rule_of(block, rule_of_block, block_of_rule, counts)
                        low = first_loop + loop_of[operand]
                        high = low
                if num_children > 0:
                    num_copies = min(minimum, maximum)
                    if maximum == UNBOUNDED:
                        num_copies = minimum - 1
                    num_children = maximum - num_copies
                    manner = _OPTIONAL_COPY
                    has_edge = False
                    if num_copies > 0:
                        middle = target
                        if num_children != 0:
                            middle = _new_state(counts)
                        depth = _push(stack, depth, child, num_copies, source, middle, _COPY)
                        source = middle
                    if maximum == UNBOUNDED:
                        turn = _new_state(counts)
                        _add_edge(edges, counts, source, NOTHING, NOTHING, turn)
                        source = turn
                        child_target = turn
                        if kind != STAR:
                            child_target = _new_state(counts)
                            _add_edge(edges, counts, child_target, NOTHING, NOTHING, turn)
                        num_children = 1
                        manner = _ALTERNATIVE
                        has_edge = True
            if num_children > 0:
                depth = _push(stack, depth, child, num_children, source, child_target, manner)
            if manner == _ALTERNATIVE and child_target != target:
                source = child_target
            if has_edge:
                _add_edge(edges, counts, source, low, high, target)
        rules[2 * rule + 1] = counts[1]
        rule += 1


@kernel
def _group_edges(edges: Ints, num_edges: int, num_states: int, begins: Ints, rows: Ints, class_of: Ints) -> int:
    """Parts the bytes into classes and orders the edges by their source; returns the number of classes.

    edges: as `_write_edges` leaves them. begins, with one entry more, and class_of, likewise, are all zeros.
    """
    for edge in range(num_edges):
        low = edges[4 * edge + 1]
        if low < FIRST_LABEL:
            if low > 0:
                class_of[low] = 1
            if low >= 0:
                class_of[edges[4 * edge + 2] + 1] = 1
        begins[2 * edges[4 * edge] + int(low >= 0) + 2] += 1
    for byte in range(1, 256):
        class_of[byte] += class_of[byte - 1]
    num_classes = class_of[255] + 1
    for group in range(2, 2 * num_states + 1):
        begins[group] += begins[group - 1]
    # begins[g + 1] is where group g begins now; placing its edges moves it to their end.
    for edge in range(num_edges):
        low = edges[4 * edge + 1]
        group = 2 * edges[4 * edge] + int(low >= 0) + 1
        place = 3 * begins[group]
        begins[group] += 1
        if low < 0:
            rows[place] = -1
            rows[place + 1] = -1
        elif low < FIRST_LABEL:
            rows[place] = class_of[low]
            rows[place + 1] = class_of[edges[4 * edge + 2]]
        else:
            rows[place] = num_classes + low - FIRST_LABEL
            rows[place + 1] = rows[place]
        rows[place + 2] = edges[4 * edge + 3]
    return int(num_classes)
