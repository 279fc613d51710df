"""Graph of nodes -> ir: one rule for each position that is used, and one for each scalar node, wherever it stands."""

from __future__ import annotations

from infernix.grammar.ir import NOTHING, Expression, Grammar, GrammarBuilder, RuleReference, choice
from infernix.grammar.json_values import NULL, JsonRules
from infernix.grammar.schema.arrays import lower_array
from infernix.grammar.schema.graph import SchemaGraph
from infernix.grammar.schema.literals import lower_literals
from infernix.grammar.schema.members import Member
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
from infernix.grammar.schema.numbers import lower_integer, lower_number
from infernix.grammar.schema.objects import lower_object
from infernix.grammar.schema.satisfiability import Satisfiability, explain, find_satisfiable
from infernix.grammar.schema.sharing import share_equal_positions
from infernix.grammar.schema.strings import lower_string

_MAX_RULE_NAME_CHARACTERS = 40

_ANY_OBJECT = ObjectNode((), SchemaGraph.ANYTHING)
_ANY_ARRAY = ArrayNode(SchemaGraph.ANYTHING)


def lower(graph: SchemaGraph) -> Grammar:
    """The grammar of the root; UnsatisfiableJsonSchema if no value satisfies it."""
    satisfiability = find_satisfiable(graph)
    if graph.ROOT not in satisfiability.positions:
        raise explain(graph, satisfiability, graph.ROOT)
    share_equal_positions(graph)
    builder = GrammarBuilder()
    lowering = Lowering(graph, satisfiability, JsonRules(builder))
    root = lowering.rule(graph.ROOT)
    assert root is not None
    lowering.finish()
    return builder.build(root)


class Lowering:
    """Writes positions of one graph as rules, into the builder of `rules`."""

    def __init__(self, graph: SchemaGraph, satisfiability: Satisfiability, rules: JsonRules) -> None:
        self._graph = graph
        self._satisfiability = satisfiability
        self._rules = rules
        self._builder = rules.builder
        self._rule_of: dict[int, RuleReference] = {}
        self._pending: list[int] = []

    def rule(self, position: int) -> RuleReference | None:
        """The rule of a position, to be defined by `finish` if it is new; None if no value is of this position."""
        position = self._graph.resolve(position)
        known = self._rule_of.get(position)
        if known is not None or position not in self._satisfiability.positions:
            return known
        rule = self._shared_rule(self._graph.nodes[position])
        if rule is None:
            steps = self._graph.places[position].steps
            rule = self._builder.declare(steps[-1][:_MAX_RULE_NAME_CHARACTERS] if steps else "root")
            self._pending.append(position)
        self._rule_of[position] = rule
        return rule

    def finish(self) -> None:
        """Defines all rules that were asked for."""
        while self._pending:
            position = self._pending.pop()
            self._builder.define(self._rule_of[position], self._lower_unshared(self._graph.nodes[position]))

    def _shared_rule(self, node: Node) -> RuleReference | None:
        match node:
            case Anything():
                return self._rules.value
            case BooleanNode():
                return self._rules.boolean
            case StringNode() | IntegerNode() | NumberNode():
                return self._scalar_rule(node)
            case ObjectNode() if node == _ANY_OBJECT:
                return self._rules.object
            case ArrayNode() if node == _ANY_ARRAY:
                return self._rules.array
        return None

    def _scalar_rule(self, node: StringNode | IntegerNode | NumberNode) -> RuleReference:
        rules = self._rules
        match node:
            case StringNode():
                return rules.shared(node, "string", lambda: lower_string(node, rules))
            case IntegerNode():
                return rules.shared(node, "integer", lambda: lower_integer(node, rules))
            case NumberNode():
                return rules.shared(node, "number", lambda: lower_number(node, rules))

    def _lower(self, node: Node) -> Expression:
        shared = self._shared_rule(node)
        return self._lower_unshared(node) if shared is None else shared

    def _lower_unshared(self, node: Node) -> Expression:
        """What `_shared_rule` has no rule for."""
        match node:
            case AnyOf(branches):
                return choice(*(self._lower(node) for node in branches if self._satisfiability.admits_some(node)))
            case Literals():
                return lower_literals(node.values, self._rules)
            case NullNode():
                return NULL
            case ArrayNode():
                prefix = [self.rule(position) for position in node.prefix]
                return lower_array(node, prefix, self.rule(node.items), self._rules)
            case ObjectNode():
                return self._lower_object(node)
        return NOTHING

    def _lower_object(self, node: ObjectNode) -> Expression:
        members = []
        for prop in node.properties:
            value = self.rule(prop.value)
            # A property without a possible value is one that never occurs; its name stays taken.
            if value is not None:
                members.append(Member(prop.name, value, prop.required))
        additional = None if node.additional is None else self.rule(node.additional)
        return lower_object(members, [prop.name for prop in node.properties], additional, self._rules)
