"""What holds together at one position: allOf and references joined, anyOf and oneOf distributed.

A subschema is expanded to entries: atoms, which are the assertions of one schema object by itself, and choices, the
`anyOf` and `oneOf` that are still open. References and `allOf` only add entries, and an entry that is there already is
not added again: A and A is A. So recursion through them ends, with the set of all that they lead to.

A choice is resolved by putting the entries of one branch in its place, for each branch in turn. Where a branch leads
back to its own choice, however long the way, it admits nothing that the other branches do not: the least solution of
A = A or X is X. Entries stand in document order all the time, because the order of properties is that of generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.budget import Budget
from infernix.grammar.schema.clauses import Clauses, Subschema
from infernix.grammar.schema.nodes import Nothing
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.reading import Document

TYPE_ORDER = ("object", "array", "string", "number", "integer", "boolean", "null")
_ALL_TYPES = frozenset(TYPE_ORDER)


@dataclass(slots=True, eq=False)
class Atom:
    """The assertions of one schema object, without those that join or choose other schemas."""

    clauses: Clauses
    types: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """At least one of `branches` must hold, or exactly one if `exclusive`; `place` is that of the keyword."""

    branches: tuple[Subschema, ...]
    exclusive: bool
    place: Place


Entry: TypeAlias = Atom | Choice


class Closure(NamedTuple):
    """All entries that a subschema leads to without a choice; or why it admits nothing."""

    entries: tuple[Entry, ...]
    impossible: Nothing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """One resolution of an exclusive choice, into alternatives by branch."""

    place: Place


_ALWAYS = Closure(())


class Alternative(NamedTuple):
    """One way to resolve the choices of a position.

    Where some atom lists finite values, choices may be open still: they are tried on the values. `types` are those
    that all atoms allow; `taken` says which branch of which forks this is.
    """

    entries: tuple[Entry, ...]
    types: frozenset[str] = _ALL_TYPES
    impossible: Nothing | None = None
    taken: tuple[tuple[Fork, int], ...] = ()

    @property
    def atoms(self) -> list[Clauses]:
        """What the atoms assert, in document order."""
        return [entry.clauses for entry in self.entries if isinstance(entry, Atom)]


class _State(NamedTuple):
    """An alternative on the way. `seen` are its entries and the resolved choices; an edge leads from a resolved
    choice to each one that its branch depends on."""

    alternative: Alternative
    seen: frozenset[Entry]
    edges: dict[Choice, tuple[Choice, ...]]

    def holds(self, following: _State) -> bool:
        """Whether the branch by which `following` resolves one more choice is part of this state anyway."""
        is_same = following.alternative.impossible is None and following.seen == self.seen
        return is_same and not next(reversed(following.edges.values()))


class Expander:
    """Expands the subschemas of a document; each is looked at once."""

    def __init__(self, document: Document, budget: Budget) -> None:
        self._document = document
        self._budget = budget
        self._parts: dict[Subschema, tuple[Entry | Subschema, ...]] = {}
        self._closures: dict[Subschema, Closure] = {}

    def closure(self, subschema: Subschema) -> Closure:
        """What `subschema` leads to."""
        closure = self._closures.get(subschema)
        if closure is None:
            closure = self._closures[subschema] = self._close(subschema)
        return closure

    def join(self, subschemas: Iterable[Subschema]) -> Closure:
        """What all of `subschemas` lead to together."""
        closures = [self.closure(subschema) for subschema in subschemas]
        if len(closures) == 1:
            return closures[0]
        impossible = next((closure.impossible for closure in closures if closure.impossible), None)
        return Closure(tuple(dict.fromkeys(entry for closure in closures for entry in closure.entries)), impossible)

    def alternatives(self, entries: tuple[Entry, ...]) -> Iterator[Alternative]:
        """The ways to resolve the choices of `entries`, in document order; also those found to admit nothing."""
        if not any(isinstance(entry, Choice) for entry in entries):
            yield _narrowed(Alternative(entries), entries)
            return
        if len(entries) == 1 and (closures := self._plain_branches(entries[0])) is not None:
            yield from (_narrowed(Alternative(found, impossible=reason), found) for found, reason in closures)
            return
        pending = [_State(_narrowed(Alternative(entries), entries), frozenset(entries), {})]
        while pending:
            state = pending.pop()
            choice = _next_choice(state.alternative)
            if choice is None:
                yield state.alternative
                continue
            self._budget.spend(len(choice.branches) * (1 + len(state.seen)), choice.place)
            following = list(self._resolved(state, choice))
            # Where a branch without choices of its own adds nothing, it holds already, and so does this choice.
            held = None if choice.exclusive else next(filter(state.holds, following), None)
            pending.extend(reversed(following) if held is None else [held])

    def _plain_branches(self, entry: Entry) -> list[Closure] | None:
        """What resolves an inclusive choice, by itself, whose branches hold no choices: the most common case.

        Where a branch holds always, nothing else does. None for other entries.
        """
        if not isinstance(entry, Choice) or entry.exclusive:
            return None
        closures = [self.closure(branch) for branch in entry.branches]
        if any(isinstance(below, Choice) for closure in closures for below in closure.entries):
            return None
        self._budget.spend(2 * len(closures), entry.place)
        return [_ALWAYS] if _ALWAYS in closures else closures

    def _resolved(self, state: _State, choice: Choice) -> Iterator[_State]:
        alternative = state.alternative
        at = alternative.entries.index(choice)
        fork = Fork(choice.place) if choice.exclusive else None
        for index, branch in enumerate(choice.branches):
            closure = self.closure(branch)
            needed = tuple([entry for entry in closure.entries if isinstance(entry, Choice)])
            edges = {**state.edges, choice: needed}
            if needed and _leads_back(choice, edges):
                continue
            fresh = tuple([entry for entry in closure.entries if entry not in state.seen])
            following = Alternative(
                alternative.entries[:at] + fresh + alternative.entries[at + 1 :],
                alternative.types,
                closure.impossible,
                (*alternative.taken, (fork, index)) if fork else alternative.taken,
            )
            yield _State(_narrowed(following, fresh), state.seen.union(fresh), edges)

    def _close(self, subschema: Subschema) -> Closure:
        if subschema.value is False:
            return Closure((), Nothing("the schema is false", subschema.place))
        parts = () if subschema.value is True else self._parts_of(subschema)
        own = tuple([part for part in parts if not isinstance(part, Subschema)])
        if len(own) == len(parts):
            self._budget.spend(1 + len(own), subschema.place)
            return Closure(own)
        entries: dict[Entry, None] = {}
        impossible: Nothing | None = None
        on_path: dict[Subschema, None] = {}
        visited: set[Subschema] = set()
        cycle: Subschema | None = None
        # A part comes back, with True, when all below it is done.
        pending: list[tuple[Entry | Subschema, bool]] = [(subschema, False)]
        while pending:
            part, is_done = pending.pop()
            if not isinstance(part, Subschema):
                entries[part] = None
            elif is_done:
                del on_path[part]
            elif part.value is False:
                impossible = impossible or Nothing("the schema is false", part.place)
            elif part in visited:
                cycle = part if part in on_path else cycle
            elif part.value is not True:
                visited.add(part)
                on_path[part] = None
                pending.append((part, True))
                pending.extend((below, False) for below in reversed(self._parts_of(part)))
        self._budget.spend(len(visited) + len(entries), subschema.place)
        if cycle is not None and not entries and impossible is None:
            keyword = "$ref" if self._document.clauses(cycle).reference is not None else "allOf"
            impossible = Nothing("the reference leads back to itself", cycle.place.at(keyword))
        return Closure(tuple(entries), impossible)

    def _parts_of(self, subschema: Subschema) -> tuple[Entry | Subschema, ...]:
        parts = self._parts.get(subschema)
        if parts is None:
            parts = self._parts[subschema] = _split(subschema, self._document.clauses(subschema))
        return parts


def _split(subschema: Subschema, clauses: Clauses) -> tuple[Entry | Subschema, ...]:
    """The atom, the choices and the joined subschemas of one schema object, in the order of its keywords."""
    if clauses.reference is None and clauses.any_of is None and clauses.one_of is None and not clauses.all_of:
        return (Atom(clauses, _closed_types(clauses.types)),) if _asserts(clauses) else ()
    parts: dict[str, list[Entry | Subschema]] = {}
    if _asserts(clauses):
        parts["properties"] = [Atom(clauses, _closed_types(clauses.types))]
    if clauses.reference is not None:
        parts["$ref"] = [clauses.reference]
    if clauses.all_of:
        parts["allOf"] = [*clauses.all_of]
    if clauses.any_of is not None:
        parts["anyOf"] = [Choice(clauses.any_of, False, clauses.place.at("anyOf"))]
    if clauses.one_of is not None:
        parts["oneOf"] = [Choice(clauses.one_of, True, clauses.place.at("oneOf"))]
    if len(parts) > 1 and isinstance(subschema.value, dict):
        order = {keyword: index for index, keyword in enumerate(subschema.value)}
        # Without properties, where the atom stands makes no difference.
        ranks = sorted(parts, key=lambda keyword: order.get(keyword, len(order)))
        return tuple(part for keyword in ranks for part in parts[keyword])
    return tuple(part for found in parts.values() for part in found)


def _asserts(clauses: Clauses) -> bool:
    return bool(
        clauses.types is not None
        or clauses.finite
        or clauses.properties
        or clauses.required
        or (clauses.additional is not None and clauses.additional.value is not True)
        or clauses.lower
        or clauses.upper
        or clauses.min_length
        or clauses.max_length
        or clauses.patterns
        or clauses.prefix
        or (clauses.items is not None and clauses.items.value is not True)
        or clauses.min_items
        or clauses.max_items
    )


def _closed_types(types: frozenset[str] | None) -> frozenset[str]:
    """With `integer` wherever there is `number`, so that two sets are intersected as sets."""
    if types is None:
        return _ALL_TYPES
    return types | {"integer"} if "number" in types else types


def _narrowed(alternative: Alternative, added: Iterable[Entry]) -> Alternative:
    """`alternative` once the types of the atoms in `added` are taken into account."""
    types = alternative.types
    for entry in added:
        if isinstance(entry, Atom):
            remaining = types & entry.types
            if not remaining and types and alternative.impossible is None:
                reason = Nothing("no type is allowed by all schemas that hold here", entry.clauses.place.at("type"))
                return Alternative(alternative.entries, remaining, reason, alternative.taken)
            types = remaining
    if types is alternative.types:
        return alternative
    return Alternative(alternative.entries, types, alternative.impossible, alternative.taken)


def _next_choice(alternative: Alternative) -> Choice | None:
    """The choice to resolve next: an inclusive one if there is, so that the exclusive ones are proved in less."""
    if alternative.impossible is not None:
        return None
    found: Choice | None = None
    for entry in alternative.entries:
        if isinstance(entry, Choice):
            if found is None or (found.exclusive and not entry.exclusive):
                found = entry
        elif entry.clauses.finite:
            return None
    return found


def _leads_back(choice: Choice, edges: dict[Choice, tuple[Choice, ...]]) -> bool:
    """Whether `choice` depends on itself by what has been taken so far.

    Raises UnsupportedJsonSchema where it does so through a `oneOf`: "exactly one" has no least solution then.
    """
    came_from: dict[Choice, Choice] = {}
    pending = [choice]
    while pending:
        current = pending.pop()
        for following in edges.get(current, ()):
            if following is choice:
                on_cycle = [choice]
                while current is not choice:
                    on_cycle.append(current)
                    current = came_from[current]
                exclusive = next((member for member in on_cycle if member.exclusive), None)
                if exclusive is not None:
                    raise UnsupportedJsonSchema("a branch of the 'oneOf' leads back to it", exclusive.place.pointer)
                return True
            if following not in came_from:
                came_from[following] = current
                pending.append(following)
    return False
