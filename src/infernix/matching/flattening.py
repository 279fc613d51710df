"""A grammar's expressions as arrays of numbers, which is what the kernels of the front end read.

What may be used in several places stands in a *block* of its own, once: the body of a rule, the body of a counted
repetition, an automaton. A block's nodes stand in preorder, one number each: its kind, and above KIND_BITS its operand.
Trees are walked with an explicit stack, never by recursion, because their depth belongs to the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infernix.errors import ConstraintTooLarge
from infernix.grammar.ir import (
    Automaton,
    ByteRange,
    CharacterClass,
    Choice,
    Expression,
    Grammar,
    Literal,
    Repeat,
    RuleReference,
    Sequence,
    TokenSet,
)
from infernix.grammar.unicode import utf8_sequences

Ints: TypeAlias = NDArray[np.int32]
Nodes: TypeAlias = NDArray[np.int64]

# Kinds of nodes, and what their operands are. Kinds that are asked for together stand next to each other.
LITERAL = 0  # literal
SEQUENCE = 1  # number of children
CHOICE = 2  # number of children
OPTIONAL = 3  # nothing: the one child at most once
STAR = 4  # nothing: the one child any number of times
PLUS = 5  # nothing: the one child at least once
REPEAT = 6  # repetition
CALL = 7  # block
CLASS = 8  # character class
BYTES = 9  # lowest byte * 256 + highest byte
TOKENS = 10  # token set
KIND_BITS = 4

# Arrays of automata up to this size are kept for other grammars.
_MAX_KEPT_EDGES = 1024

_NOTHING = np.zeros(0, np.int32)

# Nodes of all blocks together.
MAX_NODES = 1 << 22

ROOT_BLOCK = 0
# Instead of the number of an automaton, and of a maximum.
EXPRESSION = -1
UNBOUNDED = -1


@dataclass(frozen=True, slots=True)
class FlatGrammar:
    """All blocks that the root, block 0, comes to need.

    nodes: int64, those of block b from block_begins[b] to block_begins[b + 1]; an automaton has none.
    blocks: the expression that each block is for.
    literals: uint8, the bytes of literal n from literal_begins[n] on.
    repeats: int32 [repetitions, 3], minimum, maximum or UNBOUNDED, block; no two are equal.
    classes: int32 [edges, 4], source, lowest and highest byte, target, those of class n from class_begins[n] on; states
    0 and 1 are where a class begins and ends. class_sizes: the bytes of its encodings, and how many states it has.
    automaton_of: by block the number of an automaton, or EXPRESSION. automata: int32 [automata + 1, 2], where its
    states, and its edges, begin. automaton_edges: like `classes`; automaton_final: by state, 1 where it accepts.
    """

    blocks: list[Expression]
    nodes: Nodes
    block_begins: Ints
    literals: NDArray[np.uint8]
    literal_begins: Ints
    repeats: Ints
    classes: Ints
    class_begins: Ints
    class_sizes: Ints
    automaton_of: Ints
    automata: Ints
    automaton_edges: Ints
    automaton_final: Ints
    token_sets: tuple[TokenSet, ...]


def flatten(grammar: Grammar) -> FlatGrammar:
    """Raises ConstraintTooLarge past MAX_NODES."""
    return _Flattening(grammar).result()


@dataclass(frozen=True, slots=True)
class _ClassEdges:
    """Encodings with the same first bytes share them, so that a class costs few states."""

    edges: Ints
    num_states: int
    num_encoding_bytes: int


@lru_cache(maxsize=1024)
def _class_edges(ranges: tuple[tuple[int, int], ...]) -> _ClassEdges:
    edges: list[int] = []
    num_states = 2
    num_encoding_bytes = 0
    following: dict[tuple[int, int, int], int] = {}
    for encoding in utf8_sequences(ranges):
        num_encoding_bytes += len(encoding)
        state = 0
        for low, high in encoding[:-1]:
            key = (state, low, high)
            if key not in following:
                following[key] = num_states
                edges += (state, low, high, num_states)
                num_states += 1
            state = following[key]
        edges += (state, *encoding[-1], 1)
    return _ClassEdges(np.array(edges, np.int32), num_states, num_encoding_bytes)


def _automaton_arrays(automaton: Automaton) -> tuple[Ints, Ints]:
    """The edges of an automaton, one after the other, and by state whether it accepts; not to be written to."""
    if len(automaton.edges) > _MAX_KEPT_EDGES:
        return _made_automaton_arrays(automaton)
    return _kept_automaton_arrays(_SameAutomaton(automaton))


def _made_automaton_arrays(automaton: Automaton) -> tuple[Ints, Ints]:
    edges = np.fromiter(chain.from_iterable(automaton.edges), np.int32, 4 * len(automaton.edges))
    final = np.zeros(automaton.num_states, np.int32)
    final[np.fromiter(automaton.accepting, np.int32, len(automaton.accepting))] = 1
    return edges, final


class _SameAutomaton:
    """An automaton by its identity: those of numbers and patterns are kept where they are made, and to compare two
    takes as long as to write one down."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameAutomaton) and self.automaton is other.automaton

    def __hash__(self) -> int:
        return id(self.automaton)


@lru_cache(maxsize=256)
def _kept_automaton_arrays(same: _SameAutomaton) -> tuple[Ints, Ints]:
    return _made_automaton_arrays(same.automaton)


class _Flattening:
    def __init__(self, grammar: Grammar) -> None:
        self._rules = grammar.rules
        self._nodes: list[int] = []
        self._blocks: list[Expression] = []
        self._block_of_expression: dict[int, int] = {}
        self._block_of_rule: dict[int, int] = {}
        self._literals: list[bytes] = []
        self._repeats: dict[tuple[int, int, int], int] = {}
        self._classes: list[_ClassEdges] = []
        self._class_numbers: dict[int, int] = {}
        self._token_sets: dict[TokenSet, int] = {}
        self._automata: list[Automaton] = []
        block_ends = [0]
        automaton_of = []
        self._block(grammar.rules[grammar.root].body)
        for body in self._blocks:  # more are added on the way
            if isinstance(body, Automaton):
                automaton_of.append(len(self._automata))
                self._automata.append(body)
            else:
                automaton_of.append(EXPRESSION)
                self._flatten(body)
            block_ends.append(len(self._nodes))
        self._block_ends = block_ends
        self._automaton_of = automaton_of

    def result(self) -> FlatGrammar:
        """The arrays."""
        classes, automata = self._classes, self._automata
        states = list(accumulate((automaton.num_states for automaton in automata), initial=0))
        num_edges = [len(automaton.edges) for automaton in automata]
        edges, final = _joined_automata(automata, states, num_edges)
        (
            block_begins,
            literal_begins,
            repeats,
            class_begins,
            class_sizes,
            automaton_of,
            automaton_begins,
        ) = _arrays(
            self._block_ends,
            list(accumulate(map(len, self._literals), initial=0)),
            list(chain.from_iterable(self._repeats)),
            list(accumulate([len(part.edges) // 4 for part in classes], initial=0)),
            [size for part in classes for size in (part.num_encoding_bytes, part.num_states)],
            self._automaton_of,
            list(chain.from_iterable(zip(states, accumulate(num_edges, initial=0), strict=True))),
        )
        return FlatGrammar(
            blocks=self._blocks,
            nodes=np.array(self._nodes, np.int64),
            block_begins=block_begins,
            # A copy, because a read-only buffer is another type to a compiled kernel.
            literals=np.frombuffer(bytearray(b"".join(self._literals)), np.uint8),
            literal_begins=literal_begins,
            repeats=repeats.reshape(-1, 3),
            classes=np.concatenate([_NOTHING, *[part.edges for part in classes]]),
            class_begins=class_begins,
            class_sizes=class_sizes,
            automaton_of=automaton_of,
            automata=automaton_begins,
            automaton_edges=edges,
            automaton_final=final,
            token_sets=tuple(self._token_sets),
        )

    def _block(self, body: Expression) -> int:
        """The number of the block for `body`, which is flattened later if it is new."""
        block = self._block_of_expression.setdefault(id(body), len(self._blocks))
        if block == len(self._blocks):
            self._blocks.append(body)
        return block

    def _flatten(self, body: Expression) -> None:
        """Adds the nodes of `body`."""
        nodes, literals = self._nodes, self._literals
        append = nodes.append
        stack: list[Any] = [body]
        while stack:
            node = stack.pop()
            # `isinstance` takes four times as long to say no.
            kind = type(node)
            if kind is Literal:
                append(LITERAL | len(literals) << KIND_BITS)
                literals.append(node.data)
            elif kind is Sequence:
                items = node.items
                append(SEQUENCE | len(items) << KIND_BITS)
                stack += items[::-1]
                if len(nodes) > MAX_NODES:
                    raise ConstraintTooLarge(f"the constraint takes more than {MAX_NODES} expressions (MAX_NODES)")
            elif kind is RuleReference:
                block = self._block_of_rule.get(node.index)
                if block is None:
                    block = self._block_of_rule[node.index] = self._block(self._rules[node.index].body)
                append(CALL | block << KIND_BITS)
            elif kind is Choice:
                options = node.options
                append(CHOICE | len(options) << KIND_BITS)
                stack += options[::-1]
                if len(nodes) > MAX_NODES:
                    raise ConstraintTooLarge(f"the constraint takes more than {MAX_NODES} expressions (MAX_NODES)")
            elif kind is CharacterClass:
                # Parsers share classes, and hashing a large one takes its time.
                key = id(node.ranges)
                number = self._class_numbers.get(key)
                if number is None:
                    number = self._class_numbers[key] = len(self._classes)
                    self._classes.append(_class_edges(node.ranges))
                append(CLASS | number << KIND_BITS)
            elif kind is Repeat:
                self._append_repeat(node, stack)
            elif kind is ByteRange:
                append(BYTES | (node.low << 8 | node.high) << KIND_BITS)
            elif kind is Automaton:
                append(CALL | self._block(node) << KIND_BITS)
            elif node.ids or node.excluded:
                append(TOKENS | self._token_sets.setdefault(node, len(self._token_sets)) << KIND_BITS)
            else:
                append(CHOICE)

    def _append_repeat(self, repeat: Repeat, stack: list[Expression]) -> None:
        """Adds the node of a repetition, and its body to `stack` where that is the node's child."""
        minimum, maximum = repeat.minimum, repeat.maximum
        if maximum is None and minimum <= 1:
            self._nodes.append(PLUS if minimum else STAR)
            stack.append(repeat.body)
        elif maximum == 0:
            self._nodes.append(SEQUENCE)
        elif maximum == 1:
            if minimum == 0:
                self._nodes.append(OPTIONAL)
            stack.append(repeat.body)
        else:
            key = (minimum, UNBOUNDED if maximum is None else maximum, self._block(repeat.body))
            self._nodes.append(REPEAT | self._repeats.setdefault(key, len(self._repeats)) << KIND_BITS)


def _joined_automata(automata: list[Automaton], first_states: list[int], num_edges: list[int]) -> tuple[Ints, Ints]:
    """The edges of all automata, whose states are numbered on, and by state whether it accepts."""
    if not automata:
        return _NOTHING, _NOTHING
    arrays = [_automaton_arrays(automaton) for automaton in automata]
    edges = np.concatenate([of_automaton for of_automaton, _ in arrays])
    if len(automata) > 1:
        offsets = np.repeat(np.array(first_states[:-1], np.int32), num_edges)
        edges[0::4] += offsets
        edges[3::4] += offsets
    return edges, np.concatenate([final for _, final in arrays])


def _arrays(*lists: list[int]) -> list[Ints]:
    """Each list as an array, all of them made at one go."""
    numbers = np.array(list(chain.from_iterable(lists)), np.int32)
    ends = list(accumulate(map(len, lists)))
    return [numbers[end - len(part) : end] for part, end in zip(lists, ends, strict=True)]
