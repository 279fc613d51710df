"""Facts about a grammar's expressions: which can produce, vanish, recurse; their sizes. The plain form of
`infernix.matching.analysis`, over the expressions themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from infernix.grammar import ir
from infernix.grammar.unicode import utf8_sequences
from infernix.matching.analysis import MAX_EXPANDED_EDGES, MAX_INLINED_EDGES


@dataclass(frozen=True, slots=True)
class GrammarFacts:
    """Facts by rule index, and by `id` of every expression of a rule that the root leads to.

    `callees` are the rules that a rule refers to. `productive` and `nullable` hold the expressions that derive anything
    and the empty string; `num_edges` says how many byte edges an expression will take.
    """

    callees: dict[int, set[int]]
    inlined_rules: set[int]
    productive: set[int]
    nullable: set[int]
    num_edges: dict[int, int]


def analyze(grammar: ir.Grammar) -> GrammarFacts:
    """All facts, each as a least fixpoint over the rules that the root leads to."""
    nodes_of_rule: dict[int, list[ir.Expression]] = {}
    callees: dict[int, set[int]] = {}
    pending = [grammar.root]
    while pending:
        rule = pending.pop()
        if rule not in nodes_of_rule:
            nodes_of_rule[rule], callees[rule] = _postorder(grammar.rules[rule].body)
            pending.extend(callees[rule])
    callers: dict[int, list[int]] = {rule: [] for rule in callees}
    for rule, targets in callees.items():
        for target in targets:
            callers[target].append(rule)
    judge = _Judge(grammar, _recursive_rules(callees, callers))
    # Callees first: without recursion, one look at each rule settles it.
    waiting = list(reversed(_callees_first(callees)))
    is_waiting = set(waiting)
    while waiting:
        rule = waiting.pop()
        is_waiting.discard(rule)
        if judge.look_at(rule, nodes_of_rule[rule]):
            for caller in callers[rule]:
                if caller not in is_waiting:
                    is_waiting.add(caller)
                    waiting.append(caller)
    return GrammarFacts(callees, judge.inlined_rules, judge.productive, judge.nullable, judge.num_edges)


def _postorder(root: ir.Expression) -> tuple[list[ir.Expression], set[int]]:
    """Every node below and including `root`, children first, and the rules referred to.

    A leaf comes once for each of its parents, every other node once.
    """
    order: list[ir.Expression] = []
    callees: set[int] = set()
    seen: set[int] = set()
    # None stands above a node whose children have been put on the stack.
    stack: list[ir.Expression | None] = [root]
    while stack:
        node = stack.pop()
        if node is None:
            finished = stack.pop()
            assert finished is not None
            order.append(finished)
            continue
        if isinstance(node, ir.Sequence):
            children: tuple[ir.Expression, ...] = node.items
        elif isinstance(node, ir.Choice):
            children = node.options
        elif isinstance(node, ir.Repeat):
            children = (node.body,)
        else:
            if isinstance(node, ir.RuleReference):
                callees.add(node.index)
            order.append(node)
            continue
        if id(node) not in seen:
            seen.add(id(node))
            stack.append(node)
            stack.append(None)
            stack.extend(children)
    return order, callees


class _Judge:
    """What is known of the expressions and rules so far."""

    def __init__(self, grammar: ir.Grammar, recursive: set[int]) -> None:
        self.productive: set[int] = set()
        self.nullable: set[int] = set()
        self.num_edges: dict[int, int] = {}
        self.inlined_rules: set[int] = set()
        self._grammar = grammar
        self._recursive = recursive
        self._known: dict[int, tuple[bool, bool]] = {}

    def look_at(self, rule: int, nodes: list[ir.Expression]) -> bool:
        """Judges all expressions of a rule, given what is known; says whether that changed what holds for the rule."""
        productive, nullable, num_edges = self.productive, self.nullable, self.num_edges
        for node in nodes:
            key = id(node)
            if isinstance(node, ir.Literal):
                size = len(node.data)
                productive.add(key)
                if not size:
                    nullable.add(key)
            elif isinstance(node, ir.Sequence):
                size = 0
                is_productive = is_nullable = True
                for item in node.items:
                    child = id(item)
                    size += num_edges[child]
                    is_productive = is_productive and child in productive
                    is_nullable = is_nullable and child in nullable
                if is_productive:
                    productive.add(key)
                if is_nullable:
                    nullable.add(key)
            elif isinstance(node, ir.RuleReference):
                index = node.index
                # A rule on a cycle may be met before it has been looked at.
                is_productive, is_nullable = self._known.get(index, (False, False))
                size = num_edges[id(self._grammar.rules[index].body)] if index in self.inlined_rules else 1
                if is_productive:
                    productive.add(key)
                if is_nullable:
                    nullable.add(key)
            elif isinstance(node, ir.Choice):
                size = 0
                for option in node.options:
                    child = id(option)
                    size += num_edges[child]
                    if child in productive:
                        productive.add(key)
                    if child in nullable:
                        nullable.add(key)
            elif isinstance(node, ir.Repeat):
                child = id(node.body)
                copies = num_copies(node, num_edges[child])
                size = 1 if copies is None else copies * num_edges[child]
                if node.minimum == 0 or child in productive:
                    productive.add(key)
                if node.minimum == 0 or child in nullable:
                    nullable.add(key)
            elif isinstance(node, ir.CharacterClass):
                size = _num_class_edges(node.ranges)
                if size:
                    productive.add(key)
            elif isinstance(node, ir.ByteRange):
                size = 1
                productive.add(key)
            elif isinstance(node, ir.TokenSet):
                size = 1
                if node.excluded or node.ids:
                    productive.add(key)
            elif isinstance(node, ir.Automaton):
                size = 1
                if _accepts_anything(node):
                    productive.add(key)
                if 0 in node.accepting:
                    nullable.add(key)
            num_edges[key] = size
        body = self._grammar.rules[rule].body
        root = id(body)
        if rule not in self._recursive and num_edges[root] <= MAX_INLINED_EDGES and not isinstance(body, ir.Automaton):
            self.inlined_rules.add(rule)
        before = self._known.get(rule, (False, False))
        self._known[rule] = (root in productive, root in nullable)
        return self._known[rule] != before


@lru_cache(maxsize=4096)
def _num_class_edges(ranges: tuple[tuple[int, int], ...]) -> int:
    return sum(len(encoding) for encoding in utf8_sequences(ranges))


def _accepts_anything(automaton: ir.Automaton) -> bool:
    reached = {0}
    stack = [0]
    while stack:
        state = stack.pop()
        following = {target for source, _, _, target in automaton.edges if source == state}
        stack += following - reached
        reached |= following
    return not reached.isdisjoint(automaton.accepting)


def num_copies(repeat: ir.Repeat, body_edges: int) -> int | None:
    """How often the body is written out, or None where the repetition keeps a counter."""
    copies = max(repeat.minimum, 1) if repeat.maximum is None else repeat.maximum
    return copies if copies <= 1 or copies * max(body_edges, 1) <= MAX_EXPANDED_EDGES else None


def _callees_first(callees: dict[int, set[int]]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for root in callees:
        stack: list[tuple[int, bool]] = [(root, False)]
        while stack:
            rule, expanded = stack.pop()
            if expanded:
                order.append(rule)
            elif rule not in seen:
                seen.add(rule)
                stack.append((rule, True))
                stack.extend((target, False) for target in callees[rule] if target not in seen)
    return order


def _recursive_rules(callees: dict[int, set[int]], callers: dict[int, list[int]]) -> set[int]:
    """Rules on a cycle of references, or between cycles: what is left when rules without callees or callers go."""
    num_callees = {rule: len(targets) for rule, targets in callees.items()}
    ready = [rule for rule, num in num_callees.items() if num == 0]
    alive = set(callees)
    while ready:
        rule = ready.pop()
        alive.discard(rule)
        for caller in callers[rule]:
            num_callees[caller] -= 1
            if num_callees[caller] == 0:
                ready.append(caller)
    num_callers = {rule: sum(caller in alive for caller in callers[rule]) for rule in alive}
    ready = [rule for rule, num in num_callers.items() if num == 0]
    while ready:
        rule = ready.pop()
        alive.discard(rule)
        for target in callees[rule]:
            if target in alive:
                num_callers[target] -= 1
                if num_callers[target] == 0:
                    ready.append(target)
    return alive
