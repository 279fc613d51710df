"""Rules as nondeterministic automata over byte ranges, rule calls, counted loops and token sets.

Thompson's construction between two given states, driven by an explicit stack. It writes instructions into a flat list
of integers, which `unrolling` turns into edges: a literal is one instruction whatever its length, and what stands in
many places (a character class, a rule small enough to be copied into its callers) is written once, as a piece. States
are numbered within a piece; 0 and 1 are where it begins and ends. All rules together are the last piece.

Sub-expressions that cannot produce anything are left out, so a path that exists can be completed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.grammar import ir
from infernix.grammar.unicode import utf8_sequences
from infernix.matching.analysis import GrammarFacts, num_copies

# Instructions; each is followed by the state it leads from and the state it leads to, and then by:
EDGE = 0  # low, high: a byte range, or twice the same label, or twice NOTHING in an edge that reads nothing
LITERAL = 1  # first inner state, number of bytes (at least 1), bytes
COPY = 2  # first inner state, piece

NOTHING = -1

# Labels come after the bytes.
FIRST_LABEL = 256
LABEL_CALL = 0
LABEL_LOOP = 1
LABEL_TOKENS = 2

MAX_NFA_EDGES = 1 << 22


@dataclass(frozen=True, slots=True)
class Loop:
    """A counted repetition that keeps a counter: `rule` derives the body."""

    minimum: int
    maximum: int | None
    rule: int


@dataclass(slots=True)
class Piece:
    """Instructions, and how many states and edges they make; states 0 and 1 are not its own."""

    code: list[int] = field(default_factory=list)
    num_states: int = 2
    num_edges: int = 0


@lru_cache(maxsize=1024)
def _class_piece(ranges: tuple[tuple[int, int], ...]) -> Piece:
    """Encodings with the same first bytes share them, so that a class costs few states."""
    piece = Piece()
    following: dict[tuple[int, int, int], int] = {}
    for encoding in utf8_sequences(ranges):
        state = 0
        for low, high in encoding[:-1]:
            key = (state, low, high)
            if key not in following:
                following[key] = piece.num_states
                piece.num_states += 1
                piece.num_edges += 1
                piece.code += (EDGE, state, following[key], low, high)
            state = following[key]
        piece.num_edges += 1
        piece.code += (EDGE, state, 1, *encoding[-1])
    return piece


class NfaBuilder:
    """Builds the automata of the root rule and of every rule that it comes to need.

    `rule_of_expression` has the number of the rule for the `id` of its body. `rule_begins[rule]` is a rule's first
    state, where it starts; its states end before `rule_ends[rule]`. `labels` has (kind, number) by label: the number of
    a rule, of a loop, of a token set. `automaton_edges` are int32 [edges, 4] (source, low, high, target), one array for
    each rule that is a ready automaton. Raises ConstraintTooLarge past MAX_NFA_EDGES.
    """

    def __init__(self, grammar: ir.Grammar, facts: GrammarFacts) -> None:
        self.pieces: list[Piece] = []
        self.rule_begins: list[int] = []
        self.rule_ends: list[int] = []
        self.nullable_rules: list[bool] = []
        self.loops: list[Loop] = []
        self.token_sets: list[ir.TokenSet] = []
        self.labels: list[tuple[int, int]] = []
        self.automaton_edges: list[NDArray[np.int32]] = []
        self._main = Piece()
        self._final: list[Iterable[int]] = []
        self._grammar = grammar
        self._facts = facts
        self.rule_of_expression: dict[int, int] = {}
        self._rule_expressions: list[ir.Expression] = []
        self._label_numbers: dict[tuple[int, int], int] = {}
        self._token_set_numbers: dict[ir.TokenSet, int] = {}
        self._loop_numbers: dict[tuple[int, int | None, int], int] = {}
        self._class_pieces: dict[tuple[tuple[int, int], ...], int] = {}
        self._inlined_pieces: dict[int, int] = {}
        self._pending: list[int] = []
        self.root_rule = self._rule(grammar.rules[grammar.root].body)
        while self._pending:
            self._build_rule(self._pending.pop())
        self.pieces.append(self._main)

    @property
    def num_states(self) -> int:
        """States of all rules; the first two belong to none."""
        return self._main.num_states

    def final_states(self) -> NDArray[np.int32]:
        """int32 [num_states]: 1 for states where a rule ends."""
        is_final = np.zeros(self.num_states, np.int32)
        is_final[np.fromiter(chain.from_iterable(self._final), np.int64)] = 1
        return is_final

    def _build_rule(self, rule: int) -> None:
        main = self._main
        body = self._rule_expressions[rule]
        # Where sub-expressions are shared, writing them out may take more than any memory.
        self._check_size(self._facts.num_edges[id(body)])
        begin = self.rule_begins[rule] = main.num_states
        if isinstance(body, ir.Automaton):
            main.num_states += body.num_states
            edges = self._facts.automaton_edges[id(body)].copy()
            edges[:, 0] += begin
            edges[:, 3] += begin
            self.automaton_edges.append(edges)
            self._final.append(state + begin for state in body.accepting)
        else:
            main.num_states += 2
            self._final.append((begin + 1,))
            self._connect(main, body, begin, begin + 1)
        self.rule_ends[rule] = main.num_states

    def _rule(self, body: ir.Expression) -> int:
        """The number of the rule that derives `body`."""
        known = self.rule_of_expression.get(id(body))
        if known is not None:
            return known
        rule = len(self.rule_begins)
        self.rule_of_expression[id(body)] = rule
        self._rule_expressions.append(body)
        self.rule_begins.append(-1)
        self.rule_ends.append(-1)
        self.nullable_rules.append(id(body) in self._facts.nullable)
        self._pending.append(rule)
        return rule

    def _label(self, kind: int, number: int) -> int:
        key = (kind, number)
        label = self._label_numbers.get(key)
        if label is None:
            label = self._label_numbers[key] = FIRST_LABEL + len(self.labels)
            self.labels.append(key)
        return label

    def _connect(self, piece: Piece, expression: ir.Expression, start: int, end: int) -> None:
        """Adds paths for `expression` from `start` to `end`; nothing enters `start` or leaves `end` by them."""
        productive = None if self._facts.all_productive else self._facts.productive
        code = piece.code
        stack = [(expression, start, end)]
        while stack:
            node, source, target = stack.pop()
            if productive is not None and id(node) not in productive:
                continue
            if isinstance(node, ir.Literal):
                data = node.data
                num_bytes = len(data)
                if num_bytes:
                    code += (LITERAL, source, target, piece.num_states, num_bytes)
                    code += data
                    piece.num_states += num_bytes - 1
                    piece.num_edges += num_bytes
                else:
                    self._add_empty(piece, source, target)
            elif isinstance(node, ir.Sequence):
                items = node.items
                if not items:
                    self._add_empty(piece, source, target)
                    continue
                following = piece.num_states
                piece.num_states += len(items) - 1
                for item in items[:-1]:
                    stack.append((item, source, following))
                    source = following
                    following += 1
                stack.append((items[-1], source, target))
            elif isinstance(node, ir.RuleReference):
                index = node.index
                if index in self._facts.inlined_rules:
                    self._copy(piece, self._inlined_piece(index), source, target)
                else:
                    rule = self._rule(self._grammar.rules[index].body)
                    self._add_edge(piece, source, target, self._label(LABEL_CALL, rule))
            elif isinstance(node, ir.Choice):
                for option in node.options:
                    stack.append((option, source, target))
            elif isinstance(node, ir.Repeat):
                self._connect_repeat(piece, node, source, target, stack)
            elif isinstance(node, ir.CharacterClass):
                number = self._class_pieces.get(node.ranges)
                if number is None:
                    number = self._class_pieces[node.ranges] = len(self.pieces)
                    self.pieces.append(_class_piece(node.ranges))
                self._copy(piece, number, source, target)
            elif isinstance(node, ir.ByteRange):
                piece.num_edges += 1
                code += (EDGE, source, target, node.low, node.high)
            elif isinstance(node, ir.Automaton):
                self._add_edge(piece, source, target, self._label(LABEL_CALL, self._rule(node)))
            elif isinstance(node, ir.TokenSet):
                number = self._token_set_numbers.setdefault(node, len(self.token_sets))
                if number == len(self.token_sets):
                    self.token_sets.append(node)
                self._add_edge(piece, source, target, self._label(LABEL_TOKENS, number))

    def _add_empty(self, piece: Piece, source: int, target: int) -> None:
        piece.num_edges += 1
        piece.code += (EDGE, source, target, NOTHING, NOTHING)
        self._check_size(piece.num_edges)

    def _add_edge(self, piece: Piece, source: int, target: int, label: int) -> None:
        piece.num_edges += 1
        piece.code += (EDGE, source, target, label, label)

    def _copy(self, piece: Piece, number: int, source: int, target: int) -> None:
        copied = self.pieces[number]
        piece.code += (COPY, source, target, piece.num_states, number)
        piece.num_states += copied.num_states - 2
        piece.num_edges += copied.num_edges
        self._check_size(piece.num_edges)

    def _check_size(self, num_edges: int) -> None:
        if num_edges > MAX_NFA_EDGES:
            raise ConstraintTooLarge(f"the constraint takes more than {MAX_NFA_EDGES} edges (MAX_NFA_EDGES)")

    def _inlined_piece(self, rule: int) -> int:
        """The piece of a rule that is copied into its callers, with those of the rules that it copies made first."""
        stack = [rule]
        while stack:
            index = stack[-1]
            body = self._grammar.rules[index].body
            missing = [
                callee
                for callee in self._facts.callees[index]
                if callee in self._facts.inlined_rules and callee not in self._inlined_pieces
            ]
            if missing:
                stack += missing
                continue
            stack.pop()
            if index not in self._inlined_pieces:
                piece = Piece()
                self._connect(piece, body, 0, 1)
                self._inlined_pieces[index] = len(self.pieces)
                self.pieces.append(piece)
        return self._inlined_pieces[rule]

    def _connect_repeat(
        self, piece: Piece, repeat: ir.Repeat, source: int, target: int, stack: list[tuple[ir.Expression, int, int]]
    ) -> None:
        body = repeat.body
        if id(body) not in self._facts.productive:
            self._add_empty(piece, source, target)
            return
        copies = num_copies(repeat, self._facts.num_edges[id(body)])
        if copies is None:
            minimum = 0 if id(body) in self._facts.nullable else repeat.minimum
            key = (minimum, repeat.maximum, self._rule(body))
            number = self._loop_numbers.setdefault(key, len(self.loops))
            if number == len(self.loops):
                self.loops.append(Loop(*key))
            self._add_edge(piece, source, target, self._label(LABEL_LOOP, number))
            return
        for _ in range(repeat.minimum if repeat.maximum is None else min(repeat.minimum, repeat.maximum)):
            stack.append((body, source, piece.num_states))
            source = piece.num_states
            piece.num_states += 1
        if repeat.maximum is None:
            turn = piece.num_states
            piece.num_states += 1
            self._add_empty(piece, source, turn)
            stack.append((body, turn, turn))
            self._add_empty(piece, turn, target)
            return
        for _ in range(repeat.maximum - repeat.minimum):
            self._add_empty(piece, source, target)
            stack.append((body, source, piece.num_states))
            source = piece.num_states
            piece.num_states += 1
        self._add_empty(piece, source, target)
