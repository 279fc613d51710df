"""From the rules' nondeterministic automata to one small set of states for all rules: plain, slow, over Python lists.

Subset construction treats byte classes, called rules, loops and token sets alike as letters, so a state has at most
one target for each. Where subsets grow out of proportion the rule keeps its nondeterministic form without empty
edges: a step then has several targets. At the end, states with equal futures are merged over all rules at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from infernix.grammar import ir
from infernix.matching.determinize import MAX_SUBSET_BASE, MAX_SUBSET_GROWTH
from support.plain_analysis import analyze
from support.plain_nfa import Nfa, NfaBuilder

Targets: TypeAlias = tuple[int, ...]
# Class intervals are inclusive.
ByteStep: TypeAlias = tuple[int, int, Targets]
LabelStep: TypeAlias = tuple[int, Targets]


@dataclass(slots=True)
class State:
    """One state: `steps` by class interval, the rest by label; all sorted, intervals disjoint."""

    is_final: bool = False
    steps: list[ByteStep] = field(default_factory=list)
    calls: list[LabelStep] = field(default_factory=list)
    loops: list[LabelStep] = field(default_factory=list)
    tokens: list[LabelStep] = field(default_factory=list)

    def targets(self) -> Iterable[int]:
        """Every state that an edge leads to."""
        for _, _, step_targets in self.steps:
            yield from step_targets
        for edges in (self.calls, self.loops, self.tokens):
            for _, label_targets in edges:
                yield from label_targets


@dataclass(frozen=True, slots=True)
class StateGraph:
    """All rules' states; `rule_starts[rule]` begins a rule. Class c covers class_begins[c] up to the next begin."""

    states: list[State]
    rule_starts: list[int]
    class_begins: list[int]


def plain_states(grammar: ir.Grammar) -> tuple[StateGraph, NfaBuilder]:
    """The minimal states of all rules, and the builder that says what their labels mean."""
    builder = NfaBuilder(grammar, analyze(grammar))
    return _determinize(builder), builder


def _determinize(builder: NfaBuilder) -> StateGraph:
    class_begins = _class_begins(builder)
    states: list[State] = []
    rule_starts = []
    for rule in builder.rules:
        if rule.automaton is not None:
            rule_starts.append(_copy_automaton(rule.automaton, class_begins, states))
        else:
            rule_starts.append(_RuleStates(builder.nfa, rule.start, rule.end, class_begins, states).start)
    _cut_dead_ends(states)
    return _merge_equal(StateGraph(states, rule_starts, class_begins))


def _class_begins(builder: NfaBuilder) -> list[int]:
    begins = {0}
    for edges in builder.nfa.byte_ranges:
        for low, high, _ in edges:
            begins.add(low)
            begins.add(high + 1)
    for rule in builder.rules:
        if rule.automaton is not None:
            for _, low, high, _ in rule.automaton.edges:
                begins.add(low)
                begins.add(high + 1)
    begins.discard(256)
    return sorted(begins)


def _copy_automaton(automaton: ir.Automaton, class_begins: list[int], states: list[State]) -> int:
    base = len(states)
    states.extend(State(state in automaton.accepting) for state in range(automaton.num_states))
    for source, low, high, target in sorted(automaton.edges):
        first = bisect_right(class_begins, low) - 1
        last = bisect_right(class_begins, high) - 1
        states[base + source].steps.append((first, last, (base + target,)))
    return base


class _RuleStates:
    """The states of one rule, appended to `states`."""

    def __init__(self, nfa: Nfa, start: int, end: int, class_begins: list[int], states: list[State]) -> None:
        self._nfa = nfa
        self._end = end
        self._states = states
        self._class_begins = class_begins
        self._closures: dict[int, Targets] = {}
        base = len(states)
        try:
            self.start = self._build(start, merge=True)
        except _SubsetsTooLarge:
            del states[base:]
            self.start = self._build(start, merge=False)

    def _build(self, start: int, *, merge: bool) -> int:
        """Subset construction; with `merge` off every subset is the closure of a single state."""
        number_of: dict[Targets, int] = {}
        pending: list[tuple[int, Targets]] = []
        size = 0

        def number(targets: Iterable[int]) -> Targets:
            roots = tuple(sorted(set(targets)))
            if not merge and len(roots) > 1:
                return tuple(sorted({number((root,))[0] for root in roots}))
            known = number_of.get(roots)
            if known is None:
                subset = self._closure(roots)
                key = (-1, *subset)
                known = number_of.get(key)
                if known is None:
                    known = len(self._states)
                    self._states.append(State(self._end in subset))
                    number_of[key] = known
                    pending.append((known, subset))
                number_of[roots] = known
            return (known,)

        (first,) = number((start,))
        while pending:
            state, subset = pending.pop()
            size += len(subset)
            if merge and size > MAX_SUBSET_BASE + MAX_SUBSET_GROWTH * len(self._closures):
                raise _SubsetsTooLarge
            target = self._states[state]
            target.steps = [(low, high, number(targets)) for low, high, targets in self._byte_steps(subset)]
            for edges, result in (
                (self._nfa.calls, target.calls),
                (self._nfa.loops, target.loops),
                (self._nfa.tokens, target.tokens),
            ):
                by_label: dict[int, list[int]] = {}
                for source in subset:
                    for label, following in edges[source]:
                        by_label.setdefault(label, []).append(following)
                result.extend((label, number(by_label[label])) for label in sorted(by_label))
        return first

    def _byte_steps(self, subset: Targets) -> list[tuple[int, int, Targets]]:
        edges = [edge for source in subset for edge in self._nfa.byte_ranges[source]]
        begins = self._class_begins
        intervals = [(bisect_right(begins, low) - 1, bisect_right(begins, high) - 1, t) for low, high, t in edges]
        if len(intervals) == 1:
            return [(intervals[0][0], intervals[0][1], (intervals[0][2],))]
        by_class: dict[int, list[int]] = {}
        for low, high, following in intervals:
            for byte_class in range(low, high + 1):
                by_class.setdefault(byte_class, []).append(following)
        return _joined((byte_class, byte_class, tuple(by_class[byte_class])) for byte_class in sorted(by_class))

    def _closure(self, roots: Targets) -> Targets:
        """States with edges of their own, or final, that empty edges reach from `roots`."""
        if len(roots) > 1:
            return tuple(sorted({state for root in roots for state in self._closure((root,))}))
        root = roots[0]
        if root not in self._closures:
            seen = {root}
            stack = [root]
            while stack:
                for target in self._nfa.empty[stack.pop()]:
                    if target not in seen:
                        seen.add(target)
                        stack.append(target)
            nfa = self._nfa
            self._closures[root] = tuple(
                sorted(
                    state
                    for state in seen
                    if state == self._end
                    or nfa.byte_ranges[state]
                    or nfa.calls[state]
                    or nfa.loops[state]
                    or nfa.tokens[state]
                )
            )
        return self._closures[root]


class _SubsetsTooLarge(Exception):
    """The subset construction passed its budget."""


def _joined(steps: Iterable[ByteStep]) -> list[ByteStep]:
    """Neighbouring intervals with equal targets become one."""
    joined: list[ByteStep] = []
    for low, high, targets in steps:
        if joined and joined[-1][1] + 1 == low and joined[-1][2] == targets:
            joined[-1] = (joined[-1][0], high, targets)
        else:
            joined.append((low, high, targets))
    return joined


def _predecessors(states: list[State]) -> list[list[int]]:
    sources: list[list[int]] = [[] for _ in states]
    for source, state in enumerate(states):
        for target in state.targets():
            sources[target].append(source)
    return sources


def _cut_dead_ends(states: list[State]) -> None:
    """Removes edges into states from which no final state can be reached."""
    sources = _predecessors(states)
    alive = {number for number, state in enumerate(states) if state.is_final}
    stack = list(alive)
    while stack:
        for source in sources[stack.pop()]:
            if source not in alive:
                alive.add(source)
                stack.append(source)
    if len(alive) == len(states):
        return
    for state in states:
        state.steps = [
            (low, high, kept)
            for low, high, targets in state.steps
            if (kept := tuple(target for target in targets if target in alive))
        ]
        for edges in (state.calls, state.loops, state.tokens):
            edges[:] = [
                (label, kept)
                for label, targets in edges
                if (kept := tuple(target for target in targets if target in alive))
            ]


def _merge_equal(graph: StateGraph) -> StateGraph:
    """The quotient by the coarsest partition into states with equal futures."""
    states = graph.states
    block_of = _equal_blocks(states)
    representative: dict[int, int] = {}
    for number, block in enumerate(block_of):
        representative.setdefault(block, number)
    renumbered = {block: number for number, block in enumerate(representative)}

    def mapped(targets: Targets) -> Targets:
        return tuple(sorted({renumbered[block_of[target]] for target in targets}))

    merged = []
    for number in representative.values():
        state = states[number]
        merged.append(
            State(
                state.is_final,
                _joined((low, high, mapped(targets)) for low, high, targets in state.steps),
                [(label, mapped(targets)) for label, targets in state.calls],
                [(label, mapped(targets)) for label, targets in state.loops],
                [(label, mapped(targets)) for label, targets in state.tokens],
            )
        )
    return StateGraph(merged, [renumbered[block_of[start]] for start in graph.rule_starts], graph.class_begins)


def _equal_blocks(states: list[State]) -> list[int]:
    """Partition refinement: block number by state.

    A block is looked at again only for members with a successor that changed its block; of the parts into which it
    then falls the largest keeps its number, so that each state moves a logarithmic number of times.
    """
    sources = _predecessors(states)
    block_of = [0] * len(states)
    members: list[set[int]] = [set(range(len(states)))]
    dirty: dict[int, set[int]] = {0: set(range(len(states)))}

    def signature(number: int) -> object:
        state = states[number]

        def blocks(targets: Targets) -> Targets:
            return (block_of[targets[0]],) if len(targets) == 1 else tuple(sorted({block_of[t] for t in targets}))

        return (
            state.is_final,
            tuple(_joined((low, high, blocks(targets)) for low, high, targets in state.steps)),
            tuple((label, blocks(targets)) for label, targets in state.calls),
            tuple((label, blocks(targets)) for label, targets in state.loops),
            tuple((label, blocks(targets)) for label, targets in state.tokens),
        )

    while dirty:
        block, changed = dirty.popitem()
        parts: dict[object, set[int]] = {}
        for number in changed:
            parts.setdefault(signature(number), set()).add(number)
        rest = members[block]
        rest.difference_update(changed)
        if rest:
            # Members without a changed successor still agree with each other: one speaks for all.
            rest.update(parts.pop(signature(next(iter(rest))), ()))
            parts[None] = rest
        largest = max(parts.values(), key=len)
        members[block] = largest
        for part in parts.values():
            if part is largest:
                continue
            for number in part:
                block_of[number] = len(members)
            members.append(part)
            for number in part:
                for source in sources[number]:
                    dirty.setdefault(block_of[source], set()).add(source)
        # Sources recorded under a block that has since been split move to the block they are in now.
        if block in dirty:
            for number in list(dirty[block]):
                if block_of[number] != block:
                    dirty[block].discard(number)
                    dirty.setdefault(block_of[number], set()).add(number)
            if not dirty[block]:
                del dirty[block]
    return block_of
