"""Expressions over characters as nondeterministic automata whose states come into being when they are reached.

A state is what is left to match: a linked list of sub-expressions, where a counted repetition stands with the counts
that remain. These are the partial derivatives of V. Antimirov, "Partial derivatives of regular expressions and finite
automaton constructions" (1996). A bound of a hundred thousand costs nothing until it is counted down.
"""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from infernix.grammar import ir
from infernix.grammar.alphabets import SCALAR_VALUES, Alphabet, CodePointRanges, alphabet_of

_SET, _SEQUENCE, _CHOICE, _REPEAT = range(4)

END = 0
"""The state in which nothing is left to match."""

Move: TypeAlias = tuple[tuple[int, ...], int]


def postorder(root: ir.Expression) -> list[ir.Expression]:
    """`root` and all its parts, parts first; an expression object that stands in several places comes once."""
    order: list[ir.Expression] = []
    seen: set[int] = set()
    stack: list[tuple[ir.Expression, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((part, False) for part in parts_of(node))
    return order


def parts_of(node: ir.Expression) -> tuple[ir.Expression, ...]:
    """What an expression is directly made of."""
    if isinstance(node, ir.Sequence):
        return node.items
    if isinstance(node, ir.Choice):
        return node.options
    return (node.body,) if isinstance(node, ir.Repeat) else ()


class CharacterNfa:
    """The automaton of `root`, which consists of literals, character classes, sequences, choices and repetitions.

    No part of `root` may be without any match. States are numbers; `start` is the first one, and `universal` the one
    that every text leads on to acceptance, where the expression has such an end. The letters are classes of
    `alphabet`. `num_steps` grows with the work that finding moves takes.
    """

    def __init__(self, root: ir.Expression) -> None:
        order = postorder(root)
        sets: set[CodePointRanges] = {SCALAR_VALUES}
        for node in order:
            if isinstance(node, ir.Literal):
                sets.update(((ord(character),) * 2,) for character in node.data.decode("utf-8"))
            elif isinstance(node, ir.CharacterClass):
                sets.add(node.ranges)
        self.alphabet: Alphabet = alphabet_of(sets)
        self.universal: int | None = None
        self.num_steps = 0
        # By node: kind, then what the kind needs; and whether the node matches the empty text.
        self._kinds: list[int] = []
        self._classes: list[tuple[int, ...]] = []
        self._children: list[tuple[int, ...]] = []
        self._counts: list[tuple[int, int | None]] = []
        self._nullable: list[bool] = []
        self._node_numbers: dict[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, int | None]], int] = {}
        number_of: dict[int, int] = {}
        for node in order:
            number_of[id(node)] = self._add(node, tuple(number_of[id(part)] for part in parts_of(node)))
        # By state: node, where it stands in it (an index, or the minimum that remains), maximum, what comes after.
        self._states: list[tuple[int, int, int | None, int]] = [(-1, 0, None, END)]
        self._numbers: dict[tuple[int, int, int | None, int], int] = {}
        self._moves: dict[int, tuple[bool, list[Move]]] = {END: (True, [])}
        self.start = self._state(number_of[id(root)], END)

    def _add(self, node: ir.Expression, children: tuple[int, ...]) -> int:
        nullable = [self._nullable[child] for child in children]
        if isinstance(node, ir.Literal):
            characters = [self._class_node(((ord(character),) * 2,)) for character in node.data.decode("utf-8")]
            return self._node(_SEQUENCE, (), tuple(characters), (0, 0), not characters)
        if isinstance(node, ir.CharacterClass):
            return self._class_node(node.ranges)
        if isinstance(node, ir.Sequence):
            return self._node(_SEQUENCE, (), children, (0, 0), all(nullable))
        if isinstance(node, ir.Choice):
            return self._node(_CHOICE, (), tuple(dict.fromkeys(children)), (0, 0), any(nullable))
        assert isinstance(node, ir.Repeat)
        # With a body that may be empty, the minimum demands nothing.
        minimum = 0 if nullable[0] else node.minimum
        return self._node(_REPEAT, (), children, (minimum, node.maximum), minimum == 0)

    def _class_node(self, ranges: CodePointRanges) -> int:
        return self._node(_SET, self.alphabet.classes_in(ranges), (), (0, 0), False)

    def _node(
        self,
        kind: int,
        classes: tuple[int, ...],
        children: tuple[int, ...],
        counts: tuple[int, int | None],
        nullable: bool,
    ) -> int:
        key = (kind, classes, children, counts)
        number = self._node_numbers.setdefault(key, len(self._kinds))
        if number == len(self._kinds):
            self._kinds.append(kind)
            self._classes.append(classes)
            self._children.append(children)
            self._counts.append(counts)
            self._nullable.append(nullable)
        return number

    def _state(self, node: int, following: int) -> int:
        """The state in which `node` is left to match, and then what `following` has left."""
        return self._state_at(node, *self._counts[node], following)

    def _state_at(self, node: int, place: int, maximum: int | None, following: int) -> int:
        key = (node, place, maximum, following)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._states)
            self._states.append(key)
            if following == END and place == 0 and maximum is None and self._repeats_everything(node):
                self.universal = number
        return number

    def _repeats_everything(self, node: int) -> bool:
        if self._kinds[node] != _REPEAT:
            return False
        body = self._children[node][0]
        return self._kinds[body] == _SET and len(self._classes[body]) == len(self.alphabet.classes)

    def moves(self, state: int) -> tuple[bool, list[Move]]:
        """Whether the text may end in `state`, and where characters lead: their classes and the next state."""
        known = self._moves.get(state)
        if known is None:
            known = self._moves[state] = self._find_moves(state)
        return known

    def _find_moves(self, state: int) -> tuple[bool, list[Move]]:
        accepts = False
        moves: list[Move] = []
        seen = {state}
        # Repetitions of a body that may be empty, and how many there may still be: what fewer repetitions match, more
        # of them do as well.
        repeated: dict[tuple[int, int], float] = {}
        stack = [state]

        def reach(target: int) -> None:
            if target not in seen:
                seen.add(target)
                stack.append(target)

        while stack:
            current = stack.pop()
            self.num_steps += 1
            if current == END:
                accepts = True
                continue
            node, place, maximum, following = self._states[current]
            kind = self._kinds[node]
            children = self._children[node]
            if kind == _SET:
                moves.append((self._classes[node], following))
            elif kind == _CHOICE:
                self.num_steps += len(children)
                for child in children:
                    reach(self._state(child, following))
            elif kind == _SEQUENCE:
                if place + 1 < len(children):
                    following = self._state_at(node, place + 1, 0, following)
                reach(self._state(children[place], following) if children else following)
            else:
                if self._nullable[children[0]]:
                    most = inf if maximum is None else maximum
                    if repeated.get((node, following), -1) >= most:
                        continue
                    repeated[node, following] = most
                if place == 0:
                    reach(following)
                if maximum is None or maximum > 0:
                    left = None if maximum is None else maximum - 1
                    after = self._state_at(node, max(place - 1, 0), left, following)
                    reach(self._state(children[0], after))
        return accepts, moves
