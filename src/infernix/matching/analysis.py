"""Facts about a grammar that building its network needs: which rules can produce, vanish, recurse; their sizes.

Expressions are walked with explicit stacks, never by recursion, because their depth belongs to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from infernix.grammar import ir
from infernix.grammar.unicode import utf8_sequences

# Counted repetitions up to this many byte edges are written out; larger ones keep a counter. Rules up to the second
# figure that do not recurse are copied into their callers.
MAX_EXPANDED_EDGES = 160
MAX_INLINED_EDGES = 20


def children(expression: ir.Expression) -> tuple[ir.Expression, ...]:
    """Direct sub-expressions."""
    match expression:
        case ir.Sequence(items):
            return items
        case ir.Choice(options):
            return options
        case ir.Repeat(body, _, _):
            return (body,)
    return ()


def postorder(root: ir.Expression) -> Iterator[ir.Expression]:
    """Every distinct node below and including `root`, children first."""
    stack: list[tuple[ir.Expression, bool]] = [(root, False)]
    seen: set[int] = set()
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        for child in reversed(children(node)):
            if id(child) not in seen:
                stack.append((child, False))


# A judgement of one node, given those of its children and of the rules so far.
_NodeFact: TypeAlias = Callable[[ir.Expression, dict[int, bool], set[int]], bool]


@dataclass(frozen=True, slots=True)
class GrammarFacts:
    """Facts by rule index, and by `id` of every expression of a reachable rule."""

    reachable: tuple[int, ...]
    productive_rules: frozenset[int]
    nullable_rules: frozenset[int]
    inlined_rules: frozenset[int]
    productive: dict[int, bool]
    nullable: dict[int, bool]
    num_edges: dict[int, int]


def analyze(grammar: ir.Grammar) -> GrammarFacts:
    """All facts, each as a least fixpoint over the reachable rules."""
    nodes_of_rule: dict[int, list[ir.Expression]] = {}
    pending = [grammar.root]
    while pending:
        rule = pending.pop()
        if rule in nodes_of_rule:
            continue
        nodes_of_rule[rule] = list(postorder(grammar.rules[rule].body))
        pending.extend(node.index for node in nodes_of_rule[rule] if isinstance(node, ir.RuleReference))
    users: dict[int, set[int]] = {rule: set() for rule in nodes_of_rule}
    for rule, nodes in nodes_of_rule.items():
        for node in nodes:
            if isinstance(node, ir.RuleReference):
                users[node.index].add(rule)
    productive, productive_rules = _least_fixpoint(nodes_of_rule, users, _is_productive)
    nullable, nullable_rules = _least_fixpoint(nodes_of_rule, users, _is_nullable)
    num_edges, inlined_rules = _sizes(grammar, nodes_of_rule)
    return GrammarFacts(
        tuple(sorted(nodes_of_rule)), productive_rules, nullable_rules, inlined_rules, productive, nullable, num_edges
    )


def _least_fixpoint(
    nodes_of_rule: dict[int, list[ir.Expression]], users: dict[int, set[int]], holds: _NodeFact
) -> tuple[dict[int, bool], frozenset[int]]:
    of_node: dict[int, bool] = {}
    of_rule: set[int] = set()
    pending = set(nodes_of_rule)
    while pending:
        rule = pending.pop()
        nodes = nodes_of_rule[rule]
        for node in nodes:
            of_node[id(node)] = holds(node, of_node, of_rule)
        if rule not in of_rule and of_node[id(nodes[-1])]:
            of_rule.add(rule)
            pending |= users[rule]
    return of_node, frozenset(of_rule)


def _is_productive(node: ir.Expression, of_node: dict[int, bool], of_rule: set[int]) -> bool:
    """Derives at least one byte string; a token terminal counts as one where it names any token."""
    match node:
        case ir.Literal() | ir.ByteRange():
            return True
        case ir.CharacterClass(ranges):
            return bool(ranges)
        case ir.Sequence(items):
            return all(of_node[id(item)] for item in items)
        case ir.Choice(options):
            return any(of_node[id(option)] for option in options)
        case ir.Repeat(body, minimum, _):
            return minimum == 0 or of_node[id(body)]
        case ir.RuleReference(index):
            return index in of_rule
        case ir.TokenSet(ids, excluded):
            return excluded or bool(ids)
        case ir.Automaton():
            return _reaches_accepting(node)


def _reaches_accepting(automaton: ir.Automaton) -> bool:
    targets: dict[int, list[int]] = {}
    for source, _, _, target in automaton.edges:
        targets.setdefault(source, []).append(target)
    seen = {0}
    stack = [0]
    while stack:
        state = stack.pop()
        if state in automaton.accepting:
            return True
        for target in targets.get(state, ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return False


def _is_nullable(node: ir.Expression, of_node: dict[int, bool], of_rule: set[int]) -> bool:
    """Derives the empty string."""
    match node:
        case ir.Literal(data):
            return not data
        case ir.Sequence(items):
            return all(of_node[id(item)] for item in items)
        case ir.Choice(options):
            return any(of_node[id(option)] for option in options)
        case ir.Repeat(body, minimum, _):
            return minimum == 0 or of_node[id(body)]
        case ir.RuleReference(index):
            return index in of_rule
        case ir.Automaton(_, _, accepting):
            return 0 in accepting
    return False


def _sizes(grammar: ir.Grammar, nodes_of_rule: dict[int, list[ir.Expression]]) -> tuple[dict[int, int], frozenset[int]]:
    """Byte edges that each expression will take, and the rules small enough to be copied into their callers.

    Rules are taken callees first; a rule on a cycle is never copied, whatever its size.
    """
    num_edges: dict[int, int] = {}
    inlined: set[int] = set()
    class_sizes: dict[tuple[tuple[int, int], ...], int] = {}
    recursive = _recursive_rules(nodes_of_rule)
    for rule in _callees_first(nodes_of_rule):
        for node in nodes_of_rule[rule]:
            match node:
                case ir.Literal(data):
                    size = len(data)
                case ir.CharacterClass(ranges):
                    if ranges not in class_sizes:
                        class_sizes[ranges] = sum(len(encoding) for encoding in utf8_sequences(ranges))
                    size = class_sizes[ranges]
                case ir.Sequence(parts) | ir.Choice(parts):
                    size = sum(num_edges[id(part)] for part in parts)
                case ir.Repeat(body):
                    copies = num_copies(node, num_edges[id(body)])
                    size = 1 if copies is None else copies * num_edges[id(body)]
                case ir.RuleReference(index):
                    size = num_edges[id(grammar.rules[index].body)] if index in inlined else 1
                case _:
                    size = 1
            num_edges[id(node)] = size
        body = grammar.rules[rule].body
        if rule not in recursive and num_edges[id(body)] <= MAX_INLINED_EDGES and not isinstance(body, ir.Automaton):
            inlined.add(rule)
    return num_edges, frozenset(inlined)


def num_copies(repeat: ir.Repeat, body_edges: int) -> int | None:
    """How often the body is written out, or None where the repetition keeps a counter."""
    copies = max(repeat.minimum, 1) if repeat.maximum is None else repeat.maximum
    return copies if copies <= 1 or copies * max(body_edges, 1) <= MAX_EXPANDED_EDGES else None


def _callees_first(nodes_of_rule: dict[int, list[ir.Expression]]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for root in nodes_of_rule:
        stack: list[tuple[int, bool]] = [(root, False)]
        while stack:
            rule, expanded = stack.pop()
            if expanded:
                order.append(rule)
            elif rule not in seen:
                seen.add(rule)
                stack.append((rule, True))
                stack.extend(
                    (node.index, False)
                    for node in nodes_of_rule[rule]
                    if isinstance(node, ir.RuleReference) and node.index not in seen
                )
    return order


def _recursive_rules(nodes_of_rule: dict[int, list[ir.Expression]]) -> set[int]:
    """Rules on a cycle of references, or between cycles: what is left when rules without callees or callers go."""
    callees = {
        rule: {node.index for node in nodes if isinstance(node, ir.RuleReference)}
        for rule, nodes in nodes_of_rule.items()
    }
    callers: dict[int, set[int]] = {rule: set() for rule in callees}
    for rule, targets in callees.items():
        for target in targets:
            callers[target].add(rule)
    alive = set(callees)
    for edges, back in ((callees, callers), (callers, callees)):
        num_edges_left = {rule: len(edges[rule] & alive) for rule in alive}
        ready = [rule for rule in alive if num_edges_left[rule] == 0]
        while ready:
            rule = ready.pop()
            alive.discard(rule)
            for other in back[rule]:
                if other in alive:
                    num_edges_left[other] -= 1
                    if num_edges_left[other] == 0:
                        ready.append(other)
    return alive
