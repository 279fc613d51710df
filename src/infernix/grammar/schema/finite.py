"""Finite lists of values: which of them satisfy everything that holds at their position, decided value by value.

The assertions are those of the document itself, so that `oneOf` is "exactly one" here without any proof. Nothing
recurses in Python: an evaluation is a generator that yields the evaluations it waits for.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable
from fractions import Fraction
from typing import TypeAlias

from infernix.errors import UnsupportedJsonSchema
from infernix.grammar.schema.budget import Budget
from infernix.grammar.schema.clauses import Clauses, FiniteValues, LocatedCount, Subschema
from infernix.grammar.schema.expansion import Alternative, Atom, Choice, Entry, Expander
from infernix.grammar.schema.nodes import Literals, Nothing, NumberNode, StringNode
from infernix.grammar.schema.numbers import admits_number
from infernix.grammar.schema.source import JsonNumber, JsonValue
from infernix.grammar.schema.strings import admits_string
from infernix.grammar.schema.values import equality_key, number_value

_Evaluation: TypeAlias = Generator["_Evaluation", bool, bool]


class FiniteValueFilter:
    """Evaluates the assertions of a document on values that stand in it."""

    def __init__(self, expander: Expander, budget: Budget) -> None:
        self._expander = expander
        self._budget = budget
        # By the identity of values, which the document keeps alive.
        self._known: dict[tuple[Choice, int], bool] = {}
        self._open: dict[tuple[Choice, int], None] = {}
        self._num_returns = 0
        self._keys: dict[int, Hashable] = {}
        self._numbers: dict[int, Fraction] = {}
        self._listed: dict[int, frozenset[Hashable]] = {}

    def literals(self, alternative: Alternative) -> Literals | Nothing:
        """What remains of the finite lists of `alternative`, in the order of the first one."""
        lists = [listed for atom in alternative.atoms for listed in atom.finite]
        first = next((listed for listed in lists if listed.place.steps[-1] == "const"), lists[0])
        if _asserts_nothing_else(alternative.entries):
            values = first.values
        else:
            values = tuple(value for value in first.values if self._run(self._all(alternative.entries, value)))
        if values:
            return Literals(values, first.place)
        keyword = first.place.steps[-1]
        reason = f"no value of {keyword!r} satisfies the other keywords" if first.values else f"{keyword!r} is empty"
        return Nothing(reason, first.place)

    def _run(self, evaluation: _Evaluation) -> bool:
        waiting = [evaluation]
        result = False
        is_started = False
        while True:
            try:
                waiting.append(waiting[-1].send(result) if is_started else next(waiting[-1]))
                is_started = False
            except StopIteration as stopped:
                result = bool(stopped.value)
                is_started = True
                waiting.pop()
                if not waiting:
                    return result

    def _all(self, entries: Iterable[Entry], value: JsonValue) -> _Evaluation:
        for entry in entries:
            self._budget.spend(1, entry.place if isinstance(entry, Choice) else entry.clauses.place)
            if isinstance(entry, Choice):
                holds = yield self._choose(entry, value)
            else:
                holds = self._admits_itself(entry, value)
                if holds and isinstance(value, (list, dict)):
                    holds = yield self._parts(entry.clauses, value)
            if not holds:
                return False
        return True

    def _subschema(self, subschema: Subschema, value: JsonValue) -> _Evaluation:
        closure = self._expander.closure(subschema)
        return self._all(closure.entries, value) if closure.impossible is None else _never()

    def _choose(self, choice: Choice, value: JsonValue) -> _Evaluation:
        key = choice, id(value)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            self._check_inclusive(key)
            self._num_returns += 1
            return False
        self._open[key] = None
        num_returns = self._num_returns
        num_held = 0
        for branch in choice.branches:
            num_held += yield self._subschema(branch, value)
            if num_held > choice.exclusive:
                break
        del self._open[key]
        result = num_held == 1
        # A negative answer that rests on an open question holds only as long as that is open.
        if result or num_returns == self._num_returns:
            self._known[key] = result
        return result

    def _check_inclusive(self, key: tuple[Choice, int]) -> None:
        """Between a choice and its return there must be no `oneOf`: see `expansion`."""
        is_inside = False
        for choice, identity in self._open:
            is_inside = is_inside or (choice, identity) == key
            if is_inside and identity == key[1] and choice.exclusive:
                raise UnsupportedJsonSchema("a branch of the 'oneOf' leads back to it", choice.place.pointer)

    def _admits_itself(self, atom: Atom, value: JsonValue) -> bool:
        """All but what is asserted about elements and members."""
        clauses = atom.clauses
        if not self._is_of_type(atom.types, value):
            return False
        if clauses.finite:
            key = self._key(value)
            if any(key not in self._listed_keys(listed) for listed in clauses.finite):
                return False
        if isinstance(value, str):
            if not _is_within(len(value), clauses.min_length, clauses.max_length):
                return False
            return not clauses.patterns or admits_string(StringNode(patterns=clauses.patterns), value)
        if isinstance(value, JsonNumber):
            number = self._number(value)
            return all(admits_number(NumberNode(lower=located.bound), number) for located in clauses.lower) and all(
                admits_number(NumberNode(upper=located.bound), number) for located in clauses.upper
            )
        if isinstance(value, list):
            return _is_within(len(value), clauses.min_items, clauses.max_items)
        return not isinstance(value, dict) or all(needed.name in value for needed in clauses.required)

    def _parts(self, clauses: Clauses, value: JsonValue) -> _Evaluation:
        if isinstance(value, dict):
            for name, member in value.items():
                subschema = clauses.properties.get(name, clauses.additional)
                if subschema is not None and not (yield self._subschema(subschema, member)):
                    return False
        elif isinstance(value, list):
            for index, element in enumerate(value):
                subschema = clauses.prefix[index] if index < len(clauses.prefix) else clauses.items
                if subschema is not None and not (yield self._subschema(subschema, element)):
                    return False
        return True

    def _key(self, value: JsonValue) -> Hashable:
        if id(value) not in self._keys:
            self._keys[id(value)] = equality_key(value)
        return self._keys[id(value)]

    def _listed_keys(self, listed: FiniteValues) -> frozenset[Hashable]:
        if id(listed) not in self._listed:
            self._listed[id(listed)] = frozenset([self._key(value) for value in listed.values])
        return self._listed[id(listed)]

    def _number(self, value: JsonNumber) -> Fraction:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = number_value(value)
        return self._numbers[id(value)]

    def _is_of_type(self, types: frozenset[str], value: JsonValue) -> bool:
        match value:
            case bool():
                return "boolean" in types
            case str():
                return "string" in types
            case dict():
                return "object" in types
            case list():
                return "array" in types
            case None:
                return "null" in types
        return "number" in types or ("integer" in types and self._number(value).denominator == 1)


def _asserts_nothing_else(entries: tuple[Entry, ...]) -> bool:
    """Whether one list is all that is asserted, as in a member that tells objects apart."""
    if len(entries) != 1 or not isinstance(entries[0], Atom):
        return False
    clauses = entries[0].clauses
    return len(clauses.finite) == 1 and clauses == Clauses(clauses.place, finite=clauses.finite)


def _never() -> _Evaluation:
    yield from ()
    return False


def _is_within(count: int, low: LocatedCount | None, high: LocatedCount | None) -> bool:
    return (low is None or low.count <= count) and (high is None or count <= high.count)
