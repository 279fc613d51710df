"""What the parts of a grammar can do: produce anything, vanish, call themselves; and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infernix.matching.flattening import (
    BYTES,
    CALL,
    CHOICE,
    CLASS,
    EXPRESSION,
    KIND_BITS,
    LITERAL,
    OPTIONAL,
    PLUS,
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
from infernix.matching.liveness import live_states

# Counted repetitions up to this many byte edges are written out; larger ones keep a counter. Rules up to the second
# figure that do not recurse are copied into their callers.
MAX_EXPANDED_EDGES = 160
MAX_INLINED_EDGES = 20

# Sizes are cut off here: where blocks are copied into others, they can grow beyond any integer.
_HUGE = 1 << 40
_KIND = (1 << KIND_BITS) - 1


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by node, int32 1 or 0: whether it derives anything, and whether it derives the empty string.

    By block: the same two, and whether its calls are copies. ends: by node where the node behind its subtree is.
    max_edges: how many edges all rules take at most. copies: by repetition how often its body is written out, or 0
    where it keeps a counter. is_live: by automaton state whether an accepting state can be reached.
    """

    ends: Ints
    productive: Ints
    productive_blocks: Ints
    nullable_blocks: Ints
    is_inlined: Ints
    max_edges: int
    copies: Ints
    is_live: Ints


def analyze(flat: FlatGrammar) -> Facts:
    """All facts, each as a least fixpoint."""
    num_nodes, num_blocks = len(flat.nodes), len(flat.automaton_of)
    is_live = live_states(flat)
    by_node = np.empty(8 * num_nodes, np.int32)
    by_block = np.zeros(7 * num_blocks, np.int32)
    sizes = np.zeros(2 * (num_nodes + num_blocks), np.int64)
    copies = np.empty(len(flat.repeats), np.int32)
    max_edges = _analyze(
        flat.nodes,
        flat.block_begins,
        flat.literal_begins,
        flat.repeats.ravel(),
        flat.class_begins,
        flat.class_sizes,
        flat.automaton_of,
        flat.automata,
        flat.automaton_final,
        is_live,
        by_node,
        by_block,
        sizes,
        copies,
        MAX_EXPANDED_EDGES,
        MAX_INLINED_EDGES,
    )
    blocks = by_block.reshape(7, -1)
    return Facts(
        by_node[:num_nodes],
        by_node[num_nodes : 2 * num_nodes],
        blocks[0],
        blocks[1],
        blocks[2],
        max_edges,
        copies,
        is_live,
    )


@inner
def _callee(nodes: Nodes, repeats: Ints, node: int) -> int:
    """The block that a node refers to, or -1."""
    kind = nodes[node] & _KIND
    if kind == CALL:
        return int(nodes[node]) >> KIND_BITS
    if kind == REPEAT:
        return int(repeats[3 * (nodes[node] >> KIND_BITS) + 2])
    return -1


@inner
def _derive(
    nodes: Nodes,
    literal_begins: Ints,
    repeats: Ints,
    class_begins: Ints,
    automaton_of: Ints,
    automata: Ints,
    automaton_holds: Ints,
    by_node: Ints,
    by_block: Ints,
    holds: int,
    block_holds: int,
    is_for_empty: bool,
) -> None:
    """Which nodes derive anything (or the empty string), written to by_node[holds:] and by_block[block_holds:].

    Works like unit propagation over Horn clauses: a node waits for one of its children, a sequence for all.
    """
    num_nodes = len(nodes)
    parents = 3 * num_nodes
    first_callers = 3 * len(automaton_of)
    next_callers = 4 * num_nodes
    missing = 5 * num_nodes
    queue = 6 * num_nodes
    for block in range(len(automaton_of)):
        automaton = automaton_of[block]
        by_block[block_holds + block] = automaton != EXPRESSION and automaton_holds[automata[2 * automaton]]
    depth = 0
    for node in range(num_nodes):
        kind = nodes[node] & _KIND
        operand = nodes[node] >> KIND_BITS
        needed = 1
        known = OPTIONAL <= kind <= STAR
        if kind == LITERAL:
            known = not is_for_empty or literal_begins[operand] == literal_begins[operand + 1]
        elif kind == SEQUENCE:
            needed = operand
            known = operand == 0
        elif kind == CLASS:
            known = not is_for_empty and class_begins[operand] < class_begins[operand + 1]
        elif BYTES <= kind <= TOKENS:
            known = not is_for_empty
        elif kind == REPEAT:
            known = repeats[3 * operand] == 0 or by_block[block_holds + repeats[3 * operand + 2]] != 0
        elif kind == CALL:
            known = by_block[block_holds + operand] != 0
        by_node[missing + node] = needed
        by_node[holds + node] = known
        if known:
            by_node[queue + depth] = node
            depth += 1
    while depth > 0:
        depth -= 1
        node = by_node[queue + depth] + 0
        parent = by_node[parents + node] + 0
        if parent >= 0:
            by_node[missing + parent] -= 1
            if by_node[missing + parent] == 0 and by_node[holds + parent] == 0:
                by_node[holds + parent] = 1
                by_node[queue + depth] = parent
                depth += 1
            continue
        block = -1 - parent
        by_block[block_holds + block] = 1
        caller = by_block[first_callers + block] + 0
        while caller >= 0:
            if by_node[holds + caller] == 0:
                by_node[holds + caller] = 1
                by_node[queue + depth] = caller
                depth += 1
            caller = by_node[next_callers + caller] + 0


@inner
def _measure(
    nodes: Nodes,
    block_begins: Ints,
    literal_begins: Ints,
    repeats: Ints,
    class_begins: Ints,
    class_sizes: Ints,
    automaton_of: Ints,
    automata: Ints,
    by_node: Ints,
    by_block: Ints,
    sizes: Nodes,
    copies: Ints,
    max_expanded_edges: int,
    block: int,
) -> None:
    """Works out a block's size, and how many edges it takes, from those of the blocks that are copied into it.

    The size is the number of byte edges, copies counted, and every other call counted as one.
    """
    num_nodes = len(nodes)
    num_blocks = len(block_begins) - 1
    is_inlined = 2 * num_blocks
    is_rule = 6 * num_blocks
    # Sizes by block come first, then those by node; each followed by the numbers of edges written.
    first = 2 * num_blocks
    begin = block_begins[block]
    if begin == block_begins[block + 1]:
        automaton = automaton_of[block]
        sizes[block] = 1
        sizes[num_blocks + block] = automata[2 * automaton + 3] - automata[2 * automaton + 1]
        return
    for node in range(block_begins[block + 1] - 1, begin - 1, -1):
        kind = nodes[node] & _KIND
        operand = int(nodes[node] >> KIND_BITS)
        size = 1
        written = 1
        if kind == LITERAL:
            size = int(literal_begins[operand + 1] - literal_begins[operand])
            written = max(size, 1)
        elif SEQUENCE <= kind <= CHOICE:
            size = 0
            written = int(operand == 0)
            child = node + 1
            for _ in range(operand):
                size += sizes[first + child]
                written += sizes[first + num_nodes + child]
                child = by_node[child] + 0
        elif OPTIONAL <= kind <= PLUS:
            size = sizes[first + node + 1] + 0
            written = sizes[first + num_nodes + node + 1] + 3
        elif kind == CLASS:
            size = int(class_sizes[2 * operand])
            written = int(class_begins[operand + 1] - class_begins[operand])
        elif kind == CALL:
            if by_block[is_inlined + operand] != 0:
                size = sizes[operand] + 0
                written = sizes[num_blocks + operand] + 0
            else:
                by_block[is_rule + operand] = 1
        elif kind == REPEAT:
            body = repeats[3 * operand + 2]
            num_copies = int(repeats[3 * operand + 1])
            if num_copies == UNBOUNDED:
                num_copies = int(repeats[3 * operand])
            copies[operand] = 0
            if num_copies * max(sizes[body], 1) <= max_expanded_edges:
                copies[operand] = num_copies
                size = num_copies * sizes[body]
                written = num_copies * (sizes[num_blocks + body] + 1) + 3
            else:
                by_block[is_rule + body] = 1
        sizes[first + node] = min(size, _HUGE)
        sizes[first + num_nodes + node] = min(written, _HUGE)
    sizes[block] = sizes[first + begin]
    sizes[num_blocks + block] = sizes[first + num_nodes + begin]


@kernel
def _analyze(
    nodes: Nodes,
    block_begins: Ints,
    literal_begins: Ints,
    repeats: Ints,
    class_begins: Ints,
    class_sizes: Ints,
    automaton_of: Ints,
    automata: Ints,
    automaton_final: Ints,
    is_live: Ints,
    by_node: Ints,
    by_block: Ints,
    sizes: Nodes,
    copies: Ints,
    max_expanded_edges: int,
    max_inlined_edges: int,
) -> int:
    """Writes the facts, and returns how many edges all rules take at most.

    by_node, `num_nodes` times: end, productive, nullable, parent (negative for the root of a block: -1 - block), the
    next node that refers to the same block, what a node waits for, a queue, the block. by_block, all zeros, by block:
    productive, nullable, is copied, the first node that refers to it, how many blocks it waits for, a list of blocks,
    whether it is called.
    """
    num_nodes = len(nodes)
    num_blocks = len(automaton_of)
    parents = 3 * num_nodes
    next_callers = 4 * num_nodes
    block_of = 7 * num_nodes
    is_inlined = 2 * num_blocks
    first_callers = 3 * num_blocks
    waits = 4 * num_blocks
    order = 5 * num_blocks
    by_block[6 * num_blocks + ROOT_BLOCK] = 1
    for block in range(num_blocks):
        by_block[first_callers + block] = -1
    for block in range(num_blocks):
        begin = block_begins[block]
        for node in range(block_begins[block + 1] - 1, begin - 1, -1):
            kind = nodes[node] & _KIND
            num_children = 0
            if SEQUENCE <= kind <= CHOICE:
                num_children = int(nodes[node] >> KIND_BITS)
            elif OPTIONAL <= kind <= PLUS:
                num_children = 1
            end = node + 1
            for _ in range(num_children):
                by_node[parents + end] = node
                end = by_node[end] + 0
            by_node[node] = end
            by_node[block_of + node] = block
            callee = _callee(nodes, repeats, node)
            if callee >= 0:
                by_node[next_callers + node] = by_block[first_callers + callee]
                by_block[first_callers + callee] = node
                by_block[waits + block] += 1
        if begin < block_begins[block + 1]:
            by_node[parents + begin] = -1 - block
    for is_for_empty in range(2):
        _derive(
            nodes,
            literal_begins,
            repeats,
            class_begins,
            automaton_of,
            automata,
            automaton_final if is_for_empty else is_live,
            by_node,
            by_block,
            2 * num_nodes if is_for_empty else num_nodes,
            num_blocks if is_for_empty else 0,
            is_for_empty != 0,
        )

    # The order in which sizes can be worked out. First blocks that lead to no recursion, callees first.
    end = order
    for block in range(num_blocks):
        if by_block[waits + block] == 0:
            by_block[end] = block
            end += 1
    place = order
    while place < end:
        caller = by_block[first_callers + by_block[place]] + 0
        while caller >= 0:
            calling = by_node[block_of + caller]
            by_block[waits + calling] -= 1
            if by_block[waits + calling] == 0:
                by_block[end] = calling
                end += 1
            caller = by_node[next_callers + caller] + 0
        place += 1
    # Blocks that lead to recursion without being part of it, callers first. From here on a block that is left waits
    # for one more than there are.
    first_above = end
    for block in range(num_blocks):
        if by_block[waits + block] != 0:
            by_block[waits + block] = 1
            caller = by_block[first_callers + block] + 0
            while caller >= 0:
                by_block[waits + block] += by_block[waits + by_node[block_of + caller]] != 0
                caller = by_node[next_callers + caller] + 0
            if by_block[waits + block] == 1:
                by_block[end] = block
                end += 1
    while place < end:
        block = by_block[place] + 0
        by_block[waits + block] = 0
        for node in range(block_begins[block], block_begins[block + 1]):
            callee = _callee(nodes, repeats, node)
            if callee >= 0 and by_block[waits + callee] != 0:
                by_block[waits + callee] -= 1
                if by_block[waits + callee] == 1:
                    by_block[end] = callee
                    end += 1
        place += 1
    # Recursive blocks: only the bodies of repetitions have to come first. Their calls are never copies.
    first_recursive = end
    for block in range(num_blocks):
        if by_block[waits + block] != 0:
            by_block[waits + block] = 1
            for node in range(block_begins[block], block_begins[block + 1]):
                if nodes[node] & _KIND == REPEAT:
                    by_block[waits + block] += by_block[waits + _callee(nodes, repeats, node)] != 0
            if by_block[waits + block] == 1:
                by_block[end] = block
                end += 1
    while place < end:
        block = by_block[place] + 0
        by_block[waits + block] = 0
        caller = by_block[first_callers + block] + 0
        while caller >= 0:
            calling = by_node[block_of + caller]
            if nodes[caller] & _KIND == REPEAT and by_block[waits + calling] != 0:
                by_block[waits + calling] -= 1
                if by_block[waits + calling] == 1:
                    by_block[end] = calling
                    end += 1
            caller = by_node[next_callers + caller] + 0
        place += 1
    for step in range(num_blocks):
        # Those in the middle come last, in reverse.
        place = order + step
        if place >= first_above + end - first_recursive:
            place = first_recursive - 1 - (place - (first_above + end - first_recursive))
        elif place >= first_above:
            place += first_recursive - first_above
        block = by_block[place] + 0
        _measure(
            nodes,
            block_begins,
            literal_begins,
            repeats,
            class_begins,
            class_sizes,
            automaton_of,
            automata,
            by_node,
            by_block,
            sizes,
            copies,
            max_expanded_edges,
            block,
        )
        is_recursive = place >= first_recursive
        by_block[is_inlined + block] = (
            sizes[block] <= max_inlined_edges and automaton_of[block] == EXPRESSION and not is_recursive
        )
    max_edges = 0
    for block in range(num_blocks):
        if by_block[6 * num_blocks + block] != 0:
            max_edges += sizes[num_blocks + block]
    return int(max_edges)
