"""Deterministic automata over characters: subset construction, intersection, lengths, texts that must not occur.

Every automaton here is trimmed: each of its states can be reached and leads to acceptance, so it is empty only where
it has no states. An automaton with more than MAX_STATES states is refused, and so is a construction that takes more
than MAX_STEPS steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from infernix.grammar import ir
from infernix.grammar.alphabets import Alphabet, alphabet_of, common_refinement
from infernix.grammar.character_nfa import CharacterNfa

MAX_STATES = 65_536
MAX_STEPS = 2_000_000

NO_STATE = -1


class AutomatonTooLarge(Exception):
    """A bound was met; the message names it."""


def _check_states(num_states: int, max_states: int = MAX_STATES) -> None:
    if num_states > max_states:
        raise AutomatonTooLarge(f"it takes an automaton of more than {max_states} states (MAX_STATES)")


def _check_steps(num_steps: int, max_steps: int = MAX_STEPS) -> None:
    if num_steps > max_steps:
        raise AutomatonTooLarge(f"building its automaton takes more than {max_steps} steps (MAX_STEPS)")


@dataclass(frozen=True)
class Dfa:
    """`rows[state][c]` is where characters of class c of `alphabet` lead (NO_STATE: nowhere); state 0 is the start."""

    alphabet: Alphabet
    rows: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]

    @property
    def num_states(self) -> int:
        """How many states there are; none if no text is accepted."""
        return len(self.rows)

    def accepts(self, text: str) -> bool:
        """Whether `text`, which has no surrogates, belongs to the language."""
        state = 0 if self.rows else NO_STATE
        for character in text:
            if state == NO_STATE:
                return False
            state = self.rows[state][self.alphabet.class_of(ord(character))]
        return state != NO_STATE and self.accepting[state]

    @cached_property
    def max_length(self) -> int | None:
        """The number of characters of the longest text (-1: there is no text); None if there is no longest one."""
        num_sources = [0] * len(self.rows)
        for row in self.rows:
            for target in set(row) - {NO_STATE}:
                num_sources[target] += 1
        lengths = [0] * len(self.rows)
        # States go when all that lead to them have gone: those on a cycle never do.
        ready = [0] if self.rows and not num_sources[0] else []
        num_gone = 0
        while ready:
            state = ready.pop()
            num_gone += 1
            for target in set(self.rows[state]) - {NO_STATE}:
                lengths[target] = max(lengths[target], lengths[state] + 1)
                num_sources[target] -= 1
                if not num_sources[target]:
                    ready.append(target)
        return max(lengths, default=-1) if num_gone == len(self.rows) else None

    @cached_property
    def num_to_end(self) -> tuple[int, ...]:
        """By state the smallest number of characters to acceptance."""
        sources: list[list[int]] = [[] for _ in self.rows]
        for state, row in enumerate(self.rows):
            for target in set(row):
                if target != NO_STATE:
                    sources[target].append(state)
        distances = [NO_STATE] * len(self.rows)
        frontier = [state for state, accepts in enumerate(self.accepting) if accepts]
        distance = 0
        while frontier:
            reached = []
            for state in frontier:
                if distances[state] == NO_STATE:
                    distances[state] = distance
                    reached += sources[state]
            frontier = reached
            distance += 1
        return tuple(distances)


def _trimmed(alphabet: Alphabet, rows: list[tuple[int, ...]], accepting: list[bool]) -> Dfa:
    """Without the states that lead to no accepting one; all are reached from state 0."""
    whole = Dfa(alphabet, tuple(rows), tuple(accepting))
    distances = whole.num_to_end
    if NO_STATE not in distances:
        return whole
    if distances[0] == NO_STATE:
        return Dfa(alphabet, (), ())
    kept = [state for state, distance in enumerate(distances) if distance != NO_STATE]
    number = dict.fromkeys(range(NO_STATE, len(rows)), NO_STATE) | {state: i for i, state in enumerate(kept)}
    return Dfa(
        alphabet,
        tuple(tuple([number[target] for target in rows[state]]) for state in kept),
        tuple(accepting[state] for state in kept),
    )


class Subsets:
    """The subset construction of one expression, one state at a time: states are numbers, 0 is the start."""

    def __init__(self, expression: ir.Expression) -> None:
        self._nfa = CharacterNfa(expression)
        self.alphabet = self._nfa.alphabet
        self.members: list[frozenset[int]] = []
        self._num_steps = 0
        self._numbers: dict[frozenset[int], int] = {}
        self._number(frozenset([self._nfa.start]))

    @property
    def num_steps(self) -> int:
        """The work so far."""
        return self._num_steps + self._nfa.num_steps

    def _number(self, members: frozenset[int]) -> int:
        universal = self._nfa.universal
        if universal is not None and universal in members:
            # What every text completes needs no company.
            members = frozenset([universal])
        number = self._numbers.setdefault(members, len(self.members))
        if number == len(self.members):
            self.members.append(members)
        return number

    def row(self, state: int) -> tuple[bool, tuple[int, ...]]:
        """Whether `state` accepts, and its next state by class."""
        accepts = False
        targets: list[list[int]] = [[] for _ in self.alphabet.classes]
        for member in self.members[state]:
            may_end, moves = self._nfa.moves(member)
            accepts = accepts or may_end
            for classes, target in moves:
                self._num_steps += len(classes)
                for letter in classes:
                    targets[letter].append(target)
            _check_steps(self.num_steps)
        self._num_steps += len(targets)
        # Classes in the same moves lead to the same state.
        number_of: dict[tuple[int, ...], int] = {(): NO_STATE}
        row = []
        for found in targets:
            key = tuple(found)
            number = number_of.get(key)
            if number is None:
                number = number_of[key] = self._number(frozenset(key))
            row.append(number)
        return accepts, tuple(row)


class LazyAutomaton:
    """Answers for single texts, working out only the states that they lead to; threads take turns."""

    # What has been worked out is forgotten between texts once it is more than this.
    _MAX_KEPT_STEPS = 50_000

    def __init__(self, expression: ir.Expression) -> None:
        self._expression = expression
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._subsets = Subsets(self._expression)
        self._rows: dict[int, tuple[bool, tuple[int, ...]]] = {}

    def accepts(self, text: str) -> bool:
        """Whether `text`, which has no surrogates, belongs to the language. AutomatonTooLarge past MAX_STEPS."""
        with self._lock:
            if self._subsets.num_steps > self._MAX_KEPT_STEPS:
                self._forget()
            state = 0
            for character in text:
                state = self._row(state)[1][self._subsets.alphabet.class_of(ord(character))]
                if state == NO_STATE:
                    return False
            return self._row(state)[0]

    def _row(self, state: int) -> tuple[bool, tuple[int, ...]]:
        known = self._rows.get(state)
        if known is None:
            known = self._rows[state] = self._subsets.row(state)
        return known


def determinize(expression: ir.Expression, max_states: int = MAX_STATES, max_steps: int = MAX_STEPS) -> Dfa:
    """The automaton of an expression over characters, of which every part matches something."""
    subsets = Subsets(expression)
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    while len(rows) < len(subsets.members):
        _check_states(len(subsets.members), max_states)
        _check_steps(subsets.num_steps, max_steps)
        accepts, row = subsets.row(len(rows))
        rows.append(row)
        accepting.append(accepts)
    return Dfa(subsets.alphabet, tuple(rows), tuple(accepting))


def _explore(
    alphabet: Alphabet, start: tuple[int, int], row_of: Callable[[int, int], tuple[bool, list[tuple[int, int] | None]]]
) -> Dfa:
    """The automaton of pairs that `row_of` leads to: whether a pair accepts, and the next pair by class."""
    number_of = {start: 0}
    order = [start]
    rows: list[tuple[int, ...]] = []
    accepting: list[bool] = []
    for pair in order:
        accepts, targets = row_of(*pair)
        row = []
        for target in targets:
            if target is None:
                row.append(NO_STATE)
                continue
            number = number_of.setdefault(target, len(order))
            if number == len(order):
                order.append(target)
            row.append(number)
        rows.append(tuple(row))
        accepting.append(accepts)
        _check_states(len(order))
        _check_steps(len(rows) * len(alphabet.classes))
    return _trimmed(alphabet, rows, accepting)


def intersect(left: Dfa, right: Dfa) -> Dfa:
    """The texts that both accept."""
    alphabet, left_classes, right_classes = common_refinement(left.alphabet, right.alphabet)
    if not left.rows or not right.rows:
        return Dfa(alphabet, (), ())
    pairs_of_classes = list(zip(left_classes, right_classes, strict=True))

    def row_of(left_state: int, right_state: int) -> tuple[bool, list[tuple[int, int] | None]]:
        left_row, right_row = left.rows[left_state], right.rows[right_state]
        targets = [(left_row[first], right_row[second]) for first, second in pairs_of_classes]
        accepts = left.accepting[left_state] and right.accepting[right_state]
        return accepts, [None if NO_STATE in target else target for target in targets]

    return _explore(alphabet, (0, 0), row_of)


def with_length(dfa: Dfa, minimum: int, maximum: int | None) -> Dfa:
    """Those texts of `dfa` that have `minimum` to `maximum` characters (None: no maximum)."""
    if not dfa.rows:
        return dfa
    distances = dfa.num_to_end

    def row_of(state: int, length: int) -> tuple[bool, list[tuple[int, int] | None]]:
        # Without a maximum, lengths from the minimum on are one.
        following = length + 1 if maximum is not None else min(length + 1, minimum)
        left = None if maximum is None else maximum - following
        return length >= minimum and dfa.accepting[state], [
            None if target == NO_STATE or (left is not None and distances[target] > left) else (target, following)
            for target in dfa.rows[state]
        ]

    if maximum is not None and distances[0] > maximum:
        return Dfa(dfa.alphabet, (), ())
    return _explore(dfa.alphabet, (0, 0), row_of)


def avoiding(text: str) -> Dfa:
    """All texts in which `text`, which is not empty, does not occur.

    State k has seen the first k characters of it and no more; where the next one differs, the longest of them that
    may still begin an occurrence is kept (D. Knuth, J. Morris, V. Pratt, "Fast pattern matching in strings", 1977).
    """
    if not text:
        raise ValueError("the empty text occurs in every text")
    _check_states(len(text))
    alphabet = alphabet_of(((ord(character),) * 2,) for character in text)
    class_of_character = [alphabet.class_of(ord(character)) for character in text]
    rows: list[list[int]] = []
    # Where the text without its first character leads: that state's row holds for all characters but the next one.
    shorter = 0
    for state, own_class in enumerate(class_of_character):
        row = list(rows[shorter]) if rows else [0] * len(alphabet.classes)
        if rows:
            shorter = rows[shorter][own_class]
        row[own_class] = state + 1
        rows.append(row)
    rows[-1][class_of_character[-1]] = NO_STATE
    return Dfa(alphabet, tuple(map(tuple, rows)), (True,) * len(rows))
