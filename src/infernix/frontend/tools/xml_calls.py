"""The calls of the XML way of writing, as a grammar: all that stands between the two marks of a call.

    \\n<function=NAME>\\n  ( <parameter=KEY>\\n VALUE \\n</parameter>\\n )*  </function>\\n

A strict tool's arguments come in declared order, strings as they are and all other values as JSON in the spacing of
templates. The others share one rule: any names in any order, any text as values. A value is any text without
`\\n</parameter>`; its end is part of its rule, so that no position has to keep in mind that it might have been there.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from infernix.errors import ConstraintError
from infernix.frontend.framing import ToolStyle
from infernix.frontend.tools.contract import ArgumentEncoding, ToolContract
from infernix.frontend.tools.parameter_framing import (
    FUNCTION,
    FUNCTION_END,
    NAME_END,
    NAME_EXCLUDES,
    PARAMETER,
    VALUE_END,
)
from infernix.frontend.tools.selection import tool_error
from infernix.frontend.tools.strict_schema import StrictSchema, read_strict_schema
from infernix.grammar.ir import (
    EMPTY,
    NOTHING,
    Expression,
    GrammarBuilder,
    Literal,
    Repeat,
    RuleReference,
    Sequence,
    choice,
    text,
)
from infernix.grammar.json_values import JsonRules, Spacing
from infernix.grammar.schema.lowering import Lowering
from infernix.grammar.schema.members import Member, MemberSyntax, lower_members
from infernix.grammar.schema.nodes import Literals, Node, Property, StringNode
from infernix.grammar.schema.pointers import Place
from infernix.grammar.schema.strings import has_raw_string, lower_raw_string
from infernix.grammar.unicode import character_class

_VALUE_END = text(VALUE_END + "\n")

_SYNTAX = MemberSyntax(
    opening=text(PARAMETER),
    next_opening=text(PARAMETER),
    spelled_name=lambda name: (name + NAME_END).encode(),
    after_name=EMPTY,
    after_value=EMPTY,
    closing=text(FUNCTION_END),
)


def xml_call(tools: SequenceOf[ToolContract], builder: GrammarBuilder) -> Expression:
    """Any call of one of `tools`, one at least, without its marks. Raises a ConstraintError that names the tool."""
    rules = JsonRules(builder, Spacing.TEMPLATE)
    calls: list[Expression] = []
    free = [text(tool.name + NAME_END) for tool in tools if not tool.strict]
    if free:
        calls.append(Sequence((choice(*free), _any_arguments(rules))))
    for tool in tools:
        if tool.strict:
            try:
                arguments = _StrictArguments(read_strict_schema(tool.parameters, ToolStyle.XML), rules).rule()
            except ConstraintError as error:
                raise tool_error(error, tool.name, tool.index) from None
            calls.append(Sequence((text(tool.name + NAME_END), arguments)))
    return Sequence((text(FUNCTION), choice(*calls)))


def _any_arguments(rules: JsonRules) -> RuleReference:
    excluded = [(ord(character), ord(character)) for character in NAME_EXCLUDES]
    name = Repeat(character_class(excluded, negated=True), 1, None)
    parameter = Sequence((text(PARAMETER), name, text(NAME_END), lower_raw_string(StringNode(), VALUE_END), _VALUE_END))
    return rules.builder.add("arguments", Sequence((Repeat(parameter, 0, None), text(FUNCTION_END))))


class _StrictArguments:
    """The arguments of one tool."""

    def __init__(self, schema: StrictSchema, rules: JsonRules) -> None:
        self._schema = schema
        self._rules = rules
        self._lowering = Lowering(schema.graph, schema.satisfiability, rules)

    def rule(self) -> RuleReference:
        """From behind the function's name to the end of the function."""
        members = []
        for prop in self._schema.properties():
            value = self._value(prop)
            if value is not None:
                members.append(Member(prop.name, value, prop.required))
        self._lowering.finish()
        body = lower_members(members, None, _SYNTAX, self._rules.builder)
        return self._rules.builder.add("arguments", body)

    def _value(self, prop: Property) -> Expression | None:
        """The values of an argument with their end; None where none can be written."""
        if self._schema.arguments[prop.name].encoding is ArgumentEncoding.TEXT:
            return self._raw_string(prop)
        value = self._lowering.rule(prop.value)
        assert value is not None
        return Sequence((value, _VALUE_END))

    def _raw_string(self, prop: Property) -> Expression | None:
        lowered = [self._raw_branch(branch, prop) for branch in self._schema.branches(prop.value)]
        options = [option for option in lowered if option != NOTHING]
        return choice(*options) if options else None

    def _raw_branch(self, branch: Node, prop: Property) -> Expression:
        if isinstance(branch, StringNode):
            return self._raw_text(branch, self._schema.place(prop))
        assert isinstance(branch, Literals)
        values = [value for value in branch.values if isinstance(value, str) and VALUE_END not in value]
        return choice(*(Literal((value + VALUE_END + "\n").encode()) for value in dict.fromkeys(values)))

    def _raw_text(self, node: StringNode, place: Place) -> Expression:
        if not has_raw_string(node, VALUE_END, place):
            return NOTHING
        return self._rules.shared(
            ("raw string", node), "text", lambda: Sequence((lower_raw_string(node, VALUE_END, place), _VALUE_END))
        )
