"""An instance written the way the engine's language writes it, with the language as the guide.

Which spelling of a value is published is fixed but for the order of members, which is the order of declaration; in a
merged schema several orders are conceivable, and a union has those of its branches. So the writer tries: it follows
the language member by member, the likely name first, and takes another one where the language does not go on. A value
is refused if no order is accepted.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from infernix.matching import DEAD, ConfigurationTable
from tests.conformance.schema_walk import ORDERS, OWN_PROPERTIES_FIRST, SchemaWalk, Subschemas
from tests.conformance.spelling import canonical_string, scalar_text

MAX_STEPS = 10_000
MAX_UNION_STEPS = 1000
"""How many pieces of text are tried for one instance: with a name that was passed counted as lost, and without that."""

MAX_BRANCHES = 16
"""How many branches of a union have the order of their own tried."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What became of an instance, without white space: the accepted text, or None; and the likely one in any case."""

    accepted: bytes | None
    likely: bytes
    gave_up: bool

    @property
    def text(self) -> bytes:
        """The accepted text, else the likely one."""
        return self.likely if self.accepted is None else self.accepted


@dataclass(frozen=True, slots=True)
class _Value:
    """A value still to be written."""

    value: Any
    subschemas: Subschemas


class _Members:
    """The members of one object, in the likely order. Two of them are the same only if they are one object."""

    __slots__ = ("_pieces", "_subschemas", "_tasks", "_value", "_walk", "names")

    def __init__(self, value: dict[str, Any], subschemas: Subschemas, names: list[str], walk: SchemaWalk) -> None:
        self._value = value
        self._subschemas = subschemas
        self._walk = walk
        self._pieces = [canonical_string(name) + b":" for name in names]
        self._tasks: list[_Value | None] = [None] * len(names)
        self.names = names

    def opening(self, number: int, num_missing: int) -> bytes:
        """What comes before the value of a member, where so many are missing."""
        return self._pieces[number] if num_missing == len(self.names) else b"," + self._pieces[number]

    def value(self, number: int) -> _Value:
        """The value of a member."""
        task = self._tasks[number]
        if task is None:
            name = self.names[number]
            task = _Value(self._value[name], self._walk.member(self._subschemas, name))
            self._tasks[number] = task
        return task


@dataclass(frozen=True, slots=True)
class _Rest:
    """The members that are not written yet, by their numbers; `was_open` are those that could have come just before."""

    members: _Members
    missing: tuple[int, ...]
    was_open: frozenset[int] = frozenset()


_Task = bytes | _Value | _Rest
# What is left to be written, the next first; and what was written, the last first.
_Tasks = tuple[_Task, Any] | None
_Text = tuple[bytes, Any] | None


class PublishedForm:
    """Writes instances of one schema."""

    def __init__(self, document: Any) -> None:
        walk = SchemaWalk(document)
        self._writers = [_Writer(walk, order) for order in ORDERS]
        for branch in range(min(walk.num_branches, MAX_BRANCHES)):
            self._writers.append(_Writer(SchemaWalk(document, branch), OWN_PROPERTIES_FIRST))

    def write(self, table: ConfigurationTable | None, value: Any) -> Writing:
        """Looks for a spelling of `value` in the language of `table` (None: the empty language)."""
        texts = list(dict.fromkeys(writer.likely_text(value) for writer in self._writers))
        if table is None:
            return Writing(None, texts[0], False)
        for text in texts:
            if _is_accepted(table, text):
                return Writing(text, texts[0], False)
        # Names come in one order nearly everywhere, so that one that was passed is lost. Where that is not so, in
        # unions of objects, the second search finds it.
        ordered = _Search(table, self._writers[0], MAX_STEPS, passed_is_lost=True)
        union = _Search(table, self._writers[0], MAX_UNION_STEPS, passed_is_lost=False)
        accepted = ordered.accepted_text(value) or union.accepted_text(value)
        return Writing(accepted, texts[0], accepted is None and ordered.gave_up)


class _Writer:
    """What texts a value has, piece by piece."""

    def __init__(self, walk: SchemaWalk, order: str) -> None:
        self._walk = walk
        self._order = order

    def begin(self, value: Any) -> _Tasks:
        """The whole value as a task."""
        return _Value(value, self._walk.root), None

    def likely_text(self, value: Any) -> bytes:
        """The text with all members in the likely order."""
        text: list[bytes] = []
        tasks = self.begin(value)
        while tasks is not None:
            task, tasks = tasks
            if isinstance(task, bytes):
                text.append(task)
            elif isinstance(task, _Value):
                tasks = self.expand(task, tasks)
            elif task.missing:
                number = task.missing[0]
                text.append(task.members.opening(number, len(task.missing)))
                tasks = after_name(task, number, tasks)
            else:
                text.append(b"}")
        return b"".join(text)

    def expand(self, task: _Value, following: _Tasks) -> _Tasks:
        """A value as its text, or as its brackets and parts."""
        value, subschemas = task.value, task.subschemas
        if isinstance(value, dict):
            names = self._walk.ordered_names(subschemas, value, self._order)
            members = _Members(value, subschemas, names, self._walk)
            return b"{", (_Rest(members, tuple(range(len(names)))), following)
        if isinstance(value, list):
            tasks: _Tasks = (b"]", following)
            for index in reversed(range(len(value))):
                tasks = _Value(value[index], self._walk.element(subschemas, index)), tasks
                if index:
                    tasks = b",", tasks
            return b"[", tasks
        return scalar_text(value), following


def after_name(task: _Rest, number: int, following: _Tasks, are_open: frozenset[int] = frozenset()) -> _Tasks:
    """What is left of an object where the name of one member has been written."""
    rest = _Rest(task.members, tuple(other for other in task.missing if other != number), are_open)
    return task.members.value(number), (rest, following)


class _Search:
    """The fewest departures from the likely order first.

    A place in an object is not tried again from the same configuration.
    """

    def __init__(self, table: ConfigurationTable, writer: _Writer, max_steps: int, *, passed_is_lost: bool) -> None:
        self._table = table
        self._writer = writer
        self._num_left = max_steps
        self._passed_is_lost = passed_is_lost
        # Departures, then the latest first, then what is to be done from which configuration, and the text before it.
        self._pending: list[tuple[int, int, int, _Tasks, _Text]] = []
        self._serial = 0

    @property
    def gave_up(self) -> bool:
        """Whether there were more orders than steps."""
        return self._num_left < 0

    def accepted_text(self, value: Any) -> bytes | None:
        """A text of `value` that is accepted, None where there is none or the steps are used up."""
        self._push(0, self._table.start, self._writer.begin(value), None)
        tried: set[tuple[int, _Members, tuple[int, ...]]] = set()
        while self._pending and not self.gave_up:
            departures, _, configuration, tasks, text = heapq.heappop(self._pending)
            if tasks is None:
                if self._table.may_end(configuration):
                    return _joined(text)
                continue
            task, following = tasks
            if isinstance(task, _Value):
                self._push(departures, configuration, self._writer.expand(task, following), text)
            elif isinstance(task, bytes) or not task.missing:
                piece = task if isinstance(task, bytes) else b"}"
                target = self._step(configuration, piece)
                if target != DEAD:
                    self._push(departures, target, following, (piece, text))
            elif (key := (configuration, task.members, task.missing)) not in tried:
                tried.add(key)
                self._push_members(departures, configuration, task, following, text)
        return None

    def _push_members(self, departures: int, configuration: int, task: _Rest, following: _Tasks, text: _Text) -> None:
        """Each member that may come next; all but the first of them are departures."""
        pieces = {number: task.members.opening(number, len(task.missing)) for number in task.missing}
        targets = {number: self._step(configuration, piece) for number, piece in pieces.items()}
        alive = [number for number, target in targets.items() if target != DEAD]
        are_open = frozenset(alive)
        if self._passed_is_lost and not are_open.issuperset(task.was_open.intersection(task.missing)):
            return
        for index, number in reversed(list(enumerate(alive))):
            tasks = after_name(task, number, following, are_open)
            self._push(departures + (index > 0), targets[number], tasks, (pieces[number], text))

    def _push(self, departures: int, configuration: int, tasks: _Tasks, text: _Text) -> None:
        self._serial -= 1
        heapq.heappush(self._pending, (departures, self._serial, configuration, tasks, text))

    def _step(self, configuration: int, piece: bytes) -> int:
        self._num_left -= 1
        return self._table.step_bytes(configuration, np.frombuffer(piece, np.uint8).copy(), 0, len(piece))


def _is_accepted(table: ConfigurationTable, text: bytes) -> bool:
    configuration = table.step_bytes(table.start, np.frombuffer(text, np.uint8).copy(), 0, len(text))
    return configuration != DEAD and table.may_end(configuration)


def _joined(text: _Text) -> bytes:
    pieces: list[bytes] = []
    while text is not None:
        piece, text = text
        pieces.append(piece)
    return b"".join(reversed(pieces))
