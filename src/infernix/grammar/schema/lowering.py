"""Graph of nodes -> ir: one rule for each position that is used."""

from __future__ import annotations

from infernix.grammar.ir import NOTHING, Expression, Grammar, GrammarBuilder, RuleReference, choice
from infernix.grammar.json_values import NULL, JsonRules
from infernix.grammar.schema.arrays import lower_array
from infernix.grammar.schema.literals import lower_literals
from infernix.grammar.schema.nodes import (
    AnyOf,
    Anything,
    ArrayNode,
    BooleanNode,
    IntegerNode,
    Literals,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    StringNode,
)
from infernix.grammar.schema.numbers import lower_integer
from infernix.grammar.schema.objects import Member, lower_object
from infernix.grammar.schema.reduction import SchemaGraph
from infernix.grammar.schema.satisfiability import Satisfiability, explain, find_satisfiable
from infernix.grammar.schema.strings import lower_string

_MAX_RULE_NAME_CHARACTERS = 40


def lower(graph: SchemaGraph) -> Grammar:
    """The grammar of the root; UnsatisfiableJsonSchema if no value satisfies it."""
    satisfiability = find_satisfiable(graph)
    if graph.ROOT not in satisfiability.positions:
        raise explain(graph, satisfiability, graph.ROOT)
    return _Lowering(graph, satisfiability).run()


class _Lowering:
    def __init__(self, graph: SchemaGraph, satisfiability: Satisfiability) -> None:
        self._graph = graph
        self._satisfiability = satisfiability
        self._resolved = graph.resolved()
        self._builder = GrammarBuilder()
        self._rules = JsonRules(self._builder)
        self._rule_of: dict[int, RuleReference] = {}
        self._pending: list[int] = []

    def run(self) -> Grammar:
        root = self._rule(self._graph.ROOT)
        assert root is not None
        while self._pending:
            position = self._pending.pop()
            self._builder.define(self._rule_of[position], self._lower(self._graph.nodes[position], position))
        return self._builder.build(root)

    def _rule(self, position: int) -> RuleReference | None:
        """The rule of a position, to be defined later if it is new; None if no value is of this position."""
        end = self._resolved[position]
        if end is None or end not in self._satisfiability.positions:
            return None
        shared = self._shared_rule(self._graph.nodes[end])
        if shared is not None:
            return shared
        if end not in self._rule_of:
            steps = self._graph.places[end].steps
            self._rule_of[end] = self._builder.declare(steps[-1][:_MAX_RULE_NAME_CHARACTERS] if steps else "root")
            self._pending.append(end)
        return self._rule_of[end]

    def _shared_rule(self, node: Node) -> RuleReference | None:
        match node:
            case Anything():
                return self._rules.value
            case BooleanNode():
                return self._rules.boolean
            case NumberNode():
                return self._rules.number
        if node == StringNode():
            return self._rules.string
        if node == ObjectNode((), self._graph.ANYTHING):
            return self._rules.object
        if node == ArrayNode(self._graph.ANYTHING):
            return self._rules.array
        lowered = lower_integer(node, self._rules) if isinstance(node, IntegerNode) else None
        return lowered if isinstance(lowered, RuleReference) else None

    def _lower(self, node: Node, position: int) -> Expression:
        shared = self._shared_rule(node)
        if shared is not None:
            return shared
        match node:
            case AnyOf(branches):
                possible = [branch for branch in branches if self._satisfiability.admits_some(branch, position)]
                return choice(*(self._lower(branch, position) for branch in possible))
            case Literals():
                return lower_literals(self._satisfiability.literals[position], self._rules)
            case NullNode():
                return NULL
            case StringNode():
                return lower_string(node, self._rules)
            case IntegerNode():
                return lower_integer(node, self._rules)
            case ArrayNode():
                return lower_array(node, self._rule(node.items), self._rules)
            case ObjectNode():
                return self._lower_object(node)
        return NOTHING

    def _lower_object(self, node: ObjectNode) -> Expression:
        members = []
        for prop in node.properties:
            value = self._rule(prop.value)
            # A property without a possible value is one that never occurs; its name stays taken.
            if value is not None:
                members.append(Member(prop.name, value, prop.required))
        additional = None if node.additional is None else self._rule(node.additional)
        return lower_object(members, [prop.name for prop in node.properties], additional, self._rules)
