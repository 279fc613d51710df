"""Rules as nondeterministic automata, as lists of edges by state: the plain form of `infernix.matching.rule_nfa`.

Every copy of a rule or of a repeated body is written out. Sub-expressions that cannot produce anything are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from infernix.grammar import ir
from infernix.grammar.unicode import utf8_sequences
from support.plain_analysis import GrammarFacts, num_copies


@dataclass(frozen=True, slots=True)
class Loop:
    """A counted repetition that keeps a counter: `rule` derives the body."""

    minimum: int
    maximum: int | None
    rule: int


@dataclass(slots=True)
class Nfa:
    """Edges by source state. Labels of `calls` are rule numbers, of `loops` loop numbers, of `tokens` set numbers."""

    empty: list[list[int]] = field(default_factory=list)
    byte_ranges: list[list[tuple[int, int, int]]] = field(default_factory=list)
    calls: list[list[tuple[int, int]]] = field(default_factory=list)
    loops: list[list[tuple[int, int]]] = field(default_factory=list)
    tokens: list[list[tuple[int, int]]] = field(default_factory=list)

    def new_state(self) -> int:
        """A state without edges."""
        for edges in (self.empty, self.byte_ranges, self.calls, self.loops, self.tokens):
            edges.append([])
        return len(self.empty) - 1

    @property
    def num_states(self) -> int:
        return len(self.empty)


@dataclass(frozen=True, slots=True)
class RuleNfa:
    """Where one rule begins and ends; `automaton` instead, where the rule is a ready automaton over bytes."""

    start: int
    end: int
    automaton: ir.Automaton | None = None


class NfaBuilder:
    """Builds the automata of the root rule and of every rule that it comes to need."""

    def __init__(self, grammar: ir.Grammar, facts: GrammarFacts) -> None:
        self.nfa = Nfa()
        self.rules: list[RuleNfa] = []
        self.nullable_rules: list[bool] = []
        self.loops: list[Loop] = []
        self.token_sets: list[ir.TokenSet] = []
        self._grammar = grammar
        self._facts = facts
        self.rule_of_expression: dict[int, int] = {}
        self._token_set_numbers: dict[ir.TokenSet, int] = {}
        self._loop_numbers: dict[tuple[int, int | None, int], int] = {}
        self._pending: list[tuple[int, ir.Expression]] = []
        self.root_rule = self._rule(grammar.rules[grammar.root].body)
        while self._pending:
            rule, body = self._pending.pop()
            if isinstance(body, ir.Automaton):
                self.rules[rule] = RuleNfa(-1, -1, body)
            else:
                start, end = self.nfa.new_state(), self.nfa.new_state()
                self.rules[rule] = RuleNfa(start, end)
                self._connect(body, start, end)

    def _rule(self, body: ir.Expression) -> int:
        """The number of the rule that derives `body`."""
        known = self.rule_of_expression.get(id(body))
        if known is not None:
            return known
        rule = len(self.rules)
        self.rule_of_expression[id(body)] = rule
        self.rules.append(RuleNfa(-1, -1))
        self.nullable_rules.append(id(body) in self._facts.nullable)
        self._pending.append((rule, body))
        return rule

    def _connect(self, expression: ir.Expression, start: int, end: int) -> None:
        """Adds paths for `expression` from `start` to `end`; nothing enters `start` or leaves `end` by them."""
        nfa = self.nfa
        stack = [(expression, start, end)]
        while stack:
            node, source, target = stack.pop()
            if id(node) not in self._facts.productive:
                continue
            match node:
                case ir.Literal(data):
                    for byte in data[:-1]:
                        following = nfa.new_state()
                        nfa.byte_ranges[source].append((byte, byte, following))
                        source = following
                    if data:
                        nfa.byte_ranges[source].append((data[-1], data[-1], target))
                    else:
                        nfa.empty[source].append(target)
                case ir.ByteRange(low, high):
                    nfa.byte_ranges[source].append((low, high, target))
                case ir.CharacterClass(ranges):
                    self._connect_class(ranges, source, target)
                case ir.Sequence(items):
                    for item in items[:-1]:
                        following = nfa.new_state()
                        stack.append((item, source, following))
                        source = following
                    if items:
                        stack.append((items[-1], source, target))
                    else:
                        nfa.empty[source].append(target)
                case ir.Choice(options):
                    stack.extend((option, source, target) for option in options)
                case ir.Repeat():
                    self._connect_repeat(node, source, target, stack)
                case ir.RuleReference(index):
                    body = self._grammar.rules[index].body
                    if index in self._facts.inlined_rules:
                        stack.append((body, source, target))
                    else:
                        nfa.calls[source].append((self._rule(body), target))
                case ir.Automaton():
                    nfa.calls[source].append((self._rule(node), target))
                case ir.TokenSet():
                    number = self._token_set_numbers.setdefault(node, len(self.token_sets))
                    if number == len(self.token_sets):
                        self.token_sets.append(node)
                    nfa.tokens[source].append((number, target))

    def _connect_class(self, ranges: tuple[tuple[int, int], ...], source: int, target: int) -> None:
        """Encodings with the same first bytes share them, so that a class costs few states."""
        following: dict[tuple[int, tuple[int, int]], int] = {}
        for encoding in utf8_sequences(ranges):
            state = source
            for low, high in encoding[:-1]:
                key = (state, (low, high))
                if key not in following:
                    following[key] = self.nfa.new_state()
                    self.nfa.byte_ranges[state].append((low, high, following[key]))
                state = following[key]
            self.nfa.byte_ranges[state].append((*encoding[-1], target))

    def _connect_repeat(
        self, repeat: ir.Repeat, source: int, target: int, stack: list[tuple[ir.Expression, int, int]]
    ) -> None:
        nfa = self.nfa
        body = repeat.body
        if id(body) not in self._facts.productive:
            nfa.empty[source].append(target)
            return
        copies = num_copies(repeat, self._facts.num_edges[id(body)])
        if copies is None:
            minimum = 0 if id(body) in self._facts.nullable else repeat.minimum
            key = (minimum, repeat.maximum, self._rule(body))
            number = self._loop_numbers.setdefault(key, len(self.loops))
            if number == len(self.loops):
                self.loops.append(Loop(*key))
            nfa.loops[source].append((number, target))
            return
        for _ in range(repeat.minimum if repeat.maximum is None else min(repeat.minimum, repeat.maximum)):
            following = nfa.new_state()
            stack.append((body, source, following))
            source = following
        if repeat.maximum is None:
            turn = nfa.new_state()
            nfa.empty[source].append(turn)
            stack.append((body, turn, turn))
            nfa.empty[turn].append(target)
            return
        for _ in range(repeat.maximum - repeat.minimum):
            nfa.empty[source].append(target)
            following = nfa.new_state()
            stack.append((body, source, following))
            source = following
        nfa.empty[source].append(target)
