"""From the instructions of `rule_nfa` to edges over byte classes, grouped by the state that they leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from infernix.matching.jit import inner, kernel
from infernix.matching.rule_nfa import COPY, EDGE, FIRST_LABEL, NfaBuilder

Ints: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Edges:
    """rows: int32 [edges, 3], low, high, target, over letters: byte classes, and after them labels.

    State s's edges that read nothing lie between begins[2 * s] and begins[2 * s + 1], its others go on to
    begins[2 * s + 2]. class_of: byte class by byte; neighbouring bytes that no edge tells apart share one.
    """

    begins: Ints
    rows: Ints
    class_of: Ints
    num_classes: int


def unroll(builder: NfaBuilder) -> Edges:
    """All edges of all rules."""
    pieces = builder.pieces
    code = [value for piece in pieces for value in piece.code]
    edges: NDArray[np.int32] = np.empty((pieces[-1].num_edges, 4), np.int32)
    _unroll(
        np.array(code, np.int32),
        np.cumsum([0, *(len(piece.code) for piece in pieces)], dtype=np.int32),
        edges.ravel(),
    )
    edges = np.concatenate([edges, *builder.automaton_edges])
    sources, lows, highs, targets = edges.T
    is_label = lows >= FIRST_LABEL
    is_byte = (lows >= 0) & ~is_label
    begins_class = np.zeros(257, np.int32)
    begins_class[lows[is_byte]] = 1
    begins_class[highs[is_byte] + 1] = 1
    begins_class[0] = 0
    class_of = np.cumsum(begins_class[:256], dtype=np.int32)
    num_classes = int(class_of[255]) + 1
    letters = np.concatenate([class_of, np.arange(num_classes, num_classes + len(builder.labels)), [-1]])
    group = 2 * sources + (lows >= 0)
    order = np.argsort(group, kind="stable")
    begins = np.zeros(2 * builder.num_states + 1, np.int32)
    np.cumsum(np.bincount(group, minlength=2 * builder.num_states), out=begins[1:])
    rows = np.stack([letters[lows], letters[highs], targets], axis=1, dtype=np.int32, casting="unsafe")[order]
    return Edges(begins, rows, class_of, num_classes)


@inner
def _place(state: int, source: int, target: int, base: int) -> int:
    """A state of a piece, where the piece lies between two states and its own begin at `base`."""
    if state == 0:
        return source
    if state == 1:
        return target
    return base + state - 2


@kernel
def _unroll(code: Ints, piece_begins: Ints, edges: Ints) -> None:
    """Writes the edges of the last piece, copies unrolled: source, low, high, target; low is -1 if it reads nothing.

    code: the instructions of all pieces; piece p's begin at piece_begins[p], and there is one entry more.
    """
    written = 0
    # Pieces that are being copied: where to go on, end, source, target, base. None is copied into itself.
    depth = 0
    stack = np.empty(5 * len(piece_begins), np.int32)
    # Adding 0 makes 64 bits of 32, so that a variable has one type.
    at = piece_begins[len(piece_begins) - 2] + 0
    end = piece_begins[len(piece_begins) - 1] + 0
    begin_state = 0
    end_state = 1
    base = 2
    while True:
        if at == end:
            if depth == 0:
                return
            depth -= 1
            at = stack[5 * depth] + 0
            end = stack[5 * depth + 1] + 0
            begin_state = stack[5 * depth + 2] + 0
            end_state = stack[5 * depth + 3] + 0
            base = stack[5 * depth + 4] + 0
            continue
        operation = code[at]
        source = _place(code[at + 1] + 0, begin_state, end_state, base)
        target = _place(code[at + 2] + 0, begin_state, end_state, base)
        if operation == EDGE:
            edges[written] = source
            edges[written + 1] = code[at + 3]
            edges[written + 2] = code[at + 4]
            edges[written + 3] = target
            written += 4
            at += 5
            continue
        first = _place(code[at + 3] + 0, begin_state, end_state, base)
        if operation == COPY:
            stack[5 * depth] = at + 5
            stack[5 * depth + 1] = end
            stack[5 * depth + 2] = begin_state
            stack[5 * depth + 3] = end_state
            stack[5 * depth + 4] = base
            depth += 1
            end = piece_begins[code[at + 4] + 1] + 0
            at = piece_begins[code[at + 4]] + 0
            begin_state = source
            end_state = target
            base = first
            continue
        num_bytes = code[at + 4]
        at += 5
        for position in range(num_bytes):
            edges[written] = source
            edges[written + 1] = code[at + position]
            edges[written + 2] = code[at + position]
            source = first + position
            edges[written + 3] = source
            written += 4
        edges[written - 1] = target
        at += num_bytes
